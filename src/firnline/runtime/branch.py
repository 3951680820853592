"""Branches: what a pipeline would say if its code were another, beside it.

A branch is a set of logs under the name ``PIPELINE__BRANCH``, which begin with what the pipeline's hold before a point, file by
file, and a control table of its own. Everywhere but here it is a pipeline like any other, whose code may be in another folder. It
exists as long as it holds the pipeline's safe point: the hold comes first and goes last, so that whoever dies in between leaves
something that the same command finishes.
"""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import tarfile
from collections.abc import Iterator, Set
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from firnline.errors import FirnlineError
from firnline.model.graph import Graph
from firnline.model.hold import Hold
from firnline.model.names import branch_space, is_branch_name, parted
from firnline.plan.agreement import Agreement
from firnline.plan.frontier import Frontier
from firnline.runtime.reader import user
from firnline.world import world

if TYPE_CHECKING:
    from firnline.runtime.project import Project
    from firnline.tables.metadata import Metadata

FOLDER = "branches"
"""Below the work folder: the code of branches."""
_NOTE = "_branch.json"


@dataclass(frozen=True, slots=True)
class Note:
    """What is written down about a branch."""

    pipeline: str
    branch: str
    at: int
    """What is before it is the pipeline's, what comes after it the branch's own."""
    code: str | None
    """The folder with its code; None for the project's own."""
    ref: str | None
    """The code as it was asked for: a folder, or what git knows."""
    owner: str
    created_at: str
    is_leaving: bool = False
    """Whether somebody began to drop it."""

    @property
    def space(self) -> str:
        """Under which name its collections are."""
        return branch_space(self.pipeline, self.branch)


@dataclass(frozen=True, slots=True)
class Line:
    """One branch, for people."""

    pipeline: str
    branch: str
    at: str | None
    """Where it begins; None if all that is left of it is to be dropped."""
    frontier: str | None
    """Up to where it was run; None if it is not whole."""
    behind: int
    """How many epochs of the pipeline it lacks."""
    code: str | None
    owner: str
    created_at: str


def note_of(project: Project, space: str) -> Note:
    """What is written down about a branch."""
    pipeline, branch = parted(space)
    try:
        return Note(**json.loads(project.catalog.read(_note_path(project, space))))
    except FileNotFoundError:
        raise FirnlineError("NO_SUCH_BRANCH", f"{pipeline!r} has no branch {branch!r}") from None


def create(project: Project, graph: Graph, branch: str, at: int, code: str | None, owner: str | None = None) -> Note:
    """Let a branch begin at a point, with the code in a folder, of a git ref, or the project's own.

    What an earlier attempt left unfinished is finished; what one with other code left, or a drop, is forgotten first. One with
    another point is refused: of two at once, the first to hold its point goes on.
    """
    if not is_branch_name(branch):
        raise FirnlineError("BAD_NAME", f"{branch!r} cannot name a branch")
    _check_point(project, graph, at)
    space = branch_space(graph.name, branch)
    there = project.control(graph.name).agreement().held(branch)
    if there is not None and is_whole(project, space):
        raise FirnlineError("BRANCH_EXISTS", f"{graph.name!r} has a branch {branch!r} already")
    note = Note(graph.name, branch, at, _code(project, space, code), code, owner or user(), world().now().isoformat())
    left, begun = _tables(project, space), _begun(project, space)  # in this order: who shares something has noted it before
    _hold(project, graph, note, is_dropped=begun is not None and begun.is_leaving)
    if begun is not None and _is_going_on(project, begun, note):
        note = begun
    else:
        _forget(project, graph.name, space, {table.location for table in left})
        _write(project, note)
    world().reach("branch.noted")
    project.graph(space)  # refuse code that does not load before anything is shared
    _fork(project, graph, note)
    return note


def is_whole(project: Project, space: str) -> bool:
    """Whether a branch was created to its end, and nobody began to drop it."""
    return project.control(space).frontier() is not None


