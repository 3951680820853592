"""Which snapshots of a table nothing needs any more.

Of a log these are the snapshots that merges stand for and those that a rewind or its undo took out, once these cannot be undone
any more, and staging that nobody can publish, alive or dead, since the log holds its epoch already. Never the head, a layer, or
the newest exchange, through which layers are read; nor what somebody still stages upon; nor a rewind while anything is there that
it took out. Of a control table all but the last few are of no use: each holds the whole state.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from itertools import islice
from types import MappingProxyType

from firnline.tables.layers import (
    LOWER,
    Range,
    description_of,
    is_for_exchange,
    is_merge,
    is_repair,
    layers,
    line,
    newest_exchange,
    range_of,
    taken_out,
)
from firnline.tables.metadata import SIDECAR, Metadata, Snapshot

KEPT_DECISIONS = 20
"""Snapshots of a control table that stay."""
METADATA: Mapping[str, str] = MappingProxyType(
    {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "30"}
)
"""Properties by which whoever commits removes older metadata files; some stay, from which a lost one is made again."""


def expirable(table: Metadata, now: datetime, grace: timedelta, voided: Collection[int] = ()) -> list[int]:
    """The snapshots of a log that may be dropped now; of ``voided`` generations the last ones are still to be read."""
    before = (now - grace).timestamp() * 1000
    out = taken_out(table)
    past = {**superseded(table), **{each: by[-1].timestamp_ms for each, by in out.items()}}
    found = [each for each, since in past.items() if since <= before]
    found += [each for each in abandoned(table) if table.snapshots[each].timestamp_ms <= before]
    kept = _needed(table) | {rewind.id for by in out.values() for rewind in by} | _ends(table, voided)
    stood_on = {each.parent for each in table.snapshots.values() if _is_staged(each) and each.id not in found}
    return [each for each in found if each not in kept and each not in stood_on]


def superseded(table: Metadata) -> dict[int, int]:
    """The snapshots of the line that merges stand for, and since when, in milliseconds."""
    every = list(line(table))
    start = min((range_of(table, each).lower for each in every if not is_repair(each)), default=0)
    found = {}
    for snapshot in every:
        own = Range(start, description_of(table, snapshot).upper) if is_repair(snapshot) else range_of(table, snapshot)
        merges = [each for each in every if is_merge(each) and each.sequence > snapshot.sequence and own in range_of(table, each)]
        if merges:
            found[snapshot.id] = min(each.timestamp_ms for each in merges)
    return found


def abandoned(table: Metadata) -> list[int]:
    """The staged snapshots that nobody can publish any more, alive or dead: the log already holds their epochs.

    What is staged for a merge or a rescale cannot once there is an exchange that it did not know of.
    """
    if table.head is None:
        return []
    upper, exchanged = description_of(table, table.head).upper, newest_exchange(table)

    def is_abandoned(staged: Snapshot) -> bool:
        if is_for_exchange(staged):
            return exchanged is not None and exchanged.sequence > staged.sequence
        return LOWER in staged.summary and int(staged.summary[LOWER]) < upper

    return [each.id for each in table.snapshots.values() if _is_staged(each) and is_abandoned(each)]


def outdated(table: Metadata) -> list[int]:
    """The snapshots of a control table that may be dropped."""
    kept = {each.id for each in islice(table.main_line(), KEPT_DECISIONS)}
    return [each for each in table.snapshots if each not in kept]


def unset(table: Metadata) -> dict[str, str]:
    """What a table's properties do not say of older metadata files."""
    return {name: value for name, value in METADATA.items() if table.properties.get(name) != value}


def _needed(table: Metadata) -> set[int]:
    exchange = newest_exchange(table)
    ends = [each for each in (table.head, exchange) if each is not None]
    return {each.id for each in (*ends, *layers(table))} if table.head is not None else set()


def _ends(table: Metadata, generations: Collection[int]) -> set[int]:
    """The newest snapshots of some generations."""
    newest = {description_of(table, each).generation: each.id for each in reversed([*table.main_line()])}
    return {newest[each] for each in generations if each in newest}


def _is_staged(snapshot: Snapshot) -> bool:
    return SIDECAR not in snapshot.summary
