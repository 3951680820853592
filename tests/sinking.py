"""A pipeline with two sources and sinks of all kinds, and a history with values of all kinds; without a JVM."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from firnline.failpoints import VARIABLE
from firnline.model.epoch import Epoch
from firnline.runtime.advance import complete
from firnline.runtime.project import Declared, Project
from firnline.runtime.sink import Delivered, deliver
from tests.project import ROOT, make_project
from tests.shelf import Delta, Row, Shelf, emptied

PIPELINE = """
    import json
    import os
    from pathlib import Path

    import firnline as fl

    web = fl.Pipeline("web", schedule=1, start=0, keep="1 epochs")

    @web.source(keys=["id", "zone"], parts=4)
    def visits(epoch): ...

    @web.sink()
    def table(epoch, visits):
        return fl.to_postgres(visits, table="visits", dsn="REPORTS")

    @web.sink()
    def parquet(epoch, visits):
        return fl.to_files(visits, "out/parquet")

    @web.sink()
    def text(epoch, visits):
        return [fl.to_files(visits.select("id", "zone", "tags"), f"out/{kind}", format=kind) for kind in ("csv", "json")]

    @web.sink()
    def tell(epoch, visits):
        \"\"\"Append what is delivered to a file, as a service that remembers what it was told.\"\"\"
        if Path("broken").exists():
            raise ConnectionError("nobody answers")
        rows = visits.to_arrow().num_rows
        line = {"key": epoch.key, "lower": epoch.lower, "upper": epoch.upper, "after": visits.after, "rows": rows}
        with open("told", "a") as file:
            file.write(json.dumps(line) + "\\n")
"""
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("zone", pa.string()),
        ("rate", pa.float64()),
        ("small", pa.float32()),
        ("price", pa.decimal128(20, 4)),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("seen", pa.bool_()),
        ("count", pa.int32()),
        ("raw", pa.binary()),
        ("tags", pa.list_(pa.string())),
        ("inner", pa.struct([("x", pa.float64()), ("n", pa.decimal128(5, 2))])),
        ("odd \"näme'", pa.string()),
    ]
)


def row(number: int | None, version: int = 0) -> Row:
    n = number or 0
    return {
        "id": number,
        "zone": None if n == 3 else "ä'\"\\\t\n🦊",
        "rate": (0.1, float("nan"), float("-inf"), None)[n % 4],
        "small": (0.10000000149011612, float("nan"), None)[n % 3],
        "price": None if n == 5 else Decimal("1234567890123456.7890") + version,
        "day": date(1, 1, 1) if n == 7 else date(2026, 2, 28),
        "at": datetime(2026, 1, 1, 0, 0, 0, 123456, tzinfo=UTC),
        "local": None if n == 1 else datetime(1969, 12, 31, 23, 59, 59, 999999),
        "seen": (True, False, None)[n % 3],
        "count": -n,
        "raw": None if n == 2 else bytes([0, 255, n]),
        "tags": None if n == 4 else ["\\N", str(version), None],
        "inner": None if n == 6 else {"x": float("nan") if n == 8 else 0.5, "n": Decimal("1.10")},
        "odd \"näme'": f"v{version}" if n % 2 else "",
    }


HISTORY: list[Delta] = [
    [(row(number), 1) for number in (None, *range(12))],
    [(row(3), -1), (row(3, 1), 1), (row(None), -1), (row(7), -1), (row(1), -1), (row(1, 1), 1)],
    [],
    [(row(number), 1) for number in range(20, 24)],
    [(row(3, 1), -1), (row(3), 1), (row(None, 5), 1), *((row(number), -1) for number in range(20, 24)), (row(7, 2), 1)],
]


def made(root: Path) -> Path:
    """The project's folder, with its graph compiled."""
    make_project(root, web=PIPELINE).graph("web")
    return root


class Sinking(Shelf):
    """The collection, and its sinks."""

    @classmethod
    def at(cls, root: Path) -> Sinking:
        return cls(emptied(root), "web", "visits", SCHEMA, ("id", "zone"), parts=4)

    @cached_property
    def declared(self) -> Declared:
        return self.project.declared("web")

    def follow(self, *deltas: Delta) -> None:
        """More epochs, complete."""
        for delta in deltas:
            self.publish(delta)
            complete(self.project, self.project.graph("web"), Epoch(len(self.deltas) - 1, len(self.deltas)))

    def deliver(self, sink: str) -> list[str]:
        """What a sink delivers now."""
        here = os.getcwd()
        os.chdir(self.project.settings.root)
        try:
            found: list[Delivered] = list(deliver(Project(self.project.settings), self.declared, sink))
        finally:
            os.chdir(here)
        return [each.epoch for each in found]

    def told(self) -> list[dict[str, Any]]:
        path = self.project.settings.root / "told"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def delivering(root: Path, sink: str, **environment: str) -> subprocess.Popen[str]:
    """A process that lets a sink deliver."""
    code = (
        "import sys; from firnline.runtime.project import Project; from firnline.runtime.sink import deliver; "
        "project = Project.load(); print([each.epoch for each in deliver(project, project.declared('web'), sys.argv[1])])"
    )
    more = {**os.environ, "PYTHONPATH": str(ROOT / "src"), **environment}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-c", code, sink], cwd=root, env=more, text=True, **pipes)


def killed(root: Path, sink: str, point: str, **environment: str) -> None:
    """Let a process deliver that is killed at a point."""
    child = delivering(root, sink, **{VARIABLE: f"{point}=kill"}, **environment)
    said, complaint = child.communicate(timeout=120)
    assert child.returncode == -signal.SIGKILL, said + complaint
