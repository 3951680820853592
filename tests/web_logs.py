"""Two logs of a pipeline with real files, made without a JVM."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from pyiceberg.table import Table

from firnline.model.description import Verdict
from firnline.model.digest import Digest
from firnline.model.fingerprint import Fingerprint
from firnline.model.graph import Graph
from firnline.plan.frontier import Frontier
from firnline.runtime import index
from firnline.runtime.project import Project
from firnline.tables.layers import KIND, MERGE, newest_exchange
from firnline.tables.log import ATTEMPT, LOWER
from firnline.tables.port import Exchange
from firnline.tables.sidecar import Sidecar
from tests.project import compiled, make_project

PIPELINE = """
    import firnline as fl

    web = fl.Pipeline("web", schedule=1, start=0)

    @web.source(keys=["k"], parts=2)
    def visits(epoch): ...

    @web.stage(keys=["k"], parts=2)
    def seen(visits): ...
"""
COLUMNS = pa.schema([("k", pa.int64())])
STORED = pa.schema([("k", pa.int64()), ("_epoch", pa.int64()), ("_diff", pa.int64()), ("_part", pa.int32())])


def staged(table: Table, attempt: str, epoch: int, parts: tuple[int, ...] = (0, 1)) -> int:
    """Stage an epoch as Spark does, beside the main line; part p gets p + 1 rows."""
    rows = [{"k": n, "_epoch": epoch, "_diff": 1, "_part": part} for part in parts for n in range(part + 1)]
    before = {snapshot.snapshot_id for snapshot in table.metadata.snapshots}
    table.append(pa.Table.from_pylist(rows, schema=STORED), snapshot_properties={ATTEMPT: attempt}, branch=None)
    (made,) = {snapshot.snapshot_id for snapshot in table.metadata.snapshots} - before
    return made


MADE_BY = Fingerprint("f" * 32, "p")


def publish(
    project: Project,
    collection: str,
    epoch: int,
    digests: dict[tuple[int, int], Digest] | None = None,
    made_by: Fingerprint = MADE_BY,
    attempt: str | None = None,
) -> None:
    log = project.log("web", collection)
    log.create(COLUMNS, ("k",), 0, {})
    attempt = attempt or f"{collection}{epoch}"
    head = log.head()
    assert head is not None
    snapshot = staged(project.catalog.iceberg("web", collection), attempt, epoch)
    counted = {(epoch, part): Digest(part + 1, part + 1, epoch, part) for part in (0, 1)} if digests is None else digests
    sidecar = Sidecar(collection, epoch, epoch + 1, attempt, made_by, {}, counted, 0.5)
    assert log.publish(head.description.generation, sidecar, snapshot) is Verdict.FREE


def merge(project: Project, collection: str, upto: int | None = None) -> None:
    """The layers of a log up to a point as one, as Spark would do it; all by default."""
    log = project.log("web", collection)
    table, entries = log.load(), [each for each in log.entries() if upto is None or each.description.upper <= upto]
    assert table is not None
    lower, upper = entries[-1].lower, entries[0].description.upper
    rows = project.catalog.iceberg("web", collection).scan(f"_epoch < {upper}").to_arrow().to_pylist()
    merged = pa.Table.from_pylist([{**row, "_epoch": upper - 1} for row in rows], schema=STORED)
    project.catalog.stage(table, merged, {ATTEMPT: f"{collection}m", LOWER: str(lower), KIND: MERGE})
    out = tuple(file.path for file in log.held(table) if file.last < upper)
    digests: dict[tuple[int, int], Digest] = {}
    for entry in entries:
        for (_, part), digest in log.sidecar(entry).digests.items():
            digests[upper - 1, part] = digests.get((upper - 1, part), Digest()) + digest
    names = tuple(entry.attempt for entry in entries)
    note = Sidecar(
        collection, lower, upper, f"{collection}m", Fingerprint("f" * 32, "p"), {}, digests, 1.5, merged=names, out=out
    )
    newest, generation = newest_exchange(table), entries[0].description.generation
    change = Exchange(frozenset(out), (log.staged(f"{collection}m"),))
    assert log.exchange(generation, None if newest is None else newest.id, note, change) is Verdict.FREE


def of_today(project: Project, code: str = MADE_BY.code) -> Graph:
    """The pipeline, as if its code were that which the logs say made them."""
    graph = project.graph("web")
    return replace(graph, fingerprints=dict.fromkeys(graph.fingerprints, code))


def copies(root: Path, pipeline: str = PIPELINE) -> Callable[[], Project]:
    """Makes copies of two logs of three epochs and two parts, and a frontier after the third."""
    made = compiled(make_project(root, web=pipeline), "web")
    for epoch in range(3):
        for collection in ("visits", "seen"):
            publish(made, collection, epoch)
    made.control("web").advance(Frontier(3, {"visits": 0, "seen": 0}))
    index.rebuild(made, made.graph("web"))
    kept = root.with_name("kept")

    def copy() -> Project:
        # Tables name their files by absolute path, so that a copy must take the place of the original.
        if not kept.exists():
            shutil.copytree(root, kept, symlinks=True)
        shutil.rmtree(root)
        shutil.copytree(kept, root, symlinks=True)
        return Project.load(root)

    return copy
