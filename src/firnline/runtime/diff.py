"""``firnline diff``: where two sides of a pipeline differ, and where that begins.

A side is the pipeline or a branch of it, after an epoch, here or in another environment. Digests decide: those of the layers that
only one side has, added up by part, are equal if and only if the states are. Rows are read of parts that differ, and of these
only from files that not both sides name. Nothing here needs a JVM.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from firnline.errors import FirnlineError
from firnline.model.digest import Digest
from firnline.model.graph import Graph
from firnline.model.names import BOOKKEEPING, branch_space
from firnline.plan.safepoint import compacted
from firnline.runtime.branch import check_whole
from firnline.runtime.project import Project
from firnline.tables.log import Entry, Log, cut_into, entries_of, head_of

if TYPE_CHECKING:
    from firnline.tables.differing import ColumnChange, Differing
    from firnline.tables.metadata import Metadata

MAIN = "main"
"""How the pipeline itself is called beside its branches."""
Verdict = Literal["same", "differs", "only before", "only after"]


@dataclass(frozen=True, slots=True)
class Side:
    """The collections of a pipeline or a branch, up to a point."""

    text: str
    """As it was asked for."""
    project: Project
    """Where they are."""
    graph: Graph
    upto: int

    def is_beside(self, other: Side) -> bool:
        """Whether both are of other logs, and not only of other epochs."""
        return self.project is not other.project or self.graph.name != other.graph.name


@dataclass(frozen=True, slots=True)
class EpochDiff:
    """One epoch of a collection that both sides hold by itself."""

    epoch: str
    parts: int
    """How many of its parts differ."""


@dataclass(frozen=True, slots=True)
class RowChange:
    """A row that differs: the values of both sides, of which one is None where the other side has no such row."""

    old: Mapping[str, Any] | None
    new: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class CollectionDiff:
    """One collection of both sides."""

    collection: str
    verdict: Verdict
    why: str = ""
    """Of the first that differs: what is known about the reason."""
    parts: int = 0
    differing_parts: int = 0
    epochs: tuple[EpochDiff, ...] = ()
    """Those that both sides hold by themselves and that not both share."""
    added: int = 0
    removed: int = 0
    changed: int = 0
    columns: tuple[ColumnChange, ...] = ()
    columns_added: tuple[str, ...] = ()
    columns_removed: tuple[str, ...] = ()
    rows: tuple[RowChange, ...] = ()
    """Some of the rows that differ."""
    files_read: int = 0

    @property
    def is_same(self) -> bool:
        """Whether its rows are the same, and were after every epoch."""
        return self.verdict == "same" and not any(each.parts for each in self.epochs)


@dataclass(frozen=True, slots=True)
class Diff:
    """All collections of two sides."""

    before: str
    after: str
    first: str | None
    """The first collection that differs, by the order in which they are computed."""
    collections: tuple[CollectionDiff, ...]

    @property
    def is_same(self) -> bool:
        """Whether nothing differs."""
        return self.first is None


def sides(
    project: Project, graph: Graph, before: str, after: str, epoch: str | None = None, other: Project | None = None
) -> tuple[Side, Side]:
    """Two sides, each as ``main`` or a branch's name, with ``@EPOCH`` if it is not the newest that both have.

    The second is of the ``other`` project, if there is one: another environment.
    """
    there = graph if other is None else _elsewhere(project, graph, other)
    texts = (before, after if other is None else f"{after} of {_named(project, other)}")
    given = [
        (project, *_parsed(project, graph, before, epoch)),
        (other or project, *_parsed(other or project, there, after, epoch)),
    ]
    frontiers = [_frontier(of, each) for of, each, _ in given]
    points = [upto for *_, upto in given if upto is not None]
    are_two = other is not None or given[0][1].name != given[1][1].name
    newest = min(points or frontiers) if are_two else frontiers[0]
    found = []
    for text, (of, each, upto), frontier in zip(texts, given, frontiers, strict=True):
        point, label = newest if upto is None else upto, each.schedule.label
        if point > frontier:
            what = f"{label(point)} is not complete in {text!r}; its frontier is at {label(frontier)}"
            raise FirnlineError("EPOCH_NOT_COMPLETE", what)
        found.append(Side(text, of, each, point))
    return found[0], found[1]


def _elsewhere(project: Project, graph: Graph, other: Project) -> Graph:
    """The pipeline of another environment, if the two can be compared."""
    ours, theirs = project.settings, other.settings
    if (ours.catalog_uri, ours.catalog_options) == (theirs.catalog_uri, theirs.catalog_options):
        what = f"{_named(project, other)!r} has the same catalog as this one, and so the same tables"
        raise FirnlineError("BAD_OPTION", what, todo="FIRNLINE_CATALOG_URI is said of both: say catalog_uri in the file.")
    found = other.graph(graph.name)
    if found.schedule.timed != graph.schedule.timed:
        raise FirnlineError("BAD_OPTION", f"the epochs of {graph.name!r} are intervals of time on one side only")
    return found


def _named(project: Project, other: Project) -> str:
    is_profile = other.settings.root == project.settings.root
    return other.settings.profile if is_profile else str(other.settings.root)


def diff(before: Side, after: Side, stage: str | None = None, rows: int | None = 10) -> Diff:
    """Compare two sides, of one collection or of all; with up to so many rows of each that differs, or by digests only."""
    names = _in_order(before.graph, after.graph)
    if stage is not None and stage not in names:
        raise FirnlineError("NO_SUCH_COLLECTION", f"neither {before.text!r} nor {after.text!r} has a collection {stage!r}")
    found = [_compared(before, after, name, rows) for name in names if stage in (None, name)]
    first = next((each for each in found if not each.is_same), None)
    if first is not None:
        told = replace(first, why=_why(before, after, first))
        found[found.index(first)] = told
    return Diff(before.text, after.text, None if first is None else first.collection, tuple(found))


def differs(before: Side, after: Side, name: str) -> bool:
    """Whether a collection's rows differ, by digests alone."""
    one, other = _stored(before, name), _stored(after, name)
    if one is None or other is None:
        return one is not other
    return not _is_alike(one, other) or bool(_differing_parts(one, other))


