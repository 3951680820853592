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
from firnline.tables.log import ATTEMPT
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
