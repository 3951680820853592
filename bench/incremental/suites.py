"""The suites by name, and what each measures by default."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bench.incremental import amplab, tpch
from bench.incremental.workload import Workload


@dataclass(frozen=True)
class Suite:
    """A workload at some scales, and how much changes: a share of all rows, or from 1 on a number of rows."""

    title: str
    workload: Callable[[float], Workload]
    scales: tuple[float, ...]
    changes: tuple[float, ...]
    has_rivals: bool = True
    """Whether Spark's full recompute and MERGE compete too; DuckDB always does, as its answers are the right ones."""


SUITES: Mapping[str, Suite] = {
    "tpch": Suite("TPC-H, join + aggregate", tpch.join, (1, 5), (0.0001, 0.001, 0.01)),
    "tpch22": Suite("TPC-H, 22 queries", tpch.all_queries, (1,), (0.001,)),
    "amplab": Suite("AMPLab, join", amplab.join, (2, 20), (0.0001, 0.001, 0.01)),
    "growth": Suite("TPC-H, join + aggregate, a fixed change", tpch.join, (1, 2, 5, 10), (10_000,), has_rivals=False),
}


def workload(suite: str, scale: float) -> Workload:
    """The workload of a suite at a scale, under the suite's own name."""
    made = SUITES[suite].workload(scale)
    return Workload(**{**vars(made), "suite": suite})
