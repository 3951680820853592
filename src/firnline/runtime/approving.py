"""``firnline approve``: somebody's word that changed code may make epochs, in the control table, where every run looks for it."""

from __future__ import annotations

from collections.abc import Sequence

from firnline.errors import FirnlineError
from firnline.model.fingerprint import Fingerprint
from firnline.model.graph import Graph
from firnline.plan.changing import Approval
from firnline.runtime.offline_plan import offline_plans
from firnline.runtime.project import Project
from firnline.runtime.renaming import keep_all
from firnline.world import world


def approve(
    project: Project, graph: Graph, owner: str, stages: Sequence[str] = (), since: int | None = None
) -> tuple[Approval, ...]:
    """Let today's code of stages make their epochs, from their next one on or from an earlier one; what was approved.

    Args:
        project: The project.
        graph: The pipeline.
        owner: Who says so.
        stages: Only these collections.
        since: Where the first epoch begins that may be made again, by a run for it.
    """
    keep_all(project, graph)
    made_by = {name: _made_by(project, graph, name, since) for name in stages or [each.name for each in graph.collections]}
    edited = [name for name, found in made_by.items() if found and (stages or _is_edited(graph, name, found))]
    now, found = world().now().isoformat(timespec="seconds"), []
    for name, today in todays(project, graph, edited).items():
        if any(not today.is_same(each) for each in made_by[name]):
            head = project.log(graph.name, name).head()
            assert head is not None, "something made it"
            at = head.description.upper if since is None else min(since, head.description.upper)
            found.append(Approval(name, today.code, today.plan, at, owner, now))
    if found and graph.on_change == "reject":
        raise FirnlineError("CHANGE_REJECTED", f"{graph.name!r} has on_change='reject'")
    if found:
        project.control(graph.name).approve(found)
    return tuple(found)


def todays(project: Project, graph: Graph, names: Sequence[str]) -> dict[str, Fingerprint]:
    """The fingerprints that collections have today; without that of a plan where it takes Spark to know it."""
    stages = [name for name in names if graph.collection(name).kind == "stage"]
    plans = offline_plans(project, graph, stages) if stages else {}
    return {name: Fingerprint(graph.fingerprints[name], plans.get(name)) for name in names}


def _made_by(project: Project, graph: Graph, name: str, since: int | None) -> list[Fingerprint]:
    """What made the newest epoch of a stage; or of any collection all since a point, and the one before it."""
    if since is not None:
        return [entry.fingerprint for entry in project.log(graph.name, name).entries(since - 1)]
    head = project.log(graph.name, name).head() if graph.collection(name).kind == "stage" else None
    return [] if head is None or head.fingerprint is None else [head.fingerprint]


def _is_edited(graph: Graph, name: str, made_by: Sequence[Fingerprint]) -> bool:
    return any(each.code != graph.fingerprints[name] for each in made_by)
