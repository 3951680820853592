"""TPC-H, all 22 queries incrementally, as functions and as SQL, over a refresh stream: DuckDB says the same at every epoch."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql.connect.session import SparkSession

from bench.tpch.data import stream
from bench.tpch.queries import KEYS
from firnline.runtime import finding
from firnline.runtime.advance import advance
from firnline.runtime.project import Project
from firnline.tables import scan
from tests.oracle.tpch import comparable, expected, state
from tests.project import make_project

SCALE, FRACTION, SCALE_OF_Q11 = 0.02, 0.02, 0.1
EPOCHS, DAY = 5, 86_400_000_000
CASES = [
    pytest.param("functions", "q13", 3),
    pytest.param("texts", "q15", 3),
    *(pytest.param(form, query, EPOCHS, marks=pytest.mark.nightly) for form in ("functions", "texts") for query in KEYS),
]
PIPELINE = """
    import inspect

    import pyarrow.parquet as pq
    from pyspark.sql.pandas.types import from_arrow_schema

    import firnline as fl
    from bench.tpch import data
    from bench.tpch.queries import KEYS, queries
    from bench.tpch.sql import texts

    tpch = fl.Pipeline("tpch", schedule="@daily", start="2026-01-01")


    def source(table):
        def read(epoch):
            found = from_arrow_schema(pq.read_schema("{changes}/2026-01-01/" + table + ".parquet"))
            schema = ", ".join(field.name + " " + field.dataType.simpleString() for field in found.fields)
            return epoch.files("{changes}/{{epoch:%Y-%m-%d}}/" + table + ".parquet", format="parquet", schema=schema)

        read.__name__ = table
        tpch.source(keys=data.KEYS[table])(read)


    def stage(name, query, text):
        query.__name__ = name
        tpch.stage(keys=KEYS[name], refresh="incremental")(query)
        parameters = ", ".join(inspect.signature(query).parameters)
        written = eval(f"lambda {{parameters}}: None")
        written.__name__ = name + "_sql"
        tpch.sql(text, keys=KEYS[name], refresh="incremental")(written)


    for table in data.TABLES:
        source(table)
    for name, query in queries({scale}).items():
        stage(name, query, texts({scale})[name])
"""


@pytest.fixture(scope="module")
def changes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stream(tmp_path_factory.mktemp("tpch"), SCALE, EPOCHS, FRACTION)


@pytest.fixture(scope="module")
def tpch(lake: tuple[Path, SparkSession], changes: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    settings = f'work = "{lake[0]}"\nroots = ["{changes}"]\n'
    text = PIPELINE.format(scale=SCALE_OF_Q11, changes=changes)
    return make_project(tmp_path_factory.mktemp("project"), settings, tpch=text)


@pytest.mark.parametrize(("form", "query", "count"), CASES)
def test_every_epoch_equals_duckdb(
    spark: SparkSession, tpch: Project, changes: Path, form: str, query: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if form != "functions":
        monkeypatch.setattr(finding, "FEW_ROWS", -1)  # read by Spark, as large logs are
    declared = tpch.declared("tpch")
    schedule = declared.graph.schedule
    name = query if form == "functions" else f"{query}_sql"
    for number, epoch in enumerate(schedule.epochs(schedule.start, schedule.start + count * DAY), start=1):
        for table in declared.graph.collection(name).inputs:
            list(advance(tpch, declared, spark, table, epoch))
        list(advance(tpch, declared, spark, name, epoch))
        found = scan.state(tpch.catalog.iceberg("tpch", name), epoch.upper)
        rows = list(zip(*(found[column].to_pylist() for column in found.column_names), strict=True))
        assert comparable(rows) == expected(state(changes, number), query, SCALE_OF_Q11), f"epoch {number}"