def _parsed(project: Project, graph: Graph, text: str, epoch: str | None) -> tuple[Graph, int | None]:
    name, _, own = text.partition("@")
    asked = own or epoch
    upto = None if asked is None else graph.schedule.epoch_at(graph.schedule.point(asked)).upper
    if name == MAIN:
        return graph, upto
    space = branch_space(graph.name, name)
    check_whole(project, space)
    return project.graph(space), upto


def _frontier(project: Project, graph: Graph) -> int:
    found = project.control(graph.name).frontier()
    return graph.schedule.start if found is None else found.upper


def _in_order(before: Graph, after: Graph) -> list[str]:
    """The collections of both sides, each after those that it is made from."""
    return list(dict.fromkeys(each.name for each in (*after.collections, *before.collections)))


@dataclass(frozen=True)
class _Stored:
    """A collection of one side."""

    log: Log
    table: Metadata
    layers: Mapping[str, Entry]
    """Those up to the side's point, by attempt."""

    @property
    def columns(self) -> list[str]:
        return [name for name in self.table.columns if name not in BOOKKEEPING]

    def digests(self, attempts: set[str]) -> dict[int, Digest]:
        """What some layers add up to, by part."""
        found: dict[int, Digest] = {}
        for attempt in attempts:
            for (_, part), digest in self.log.sidecar(self.layers[attempt]).digests.items():
                found[part] = found.get(part, Digest()) + digest
        return found


def _stored(side: Side, name: str) -> _Stored | None:
    if not any(each.name == name for each in side.graph.collections):
        return None
    log = side.project.log(side.graph.name, name)
    table = log.load()
    if table is None or table.head is None:
        return None
    since = head_of(table).description.since
    if side.upto < since:
        raise compacted(side.graph, name, since)
    return _Stored(log, table, {each.attempt: each for each in entries_of(table) if each.description.upper <= side.upto})


def _compared(before: Side, after: Side, name: str, rows: int | None) -> CollectionDiff:
    one, other = _stored(before, name), _stored(after, name)
    if one is None or other is None:
        verdict: Verdict = "same" if one is other else "only after" if one is None else "only before"
        return CollectionDiff(name, verdict)
    columns_added = tuple(each for each in other.columns if each not in one.columns)
    columns_removed = tuple(each for each in one.columns if each not in other.columns)
    is_alike = _is_alike(one, other)
    parts = cut_into(other.table)
    wanted = _differing_parts(one, other) if is_alike else None
    found = CollectionDiff(
        name,
        "same" if wanted == set() else "differs",
        parts=parts,
        differing_parts=parts if wanted is None else len(wanted),
        epochs=tuple(_epochs(after.graph, one, other)) if is_alike and after.is_beside(before) else (),
        columns_added=columns_added,
        columns_removed=columns_removed,
    )
    if found.verdict == "same" or rows is None:
        return found
    return _with_rows(before, after, found, one, other, wanted, rows)


