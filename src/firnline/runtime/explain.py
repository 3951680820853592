"""What ``firnline explain`` tells of a stage: its plan in steps, how each change comes about, its class, its lineage."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql.connect.session import SparkSession

from firnline.engine.frames import state, table_name
from firnline.errors import FirnlineError
from firnline.incremental import algebra
from firnline.incremental.algebra import Node, walk
from firnline.incremental.arranging import Arranged
from firnline.incremental.explaining import Told, classified, lineage, scanned, told
from firnline.incremental.stretching import apart
from firnline.model.check import Check
from firnline.model.declaration import Collection
from firnline.model.graph import Graph
from firnline.model.names import BOOKKEEPING, is_reserved
from firnline.runtime.evaluation import told as telling
from firnline.runtime.explained import Explained, Operator, remember
from firnline.runtime.project import Declared, Project
from firnline.runtime.renaming import known_names
from firnline.runtime.stage_plan import StagePlan, made_of, plan_of

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Step:
    """An arrangement, or the stage itself: its plan, its bytes (None before it exists) and those of what it is computed from."""

    name: str
    plan: Told
    stored_bytes: int | None
    input_bytes: int | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """All that is known of a stage's plan; without steps it is computed in full, and ``refusal`` says why."""

    stage: str
    refresh: str
    kind: str
    why: str
    steps: tuple[Step, ...]
    lineage: dict[str, tuple[str, ...]]
    notes: tuple[str, ...]
    refusal: dict[str, Any] | None
    checks: tuple[Check, ...]
    apart: str | None
    """Why neighbouring epochs are never computed at once; None if they are where they change few rows."""
    scans: tuple[str, ...]
    """The logs whose states a change is computed from."""


def explain(project: Project, declared: Declared, session: SparkSession, name: str) -> Explanation:
    """Explain a stage whose inputs have logs."""
    collection = declared.graph.collection(name)
    if collection.kind != "stage":
        raise FirnlineError("NO_SUCH_COLLECTION", f"{name!r} is a source: it is read, not computed", collection.where)
    with telling(collection, "plan", project.settings):
        return _explained(project, declared, session, collection)


def _explained(project: Project, declared: Declared, session: SparkSession, collection: Collection) -> Explanation:
    pipeline = declared.graph.name
    frames = {}
    for name in collection.inputs:
        head = project.log(pipeline, name).head()
        if head is None or head.snapshot is None:
            raise FirnlineError("INPUT_NOT_READY", f"the input {name!r} has no log yet, so its columns are not known")
        table = table_name(pipeline, name)
        columns = [column for column in session.table(table).columns if column not in BOOKKEEPING]
        frames[name] = state(session, table, head.snapshot, head.description.upper, columns)
    made = made_of(session, declared, collection, frames, declared.graph.schedule.start)
    plan = plan_of(session, collection, frames, made, declared.graph, known_names(project, declared.graph, collection))
    found = explained(collection, plan)
    remember(project.settings, declared.graph, collection.name, found)
    return Explanation(
        collection.name,
        collection.refresh,
        found.kind,
        found.why,
        tuple(_sized(project, pipeline, collection, plan)),
        found.lineage,
        plan.notes,
        None if plan.refusal is None else plan.refusal.as_json(),
        collection.checks,
        found.apart,
        collection.inputs if plan.steps is None else tuple(sorted(scanned(plan.steps))),
    )


def note(project: Project, graph: Graph, collection: Collection, plan: StagePlan) -> None:
    """Remember how a stage is computed; no epoch fails because of it."""
    try:
        remember(project.settings, graph, collection.name, explained(collection, plan))
    except Exception as error:  # it is told, not used
        _logger.warning("how %s is computed was not written down: %s: %s", collection.name, type(error).__name__, error)


def explained(collection: Collection, plan: StagePlan) -> Explained:
    """How a stage is computed, as its plan tells."""
    if plan.steps is None:
        why = "it is computed in full at every epoch, as it stands; each epoch's difference corrects the one before"
        return Explained("convergent", why, (), {}, str(plan.refusal), "it is computed in full")
    kind, why = classified(plan.steps)
    steps = tuple((name, tuple(_operators(of))) for name, _, of in _told(collection, plan.steps))
    origins = lineage(plan.steps, plan.ids)
    named = {name: tuple(origins[of]) for name, of in zip(plan.frame.columns, plan.ids, strict=True)}
    return Explained(kind, why, steps, named, None, apart(plan.steps))


def _told(collection: Collection, plan: Arranged) -> Iterator[tuple[str, Node, Told]]:
    """The arrangements and the stage itself, in words."""
    labels = {step.name: {of.id: of.name for of in step.labels} for step in plan.arrangements}
    for name, node in (*((step.name, step.node) for step in plan.arrangements), (collection.name, plan.root)):
        yield name, node, told(node, labels)


def _sized(project: Project, pipeline: str, collection: Collection, plan: StagePlan) -> Iterator[Step]:
    for name, node, of in () if plan.steps is None else _told(collection, plan.steps):
        inputs = {each.collection for each in walk(node) if isinstance(each, algebra.Input)}
        sizes = [project.log(pipeline, each).stored_bytes() for each in inputs if not is_reserved(each)]
        total = sum(size for size in sizes if size is not None)
        yield Step(name, of, project.log(pipeline, name).stored_bytes(), total)


def _operators(of: Told, depth: int = 0) -> Iterator[Operator]:
    yield Operator(depth, of.operator, of.change)
    for each in of.inputs:
        yield from _operators(each, depth + 1)
