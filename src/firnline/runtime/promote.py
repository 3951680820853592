"""``firnline promote``: the pipeline becomes what a branch says, by its next epoch.

In that epoch every collection that the branch changed gets what leads from its own rows to the branch's: one delta, published by
the rule of every publish, so that it is there once, whoever else tries. That is what the pipeline itself would compute if it met
the branch's code: the rows are the same, only that the branch has them already. All else of the epoch is computed as ever. So
nothing has to be remembered: whoever dies in between runs it again, and if the scheduler comes first, it comes to the same rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from firnline.errors import FirnlineError
from firnline.model.declaration import Collection
from firnline.model.description import Verdict
from firnline.model.epoch import Epoch
from firnline.model.fingerprint import Fingerprint
from firnline.model.graph import Graph
from firnline.model.names import QUARANTINE, branch_space, logs_beside
from firnline.runtime import branch as branches
from firnline.runtime.advance import Outcome, advance, complete
from firnline.runtime.branch import Note
from firnline.runtime.branch_run import Running, missing, run
from firnline.runtime.diff import MAIN, CollectionDiff, Side, diff, differs
from firnline.runtime.flusher import hand_over
from firnline.runtime.offline_plan import offline_plans
from firnline.runtime.project import Declared, Project
from firnline.runtime.status import due
from firnline.tables.forking import fork
from firnline.tables.log import Log
from firnline.world import world

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession


@dataclass(frozen=True, slots=True)
class Plan:
    """What a promotion does."""

    note: Note
    epoch: Epoch
    """The pipeline's next, in which it happens."""
    changed: tuple[str, ...]
    """The collections that get the branch's rows."""


def planned(project: Project, graph: Graph, branch: str, session: Callable[[], SparkSession], *, is_rebased: bool) -> Plan | None:
    """What ``promote`` would do now, or nothing if the pipeline says all that already; refused where main has moved.

    With ``is_rebased`` the branch is first brought to where main is.
    """
    space = branch_space(graph.name, branch)
    note = branches.check_whole(project, space)
    if is_rebased:
        note = _rebased(project, graph, note, session)
    behind = missing(project, space)
    if behind:
        what = f"{branch!r} lacks {len(behind)} epochs of {graph.name!r}"
        raise FirnlineError("PROMOTE_BEHIND", what, todo=f"Run it first: firnline branch run {branch}; or promote with --rebase.")
    moved = _moved(project, graph, note)
    if moved:
        what = f"the code of {', '.join(moved)} changed in {graph.name!r} after {branch!r} began"
        raise FirnlineError("PROMOTE_CONFLICT", what)
    changed = _changed(project, graph, note)
    if not changed:
        _check_run(project, graph, note)
        return None
    _check_code(project, graph, note, changed)
    _check_columns(project, note, changed)
    return Plan(note, _next(project, graph), changed)


def preview(project: Project, graph: Graph, plan: Plan, rows: int) -> tuple[CollectionDiff, ...]:
    """What the rows of the changed collections would become, as they are before the epoch's own changes."""
    branch, at = project.graph(plan.note.space), plan.epoch.lower
    sides = (Side(MAIN, project, graph, at), Side(plan.note.branch, project, branch, at))
    return tuple(diff(*sides, name, rows).collections[0] for name in plan.changed)


def promote(project: Project, graph: Graph, plan: Plan, session: Callable[[], SparkSession]) -> Iterator[Outcome]:
    """Bring the pipeline through its next epoch, with the branch's rows; each collection as it is done."""
    yield from _Promoting(project, graph, plan, session()).run()


