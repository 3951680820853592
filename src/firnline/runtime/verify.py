"""``firnline verify``: logs compared with storage.

Fast: a listing of each log's folder, its small files and the footers of its data files, without a JVM. Deep: also the digests,
added up anew from all rows on Spark.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, TypeVar

from firnline.errors import FirnlineError
from firnline.model.gap import Gap, Gaps
from firnline.plan.frontier import Frontier
from firnline.plan.verification import Holding, Problem, digest_problems, expected_digests, frontier_problems, problems_of
from firnline.runtime.project import Project
from firnline.tables.control import Control

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

_logger = logging.getLogger(__name__)
T = TypeVar("T")
Begun = Callable[[str, int, int], None]
"""Told the name of each collection before it is looked at, how many are done, and how many there are."""


@dataclass(frozen=True, slots=True)
class Examined:
    """Logs as they were found, and all that is wrong with them."""

    logs: tuple[Holding, ...]
    problems: tuple[Problem, ...]
    not_added: tuple[str, ...]
    """Collections whose digests could not be added up, since their manifests or metadata are damaged."""


@dataclass(frozen=True, slots=True)
class Verified:
    """What was looked at, and what was found."""

    collections: int
    files: int
    bytes: int
    seconds: float
    problems: tuple[Problem, ...]
    """Damage."""
    staged: int
    """Snapshots that were never published."""
    staged_problems: tuple[Problem, ...]
    """What is wrong with these: nobody's loss."""
    unreferenced: int
    """Files that no snapshot names, as dead attempts leave them."""
    unreferenced_bytes: int
    not_added: tuple[str, ...]
    """Collections whose digests could not be added up, since their manifests or metadata are damaged."""
    gaps: tuple[tuple[str, Gap], ...]
    """What is knowingly missing, by pipeline: no damage."""


def verify(
    project: Project, asked: str | None = None, session: SparkSession | None = None, begun: Begun = lambda *_: None
) -> Verified:
    """Compare logs with storage.

    Args:
        project: The project.
        asked: ``PIPELINE`` or ``PIPELINE.COLLECTION``; everything by default.
        session: Where to add up digests anew; without one they are not.
        begun: What to tell how far it is.
    """
    began = time.monotonic()
    found = examine(project, targets_of(project, asked), session, begun)
    return Verified(
        len(found.logs),
        sum(log.files for log in found.logs),
        sum(log.bytes for log in found.logs),
        time.monotonic() - began,
        tuple(problem for problem in found.problems if not problem.is_staged),
        sum(revision.is_staged for log in found.logs for revision in log.revisions),
        tuple(problem for problem in found.problems if problem.is_staged),
        sum(log.unreferenced for log in found.logs),
        sum(log.unreferenced_bytes for log in found.logs),
        found.not_added,
        tuple((log.pipeline, gap) for log in found.logs for gap in log.gaps),
    )


def examine(
    project: Project,
    targets: Sequence[tuple[str, str]],
    session: SparkSession | None = None,
    begun: Begun = lambda *_: None,
) -> Examined:
    """Look at some (pipeline, collection); as for ``verify``."""
    for pipeline in dict.fromkeys(name for name, _ in targets):
        _settle(project, pipeline)
    frontiers = {pipeline: _frontier(project, pipeline) for pipeline in dict.fromkeys(name for name, _ in targets)}
    logs: list[Holding] = []
    problems: list[Problem] = []
    not_added = []
    for pipeline, name in targets:
        begun(f"{pipeline}.{name}", len(logs), len(targets))
        log = taken(project, pipeline, name)
        logs.append(log)
        found = problems_of(log)
        if session is not None and not log.is_control:
            if all(problem.about != "log" or problem.is_staged for problem in found):
                found += _deep_problems(project, session, log, found)
            else:
                not_added.append(f"{pipeline}.{name}")
        problems += found
    for pipeline, frontier in frontiers.items():
        readable = {log.collection: log.description() for log in logs if log.pipeline == pipeline and log.metadata.is_sound()}
        beyond = frontier_problems(pipeline, frontier, readable, project.catalog.names(pipeline))
        names = {name for of, name in targets if of == pipeline}
        problems += [problem for problem in beyond if problem.collection in names or names >= project.catalog.names(pipeline)]
    return Examined(tuple(logs), tuple(problems), tuple(not_added))


