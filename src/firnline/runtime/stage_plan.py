"""How a stage's rows come about: in steps that can be differentiated, or in full as the user wrote it, and then why."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql.connect.proto import Relation
from pyspark.sql.connect.session import SparkSession

from firnline.engine.frames import frame_of, relation_of
from firnline.errors import FirnlineError
from firnline.incremental.arranging import Arranged, arranged
from firnline.incremental.binding import ALWAYS, Binder
from firnline.incremental.typing import Schema, Typing
from firnline.model.declaration import Collection

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StagePlan:
    """A stage's plan.

    Args:
        steps: The plan in steps; None if it is taken as it stands.
        ids: The ids of the stage's columns, in order.
        schemas: The columns of every arrangement.
        refusal: Why the plan is taken as it stands.
        notes: What a user should know of the plan.
    """

    steps: Arranged | None
    ids: tuple[str, ...]
    schemas: Mapping[str, Schema]
    refusal: FirnlineError | None
    notes: tuple[str, ...] = ()


def plan_of(
    session: SparkSession,
    collection: Collection,
    frames: Mapping[str, DataFrame],
    result: DataFrame,
    sites: Mapping[int, str],
) -> StagePlan:
    """The plan of what a stage's function made of its inputs; a refusal that its ``refresh`` does not allow is raised."""

    def analyze(relation: Relation) -> Schema:
        return [(field.name, field.dataType.simpleString()) for field in frame_of(session, relation).schema.fields]

    relations = {name: relation_of(frame) for name, frame in frames.items()}
    binder = Binder({each.common.plan_id: (name, frames[name].columns) for name, each in relations.items()}, analyze, sites)
    try:
        bound = binder.bind(relation_of(result))
    except FirnlineError as refusal:
        if refusal.code in ALWAYS or collection.refresh == "incremental":
            raise
        _logger.info("%s is computed in full: %s", collection.name, refusal)
        return StagePlan(None, (), {}, refusal)
    typing = Typing({name: analyze(each) for name, each in relations.items()}, analyze)
    steps = arranged(bound.node, collection.name, typing, is_kept=collection.refresh != "full")
    kept = {step.name: typing.schemas[step.name] for step in steps.arrangements}
    return StagePlan(steps, tuple(field.id for field in bound.fields), kept, None, tuple(binder.notes))
