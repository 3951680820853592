"""Epochs that a rewind took out, to be published again as they were: their files come back, and no row is computed.

Whether they may is decided elsewhere (``runtime.reuse``). Here: what was taken out and is still kept, and the publish that names
its files once more, by the one rule of publishing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from firnline.model.description import Verdict
from firnline.model.digest import Digest
from firnline.model.stored_file import StoredFile
from firnline.plan.rewinding import FORCED
from firnline.tables.commit import until_known
from firnline.tables.layers import (
    REWOUND_TO,
    Range,
    description_of,
    is_merge,
    is_repair,
    is_rewind,
    line,
    newest_rescale,
    range_of,
    taken_out,
)
from firnline.tables.log import ATTEMPT, Entry, Log, entries_of, entry_of, head_of, summary_of
from firnline.tables.metadata import SIDECAR, Metadata, Snapshot
from firnline.tables.port import Exchange, Tables
from firnline.tables.sidecar import Repair, Sidecar
from firnline.tables.undoing import named_before
from firnline.world import world


@dataclass(frozen=True, slots=True)
class Taken:
    """A publish that was taken out and follows the head, with the files that held its rows."""

    generation: int
    """The log's, as it was when it was looked at."""
    entry: Entry
    files: tuple[StoredFile, ...]


def taken(tables: Tables, table: Metadata, upper: int) -> Taken | None:
    """What a log held right after its head up to a point, if that was one publish, and all its files are still named."""
    rescale, lower = newest_rescale(table), head_of(table).description.upper
    for number, by in taken_out(table).items():
        snapshot = table.snapshots[number]
        if is_rewind(snapshot) or is_merge(snapshot) or range_of(table, snapshot) != Range(lower, upper):
            continue
        if rescale is not None and rescale.sequence > snapshot.sequence:
            return None
        if any(each.summary[ATTEMPT].startswith(FORCED) and int(each.summary[REWOUND_TO]) == lower for each in by):
            continue  # it was taken out to be made anew
        out = frozenset(Repair.of_json(tables.read(by[-1].summary[SIDECAR])).out)
        found = tuple(named_before(tables, table, by[-1], out))
        files = tuple(file for file in found if lower <= file.first and file.last < upper)
        generation = head_of(table).description.generation
        return Taken(generation, entry_of(table, snapshot), files) if len(found) == len(out) else None
    return None


def ends_taken_out(table: Metadata) -> set[int]:
    """Where publishes end that were taken out."""
    out = (table.snapshots[number] for number in taken_out(table))
    return {range_of(table, each).upper for each in out if not is_repair(each) and not is_merge(each)}


def diverged(table: Metadata, since: Snapshot) -> int | None:
    """From where on a log may hold other rows than it did as of a snapshot; None if it holds the same."""
    newer = [each for each in table.main_line() if is_rewind(each) and each.sequence > since.sequence]
    return min((int(each.summary[REWOUND_TO]) for each in newer), default=None)


def rewound_since(log: Log, generation: int) -> int | None:
    """From where on a log may hold other rows than in an earlier generation; None if that is not told any more."""
    table = log.load()
    assert table is not None, "it was read"
    newer = [each for each in table.main_line() if is_rewind(each) and description_of(table, each).generation > generation]
    told = {description_of(table, each).generation for each in newer}
    complete = told >= set(range(generation + 1, head_of(table).description.generation + 1))
    return min(int(each.summary[REWOUND_TO]) for each in newer) if newer and complete else None


def sums(log: Log, table: Metadata, lower: int, upper: int, as_of: Snapshot | None = None) -> Mapping[int, Digest] | None:
    """The digests of epochs in [lower, upper), added up by part, as of a snapshot or now; None if they are not told."""
    seen = table if as_of is None else replace(table, current=as_of.id)
    found: dict[int, Digest] = {}
    reach = upper
    for entry in entries_of(seen):
        if entry.lower >= upper or entry.description.upper <= lower:
            continue
        if entry.lower < lower or entry.description.upper != reach:
            return None
        reach = entry.lower
        for (_, part), digest in log.sidecar(entry).digests.items():
            found[part] = found.get(part, Digest()) + digest
    return {part: digest for part, digest in found.items() if digest != Digest()} if reach <= lower else None


def republish(tables: Tables, log: Log, taken: Taken, sidecar: Sidecar) -> Verdict:
    """Publish what was taken out once more, exactly once, whoever else tries; as ``Log.publish``."""

    def attempt_once() -> Verdict:
        table = log.load()
        if table is None or taken.entry.snapshot not in table.snapshots:
            return Verdict.MOVED
        if any(snapshot.summary.get(ATTEMPT) == sidecar.attempt for snapshot in line(table)):
            return Verdict.FREE
        head = head_of(table)
        verdict = head.description.judge(taken.generation, sidecar.lower, sidecar.upper)
        if verdict is not Verdict.FREE:
            return verdict
        world().reach("publish.judged")
        path = f"{table.location}/firnline/{sidecar.attempt}.json"
        tables.write(path, replace(sidecar, files=taken.files, left=(), generation=taken.generation).as_json())
        world().reach("publish.described")
        summary = {**head.description.advanced(sidecar.upper).as_properties(), **summary_of(sidecar, path)}
        tables.exchange(table, summary, Exchange(back=taken.files))
        world().reach("publish.committed")
        return Verdict.FREE

    return until_known(f"{log.pipeline}.{log.collection}", attempt_once)
