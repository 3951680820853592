"""What brings a damaged log back, given what is wrong with it: the steps in their order, and what no step mends.

Metadata comes before sidecars, these before manifests, and these before rows, since each is found through the one before. Lists
through which nobody reads the newest rows come last. Of several logs those upstream come first, and what a stage keeps before the
stage. What a replica holds comes back from there as it was. Rows that it does not hold are computed again, where their contract
allows it, or left out where it allows that; everything else is written anew from what other files say.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from firnline.errors import FirnlineError
from firnline.model.declaration import Collection as Declared
from firnline.model.declaration import OnLoss
from firnline.model.epoch import Epoch, Schedule
from firnline.model.feed import EVENTS, Feed
from firnline.model.gap import Cell
from firnline.model.graph import Graph
from firnline.model.names import collection_of
from firnline.model.replica import Copy
from firnline.model.stored_file import StoredFile
from firnline.plan.restoring import Copies, left, restorable
from firnline.plan.verification import (
    Holding,
    Manifest,
    Problem,
    Revision,
    covers,
    data_of,
    missing,
    published_rows,
    uncovered,
)

What = Literal["metadata", "sidecars", "manifests", "rows", "lists", "files"]
How = Literal["rebuild", "recompute", "leave out", "retry", "restore"]


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do for one log."""

    pipeline: str
    collection: str
    what: What
    why: str
    cells: tuple[Cell, ...] = ()
    """The (epoch, part) that it is about, as far as is known."""
    rows: int = 0
    """How many rows are lost."""
    seconds: float = 0.0
    """How long computing them may take, by how long it took."""
    sidecars: tuple[int, ...] = ()
    """The snapshots whose sidecars are to be written anew."""
    out: frozenset[str] = frozenset()
    """The data files that hold, or held, the rows."""
    manifests: frozenset[str] = frozenset()
    """Manifests that cannot be read."""
    named: tuple[StoredFile, ...] = ()
    """The data files that these named."""
    instead_of_head: int | None = None
    """The snapshot whose manifest list stands for the head's; zero if none does."""
    lists: tuple[int, ...] = ()
    """The snapshots whose manifest lists are to be written anew."""
    contract: OnLoss = "replay"
    """What holds for lost rows."""
    is_replayed: bool = True
    """Whether rows may be computed again; if not, and their contract is a gap, they are left out."""
    is_retried: bool = False
    """Whether the rows are those of gaps, which stay if it does not succeed."""
    copies: tuple[tuple[str, Copy], ...] = ()
    """Files that come back from replicas, each with where it is from."""

    @property
    def how(self) -> How:
        """Whether something is computed."""
        if self.what == "files":
            return "restore"
        if self.what != "rows":
            return "rebuild"
        if self.is_retried:
            return "retry"
        return "recompute" if self.is_replayed else "leave out"

    @property
    def source(self) -> str:
        """Where files come from; empty if they are not from a replica."""
        places = dict.fromkeys(copy.place for _, copy in self.copies)
        return f"from replica {' and '.join(places)}" if places else ""

    def epochs(self) -> list[int]:
        """The beginnings of its epochs."""
        return sorted({epoch for epoch, _ in self.cells})

    def parts(self, epoch: int | None = None) -> tuple[int, ...]:
        """Its parts, of one epoch or of all."""
        return tuple(sorted({part for each, part in self.cells if epoch in (None, each)}))


@dataclass(frozen=True, slots=True)
class Refusal:
    """What stays as it is, and why."""

    pipeline: str
    collection: str
    what: str
    code: str | None = None
    step: Step | None = None
    """What would be done about lost rows, if their contract were another."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do, and what cannot be done."""

    steps: tuple[Step, ...]
    refusals: tuple[Refusal, ...]


def owner(graph: Graph, collection: str) -> Declared | None:
    """The source or stage whose function makes a log: quarantines and arrangements are named after it."""
    return next((each for each in graph.collections if each.name == collection_of(collection)), None)


def made_of(made_by: Declared, log: str) -> tuple[str, ...]:
    """The logs that one is made from: a feed's rows from its events, a source's from none."""
    return (log + EVENTS,) if log == made_by.name and isinstance(made_by.intake, Feed) else made_by.inputs


