"""Work beside the epochs, interrupted for real: maintenance, repairs, copies, rescales, erasures, rewinds.

A process of its own does the work and meets the fault; then, or meanwhile, somebody else does the same. Afterwards every row is
what DuckDB makes of the same deliveries, logs and storage agree, and epochs go on. A few cases are tried with every change; at
night, all of them. Branches, promotions, sinks and plain tables have tests of their own.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path

import duckdb
import pytest
from pyspark.sql.connect.session import SparkSession

from firnline.failpoints import POINTS, Kind
from firnline.runtime.maintain import maintained
from firnline.runtime.project import Project
from firnline.runtime.verify import verify
from firnline.tables.failures import Failure, Failures
from tests.faults.judging import PIPELINE, Make, new_name, started, until
from tests.faults.test_faults import OF_AN_EPOCH, WAVED
from tests.faults.working import ACTS, ERASED, RESCALED
from tests.oracle.amplab import comparable
from tests.project import ROOT
from tests.spark.running import rows, run_epoch
from tests.verifying import data_file, local, taken

EPOCHS = 6
"""So many that the oldest are merged."""
WORK: Mapping[str, tuple[str, ...]] = {
    "maintain": (
        "safepoint.judged",
        "safepoint.committed",
        "merge.judged",
        "merge.described",
        "merge.committed",
        "merge.lost",
        "trash.written",
        "expire.committed",
        "trash.removed",
        "trash.closed",
        "prune.removed",
    ),
    "undo": ("undo.committed",),
    "repair": ("repair.judged", "repair.described", "repair.committed", "repair.lost"),
    "replicate": ("replicate.copied", "replicate.recorded"),
    "rescale": ("rescale.staged", "rescale.judged", "rescale.described", "rescale.committed", "rescale.lost"),
    "erase": ("erase.judged", "erase.committed", "erase.removed"),
    "rewind": tuple(point for point in POINTS if point.startswith("rewind.")),
}
TRIED_ALWAYS = {("merge.committed", "kill"), ("trash.removed", "kill")}
OVERTAKEN = {f"{of}.lost": f"{of}.judged" for of in ("merge", "repair", "rescale")}
"""Nobody comes here who is the only one: where somebody else comes first."""


ELSEWHERE = {
    "schema.": "unit/runtime/test_columns.py",
    "rename.": "unit/runtime/test_renaming.py",
    "branch.": "contract/test_branch.py",
    "promote.": "faults/test_promote.py",
    "repair.gaps_": "unit/runtime/test_gaps.py",
    "sink.": "unit/runtime/test_sink.py",
    "table.": "unit/runtime/test_plain_tables.py",
}
"""Points that are tried by other tests."""


def test_every_point_is_tried_somewhere() -> None:
    tried = {WAVED, *OF_AN_EPOCH, *(point for points in WORK.values() for point in points)}
    left = [point for point in POINTS if point not in tried]
    assert [point for point in left if not point.startswith(tuple(ELSEWHERE))] == []
    for prefix, file in ELSEWHERE.items():
        text = (ROOT / "tests" / file).read_text()
        assert all(point in text for point in left if point.startswith(prefix)), file


def _cases() -> list[object]:
    cases = [(act, point, kind) for act, points in WORK.items() for point in points for kind in POINTS[point][1]]
    return [pytest.param(*case, marks=() if case[1:] in TRIED_ALWAYS else pytest.mark.nightly) for case in cases]


@pytest.mark.parametrize(("act", "point", "kind"), _cases())
def test_every_row_is_right_after(act: str, point: str, kind: Kind, project: Make, spark: SparkSession, tmp_path: Path) -> None:
    name = new_name()
    options = f', replicas=["file://{tmp_path}/replica"]' if act == "replicate" else ""
    code = PIPELINE.format(name=name).replace("start=0", f'start=0, keep="1 epoch"{options}')
    made = project(**{name: code})
    for epoch in range(EPOCHS):
        run_epoch(made, spark, name, str(epoch))
    _PREPARED.get(act, lambda *_: None)(made, spark, name)
    gate, fault = tmp_path / "gate", f"{point}={kind}"
    child = started(made, spark, name, f"{OVERTAKEN[point]}=twice,{fault}" if point in OVERTAKEN else fault, gate, act)
    if point in OVERTAKEN:
        until(gate.exists)
        overtake = ACTS[act] if act == "repair" else _merge  # all of maintenance would drop what is staged; two rescales share it
        overtake(made, spark, name)
        gate.unlink()
    if kind in ("hang", "twice"):
        until(gate.exists)
        ACTS[act](made, spark, name)
        gate.unlink() if kind == "twice" else child.kill()
    said, complaint = child.communicate(timeout=300)
    if kind in ("kill", "hang"):
        assert child.returncode == -signal.SIGKILL, said + complaint
    elif (act, kind) == ("replicate", "lost"):  # a copy is not looked for again: it is told, and the next run goes on
        assert "REPLICA_UNAVAILABLE" in said + complaint
    elif kind != "raise":
        assert child.returncode == 0, said + complaint
    ACTS[act](made, spark, name)
    if act == "rescale":
        made = project(**{name: code.replace("parts=2", f"parts={RESCALED}")})
    last = run_epoch(made, spark, name, str(EPOCHS))
    assert {outcome.epoch.upper for outcome in last} >= {EPOCHS + 1}
    _check(made, name, f"NOT ({ERASED})" if act == "erase" else "true")


def _check(made: Project, name: str, kept: str) -> None:
    """An erasure takes out what is there, and not what the epoch after it brings."""
    delivered = f"SELECT e * 10 + n AS k, n % 3 AS g, n::DOUBLE AS x FROM range(10) t(n), range({EPOCHS + 1}) u(e)"
    numbers = duckdb.sql(f"SELECT * FROM ({delivered}) WHERE {kept}").fetchall()
    totals = duckdb.sql(f"SELECT g, sum(x), count(*) FROM ({delivered}) WHERE {kept} GROUP BY g").fetchall()
    graph = made.graph(name)
    assert rows(made, graph, "numbers") == comparable(numbers)
    assert rows(made, graph, "totals") == comparable(totals)
    assert verify(made, name).problems == ()
    frontier = made.control(name).frontier()
    assert frontier is not None
    assert frontier.upper == EPOCHS + 1


def _lose(made: Project, _: SparkSession, name: str) -> None:
    local(data_file(taken(made, name, "numbers"), 1, 0).file.path).unlink()


def _merge(made: Project, spark: SparkSession, name: str) -> None:
    assert "merge" in [done.step.what for done in maintained(made, made.graph(name), lambda: spark, timedelta(days=1))]


def _note(made: Project, _: SparkSession, name: str) -> None:
    """Something to prune, once the first epoch is merged."""
    Failures(made.catalog, name).note(Failure("numbers", 0, 1, "a0", "STAGE_FAILED", "it failed", True, "2026-01-01T00:00:00Z"))


_PREPARED: Mapping[str, Callable[[Project, SparkSession, str], None]] = {"maintain": _note, "repair": _lose, "undo": _merge}
