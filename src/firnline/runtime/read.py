"""``firnline.read``: collections as DataFrames, whole epochs only, all after one and the same."""

from __future__ import annotations

import atexit
import logging
from collections.abc import Sequence
from contextlib import ExitStack
from functools import cache
from typing import TYPE_CHECKING, overload

from firnline.errors import FirnlineError
from firnline.model.graph import Graph
from firnline.model.names import BOOKKEEPING, DIFF, quoted
from firnline.plan.safepoint import compacted
from firnline.runtime.cut import consistent
from firnline.runtime.gaps import of_pipeline, sentence
from firnline.runtime.project import Project

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession

    from firnline.tables.log import Entry
    from firnline.tables.metadata import Metadata

_MOST_BROADCAST = 1_000_000
"""Removed rows whose keys every task is told; beyond that, all rows are brought together."""
_MOST_AT_HAND = 8 << 20
"""Bytes of rows that stand in a plan: several frames may meet in one, and a message of Connect has 128 MB at most."""
_logger = logging.getLogger(__name__)


@overload
def read(
    name: str, /, *, as_of: str | None = None, session: SparkSession | None = None, project: Project | None = None
) -> DataFrame: ...
@overload
def read(
    *names: str, as_of: str | None = None, session: SparkSession | None = None, project: Project | None = None
) -> tuple[DataFrame, ...]: ...
def read(
    *names: str, as_of: str | None = None, session: SparkSession | None = None, project: Project | None = None
) -> DataFrame | tuple[DataFrame, ...]:
    """The rows of a collection after an epoch; of several of a pipeline, all after the same one.

    Args:
        names: ``pipeline.collection``. For more than one a tuple is returned.
        as_of: The epoch; the newest that is complete in all of the pipeline's collections by default.
        session: A Connect session that knows the project's catalog; by default one of our own, which ends with the process.
        project: The project; the one around the current folder by default.
    """
    found = project or Project.load()

    def view(graph: Graph, collection: str, upto: int) -> DataFrame:
        graph.collection(collection)
        warn(found, graph, collection, upto)
        return frame(found, session, graph, collection, upto)

    frames = consistent(found, names, as_of, view)
    return frames[0] if len(frames) == 1 else tuple(frames)


def warn(project: Project, graph: Graph, collection: str, upto: int) -> None:
    """Say that rows are missing, where they are."""
    found = of_pipeline(project, graph, upto)[collection]
    for missing in found.missing:
        _logger.warning("%s is %s complete; missing: %s", found.collection, found, sentence(missing))


def frame(
    project: Project, session: SparkSession | None, graph: Graph, collection: str, upto: int, generation: int | None = None
) -> DataFrame:
    """The rows of a collection before a point; of one generation only, if one is given."""
    from firnline.engine.frames import deltas, exact, net_changes, settled_state, state, table_name
    from firnline.tables.log import entries_of

    loaded, snapshot = readable(project, graph, collection, upto, generation)
    opened = session or shared(project)
    table = table_name(graph.name, collection)
    columns = [column for column in loaded.columns if column not in BOOKKEEPING]
    layers = [entry for entry in entries_of(loaded) if entry.lower < upto]
    settled, removed = _settled(graph.schedule.start, layers)
    keys = graph.collection(collection).keys
    if settled == graph.schedule.start or removed > _MOST_BROADCAST or not keys:
        return exact(state(opened, table, snapshot, upto, columns))
    if settled >= upto:
        return exact(deltas(opened, table, snapshot, upto).select(*map(quoted, columns)))
    newer = [layer for layer in layers if layer.lower >= settled]
    changes = _at_hand(project, opened, loaded, snapshot, settled, upto, newer, keys)
    if changes is None:
        net = net_changes(opened, table, snapshot, settled, upto, columns)
        changes = net.where(f"{DIFF} < 0"), net.where(f"{DIFF} > 0")
    return exact(settled_state(opened, table, snapshot, settled, columns, keys, *changes))


def _at_hand(
    project: Project,
    session: SparkSession,
    table: Metadata,
    snapshot: int,
    lower: int,
    upto: int,
    newer: Sequence[Entry],
    keys: Sequence[str],
) -> tuple[DataFrame, DataFrame] | None:
    """The keys that the epochs in [lower, upto) remove and the rows that they add, read here: Spark would compute them twice.

    None if they are many, large or nested, or if Spark has to say what is wrong with them.
    """
    import pyarrow.compute as pc
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import ArrayType, MapType, StructType

    from firnline.engine.frames import frame_of, local
    from firnline.engine.staging import FEW
    from firnline.runtime.finding import UNREADABLE
    from firnline.runtime.writing import stored_in
    from firnline.tables import scan

    stored = stored_in(session, table)
    sizes = [int(table.snapshots[layer.snapshot].summary.get("added-files-size", 0)) for layer in newer]
    is_much = sum(layer.rows for layer in newer) > FEW or sum(sizes) > _MOST_AT_HAND
    if is_much or any(isinstance(field.dataType, ArrayType | MapType | StructType) for field in stored.fields):
        return None
    try:
        net = scan.net(project.catalog.iceberg(table.pipeline, table.name), snapshot, lower, upto)
        parts = net.filter(pc.less(net[DIFF], 0)), net.filter(pc.greater(net[DIFF], 0))
        kinds = StructType([stored[key] for key in keys]), stored
        rows = [part.select(kind.names).cast(to_arrow_schema(kind)) for part, kind in zip(parts, kinds, strict=True)]
    except UNREADABLE as error:
        _logger.info("changes of %s are read by Spark: %s", table.name, error)
        return None
    if sum(each.nbytes for each in rows) > _MOST_AT_HAND:
        return None
    gone, come = (frame_of(session, local(each, kind)) for each, kind in zip(rows, kinds, strict=True))
    return gone, come


def readable(project: Project, graph: Graph, collection: str, since: int, generation: int | None = None) -> tuple[Metadata, int]:
    """A log and its head's snapshot, if it still tells single epochs from a point on; of one generation only, if one is given."""
    from firnline.tables.log import head_of

    loaded = project.log(graph.name, collection).load()
    head = None if loaded is None else head_of(loaded)
    if loaded is None or head is None or head.snapshot is None:
        raise FirnlineError("NO_SUCH_COLLECTION", f"{graph.name}.{collection} has no log yet")
    if since < head.description.since:
        raise compacted(graph, collection, head.description.since)
    if generation not in (None, head.description.generation):
        raise FirnlineError(
            "GENERATION_CHANGED", f"{graph.name}.{collection} is not what it was when it was asked for; ask again"
        )
    return loaded, head.snapshot


def _settled(start: int, layers: list[Entry]) -> tuple[int, int]:
    """Up to where nothing is removed, and how many rows are removed after it, by layers given newest first."""
    settled, removed = start, 0
    for layer in reversed(layers):
        removed += (layer.rows - layer.weight) // 2
        if not removed:
            settled = layer.description.upper
    return settled, removed


@cache
def shared(project: Project) -> SparkSession:
    """A session of our own, which ends with the process."""
    from firnline.engine.session import opened

    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(opened(project.settings, "firnline.read"))
