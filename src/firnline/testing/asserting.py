"""What holds of every stage, whatever it computes: its changes add up to its rows, and a second run gives the same ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firnline.model.declaration import Collection, Function
from firnline.model.epoch import Epoch
from firnline.testing.differing import told
from firnline.testing.history import Crash, Item, Schemas
from firnline.testing.lake import frame_of
from firnline.testing.running import Ran, run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def assert_incremental(
    stage: str | Function,
    history: Sequence[Item],
    *,
    schemas: Schemas | None = None,
    start: object = None,
    root: Path | None = None,
) -> Ran:
    """Run a stage over a history: after every epoch its rows are what its own function, run by plain Spark, gives from scratch.

    The arguments are those of ``run``. Stages between the given collections and this one are compared, too.
    """
    __tracebackhide__ = True
    ran = run(stage, history, schemas=schemas, start=start, root=root)
    for number, epoch in enumerate(ran.epochs, 1):
        for name, expected in _from_scratch(ran, epoch).items():
            found = ran.rows(name, after=number)
            differing = told(expected, found, names=("from scratch", "incrementally"))
            if differing is not None:
                raise AssertionError(f"{name} after {ran.label(number)} is not what it is from scratch:\n{differing}")
    return ran


def assert_repeatable(
    stage: str | Function,
    history: Sequence[Item],
    *,
    schemas: Schemas | None = None,
    start: object = None,
    root: Path | None = None,
) -> Ran:
    """Run a stage over a history, then once more without its crashes: every epoch has the same digests.

    The arguments are those of ``run``. Stages between the given collections and this one are compared, too.
    """
    __tracebackhide__ = True
    first = run(stage, history, schemas=schemas, start=start, root=root)
    calm = [item for item in history if not isinstance(item, Crash)]
    again = run(stage, calm, schemas=schemas, start=start, root=root)
    for number, epoch in enumerate(first.epochs, 1):
        for name in (collection.name for collection in first.graph.collections):
            once, twice = (_at(ran.digests(name), epoch) for ran in (first, again))
            if once != twice:
                rows = [ran.changes(name, epoch=number) for ran in (first, again)]
                differing = told(rows[0], rows[1], names=("at first", "when it was run again")) or "  their digests differ"
                raise AssertionError(f"{name} at {first.label(number)} changed otherwise when it was run again:\n{differing}")
    return first


def _at(digests: Mapping[tuple[int, int], Any], epoch: Epoch) -> dict[int, Any]:
    return {part: digest for (lower, part), digest in digests.items() if lower == epoch.lower}


def _from_scratch(ran: Ran, epoch: Epoch) -> dict[str, list[dict[str, Any]]]:
    """The rows of every stage after an epoch, from the state of what was given."""
    from firnline.engine.frames import arrow_of

    frames, found = dict[str, "DataFrame"](), dict[str, list[dict[str, Any]]]()
    for collection in ran.graph.collections:
        if collection.kind == "source":
            frames[collection.name] = _state(ran, collection.name, epoch)
            continue
        rows = arrow_of(_evaluated(ran, collection, frames, epoch))
        found[collection.name] = rows.to_pylist()
        frames[collection.name] = frame_of(ran.session, rows)
    return found


def _state(ran: Ran, name: str, epoch: Epoch) -> DataFrame:
    from firnline.tables import scan

    table = ran.project.catalog.iceberg(ran.graph.name, name)
    return frame_of(ran.session, scan.state(table, epoch.upper))


def _evaluated(ran: Ran, collection: Collection, frames: Mapping[str, DataFrame], epoch: Epoch) -> DataFrame:
    """What a stage's function, or its SQL, gives as plain Spark has it."""
    from firnline.engine.queries import queried, verbatim
    from firnline.engine.sets import with_sets_in_order
    from firnline.engine.zone import in_utc
    from firnline.runtime import logical_time
    from firnline.runtime.iterate import at_once

    given = {called: frames[name] for called, name in zip(collection.parameters, collection.inputs, strict=True)}
    if collection.query is not None:
        if "collect_set" not in collection.query.lower():
            return verbatim(ran.session, collection.query, given)
        return with_sets_in_order(ran.session, queried(ran.session, collection.query, given)[0])
    with logical_time.at(epoch.upper, is_timed=ran.graph.schedule.timed), at_once(), in_utc():
        return with_sets_in_order(ran.session, ran.declared.functions[collection.name](**given))