def _is_alike(one: _Stored, other: _Stored) -> bool:
    """Whether digests of the two can be compared."""
    first, second = one.table, other.table
    return (first.columns, first.types, cut_into(first)) == (second.columns, second.types, cut_into(second))


def _differing_parts(one: _Stored, other: _Stored) -> set[int]:
    """The parts whose states differ: layers that both have say nothing about it."""
    first = one.digests(one.layers.keys() - other.layers.keys())
    second = other.digests(other.layers.keys() - one.layers.keys())
    parts = first.keys() | second.keys()
    return {part for part in parts if not first.get(part, Digest()).is_same_state(second.get(part, Digest()))}


def _epochs(graph: Graph, one: _Stored, other: _Stored) -> Iterator[EpochDiff]:
    """The epochs that both hold by themselves, and not as the same layer."""
    theirs = {(each.lower, each.description.upper): each for each in one.layers.values()}
    for entry in sorted(other.layers.values(), key=lambda each: each.lower):
        match = theirs.get((entry.lower, entry.description.upper))
        if match is not None and match.attempt != entry.attempt:
            first, second = one.log.sidecar(match).digests, other.log.sidecar(entry).digests
            parts = {part for _, part in first.keys() | second.keys()}
            differing = [part for part in parts if _of_part(first, part) != _of_part(second, part)]
            yield EpochDiff(graph.schedule.label(entry.lower), len(differing))


def _of_part(digests: Mapping[tuple[int, int], Digest], part: int) -> dict[int, Digest]:
    return {epoch: digest for (epoch, of), digest in digests.items() if of == part}


def _with_rows(
    before: Side,
    after: Side,
    found: CollectionDiff,
    one: _Stored,
    other: _Stored,
    parts: set[int] | None,
    rows: int,
) -> CollectionDiff:
    from firnline.tables.differing import column_changes, differing, stored_rows

    columns = [name for name in other.columns if name in one.columns]
    first, second = _files(one, before, parts), _files(other, after, parts)
    common = first & second
    sides = ((one, before, first - common), (other, after, second - common))
    read = [
        stored_rows(side.project.catalog.iceberg(side.graph.name, found.collection), paths, columns) for _, side, paths in sides
    ]
    keys = after.graph.collection(found.collection).keys
    rows_found = differing(read[0], read[1], keys)
    return replace(
        found,
        added=rows_found.added.num_rows,
        removed=rows_found.removed.num_rows,
        changed=rows_found.old.num_rows,
        columns=tuple(column_changes(rows_found, keys)),
        rows=tuple(_some(rows_found, rows)),
        files_read=sum(len(paths) for _, _, paths in sides),
    )


def _files(stored: _Stored, side: Side, parts: set[int] | None) -> set[str]:
    held = stored.log.held(stored.table)
    return {file.path for file in held if file.last < side.upto and (parts is None or file.part in parts)}


def _some(found: Differing, count: int) -> Iterator[RowChange]:
    changed = zip(found.old.slice(0, count).to_pylist(), found.new.slice(0, count).to_pylist(), strict=True)
    kinds: Sequence[list[RowChange]] = (
        [RowChange(old, new) for old, new in changed],
        [RowChange(None, row) for row in found.added.slice(0, count).to_pylist()],
        [RowChange(row, None) for row in found.removed.slice(0, count).to_pylist()],
    )
    for shown in kinds:
        yield from shown[:count]


def _why(before: Side, after: Side, found: CollectionDiff) -> str:
    if found.verdict in ("only before", "only after"):
        return f"it is in {before.text if found.verdict == 'only before' else after.text!r} only"
    if not after.is_beside(before):
        return "epochs between the two"
    heads = [side.project.log(side.graph.name, found.collection).head() for side in (before, after)]
    codes = [head.fingerprint if head else None for head in heads]
    if codes[0] is not None and codes[1] is not None:
        return "its code is the same on both sides" if codes[0].is_same(codes[1]) else "its code differs"
    return ""