def in_order(graph: Graph, logs: Iterable[Holding]) -> list[Holding]:
    """Logs in the order in which they are repaired: inputs before readers, what a stage keeps before the stage.

    Of what one stage keeps, that which was published first: the others may read it.
    """
    positions = {each.name: position for position, each in enumerate(graph.collections)}

    def key(log: Holding) -> tuple[int, bool, int, str]:
        if log.is_control:
            return -1, False, 0, log.collection  # it says which rows are known to be missing
        began = log.revisions[0].at if log.revisions else 0
        made_by = collection_of(log.collection)
        return positions.get(made_by, len(positions)), log.collection == made_by, began, log.collection

    return sorted(logs, key=key)


Contracts = Mapping[str, OnLoss]
"""Contracts that stand for the declared ones, by log."""
_AS_DECLARED: Contracts = MappingProxyType({})


_NO_COPIES: Copies = MappingProxyType({})


def plan(
    logs: Sequence[Holding],
    problems: Mapping[str, Sequence[Problem]],
    graph: Graph,
    copies: Mapping[str, Copies] = MappingProxyType({}),
) -> Plan:
    """The steps for the logs of one pipeline; ``problems``, and ``copies`` of what is lost, are theirs, by collection."""
    steps: list[Step] = []
    refusals: list[Refusal] = []
    for log in in_order(graph, logs):
        found = steps_for(log, problems.get(log.collection, ()), graph, copies=copies.get(log.collection, _NO_COPIES))
        retried = retry(log, graph)
        steps += (*found.steps, *((retried,) if retried else ()))
        refusals += found.refusals
    return Plan(tuple(steps), tuple(refusals))


def steps_for(
    log: Holding,
    problems: Sequence[Problem],
    graph: Graph,
    contracts: Contracts = _AS_DECLARED,
    copies: Copies = _NO_COPIES,
) -> Plan:
    """The steps for one log, given all of its problems, and what replicas hold of what is lost."""
    damage = [problem for problem in problems if not problem.is_staged]
    steps: list[Step] = []
    refusals = [Refusal(log.pipeline, log.collection, each.what) for each in damage if not _is_mendable(each)]
    paths, cells = restorable(log, damage, copies)
    if paths:
        steps.append(_restoring(log, damage, paths, cells, copies))
        if not cells:
            return Plan(tuple(steps), ())  # what else there is to do is seen when these are back
        damage = left(damage, paths, cells)
    if not log.metadata.is_sound():
        steps.append(Step(log.pipeline, log.collection, "metadata", _why(damage, "log")))
        return Plan(tuple(steps), tuple(refusals))
    lost_cells = _lost_cells(log, damage)
    sidecars = _sidecars(log, damage)
    if sidecars is not None:
        steps.append(sidecars)
    try:
        manifests, more = _manifests(log, damage)
    except _UnknownError as unknown:
        refusals.append(Refusal(log.pipeline, log.collection, str(unknown)))
        return Plan(tuple(steps), tuple(refusals))
    if manifests is not None:
        steps.append(manifests)
        lost_cells -= set(manifests.cells)
    if lost_cells | more:
        told = _by_contract(log, _rows(log, damage, lost_cells | more), graph, contracts)
        if isinstance(told, Step):
            steps.append(told)
        else:
            refusals.append(told)
    unlisted = tuple(each.snapshot for each in log.unlisted())
    if unlisted and manifests is None and all(manifest.file.is_sound() for manifest in _known(log)):
        why = _why(damage, "past") or _why(damage, "log")
        steps.append(Step(log.pipeline, log.collection, "lists", why, lists=unlisted))
    return Plan(tuple(steps), tuple(refusals))


def _restoring(log: Holding, damage: Sequence[Problem], paths: Sequence[str], cells: tuple[Cell, ...], copies: Copies) -> Step:
    """The files that come back as they were, and the rows in them."""
    about = [each for each in damage if each.file in paths] or [each for each in damage if each.about == "data"]
    rows = sum(published_rows(log, cells).values())
    why = _why(about, about[0].about) if about else ""
    found = tuple((path, copies[path]) for path in paths)
    return Step(log.pipeline, log.collection, "files", why, cells, rows, copies=found)


class _UnknownError(Exception):
    """Nothing says which data files there were."""


def _is_mendable(problem: Problem) -> bool:
    if problem.about == "data":
        return problem.kind != "inconsistent"
    return problem.file is not None or problem.about == "sidecar" or problem.kind == "unreadable"