def check_whole(project: Project, space: str) -> Note:
    """What is written down about a branch, refused if it is half created or half dropped."""
    note = note_of(project, space)
    if not is_whole(project, space):
        raise FirnlineError("BRANCH_INCOMPLETE", f"the branch {note.branch!r} of {note.pipeline!r} is not whole")
    return note


def drop(project: Project, pipeline: str, branch: str) -> None:
    """Forget a branch; its files are in the trash, but for those that the pipeline or another branch names."""
    space = branch_space(pipeline, branch)
    control = project.control(pipeline)
    is_held = control.agreement().held(branch) is not None
    if not is_held and not project.catalog.names(space):
        raise FirnlineError("NO_SUCH_BRANCH", f"{pipeline!r} has no branch {branch!r}")
    begun = _begun(project, space)
    if begun is not None:
        _write(project, replace(begun, is_leaving=True))
    _forget(project, pipeline, space)
    for path in project.catalog.paths(f"{project.catalog.warehouse}/{space}"):
        if path.partition(f"/{space}/")[2].startswith("_"):  # notes, whose names another branch of this name would give again
            project.catalog.remove(path)
    world().reach("branch.forgotten")
    shutil.rmtree(project.settings.work / FOLDER / space, ignore_errors=True)
    if is_held:
        control.release(branch)


def branches(project: Project, graph: Graph) -> Iterator[Line]:
    """The branches of a pipeline."""
    label, schedule = graph.schedule.label, graph.schedule
    main = project.control(graph.name).frontier()
    held = {hold.name: hold for hold in project.control(graph.name).holds() if hold.kind == "branch"}
    left = {parted(space)[1] or "" for space in project.catalog.branches(graph.name)}
    for branch in sorted(held.keys() | left):
        space = branch_space(graph.name, branch)
        frontier = project.control(space).frontier()
        hold = held.get(branch)
        behind = schedule.count(frontier.upper, main.upper) if frontier and main else 0
        try:
            note = note_of(project, space)
        except FirnlineError:
            note = None
        yield Line(
            graph.name,
            branch,
            None if hold is None else label(hold.at),
            None if frontier is None else label(frontier.upper),
            behind,
            None if note is None else note.ref,
            hold.owner if hold else "",
            (hold.since if hold else None) or "",
        )


def _check_point(project: Project, graph: Graph, at: int) -> None:
    schedule, frontier = graph.schedule, project.control(graph.name).frontier()
    newest = schedule.start if frontier is None else frontier.upper
    if at > newest:
        what = f"{schedule.label(at)} is beyond what is complete in {graph.name!r}: {schedule.label(newest)}"
        raise FirnlineError("EPOCH_NOT_COMPLETE", what)
    if at != newest and schedule.epoch_at(at).lower != at:
        raise FirnlineError("BAD_EPOCH", f"no epoch of {graph.name!r} begins at {schedule.label(at)}")


def _hold(project: Project, graph: Graph, note: Note, *, is_dropped: bool) -> None:
    """Hold the safe point where the branch begins, from before it names a file to after it names none.

    Another point is held in its place only if what it was held for is half dropped.
    """
    from firnline.runtime.safepoint import hold

    release = f"firnline branch drop {note.branch} --pipeline {graph.name}"

    def place(agreement: Agreement, _: int) -> Hold:
        there = agreement.held(note.branch)
        if there is not None and there.kind == "branch" and there.at != note.at and not is_dropped:
            what = f"somebody creates, or began to create, the branch {note.branch!r} of {graph.name!r} at"
            todo = f"If nobody is at it any more, drop it first: {release}"
            raise FirnlineError("BRANCH_INCOMPLETE", f"{what} {graph.schedule.label(there.at)}", todo=todo)
        since = there.since if there is not None and there.kind == "branch" else note.created_at
        return Hold("branch", note.branch, note.at, note.owner, since, release=release)

    hold(project, graph, place)


