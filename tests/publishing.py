"""Logs with publications and lineage, made without Spark: what a stage run leaves behind, but for the rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import pyarrow as pa

from firnline import Pipeline
from firnline.model.description import Verdict
from firnline.model.digest import Digest
from firnline.model.epoch import Epoch
from firnline.model.fingerprint import Fingerprint
from firnline.model.graph import Graph, check
from firnline.runtime.project import Project
from firnline.tables.log import PARTITION_BY, PARTS, Entry
from firnline.tables.sidecar import Input, Sidecar

How = Literal["same", "all"]


def web() -> Graph:
    """Two sources, a stage of both, and a stage of that and of one of the sources; epochs are integers."""
    pipeline = Pipeline("web", schedule=1, start=0)

    @pipeline.source(keys=["k"], parts=2)
    def visits(epoch: Any) -> Any: ...

    @pipeline.source(keys=["k"])
    def pages(epoch: Any) -> Any: ...

    @pipeline.stage(keys=["k"], parts=2)
    def seen(visits: Any, pages: Any) -> Any: ...

    @pipeline.stage(keys=["k"])
    def totals(seen: Any, pages: Any) -> Any: ...

    return check(pipeline, dict.fromkeys(("visits", "pages", "seen", "totals"), "f" * 32))


READS: Mapping[str, Mapping[str, How]] = {
    "visits": {},
    "pages": {},
    "seen": {"visits": "same", "pages": "all"},
    "totals": {"seen": "all", "pages": "same"},
}


def publish(
    project: Project,
    collection: str,
    epoch: int,
    reads: Mapping[str, How] | None = None,
    *,
    determinants: Mapping[str, Any] | None = None,
    code: str = "f" * 32,
) -> Entry:
    """Publish an epoch of a collection: part p gets p + 1 rows."""
    log = project.log("web", collection)
    log.create(pa.schema([("k", pa.string())]), ("k",), 0, {})
    inputs = {}
    for name, how in (READS.get(collection, {}) if reads is None else reads).items():
        head = project.log("web", name).head()
        assert head is not None
        assert head.snapshot is not None
        rows = sum(entry.rows for entry in project.log("web", name).entries(epoch) if entry.lower == epoch)
        inputs[name] = Input(head.description.generation, epoch + 1, head.snapshot, rows, how)
    parts = 2 if collection in ("visits", "seen") else 1
    digests = {(epoch, part): Digest(part + 1, part + 1, 2**64 - 1 - part, epoch) for part in range(parts)}
    sidecar = Sidecar(
        collection,
        epoch,
        epoch + 1,
        f"{collection}{epoch}",
        Fingerprint(code),
        inputs,
        digests,
        0.5,
        determinants or {},
    )
    head = log.head()
    assert head is not None
    log.publish(head.description.generation, sidecar, None)
    return next(log.entries())


def publish_all(project: Project, *epochs: int) -> None:
    """Publish epochs of all collections of ``web``."""
    for epoch in epochs:
        for collection in READS:
            publish(project, collection, epoch)


def publish_row(project: Project, graph: Graph, collection: str, epoch: Epoch) -> None:
    """Publish one row of an epoch, by the code that the graph has."""
    log = project.log(graph.name, collection)
    log.create(pa.schema([("k", pa.string())]), ("k",), graph.schedule.start, {PARTITION_BY: '["k"]', PARTS: "1"})
    head = log.head()
    assert head is not None
    generation, key = head.description.generation, f"{collection} {graph.schedule.label(epoch.lower)}"
    attempt = f"{collection}{epoch.lower}g{generation}"
    columns = pa.schema([("k", pa.string()), ("_epoch", pa.int64()), ("_diff", pa.int64()), ("_part", pa.int32())])
    rows = pa.Table.from_pylist([{"k": key, "_epoch": epoch.lower, "_diff": 1, "_part": 0}], schema=columns)
    log.stage(attempt, epoch.lower, rows)
    digests = {(epoch.lower, 0): Digest(1, 1, epoch.lower + 1, epoch.lower + 7)}
    made_by = Fingerprint(graph.fingerprints[collection])
    sidecar = Sidecar(collection, epoch.lower, epoch.upper, attempt, made_by, {}, digests, 0.5, parts=1)
    assert log.publish(generation, sidecar, log.staged(attempt)) is Verdict.FREE