def _check_run(project: Project, graph: Graph, note: Note) -> None:
    """Refuse to say that a branch says what main says as long as its code has computed nothing."""
    branch, frontier = project.graph(note.space), project.control(note.space).frontier()
    heads = {each.name: project.log(graph.name, each.name).head() for each in branch.collections}
    made_by = {name: head.fingerprint.code for name, head in heads.items() if head is not None and head.fingerprint is not None}
    if frontier is not None and frontier.upper == note.at and made_by != dict(branch.fingerprints):
        what = (
            f"{note.branch!r} begins where {graph.name!r} ends, at {graph.schedule.label(note.at)}, and has computed nothing yet"
        )
        todo = f"Run the next epoch of {graph.name!r}, then the branch: firnline branch run {note.branch}; then promote it."
        raise FirnlineError("PROMOTE_BEHIND", what, todo=todo)


def _rebased(project: Project, graph: Graph, note: Note, session: Callable[[], SparkSession]) -> Note:
    """A branch that has all that main has: run through, or, where main's code moved, begun anew at its frontier."""
    if _moved(project, graph, note):
        frontier = project.control(graph.name).frontier()
        assert frontier is not None, "there is something that moved"
        branches.drop(project, graph.name, note.branch)
        return branches.create(project, graph, note.branch, frontier.upper, note.ref)
    for _ in run(project, note.space, missing(project, note.space), session):
        pass
    return note


def _moved(project: Project, graph: Graph, note: Note) -> list[str]:
    """The collections that main computes otherwise than when the branch began, and otherwise than the branch does."""
    found = []
    for collection in graph.collections:
        log = project.log(graph.name, collection.name)
        entries = list(log.entries())
        head, ours = log.head(), project.log(note.space, collection.name).head()
        if head is None or ours is None or head.fingerprint is None or not entries:
            continue
        before = [each for each in entries if each.description.upper <= note.at]
        base = (before[0] if before else entries[-1]).fingerprint
        is_unmoved = head.fingerprint.is_same(base) and head.description.generation == ours.description.generation
        if not is_unmoved and not (ours.fingerprint is not None and ours.fingerprint.is_same(head.fingerprint)):
            found.append(collection.name)
    return found


def _changed(project: Project, graph: Graph, note: Note) -> tuple[str, ...]:
    """The collections whose rows, or whose code, are others in the branch."""
    frontier = project.control(graph.name).frontier()
    assert frontier is not None, "the branch has as much as the pipeline"
    branch = project.graph(note.space)
    sides = Side(MAIN, project, graph, frontier.upper), Side(note.branch, project, branch, frontier.upper)
    found = []
    for collection in branch.collections:
        ours, theirs = (project.log(space, collection.name).head() for space in (note.space, graph.name))
        is_alike = ours is not None and theirs is not None and _is_alike(theirs.fingerprint, ours.fingerprint)
        if not is_alike or differs(*sides, collection.name):
            found.append(collection.name)
    return tuple(found)


def _is_alike(one: Fingerprint | None, other: Fingerprint | None) -> bool:
    return one is other if one is None or other is None else one.is_same(other)


def _check_code(project: Project, graph: Graph, note: Note, changed: tuple[str, ...]) -> None:
    """Refuse to let the pipeline say what its own code would take back in the epoch after."""
    branch = project.graph(note.space)
    there = {each.name for each in graph.collections}
    apart = [name for name in changed if name in there and graph.fingerprints[name] != branch.fingerprints[name]]
    plans = [offline_plans(project, of, apart) if apart else {} for of in (graph, branch)]
    found = [name for name in apart if plans[0][name] is None or plans[0][name] != plans[1][name]]
    found += [name for name in changed if name not in there]
    if found:
        what = f"the project's code of {', '.join(found)} is not that of the branch {note.branch!r}"
        raise FirnlineError("PROMOTE_CODE_DIFFERS", what)


def _check_columns(project: Project, note: Note, changed: tuple[str, ...]) -> None:
    """Refuse columns that nothing leads to in place; others, the pipeline's log gets with the branch's rows."""
    from firnline.tables.evolving import between

    for name in changed:
        ours, theirs = (project.log(space, name).load() for space in (note.space, note.pipeline))
        if ours is None or theirs is None:
            continue
        needed = between(theirs, ours)
        if needed.refused or needed.left_out:
            apart = ", ".join((*needed.refused, *needed.left_out))
            raise FirnlineError("PROMOTE_COLUMNS", f"{name!r} has other columns in {note.branch!r}: {apart}")