def _lost_cells(log: Holding, damage: Sequence[Problem]) -> set[Cell]:
    known = set(log.cells())
    told = [each for each in damage if each.about == "data" and each.kind != "inconsistent"]
    lost = {(epoch, part) for each in told for epoch in each.epochs for part in each.parts}
    return (lost & known) | ({cell for revision in log.layers() for cell in uncovered(log, revision)} - missing(log))


def _sidecars(log: Holding, damage: Sequence[Problem]) -> Step | None:
    lost = [] if log.is_control else [each for each in log.layers() if each.summary is not None and not _is_told(each)]
    if not lost:
        return None
    return Step(
        log.pipeline,
        log.collection,
        "sidecars",
        _why(damage, "sidecar"),
        cells=tuple((each.summary.lower, 0) for each in lost if each.summary),
        sidecars=tuple(each.snapshot for each in lost),
    )


def _manifests(log: Holding, damage: Sequence[Problem]) -> tuple[Step | None, set[Cell]]:
    """How lists and manifests come back, and the (epoch, part) whose rows are lost with them."""
    unsound = frozenset(manifest.file.path for manifest in _known(log) if not manifest.file.is_sound())
    readable = log.unsuperseded()
    is_headless = bool(readable) and not readable[-1].manifest_list.is_sound()
    files = files_of(log)
    held = {data.file.path for _, data in data_of(log)}
    named = tuple(file for path, file in sorted((files or {}).items()) if path not in held)
    if not unsound and not named and not is_headless:
        return None, set()
    if files is None and is_headless:
        what = "the newest manifest list cannot be read, and not every sidecar says which data files there are"
        raise _UnknownError(f"{what}: bring one or the other back from a copy of the warehouse")
    if files is None and unsound:
        data = [each for _, each in data_of(log)]
        known = {cell for cell in log.cells() if any(cell in gap for gap in log.gaps)}
        return None, {cell for cell in log.cells() if not any(covers(each, cell) for each in data)} - known
    instead = None
    if is_headless:
        sound = [each.snapshot for each in readable if each.manifest_list.is_sound() and each.manifests is not None]
        instead = sound[-1] if sound else 0
    cells = tuple(cell for cell in log.cells() if any(_holds(file, cell) for file in named))
    why = _why(damage, "log") or _why(damage, "sidecar")
    return Step(log.pipeline, log.collection, "manifests", why, cells, 0, 0.0, (), frozenset(), unsound, named, instead), set()


def files_of(log: Holding) -> dict[str, StoredFile] | None:
    """The data files that the head should name, by the sidecars of all snapshots; None if one of them does not tell.

    What a publish brought that a merge stands for is not asked: the merge took it out.
    """
    files: dict[str, StoredFile] = {}
    for revision in log.published():
        if log.is_control or (revision.is_subsumed and not revision.is_exchange):
            continue
        if revision.files is None:
            return None
        for path in revision.out:
            files.pop(path, None)
        files |= {file.path: file for file in revision.files}
    return files


def _rows(log: Holding, damage: Sequence[Problem], lost: Collection[Cell]) -> Step:
    """The rows of lost (epoch, part), and of all that shares a file with them."""
    cells, out = set(lost), set[str]()
    every = log.cells()
    while True:
        data = [each for _, each in data_of(log) if any(covers(each, cell) for cell in cells)]
        more = cells | {cell for cell in every if any(covers(each, cell) for each in data)}
        out = {each.file.path for each in data}
        if more == cells:
            break
        cells = more
    rows = published_rows(log, cells)
    return Step(
        log.pipeline,
        log.collection,
        "rows",
        _why(damage, "data") or _why(damage, "log") or _why(damage, "sidecar"),
        cells=tuple(sorted(cells)),
        rows=sum(rows.values()),
        seconds=sum(_seconds(revision, rows) for revision in log.layers()),
        out=frozenset(out),
        manifests=frozenset(manifest.file.path for manifest in _known(log) if not manifest.file.is_sound()),
    )


