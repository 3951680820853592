"""Rewinds: which logs go back, what forbids it, and what the control table says of it.

A rewind of logs to a point E, since <= E < upper, is decided in one commit of the control table: the frontier is at E at most, of
the generations that the logs are about to begin. Every log holds the epochs below E before and after its own commit, so that
readers see one cut throughout. Then log by log, inputs before readers: who sees a reader in its new generation finds its inputs
in theirs. A rewind that was decided is done by whoever comes first.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from firnline.errors import FirnlineError
from firnline.model.description import Description
from firnline.model.graph import Graph
from firnline.model.hold import Hold
from firnline.plan.frontier import Frontier
from firnline.plan.seeing import taken_back

if TYPE_CHECKING:
    from firnline.plan.agreement import Agreement

FORCED = "force_"
"""What the name of a rewind begins with whose first epoch is to be made anew, even if it would come out the same."""
FOLLOWING = "follow_"
"""What the name of one begins with that only takes back what another made void, and is not undone by itself."""


@dataclass(frozen=True, slots=True)
class Rewind:
    """A rewind, or the undo of one, as the control table has it."""

    name: str
    to: int
    """The point: epochs from there on are taken out."""
    upper: int
    """Where the frontier was, before this rewind and those that are not replayed yet; once it is there again, this one is."""
    logs: Mapping[str, int]
    """The generation that each log begins, inputs before their readers."""
    undoes: str | None = None
    """Of an undo: the rewind."""
    is_done: bool = False
    """Whether all logs are there."""
    since: str = ""
    owner: str = ""
    stages: tuple[str, ...] = field(default=())
    """The collections that go back."""

    def as_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)

    @classmethod
    def of_json(cls, data: dict[str, Any]) -> Rewind:
        """Read ``as_json`` back."""
        return cls(**{**data, "stages": tuple(data["stages"])})


def scope(graph: Graph, stage: str | None) -> tuple[str, ...]:
    """The collections that go back with one of them, inputs before readers; all of a pipeline by default."""
    if stage is None:
        return tuple(each.name for each in graph.collections)
    graph.collection(stage)
    reached = {stage, *graph.descendants(stage)}
    return tuple(each.name for each in graph.collections if each.name in reached)


def followers(graph: Graph, rewind: Rewind) -> tuple[str, ...]:
    """The stages that read what a rewind takes back, or an undo brings back, and held nothing when it was decided."""
    known = {each.name for each in graph.collections}
    reached = {of for name in rewind.logs if name in known for of in graph.descendants(name)}
    return tuple(each.name for each in graph.collections if each.name in reached and each.name not in rewind.logs)


def rewound(
    graph: Graph,
    present: Agreement,
    rewind: Rewind,
    heads: Mapping[str, Description],
    floor: int,
    corrected: Collection[str] = (),
) -> Agreement:
    """What the control table says once a rewind is decided; refused if it cannot be.

    Args:
        graph: The pipeline.
        present: What stands in the table.
        rewind: The rewind; its ``logs`` and ``upper`` are filled in.
        heads: The logs that go back.
        floor: Up to where logs are consolidated for sure.
        corrected: The stages of these whose epochs some rows were once missing for.
    """
    label, frontier = graph.schedule.label, _free(graph, present)
    since, to = present.kept_since(floor), rewind.to
    if to < since:
        what = f"{graph.name!r} cannot go back to {label(to)}: single epochs are kept only since {label(since)}"
        raise FirnlineError("EPOCH_COMPACTED", what)
    end = max((head.upper for head in heads.values()), default=graph.schedule.start)
    if to >= end:
        what = f"there is nothing to take back: {', '.join(rewind.stages)} end at {label(end)}, before or at {label(to)}"
        raise FirnlineError("EPOCH_NOT_COMPLETE", what)
    for gap in present.gaps.gaps:
        is_open = gap.phase != "back" and gap.made_good is None
        if is_open and gap.collection in heads and any(span.last >= to for span in gap.spans):
            brought = f"'firnline repair {graph.name}' brings its rows back, and of a stage the next epoch makes them good"
            raise FirnlineError("REWIND_BLOCKED", f"{graph.name}.{gap.collection} has a gap after {label(to)}: {brought}")
    logs = {name: head.generation + 1 for name, head in heads.items()}
    upper = max((frontier.upper if frontier else to, *(each.upper for each in present.rewinds if each.undoes is None)))
    decided = replace(rewind, upper=upper, logs=logs)
    held = Hold("rewind", decided.name, to, decided.owner, decided.since, release=release_of(graph, decided.name))
    return _decided(present, frontier, decided, corrected).with_hold(held)


def undone(
    graph: Graph, present: Agreement, undo: Rewind, heads: Mapping[str, Description], floor: int, corrected: Collection[str] = ()
) -> Agreement:
    """What the control table says once an undo is decided, as for ``rewound``; refused if epochs after it are let go of."""
    frontier, since, label = _free(graph, present), present.kept_since(floor), graph.schedule.label
    if undo.to < since:
        what = f"{graph.name!r} cannot go back to {label(undo.to)} in between: single epochs are kept only since {label(since)}"
        raise FirnlineError("REWIND_NOT_UNDOABLE", what)
    back = [gap.collection for gap in present.gaps.gaps if gap.phase == "back" and gap.collection in heads]
    if back:  # epochs that were taken out may have made it good
        what = f"lost rows of {graph.name}.{back[0]} came back meanwhile, and would be there twice"
        raise FirnlineError("REWIND_NOT_UNDOABLE", what)
    logs = {name: head.generation + 1 for name, head in heads.items()}
    return _decided(present, frontier, replace(undo, upper=frontier.upper if frontier else undo.to, logs=logs), corrected)


def settled(present: Agreement, name: str, found: Frontier | None) -> Agreement:
    """What the control table says once all logs of a rewind or an undo are there; ``found`` is the cut of the logs then."""
    rewind = next((each for each in present.rewinds if each.name == name and not each.is_done), None)
    if rewind is None:
        return present
    if rewind.undoes is None:
        done = tuple(replace(each, is_done=True) if each is rewind else each for each in present.rewinds)
        return replace(present, rewinds=done)
    kept = tuple(each for each in present.rewinds if each.name not in (name, rewind.undoes))
    frontier = found or present.frontier
    if frontier is None:  # then nothing else names the generations
        kept = (*kept, replace(rewind, is_done=True))
    return replace(present.without_hold(rewind.undoes), rewinds=kept, frontier=frontier)


def given_up(present: Agreement, name: str) -> Agreement:
    """What the control table says once an undo turns out impossible: its logs go back to the point, those that it reached too."""
    undo = next((each for each in present.rewinds if each.name == name and not each.is_done), None)
    if undo is None:
        return present
    again = replace(undo, name=given_up_as(name), undoes=None, logs={log: made + 1 for log, made in undo.logs.items()})
    cut = present.frontier and _named(present.frontier, again)
    return replace(present, frontier=cut, rewinds=tuple(again if each is undo else each for each in present.rewinds))


def given_up_as(undo: str) -> str:
    """The name of the rewind that stands for an undo which was given up."""
    return f"{undo}_given_up"


def is_before(present: Agreement, frontier: Frontier) -> bool:
    """Whether somebody saw the logs of a cut before a rewind that was decided since, and that no frontier tells of yet."""
    begun = (log for each in present.rewinds for log in each.logs.items())
    return present.frontier is None and any(frontier.generations.get(name, made) < made for name, made in begun)


def reopened(present: Agreement, log: str, generation: int) -> Agreement:
    """With the rewind to be done again that a log of an earlier generation does not know of; refused where there is more."""
    lost = [each for each in present.rewinds if each.logs.get(log, 0) > generation]
    known = present.frontier.generations.get(log, 0) if present.frontier is not None else 0
    waiting = [each for each in present.rewinds if each in lost or not each.is_done]
    if max((each.logs[log] for each in lost), default=generation) < known or (lost and len(waiting) > 1):
        what = f"what can be read of {log} is of generation {generation}, and readers are at generation {known}"
        raise FirnlineError("NOT_REPAIRABLE", what)
    return replace(present, rewinds=tuple(replace(each, is_done=False) if each in lost else each for each in present.rewinds))


def replayed(present: Agreement) -> Agreement:
    """Without the rewinds whose epochs are all there again, and their holds."""
    assert present.frontier is not None, "it has just moved"
    upper = present.frontier.upper
    done = {each.name for each in present.rewinds if each.is_done and upper >= each.upper}
    holds = tuple(each for each in present.holds if each.name not in done)
    return replace(present, rewinds=tuple(each for each in present.rewinds if each.name not in done), holds=holds)


def release_of(graph: Graph, name: str) -> str:
    """How one gets rid of the hold of a rewind."""
    return (
        f"firnline run {graph.name}, or firnline rewind {graph.name} --undo, or firnline safepoint {graph.name} --release {name}"
    )


def _free(graph: Graph, present: Agreement) -> Frontier | None:
    if present.open_rewind() is not None:
        raise FirnlineError("COMMIT_CONTENDED", f"another rewind of {graph.name!r} was decided just now")
    return present.frontier


def _decided(present: Agreement, frontier: Frontier | None, rewind: Rewind, corrected: Collection[str]) -> Agreement:
    told = {stage for stage in rewind.stages for gap in present.gaps.gaps if stage in gap.before or stage in gap.after}
    gaps = present.gaps.taken_back({*corrected, *told}, rewind.to, rewind.name)
    cut = frontier and replace(_named(frontier, rewind), upper=min(frontier.upper, rewind.to))
    holds = tuple(taken_back(each, rewind.to, rewind.logs) for each in present.holds)
    return replace(present, frontier=cut, rewinds=(*present.rewinds, rewind), holds=holds, gaps=gaps)


def _named(frontier: Frontier, rewind: Rewind) -> Frontier:
    """A frontier of the generations that a rewind begins, as far as readers see these logs."""
    begun = {name: generation for name, generation in rewind.logs.items() if name in frontier.generations}
    return replace(frontier, generations={**frontier.generations, **begun})