def labels(project: Project, pipelines: Iterable[str]) -> dict[str, Callable[[int], str]]:
    """How the epochs of pipelines are written; as plain numbers if a pipeline does not load."""
    found: dict[str, Callable[[int], str]] = {}
    for pipeline in pipelines:
        try:
            found[pipeline] = project.graph(pipeline).schedule.label
        except FirnlineError:
            found[pipeline] = str
    return found


def targets_of(project: Project, asked: str | None) -> list[tuple[str, str]]:
    """The (pipeline, collection) to look at; hidden collections and control tables are among them."""
    pipeline, _, collection = (asked or "").partition(".")
    pipelines = [space for name in project.pipelines() for space in (name, *sorted(project.catalog.branches(name)))]
    if asked and pipeline not in pipelines:
        known = ", ".join(pipelines) or "none"
        raise FirnlineError("NO_SUCH_PIPELINE", f"there is no pipeline {pipeline!r}; this project has: {known}")
    there = [(name, each) for name in ([pipeline] if asked else pipelines) for each in sorted(project.catalog.names(name))]
    found = [target for target in there if target[1] == collection] if collection else there
    if collection and not found:
        raise FirnlineError("NO_SUCH_COLLECTION", f"{asked} has no log yet")
    return found


def _settle(project: Project, pipeline: str) -> None:
    """Finish a rewind that somebody decided; where that cannot be, the logs tell what is wrong."""
    from firnline.runtime.rewind import settle

    if _control(project, pipeline, lambda control: control.agreement().open_rewind()) is None:
        return
    try:
        settle(project, project.graph(pipeline))
    except FirnlineError as error:
        _logger.warning("%s: a rewind is not finished: %s", pipeline, error)


def _frontier(project: Project, pipeline: str) -> Frontier | None:
    """The frontier before the logs are looked at, which only grow; if it cannot be read, its own table tells why."""
    return _control(project, pipeline, Control.frontier)


def _control(project: Project, pipeline: str, ask: Callable[[Control], T]) -> T | None:
    try:
        return ask(project.control(pipeline))
    except FirnlineError as error:
        if error.code != "LOG_UNREADABLE":
            raise
    except (ValueError, KeyError, TypeError):
        pass
    return None


def taken(project: Project, pipeline: str, name: str) -> Holding:
    """What storage holds of a log now, and what it is known to lack."""
    from firnline.tables.inventory import inventory

    gaps = gaps_of(project, pipeline)  # before the log: rows are left out only after it says so
    return replace(inventory(project.catalog, pipeline, name), gaps=gaps.of(name))


def gaps_of(project: Project, pipeline: str) -> Gaps:
    """The gap ledger; if it cannot be read, its own table tells why."""
    return _control(project, pipeline, Control.gaps) or Gaps()


def _deep_problems(project: Project, session: SparkSession, log: Holding, known: list[Problem]) -> list[Problem]:
    """What only the rows themselves show; what is lost already is not told twice."""
    from firnline.runtime.stored_digests import stored_digests

    table = project.log(log.pipeline, log.collection).load()
    description = log.description()
    if table is None or description is None:
        return []
    damaged = {cell for problem in known if problem.about == "data" for cell in product(problem.epochs, problem.parts)}
    cells = expected_digests(log)
    stored = stored_digests(session, table, log.published()[-1].snapshot, description.upper, cells, damaged)
    found = digest_problems(log, stored.found, stored.unread)
    return [problem for problem in found if not damaged.issuperset(product(problem.epochs, problem.parts))]
