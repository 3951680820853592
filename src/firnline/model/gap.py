"""Gaps: rows that are knowingly missing, and who has to be corrected because of them. The gap ledger is a value of ``Gaps``.

A gap is ``opening`` while its rows may still be named by the log, ``open`` while they are not, and ``back`` once they are there
again. Whoever reads a log computes its changes from a state that it takes for that of the epoch before; when rows leave or come
back in between, that is not so any more. So every reader, and a stage that lost rows of its own, computes its next epoch from
the whole state, once: it is marked with the id of the event, and only a run that read this very mark takes it away. A stage has
then made its own gap good; that one is over once no snapshot of its log counts the rows any more.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from firnline.model.names import collection_of

Phase = Literal["opening", "open", "back"]
Cell = tuple[int, int]
"""An (epoch, part)."""


@dataclass(frozen=True, slots=True)
class Span:
    """Parts of all epochs of a log from one to another."""

    first: int
    last: int
    parts: tuple[int, ...]

    def __contains__(self, cell: Cell) -> bool:
        return self.first <= cell[0] <= self.last and cell[1] in self.parts


def spans_of(cells: Collection[Cell], known: Collection[Cell]) -> tuple[Span, ...]:
    """The fewest words for some cells of a log, of which ``known`` are all.

    >>> spans_of({(1, 0), (1, 3), (2, 3)}, {(0, 0), (1, 0), (1, 3), (2, 0), (2, 3)})
    (Span(first=1, last=1, parts=(0,)), Span(first=1, last=2, parts=(3,)))
    """
    runs: dict[tuple[int, int], list[int]] = {}
    for part in sorted({part for _, part in cells}):
        begun: int | None = None
        last = 0
        for epoch in sorted({epoch for epoch, of in known if of == part} | {epoch for epoch, of in cells if of == part}):
            if (epoch, part) in cells:
                begun, last = epoch if begun is None else begun, epoch
            elif begun is not None:
                runs.setdefault((begun, last), []).append(part)
                begun = None
        if begun is not None:
            runs.setdefault((begun, last), []).append(part)
    return tuple(Span(first, last, tuple(parts)) for (first, last), parts in sorted(runs.items()))


@dataclass(frozen=True, slots=True)
class Gap:
    """Rows of a log that are missing, as its contract allowed it."""

    id: str
    collection: str
    spans: tuple[Span, ...]
    rows: int
    since: str
    """When it was opened."""
    owner: str
    """Whose contract allowed it."""
    why: str
    before: Mapping[str, int] = field(default_factory=dict)
    """Who has to be corrected, and where its log ended when the gap was opened."""
    after: Mapping[str, int] = field(default_factory=dict)
    """Who has been made whole since, and the end of the epoch that did it."""
    phase: Phase = "opening"

    def __contains__(self, cell: Cell) -> bool:
        return any(cell in span for span in self.spans)

    def parts(self) -> frozenset[int]:
        """The parts that lack rows of some epoch."""
        return frozenset(part for span in self.spans for part in span.parts)

    @property
    def made_good(self) -> int | None:
        """The end of the epoch from which on the log's state has the rows by itself, as a stage's has; None if none has."""
        return self.after.get(collection_of(self.collection)) if self.phase == "open" else None

    def lacks_at(self, upto: int) -> bool:
        """Whether the state of its own log, as of the epochs before a point, lacks rows."""
        if self.phase == "back" or (self.made_good is not None and upto >= self.made_good):
            return False
        return any(span.first < upto for span in self.spans)

    def touches(self, reader: str, upto: int) -> bool:
        """Whether a reader's state, as of the epochs before a point, was computed without the rows."""
        if upto <= self.before.get(reader, upto - 1) or (self.made_good is not None and upto >= self.made_good):
            return False
        if not any(span.first < upto for span in self.spans):
            return False
        return self.phase != "back" or reader not in self.after or upto < self.after[reader]


