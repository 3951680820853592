"""The code compared with the log: which collections are made otherwise today, how, and what that means. Needs no JVM.

Texts are compared first, and plans only of those whose text differs, in a process of its own (``offline_plan``). What is known of
the old plan is in the sidecar of the log's newest layer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from firnline.errors import FirnlineError
from firnline.model.epoch import Epoch
from firnline.model.fingerprint import Fingerprint
from firnline.model.graph import Graph
from firnline.model.outline import Difference, Outline, difference
from firnline.plan.changing import is_allowed
from firnline.plan.recomputing import Cost, History, Layer, costs, rewinds, stale_from
from firnline.plan.rewinding import scope
from firnline.runtime.project import Project
from firnline.runtime.renaming import keep_all, renames
from firnline.runtime.retiring import Retired, retired

if TYPE_CHECKING:
    from firnline.tables.log import Log

Code = Literal["new", "same", "changed", "edited"]


@dataclass(frozen=True, slots=True)
class Change:
    """A collection whose code is another than what made its newest epoch."""

    collection: str
    code: Code
    difference: Difference
    since: str | None
    """The first epoch that today's code did not make and that can be computed again."""
    is_waiting: bool = False
    """Whether today's code may not make the next epoch, since nobody approved it."""


@dataclass(frozen=True, slots=True)
class CodePlan:
    """What changed, what would be computed again because of it, and what would stay."""

    pipeline: str
    changes: tuple[Change, ...]
    recomputed: tuple[Cost, ...]
    reused: tuple[Cost, ...]
    retired: tuple[Retired, ...]
    """Collections that have a log and no code."""


def today(
    project: Project, graph: Graph, made_by: Mapping[str, Fingerprint | None], renamed: Mapping[str, str]
) -> dict[str, tuple[Code, Fingerprint]]:
    """How today's code of every collection compares with what made its newest epoch, and its fingerprint as far as known."""
    edited = [name for name, of in made_by.items() if of is not None and of.plan and of.code != graph.fingerprints[name]]
    outlines: Mapping[str, Outline | None] = {}
    if edited:
        from firnline.runtime.offline_plan import offline_outlines

        outlines = offline_outlines(project, graph, edited, renamed)
    found: dict[str, tuple[Code, Fingerprint]] = {}
    for name, before in made_by.items():
        outline = outlines.get(name)
        now = Fingerprint(graph.fingerprints[name], outline.plan if outline else None, outline)
        if before is None:
            found[name] = ("new", now)
        elif name in outlines and outline is None:
            found[name] = ("edited", now)
        else:
            found[name] = ("same" if now.is_same(before) else "changed", now)
    return found


def code_plan(project: Project, graph: Graph) -> CodePlan:
    """Compare the code of a pipeline with its log."""
    renamed = renames(project, graph)
    logs = {each.name: project.log(graph.name, renamed.get(each.name, each.name)) for each in graph.collections}
    heads = {name: log.head() for name, log in logs.items()}
    codes = today(project, graph, {name: head.fingerprint if head else None for name, head in heads.items()}, renamed)
    histories = {name: _history(logs[name]) for name, head in heads.items() if head and head.snapshot is not None}
    floor = max((head.description.since for head in heads.values() if head), default=graph.schedule.start)
    agreement = project.control(graph.name).agreement()
    since = agreement.kept_since(floor)
    changes, stale = [], {}
    for name, (code, now) in codes.items():
        if code not in ("changed", "edited"):
            continue
        is_stage, head = graph.collection(name).kind == "stage", heads[name]
        begins = stale_from(histories[name].layers, now, since) if is_stage else None
        if begins is not None:
            stale[name] = begins
        found = difference(_outline(logs[name]), now.outline)
        assert head is not None, "a collection without a log is new"
        is_waiting = is_stage and not is_allowed(graph, name, now, agreement.approvals, head.description.upper)
        changes.append(Change(name, code, found, None if begins is None else graph.schedule.label(begins), is_waiting))
    again, stays = costs(graph, histories, stale)
    return CodePlan(graph.name, tuple(changes), tuple(again), tuple(stays), retired(project, graph, renamed))


def apply(project: Project, graph: Graph, found: CodePlan, owner: str, first: str | None = None) -> list[Epoch]:
    """Keep what is renamed, approve what changed and rewind what that makes stale; the epochs that are to be computed then.

    Args:
        project: The project.
        graph: The pipeline.
        found: What changed.
        owner: Who asks.
        first: The first epoch that is made anew; all that are stale by default.
    """
    from firnline.runtime.approving import approve
    from firnline.runtime.rewind import rewind

    keep_all(project, graph)
    schedule, frontier = graph.schedule, project.control(graph.name).frontier()
    least = schedule.start if first is None else schedule.epoch_at(schedule.point(first)).lower
    stale = {each.collection: max(schedule.point(each.since), least) for each in found.changes if each.since is not None}
    ends = {name: project.log(graph.name, name).head() for name in stale}
    stale = {name: at for name, at in stale.items() if (head := ends[name]) is not None and at < head.description.upper}
    for stage, at in rewinds(graph, stale):
        if graph.on_change != "allow":
            approve(project, graph, owner, scope(graph, stage), at)
        rewind(project, graph, at, stage, owner)
    return list(schedule.epochs(min(stale.values()), frontier.upper)) if stale and frontier is not None else []


def _history(log: Log) -> History:
    from firnline.tables.log import cut_into, entries_of

    table = log.load()
    assert table is not None, "it has a head"
    layers = [Layer(each.lower, each.description.upper, each.fingerprint, each.rows, each.seconds) for each in entries_of(table)]
    return History(layers, cut_into(table))


def _outline(log: Log) -> Outline | None:
    """What is written down of the plan that made the newest layer."""
    try:
        return next((log.sidecar(entry).fingerprint.outline for entry in log.entries()), None)
    except FirnlineError:
        return None  # the plan is for looking: 'firnline verify' tells what is lost


def sentence(change: Change) -> str:
    """A change in words."""
    if change.code == "edited":
        return "its text changed; whether its plan did, only Spark can tell"
    found = change.difference
    said = [_WORDS[kind] for kind in found.kinds if kind not in ("column", "schema")]
    said += _listed("new column", found.added) + _listed("without", found.dropped)
    said += [f"{old} is called {new}" for old, new in found.renamed]
    said += _listed("other types of", found.retyped)
    if "schema" in found.kinds and not (found.dropped or found.renamed or found.retyped):
        said.append("keys or partition_by")
    if found.changed and "logic" in found.kinds:
        said.append(f"in {', '.join(found.changed)}")
    return "; ".join(said)


_WORDS = {
    "filter": "filters",
    "udf": "a Python function",
    "logic": "logic",
    "engine": "Spark's version or settings",
    "code": "its code",
}


def _listed(word: str, names: Sequence[str]) -> list[str]:
    return [f"{word} {', '.join(names)}"] if names else []
