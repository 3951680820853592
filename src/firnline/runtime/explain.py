"""What ``firnline explain`` tells of a stage: its plan in steps, how each change comes about, its class, its lineage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql.connect.session import SparkSession

from firnline.engine.frames import state, table_name
from firnline.errors import FirnlineError
from firnline.incremental import algebra
from firnline.incremental.algebra import walk
from firnline.incremental.explaining import Class, Told, classified, lineage, scanned, told
from firnline.incremental.stretching import apart
from firnline.model.check import Check
from firnline.model.declaration import Collection
from firnline.model.names import BOOKKEEPING, is_reserved
from firnline.runtime.evaluation import told as telling
from firnline.runtime.project import Declared, Project
from firnline.runtime.stage_plan import made_of, plan_of


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
    kind: Class
    why: str
    steps: tuple[Step, ...]
    lineage: dict[str, list[str]]
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
    plan = plan_of(session, collection, frames, made, declared.graph)
    if plan.steps is None:
        assert plan.refusal is not None
        why = "it is computed in full at every epoch, as it stands; each epoch's difference corrects the one before"
        return Explanation(
            collection.name,
            collection.refresh,
            "convergent",
            why,
            (),
            {},
            plan.notes,
            plan.refusal.as_json(),
            collection.checks,
            "it is computed in full",
            collection.inputs,
        )
    kind, why = classified(plan.steps)
    nodes = [*((step.name, step.node) for step in plan.steps.arrangements), (collection.name, plan.steps.root)]
    labels = {step.name: {of.id: of.name for of in step.labels} for step in plan.steps.arrangements}
    steps = []
    for name, node in nodes:
        inputs = {each.collection for each in walk(node) if isinstance(each, algebra.Input)}
        sizes = [project.log(pipeline, each).stored_bytes() for each in inputs if not is_reserved(each)]
        total = sum(size for size in sizes if size is not None)
        steps.append(Step(name, told(node, labels), project.log(pipeline, name).stored_bytes(), total))
    origins = lineage(plan.steps, plan.ids)
    named = {name: origins[of] for name, of in zip(made.frame.columns, plan.ids, strict=True)}
    return Explanation(
        collection.name,
        collection.refresh,
        kind,
        why,
        tuple(steps),
        named,
        plan.notes,
        None,
        collection.checks,
        apart(plan.steps),
        tuple(sorted(scanned(plan.steps))),
    )
