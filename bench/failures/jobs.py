"""What runs on the cluster: a copy of the stage, or plain Spark; in a session of this process, or in a driver of its own."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql.connect.session import SparkSession

from bench.failures.pipeline import EPOCH, NAME, joined
from firnline.engine.session import opened
from firnline.runtime.advance import advance
from firnline.runtime.project import Project
from firnline.world import World, replaced

PLAIN = "plain"
_SPACE = "lake.failures_plain"


class Waves(World):
    """The real world, which counts staged waves, and does something a moment after the first."""

    def __init__(self, delay: float = 0.0, act: Callable[[], None] | None = None) -> None:
        super().__init__()
        self.staged = 0
        self._timer = None if act is None else threading.Timer(delay, act)

    def reach(self, point: str) -> None:
        """Count."""
        super().reach(point)
        if point == "wave.staged":
            self.staged += 1
            if self.staged == 1 and self._timer is not None:
                self._timer.start()


def advanced(project: Project, session: SparkSession, name: str, waves: Waves) -> float:
    """Compute a collection; the seconds that it took."""
    began = time.monotonic()
    with replaced(waves):
        list(advance(project, project.declared(NAME), session, name, EPOCH))
    return time.monotonic() - began


def plain_inputs(session: SparkSession, tables: dict[str, str]) -> None:
    """The sources as plain Iceberg tables, from their logs."""
    session.sql(f"CREATE NAMESPACE IF NOT EXISTS {_SPACE}")
    for name, table in tables.items():
        session.table(table).drop("_epoch", "_diff", "_part").writeTo(f"{_SPACE}.{name}").createOrReplace()


def plainly_joined(session: SparkSession) -> float:
    """The whole job as plain Spark does it; the seconds that it took."""
    began = time.monotonic()
    inputs = (session.table(f"{_SPACE}.{name}") for name in ("visits", "pages"))
    joined(*inputs).writeTo(f"{_SPACE}.joined").createOrReplace()
    return time.monotonic() - began


def plain_rows(session: SparkSession) -> tuple[int, int]:
    """What plain Spark wrote, in two numbers."""
    return counted(session, f"{_SPACE}.joined")


def counted(session: SparkSession, table: str) -> tuple[int, int]:
    """Rows and a sum of hashes that do not depend on their order, by Spark's own hash."""
    columns = "visit_id, source_ip, dest_url, ad_revenue, page_rank"
    row = session.sql(f"SELECT count(*), sum(cast(xxhash64({columns}) AS decimal(38))) FROM {table}").collect()[0]
    return int(row[0]), int(row[1])


def main(root: str, name: str) -> None:
    """Run one as a process of its own; how many waves it staged."""
    project, waves = Project.load(Path(root)), Waves()
    with opened(project.settings, name) as session:
        if name == PLAIN:
            plainly_joined(session)
        else:
            advanced(project, session, name, waves)
    print(json.dumps(waves.staged))


if __name__ == "__main__":
    main(*sys.argv[1:])