def _fork(project: Project, graph: Graph, note: Note) -> None:
    from firnline.tables.control import TABLE
    from firnline.tables.forking import fork

    for name in sorted(project.catalog.names(graph.name) - {TABLE}):
        fork(project.catalog, project.log(graph.name, name), project.log(note.space, name), note.at)
    main = project.control(graph.name).agreement()
    project.control(note.space).name(lambda present: replace(present, names=main.names, spent=main.spent))
    project.control(note.space).advance(Frontier(note.at, {}))  # which generations, the first epoch tells


def is_shared(project: Project, note: Note, name: str) -> bool:
    """Whether the pipeline's log was never taken back to before a branch since that began."""
    from firnline.tables.layers import REWOUND_TO, is_rewind

    table = project.log(note.pipeline, name).load()
    began = datetime.fromisoformat(note.created_at).timestamp() * 1000
    rewinds = (each for each in (table.main_line() if table else ()) if is_rewind(each) and each.timestamp_ms >= began)
    return all(int(each.summary[REWOUND_TO]) >= note.at for each in rewinds)


def _begun(project: Project, space: str) -> Note | None:
    """What is written down about a branch, if anything is."""
    try:
        return note_of(project, space)
    except FirnlineError:
        return None


def _is_going_on(project: Project, begun: Note, note: Note) -> bool:
    """Whether what was begun is what is asked for now, so that all that it shares already may stay."""
    if begun.is_leaving or (begun.at, begun.code, begun.ref) != (note.at, note.code, note.ref):
        return False
    return all(is_shared(project, begun, name) for name in project.catalog.names(note.pipeline))


def _write(project: Project, note: Note) -> None:
    project.catalog.write(_note_path(project, note.space), json.dumps(asdict(note)).encode())


def _forget(project: Project, pipeline: str, space: str, only: Set[str] | None = None) -> None:
    """Take a branch's tables, or those at some locations, out of the catalog, the control table first.

    What they name is in the trash before.
    """
    from firnline.tables.control import TABLE
    from firnline.tables.trash import Trash

    while found := [table for table in _tables(project, space) if only is None or table.location in only]:
        where = project.catalog.table(pipeline, TABLE)
        assert where is not None, "a pipeline with branches has a control table"
        Trash(project.catalog).put_tables(where, found)
        for table in sorted(found, key=lambda each: each.name != TABLE):
            project.catalog.forget(table)
            world().reach("branch.dropping")


def _tables(project: Project, space: str) -> list[Metadata]:
    found = (project.catalog.table(space, name) for name in sorted(project.catalog.names(space)))
    return [table for table in found if table is not None]


def _note_path(project: Project, space: str) -> str:
    return f"{project.catalog.warehouse}/{space}/{_NOTE}"


def _code(project: Project, space: str, asked: str | None) -> str | None:
    """The folder with a branch's code: one that is there, or a git ref's, which is exported."""
    if asked is None:
        return None
    folder = Path(asked).expanduser()
    if folder.is_dir():
        return str(folder.resolve())
    if (git := shutil.which("git")) is None:
        todo = "Install git, or name a folder that holds the code."
        raise FirnlineError("PREREQUISITE", f"{asked!r} is no folder, and there is no git to ask for it", todo=todo)
    root = project.settings.root
    found = subprocess.run(
        [git, "-C", str(root), "rev-parse", "--verify", "--quiet", "--end-of-options", f"{asked}^{{commit}}"],
        capture_output=True,
        text=True,
    )
    if found.returncode:
        raise FirnlineError("BAD_OPTION", f"{asked!r} is neither a folder nor something that git knows as a commit")
    commit = found.stdout.strip()
    home = project.settings.work / FOLDER / space / commit[:12]
    if not home.is_dir():
        # Only the project's folder, wherever that is in the repository.
        archive = subprocess.run([git, "archive", "--format=tar", commit], cwd=root, capture_output=True, check=True).stdout
        draft = home.with_name(f"{home.name}.{uuid4().hex[:8]}")
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(draft, filter="data")
        draft.rename(home)
    return str(home)