def _next(project: Project, graph: Graph) -> Epoch:
    frontier = project.control(graph.name).frontier()
    assert frontier is not None, "the branch has as much as the pipeline"
    epoch = graph.schedule.epoch_at(frontier.upper)
    if graph.schedule.timed and epoch.upper > due(project, graph):
        label = graph.schedule.label
        what = f"the next epoch of {graph.name!r}, {label(epoch.lower)}, is not over before {label(epoch.upper)}"
        raise FirnlineError("PROMOTE_TOO_EARLY", what)
    return epoch


@dataclass
class _Promoting:
    project: Project
    graph: Graph
    plan: Plan
    session: SparkSession

    @cached_property
    def running(self) -> Running:
        space = self.plan.note.space
        return Running(self.project, self.plan.note, self.project.graph(space), lambda: self.session)

    @cached_property
    def declared(self) -> Declared:
        return self.project.declared(self.graph.name)

    def run(self) -> Iterator[Outcome]:
        epoch = self.plan.epoch
        for collection in self.declared.graph.collections:
            if collection.name not in self.plan.changed:
                yield from advance(self.project, self.declared, self.session, collection.name, epoch)
            for _ in self.running.collection(collection, epoch):
                pass
            if collection.name in self.plan.changed:
                yield self._promoted(collection)
        complete(self.project, self.running.graph, epoch)
        complete(self.project, self.graph, epoch)
        world().reach("promote.completed")

    def _promoted(self, collection: Collection) -> Outcome:
        """Let a collection, and what it keeps beside it, be what the branch's is."""
        began, epoch = time.monotonic(), self.plan.epoch
        for name in logs_beside(collection.name, self.project.catalog.names(self.plan.note.space)):
            if not name.endswith(QUARANTINE):
                self._adopted(name, collection)
        rows, weight, verdict = self._adopted(collection.name, collection)
        self._check_ours(collection.name)
        how: Literal["computed", "kept"] = "computed" if verdict is Verdict.FREE else "kept"
        return Outcome(collection.name, epoch, how, rows, weight, seconds=time.monotonic() - began)

    def _adopted(self, name: str, collection: Collection) -> tuple[int, int, Verdict]:
        ours, theirs = (self.project.log(space, name) for space in (self.plan.note.space, self.graph.name))
        head, epoch = theirs.head(), self.plan.epoch
        if head is None:
            fork(self.project.catalog, ours, theirs, epoch.upper)
            return 0, 0, Verdict.FREE
        if head.description.upper >= epoch.upper:
            return 0, 0, Verdict.TAKEN
        return self._published(name, ours, theirs, collection)

    def _published(self, name: str, ours: Log, theirs: Log, collection: Collection) -> tuple[int, int, Verdict]:
        from firnline.runtime.adoption import adopt

        note, epoch = self.plan.note, self.plan.epoch
        attempt = world().new_id()
        done = adopt(self.project, self.declared, self.session, collection, ours, theirs, note.at, epoch, attempt)
        world().reach("promote.published")
        if done.verdict not in (Verdict.FREE, Verdict.TAKEN):
            raise FirnlineError("GENERATION_CHANGED", f"{name!r} moved while it was promoted")
        if done.verdict is Verdict.FREE and name == collection.name:
            hand_over(self.project, self.graph.name, name, epoch, attempt)
        return done.digest.rows, done.digest.weight, done.verdict

    def _check_ours(self, name: str) -> None:
        """Refuse to go on where somebody else published the epoch by other code."""
        ours, theirs = (self.project.log(space, name).head() for space in (self.plan.note.space, self.graph.name))
        assert ours is not None
        assert theirs is not None
        if not _is_alike(ours.fingerprint, theirs.fingerprint):
            raise FirnlineError("PROMOTE_CONFLICT", f"{name!r} was published by other code meanwhile")