def _by_contract(log: Holding, step: Step, graph: Graph, contracts: Contracts) -> Step | Refusal:
    """What is done about lost rows, or why nothing is."""
    made_by = owner(graph, log.collection)
    if made_by is None:
        what = "no function of the pipeline makes it any more, so that its lost rows cannot be computed again"
        return Refusal(log.pipeline, log.collection, f"{step.rows} rows are lost; {what}")
    contract = contracts.get(log.collection, made_by.on_loss)
    step = replace(step, contract=contract, is_replayed=not made_by.nondeterministic)
    code = None
    if contract == "fail":
        said = "is declared" if contract == made_by.on_loss else "has, by the pipeline's handler,"
        what = f"{made_by.name!r} {said} on_loss='fail': lost rows are not computed again"
    elif made_by.nondeterministic and contract == "replay":
        code = "NEEDS_REWIND"
        what = (
            f"{made_by.name!r} is declared nondeterministic=True: a second run may give other rows than those that are lost, "
            f"so that {to_rewind(graph, made_by.name)}"
        )
    else:
        return step
    return Refusal(log.pipeline, log.collection, f"{step.rows} rows are lost; {what}", code, step)


def to_rewind(graph: Graph, stage: str) -> str:
    """What it would take to go on from other rows than those that were lost, without mixing both."""
    names = [stage, *graph.descendants(stage)]
    together = f"{', '.join(map(repr, names[:-1]))} and {names[-1]!r}" if len(names) > 1 else repr(stage)
    return f"{together} would have to be rewound" + (" together" if len(names) > 1 else "")


def retry(log: Holding, graph: Graph) -> Step | None:
    """The rows of a log's gaps that may come back.

    A stage that published since the gap was opened has made it good by itself, or is about to: its log holds the rows twice if
    the old ones come back.
    """
    made_by, description = owner(graph, log.collection), log.description()
    if made_by is None or description is None:
        return None
    gaps = [gap for gap in log.gaps if description.upper <= gap.before.get(made_by.name, description.upper)]
    cells = sorted(cell for cell in missing(log) if any(cell in gap for gap in gaps))
    if not cells:
        return None
    rows = published_rows(log, cells)
    return Step(
        log.pipeline,
        log.collection,
        "rows",
        gaps[0].why if len(gaps) == 1 else f"{gaps[0].why}; and {len(gaps) - 1} more",
        cells=tuple(cells),
        rows=sum(rows.values()),
        seconds=sum(_seconds(revision, rows) for revision in log.layers()),
        contract="gap",
        is_replayed=not made_by.nondeterministic,
        is_retried=True,
    )


def epoch_of(log: Holding, schedule: Schedule, lower: int) -> Epoch:
    """The epoch of a log's rows that begins at a point, as it was published: the schedule may be another one by now."""
    layer = log.layer_of(lower)
    account = None if layer is None else layer.summary or layer.told
    if layer is None or account is None:
        raise FirnlineError("NOT_REPAIRABLE", f"{log.pipeline}.{log.collection} has no layer at {schedule.label(lower)}")
    return schedule.stored(lower, {lower, *(epoch for epoch, _ in layer.digests)}, account.upper)


def taken_out(log: Holding, cells: Collection[Cell]) -> tuple[StoredFile, ...]:
    """The data files that held rows of gaps, and all of whose rows are among ``cells``."""
    known = {file.path: file for revision in log.published() for file in revision.files or ()}
    held = {data.file.path for _, data in data_of(log)}
    out = dict.fromkeys(path for revision in log.published() if revision.gap for path in revision.out)
    files = [known[path] for path in out if path in known and path not in held]
    every = log.cells()
    return tuple(file for file in files if {cell for cell in every if _holds(file, cell)} <= set(cells))


def _is_told(revision: Revision) -> bool:
    """Whether the sidecar says what the summary says."""
    told, said = revision.told, revision.summary
    return told is not None and said is not None and replace(told, seconds=said.seconds) == said


def _known(log: Holding) -> list[Manifest]:
    return [manifest for revision in log.published() for manifest in revision.manifests or ()]


def _holds(file: StoredFile, cell: Cell) -> bool:
    epoch, part = cell
    return file.part == part and file.first <= epoch <= file.last


def _seconds(revision: Revision, rows: Mapping[Cell, int]) -> float:
    """The share of a publish's time that its lost rows took."""
    all_rows = sum(digest.rows for digest in revision.digests.values())
    lost = sum(rows.get(cell, 0) for cell in revision.digests)
    return 0.0 if revision.summary is None or not all_rows else revision.summary.seconds * lost / all_rows


def _why(damage: Sequence[Problem], about: str) -> str:
    found = [each for each in damage if each.about == about]
    if not found:
        return ""
    first = f"{found[0].kind}: {found[0].what}"
    return first if len(found) == 1 else f"{first}; and {len(found) - 1} more"
