"""What the page is told, as JSON values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from firnline.airflow.names import epoch_task
from firnline.errors import FirnlineError
from firnline.model.epoch import to_datetime
from firnline.model.foreign import is_foreign
from firnline.model.graph import Graph
from firnline.plan.grid import State
from firnline.runtime.diff import Diff
from firnline.runtime.history import Told
from firnline.runtime.lineage import Lineage
from firnline.runtime.overview import Cell, Overview
from firnline.web.runs import Key, Task

WORST: tuple[str, ...] = ("failed", "gap", "running", "missing", "stale", "repaired", "computed", "kept", "merged")
"""The states of an epoch, the one that a summary should tell first."""
LIVE = frozenset({"running", "queued", "scheduled", "restarting", "deferred", "up_for_reschedule"})
RELEASABLE = frozenset({"reader", "sink"})
"""The kinds of hold that somebody asked for by itself; that of a branch goes with it, the others follow from facts."""


def pipeline_document(graph: Graph, found: Overview, tasks: Mapping[Key, Task]) -> dict[str, Any]:
    """A pipeline at a glance, with what Airflow knows of the epochs shown."""
    document = asdict(found)
    for line, told in zip(found.collections, document["collections"], strict=True):
        told["cells"] = [_cell(graph, line.name, cell, tasks) for cell in line.cells]
    for hold in document["safety"]["holds"]:
        hold["is_releasable"] = hold["kind"] in RELEASABLE
    document["status"]["late_by"] = _in_minutes(found.status.late_by)
    return document


def _in_minutes(seconds: float | None) -> int | None:
    """Seconds, up to a whole minute: an answer changes, and is sent again, once a minute and not whenever somebody asks."""
    return None if seconds is None else 60 * math.ceil(seconds / 60)


def _cell(graph: Graph, collection: str, cell: Cell, tasks: Mapping[Key, Task]) -> dict[str, Any]:
    name = epoch_task(graph) if graph.tasks == "per-epoch" else collection
    task = tasks.get((name, to_datetime(graph.schedule.point(cell.epoch)))) if graph.schedule.timed else None
    return {**asdict(cell), "state": _state(cell.state, task), "task": name, "run": None if task is None else task.run}


def _state(state: State, task: Task | None) -> str:
    """What the log says, unless Airflow knows more: that a task is at it, or that the last one found it done."""
    if task is None:
        return state
    if task.state in LIVE and state in ("missing", "failed"):
        return "running"
    return "kept" if state == "computed" and task.outcome == "kept" else state


def summary_document(found: Overview) -> dict[str, Any]:
    """A pipeline in a line."""
    epochs = zip(*(line.cells for line in found.collections), strict=True)
    return {
        "pipeline": found.pipeline,
        "doc": found.doc,
        "frontier": found.status.frontier,
        "safe_point": found.status.safe_point,
        "lag": found.lag,
        "late_by": _in_minutes(found.status.late_by),
        "conditions": [line.condition for line in found.collections],
        "strip": [{"epoch": cells[0].epoch, "state": min((cell.state for cell in cells), key=WORST.index)} for cells in epochs],
    }


def unloaded_document(pipeline: str, error: FirnlineError) -> dict[str, Any]:
    """A pipeline that does not load, in a line."""
    return {"pipeline": pipeline, "error": error.as_json()}


def storage_document(found: Told) -> dict[str, Any]:
    """How the logs of a pipeline grew, and what maintenance did about it."""
    label = found.graph.schedule.label
    own = {each.name for each in found.graph.collections}
    samples = [
        {**asdict(each), "upper": label(each.upper), "since": label(each.since), "amplification": each.amplification}
        for each in found.samples
    ]
    runs = [
        {"at": each.at.isoformat(), "safe": label(each.safe)}
        | {name: getattr(each, name) for name in ("seconds", "rewritten", "merges", "snapshots", "files", "freed")}
        for each in found.runs
    ]
    return {"samples": [{**each, "is_hidden": each["collection"] not in own} for each in samples], "runs": runs}


def diff_document(found: Diff) -> dict[str, Any]:
    """Where two sides differ, by their digests: no row of either is told."""
    told = ("collection", "verdict", "why", "parts", "differing_parts", "epochs", "columns_added", "columns_removed")
    lines = [{name: value for name, value in asdict(each).items() if name in told} for each in found.collections]
    return {"before": found.before, "after": found.after, "first": found.first, "collections": lines}


def lineage_document(found: Lineage, unseen: frozenset[str]) -> dict[str, Any]:
    """A publication's lineage, without those of pipelines that the reader may not see."""
    seen = tuple(node for node in found.nodes if not is_foreign(node.collection) or _pipeline(node.collection) not in unseen)
    ids = {node.id for node in seen}
    edges = tuple(edge for edge in found.edges if edge.reader in ids and edge.input in ids)
    return asdict(replace(found, nodes=seen, edges=edges))


def pipelines_of(found: Lineage) -> frozenset[str]:
    """The other pipelines that a lineage tells about."""
    return frozenset(_pipeline(node.collection) for node in found.nodes if is_foreign(node.collection))


def _pipeline(collection: str) -> str:
    return collection.partition(".")[0]
