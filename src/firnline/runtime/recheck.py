"""The checks of a collection, asked about an epoch whose lost rows were made again, before these are put into the log."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from firnline.errors import FirnlineError
from firnline.model.epoch import Epoch
from firnline.model.gap import Cell
from firnline.model.graph import Graph
from firnline.model.names import BOOKKEEPING, DIFF, EPOCH, PART, quoted
from firnline.runtime.attempt import Staged
from firnline.runtime.project import Project
from firnline.world import world

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.connect.session import SparkSession


def recheck(
    project: Project,
    graph: Graph,
    session: SparkSession,
    name: str,
    epoch: Epoch,
    made: Sequence[Staged],
    lost: Collection[Cell],
    found: DataFrame | None = None,
) -> None:
    """Ask a collection's checks about an epoch as it would be: what is left in the log, and all that was made again so far.

    Args:
        project: The project.
        graph: The pipeline.
        session: Where to ask.
        name: The collection.
        epoch: The epoch.
        made: What was made again.
        lost: The (epoch, part) that are not read from the log.
        found: Rows of these that were not made again but found elsewhere.

    Raises:
        FirnlineError: ``CHECK_FAILED`` if one that blocks is not met, and what it said.
    """
    from firnline.engine.frames import frame_of, relation_of
    from firnline.incremental.relation import consolidated
    from firnline.runtime.checks import Checks, Rows

    collection = next((each for each in graph.collections if each.name == name), None)
    if collection is None or not collection.checks:
        return  # what a stage keeps for itself has no checks
    rows = _rows(project, graph, session, name, epoch, made, lost)
    if found is not None:
        rows = rows.unionByName(found.where(f"{EPOCH} < {epoch.upper}"))
    columns = [field for field in rows.schema.fields if field.name not in BOOKKEEPING]
    names = [field.name for field in columns]

    def added_up(some: DataFrame) -> DataFrame:
        weighted = some.select(*(quoted(each) for each in names), DIFF)
        return frame_of(session, consolidated(relation_of(weighted), names)).where(f"{DIFF} > 0").drop(DIFF)

    types = {field.name: field.dataType.simpleString() for field in columns}
    checks = Checks.of(project, graph, collection, types, is_again=True)
    try:
        attempt = made[-1].attempt if made else world().new_id()
        checks.ask(Rows(added_up(rows.where(f"{EPOCH} = {epoch.lower}")), added_up(rows)), epoch, attempt)
    except FirnlineError as error:
        label = graph.schedule.label(epoch.lower)
        how = "made again" if made else "found at a replica"
        what = f"{graph.name}.{name} at {label}: lost rows were {how} and are not put back: {error.what}"
        raise FirnlineError(error.code, what, error.where) from error


def _rows(
    project: Project,
    graph: Graph,
    session: SparkSession,
    name: str,
    epoch: Epoch,
    made: Sequence[Staged],
    lost: Collection[Cell],
) -> DataFrame:
    """The weighted rows up to the epoch, with bookkeeping; of the log, only files that are not lost are read."""
    from firnline.engine.frames import deltas, table_name
    from firnline.engine.staging import staged_rows

    table, loaded = table_name(graph.name, name), project.log(graph.name, name).load()
    assert loaded is not None, "it was looked at"
    assert loaded.current is not None, "a log that lost something holds something"
    parts: dict[int, list[int]] = {}
    for at, part in lost:
        parts.setdefault(at, []).append(part)
    rows = deltas(session, table, loaded.current, epoch.upper)
    for at in sorted(each for each in parts if each < epoch.upper):
        rows = rows.where(_outside(at, parts[at]))
    for each in made:
        if each.snapshot is not None:
            parent = loaded.snapshots[each.snapshot].parent
            assert parent is not None, "a log that lost something holds something"
            rows = rows.unionByName(staged_rows(session, table, each.snapshot, parent))
    return rows


def _outside(epoch: int, parts: Sequence[int]) -> Column:
    """Rows of other epochs or other parts, in words by which Iceberg leaves whole files out: it keeps all for ``!=``."""
    from pyspark.sql import functions as F

    others = [F.col(EPOCH) < epoch, F.col(EPOCH) > epoch, ~F.col(PART).isin(*parts)]
    return reduce(lambda one, other: one | other, others)
