"""What somebody sees who only knows SQL: a process of its own, with Iceberg's extensions. Prints what it found as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa

from firnline.engine.session import opened
from firnline.runtime.project import Project
from firnline.tables.views import keep
from tests.shelf import Delta, Shelf

SETTINGS = """
    spark_master = "local[1]"
    spark_java_options = "-XX:TieredStopAtLevel=1"
    [spark_conf]
    "spark.sql.extensions" = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
"""
SCHEMA = pa.schema([("id", pa.int64()), ("odd`name", pa.float64()), ("facts", pa.map_(pa.string(), pa.int64()))])


def row(number: int, rate: float, fact: int = 0) -> dict[str, Any]:
    return {"id": number, "odd`name": rate, "facts": [("b", 1), ("a", fact)]}


HISTORY: list[Delta] = [
    [(row(number, float(number)), 1) for number in range(5)],
    [({**row(1, 1.0), "facts": [("a", 0), ("b", 1)]}, -1), (row(1, float("nan")), 1), (row(0, -0.0), -1)],
    [(row(7, -0.0, 3), 1)],
    [(row(7, 0.0, 3), -1)],
]


def main(root: str) -> None:
    project = Project.load(Path(root))
    shelf = Shelf(project, "web", "visits", SCHEMA, ("id",))
    found: dict[str, Any] = {"states": [], "expected": []}
    with opened(project.settings, "sql") as session:

        def ask(text: str) -> list[Any]:
            return [list(each) for each in session.sql(text).collect()]

        for number, delta in enumerate(HISTORY):
            shelf.publish(delta)
            if number % 2 == 0:
                shelf.complete()
            table = shelf.log.load()
            assert table is not None
            keep(project.catalog, table, "Visits of pages.")
            seen = number + 1 if number % 2 == 0 else number
            found["states"].append(ask("SELECT id, `odd``name`, facts['a'] FROM lake.web__views.visits ORDER BY id"))
            state = sorted(shelf.state(seen), key=lambda each: each["id"])
            found["expected"].append([[each["id"], each["odd`name"], dict(each["facts"])["a"]] for each in state])
        shelf.merge(0, 3)
        found["merged"] = ask("SELECT count(*) FROM lake.web__views.visits")[0][0]
        found["above"] = ask("SELECT id FROM lake.web__views.visits WHERE `odd``name` > 3 ORDER BY id")
        found["zero"] = ask("SELECT id FROM lake.web__views.visits WHERE `odd``name` = 0 ORDER BY id")
        found["views"] = ask("SHOW VIEWS IN lake.web__views")
        found["plan"] = ask("EXPLAIN SELECT id FROM lake.web__views.visits WHERE id = 3")[0][0]
        found["columns"] = [each[0] for each in ask("DESCRIBE lake.web__views.visits")]
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
