"""Taking a log back to a point, and undoing that: one commit each, in a new generation, and no row is written.

A rewind to E is an exchange that takes out the files of the epochs from E on; no file holds rows of both sides, since merges end
at since, and a rewind below it is refused. What is kept beside a collection may have been published for several epochs at once,
with rows of the last of them: such a layer across E goes as a whole, the log ends where it begins, and a replay brings it again.
The undo takes out what came beyond E since, and brings the old files back, as long as snapshots that name them are kept. Whoever
began before either of them finds another generation (``layers.line`` tells the rest).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from firnline.errors import FirnlineError
from firnline.model.description import GENERATION, Description
from firnline.tables.commit import until_known
from firnline.tables.layers import KIND, REWIND, REWOUND_TO, UNDOES, is_merge, is_rewind, layers, line, newest_rescale, range_of
from firnline.tables.log import ATTEMPT, FINGERPRINT, PLAN, START, Log, head_of
from firnline.tables.metadata import SIDECAR, Metadata, Snapshot
from firnline.tables.port import Exchange, Tables
from firnline.tables.sidecar import Repair
from firnline.tables.undoing import named_before
from firnline.world import world

REWOUND_BY = "firnline.rewound-by"
"""A property of a log: what its last rewind or undo is called, also once its snapshot is dropped."""
REWOUND_FROM = "firnline.rewound-from"
"""Of a rewind: where the log ended before."""
REWOUND_SINCE = "firnline.rewound-since"
"""Of a rewind: up to where the log was consolidated before."""


@dataclass(frozen=True, slots=True)
class Rewound:
    """A log after it was taken back, or forth."""

    description: Description
    files: int = 0
    """Those that went, or came back."""
    bytes: int = 0


def rewind(tables: Tables, log: Log, name: str, generation: int, to: int) -> Rewound | None:
    """Let a log hold nothing from a point on, exactly once; None if it holds nothing at all.

    Args:
        tables: Where the log is.
        log: The log.
        name: What the rewind is called.
        generation: The one that it begins; a log that has reached it is left alone.
        to: The point.
    """

    def attempt_once() -> Rewound | None:
        table = log.load()
        if table is None or table.head is None:
            return None
        description = head_of(table).description
        if description.generation >= generation:
            return Rewound(description)
        if to < int(table.properties[START]) or _merged_beyond(table, to):
            what = f"{log.pipeline}.{log.collection} keeps single epochs only since {description.since}, not from {to} on"
            raise FirnlineError("EPOCH_COMPACTED", what)
        end = end_at(table, to)
        out = [file for file in tables.held(table) if file.first >= end]
        world().reach("rewind.judged")
        note = Repair(table.name, name, (), tuple(file.path for file in out), (), 0, 0, 0.0)
        before = next((each for each in layers(table) if range_of(table, each).upper <= to), None)
        said = {REWOUND_TO: str(to), REWOUND_FROM: str(description.upper), REWOUND_SINCE: str(description.since), **_code(before)}
        after = Description(generation, min(description.since, end), end)
        _exchange(tables, table, note, after, said, Exchange(out=frozenset(note.out)))
        world().reach("rewind.committed")
        return Rewound(after, len(out), sum(file.bytes for file in out))

    return until_known(f"{log.pipeline}.{log.collection}", attempt_once)


def fence(tables: Tables, log: Log) -> bool:
    """Let whoever is at the first epoch of a log find another generation; whether it holds nothing."""

    def attempt_once() -> bool:
        table = log.load()
        if table is None or table.head is not None:
            return table is None
        tables.drop(table, (), {GENERATION: str(head_of(table).description.generation + 1)})
        return True

    return until_known(f"{log.pipeline}.{log.collection}", attempt_once)


def end_at(table: Metadata, to: int) -> int:
    """Where a log ends once it holds nothing from a point on: there, or before the layer that has both sides of it."""
    ranges = (range_of(table, each) for each in layers(table))
    across = next((each.lower for each in ranges if each.lower < to < each.upper), to)
    return min(head_of(table).description.upper, across)


def undoable(table: Metadata) -> Snapshot | None:
    """The newest rewind of a log, if all that it took out can still come back."""
    newest = _newest(table)
    if newest is None or _merged_beyond(table, _point(newest)):
        return None
    rescale = newest_rescale(table)
    if rescale is not None and rescale.sequence > newest.sequence:
        return None
    before, reach = int(newest.summary[REWOUND_FROM]), _reach(table, newest)
    # A log that had not reached the point may have come nearer since.
    return newest if reach is not None and before <= reach <= max(before, _point(newest)) else None


def newest_rewind(table: Metadata) -> tuple[str, int] | None:
    """What the newest rewind of a log that is not undone is called, and when it was done, in milliseconds."""
    newest = _newest(table)
    return None if newest is None else (newest.summary[ATTEMPT], newest.timestamp_ms)


def end_of(table: Metadata, rewind: Snapshot) -> tuple[int, int]:
    """The point of a rewind, and where the log ends once it is undone."""
    reach = _reach(table, rewind)
    assert reach is not None, "it is undoable"
    return _point(rewind), reach


def undo(tables: Tables, log: Log, rewound: str, name: str, generation: int) -> Rewound | None:
    """Let a log be as it was before its newest rewind, exactly once; None if there is nothing to undo.

    Args:
        tables: Where the log is.
        log: The log.
        rewound: What the rewind is called.
        name: What the undo is called.
        generation: The one that it begins; a log that has reached it is left alone.
    """

    def attempt_once() -> Rewound | None:
        table = log.load()
        if table is None or table.head is None:
            return None
        description = head_of(table).description
        if description.generation >= generation:
            return Rewound(description)
        newest = undoable(table)
        if newest is None or newest.summary[ATTEMPT] != rewound:
            raise not_undoable(log)
        paths = frozenset(Repair.of_json(tables.read(newest.summary[SIDECAR])).out)
        back = tuple(named_before(tables, table, newest, paths))
        if len(back) < len(paths):
            raise not_undoable(log)
        (to, end), since = end_of(table, newest), int(newest.summary.get(REWOUND_SINCE, description.since))
        out = [file for file in tables.held(table) if file.first >= end_at(table, to)]
        world().reach("rewind.judged")
        note = Repair(table.name, name, (), tuple(file.path for file in out), back, 0, 0, 0.0)
        last = next(iter(layers(_without(table, newest))), None)
        said = {REWOUND_TO: str(to), UNDOES: str(newest.sequence), **_code(last)}
        after = Description(generation, min(max(description.since, since), end), end)
        _exchange(tables, table, note, after, said, Exchange(out=frozenset(note.out), back=back))
        world().reach("rewind.committed")
        return Rewound(after, len(back), sum(file.bytes for file in back))

    return until_known(f"{log.pipeline}.{log.collection}", attempt_once)


def not_undoable(log: Log) -> FirnlineError:
    """Why a rewind stays."""
    what = f"{log.pipeline}.{log.collection}: the rewind is not its newest, or what it took out is not kept any more"
    return FirnlineError("REWIND_NOT_UNDOABLE", what)


def _exchange(
    tables: Tables, table: Metadata, note: Repair, after: Description, said: Mapping[str, str], change: Exchange
) -> None:
    # Several may do the same rewind at once, each by what it saw: nobody may write over what the one who commits has noted.
    path = f"{table.location}/firnline/{note.attempt}-{world().new_id()[:8]}.json"
    tables.write(path, note.as_json())
    world().reach("rewind.described")
    summary = {**after.as_properties(), KIND: REWIND, ATTEMPT: note.attempt, SIDECAR: path, **said}
    tables.exchange(table, summary, replace(change, properties={REWOUND_BY: note.attempt}))


def _code(layer: Snapshot | None) -> dict[str, str]:
    """What a layer says of the code that made it."""
    return {} if layer is None else {key: layer.summary[key] for key in (FINGERPRINT, PLAN) if key in layer.summary}


def _newest(table: Metadata) -> Snapshot | None:
    return next((each for each in line(table) if is_rewind(each) and UNDOES not in each.summary), None)


def _point(rewind: Snapshot) -> int:
    return int(rewind.summary[REWOUND_TO])


def _merged_beyond(table: Metadata, to: int) -> bool:
    """Whether epochs from a point on are merged, maybe with some before it."""
    return any(is_merge(each) and range_of(table, each).upper > to for each in layers(table))


def _without(table: Metadata, rewind: Snapshot) -> Metadata:
    """The table as if a rewind had just been undone."""
    assert table.head is not None, "there is a rewind"
    summary = {**table.head.summary, KIND: REWIND, REWOUND_TO: str(_point(rewind)), UNDOES: str(rewind.sequence)}
    undone = replace(table.head, id=-1, parent=table.head.id, summary=summary, sequence=table.head.sequence + 1)
    return replace(table, snapshots={**table.snapshots, -1: undone}, current=-1)


def _reach(table: Metadata, rewind: Snapshot) -> int | None:
    """How far layers that follow one another would go if a rewind were undone; None if there is a hole."""
    without = _without(table, rewind)
    reach = int(table.properties[START])
    for each in sorted((range_of(without, each) for each in layers(without)), key=lambda each: each.lower):
        if each.lower != reach:
            return None
        reach = each.upper
    return reach