@dataclass(frozen=True, slots=True)
class Gaps:
    """The gap ledger of a pipeline."""

    gaps: tuple[Gap, ...] = ()
    corrections: Mapping[str, str] = field(default_factory=dict)
    """The stages that compute their next epoch from the whole state, each with the id of the event that made it so."""

    def of(self, collection: str) -> tuple[Gap, ...]:
        """Those of one log whose rows are not back."""
        return tuple(gap for gap in self.gaps if gap.collection == collection and gap.phase != "back")

    def mark(self, stage: str) -> str | None:
        """Why a stage has to compute its next epoch from the whole state; None if it has not."""
        opening = (f"{gap.id} opening" for gap in self.gaps if gap.phase == "opening" and stage in gap.before)
        return self.corrections.get(stage) or next(opening, None)

    def opened(self, gap: Gap) -> Gaps:
        """With one more gap, before its rows are taken out of the log."""
        return self if any(each.id == gap.id for each in self.gaps) else replace(self, gaps=(*self.gaps, gap))

    def settled(self, id: str) -> Gaps:
        """After the rows were taken out."""
        found = next((gap for gap in self.gaps if gap.id == id and gap.phase == "opening"), None)
        if found is None:
            return self
        gaps = tuple(replace(gap, phase="open") if gap is found else gap for gap in self.gaps)
        return Gaps(gaps, {**self.corrections, **dict.fromkeys(found.before, id)})

    def back(
        self,
        id: str,
        event: str,
        readers: Mapping[str, int],
        here: tuple[Span, ...],
        left: tuple[Span, ...] = (),
        rows_left: int = 0,
    ) -> Gaps:
        """After rows came back: those of ``here``; those of ``left`` are still missing. ``readers`` are today's."""
        if any(gap.id == event for gap in self.gaps):
            return self
        found = next((gap for gap in self.gaps if gap.id == id and gap.phase != "back"), None)
        if found is None:
            return self
        before = {name: found.before.get(name, upper) for name, upper in readers.items()}
        whole = replace(found, id=event, spans=here, rows=found.rows - rows_left, phase="back", before=before, after={})
        staying = (replace(found, spans=left, rows=rows_left),) if left else ()
        gaps = (each for gap in self.gaps for each in ((*staying, whole) if gap is found else (gap,)))
        return Gaps(tuple(gaps), {**self.corrections, **dict.fromkeys(readers, event)}).without_closed(None)

    def corrected(self, stage: str, mark: str, upper: int) -> Gaps:
        """After a stage computed an epoch from the whole state, because of a mark that it read before it read anything else."""
        if self.corrections.get(stage) != mark:
            return self
        marks = {name: of for name, of in self.corrections.items() if name != stage}
        return Gaps(tuple(_corrected(gap, stage, upper) for gap in self.gaps), marks)

    def taken_back(self, stages: Collection[str], to: int, event: str) -> Gaps:
        """After stages went back to a point, or forth again: their next epoch is a correction, since others may be out now."""
        gaps = tuple(_taken_back(gap, stages, to) for gap in self.gaps)
        return Gaps(gaps, {**self.corrections, **dict.fromkeys(stages, event)})

    def without(self, ids: Collection[str]) -> Gaps:
        """Without gaps that nothing tells of any more."""
        return replace(self, gaps=tuple(gap for gap in self.gaps if gap.id not in ids))

    def without_closed(self, frontier: int | None) -> Gaps:
        """Without those whose rows are back, in the log and in all that readers see."""
        return replace(self, gaps=tuple(gap for gap in self.gaps if not _is_closed(gap, frontier)))

    def as_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {"gaps": [asdict(gap) for gap in self.gaps], "corrections": dict(self.corrections)}

    @classmethod
    def of_json(cls, data: dict[str, Any]) -> Gaps:
        """Read ``as_json`` back."""
        return cls(tuple(_gap(entry) for entry in data["gaps"]), data["corrections"])


def _gap(entry: dict[str, Any]) -> Gap:
    spans = tuple(Span(each["first"], each["last"], tuple(each["parts"])) for each in entry["spans"])
    return Gap(**{**entry, "spans": spans})


def _corrected(gap: Gap, stage: str, upper: int) -> Gap:
    is_own = gap.phase == "open" and stage == collection_of(gap.collection)
    is_reader = gap.phase == "back" and stage in gap.before
    if stage in gap.after or not (is_own or is_reader):
        return gap
    return replace(gap, after={**gap.after, stage: upper})


def _taken_back(gap: Gap, stages: Collection[str], to: int) -> Gap:
    before = {name: min(upper, to) if name in stages else upper for name, upper in gap.before.items()}
    after = {name: upper for name, upper in gap.after.items() if name not in stages or upper <= to}
    return replace(gap, before=before, after=after)


def _is_closed(gap: Gap, frontier: int | None) -> bool:
    if gap.phase != "back" or gap.before.keys() - gap.after.keys():
        return False
    return not gap.after or (frontier is not None and frontier >= max(gap.after.values()))
