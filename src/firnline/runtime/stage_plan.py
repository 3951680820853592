"""How a stage's rows come about: in steps that can be differentiated, or in full as the user wrote it, and then why."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql.connect.proto import Relation
from pyspark.sql.connect.session import SparkSession

from firnline.engine.call_sites import recorded
from firnline.engine.frames import analyzed, ddl, frame_of, relation_of, unmarked
from firnline.engine.python_functions import noted
from firnline.engine.queries import queried, verbatim
from firnline.engine.sets import with_sets_in_order
from firnline.engine.zone import in_utc
from firnline.errors import FirnlineError
from firnline.incremental.algebra import Top, walk
from firnline.incremental.arranging import Arranged, arranged
from firnline.incremental.binding import ALWAYS, Binder
from firnline.incremental.canonical import Canonical
from firnline.incremental.typing import Schema, Typing
from firnline.model.declaration import Collection
from firnline.model.fingerprint import fingerprint
from firnline.model.graph import Graph
from firnline.model.names import EPOCH_TIME
from firnline.model.outline import Outline
from firnline.runtime.evaluation import checked
from firnline.runtime.logical_time import at
from firnline.runtime.plan_fingerprint import outline_of
from firnline.runtime.project import Declared

_CALLING = threading.Lock()
"""What is noted while a function is called is noted for the whole process: one thread at a time."""
Fit = Callable[[DataFrame, Outline | None], DataFrame]
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
        outline: What the plan means; None if it is taken as it stands or does not say all.
        frame: The rows, in the columns of the log.
    """

    frame: DataFrame
    steps: Arranged | None
    ids: tuple[str, ...]
    schemas: Mapping[str, Schema]
    refusal: FirnlineError | None
    notes: tuple[str, ...] = ()
    outline: Outline | None = None


@dataclass(frozen=True, slots=True)
class Made:
    """What a stage's function made.

    Args:
        frame: The DataFrame.
        relation: Its plan.
        sites: Where its parts were written.
        functions: The fingerprints of its Python functions, by the bytes that stand for them in the plan.
        refusal: Why its SQL was not translated, if so.
    """

    frame: DataFrame
    relation: Relation
    sites: Mapping[int, str]
    functions: Mapping[bytes, str]
    refusal: FirnlineError | None


def made_of(
    session: SparkSession,
    declared: Declared,
    collection: Collection,
    frames: Mapping[str, DataFrame],
    upper: int,
    check: Callable[[object, Collection], DataFrame] = checked,
) -> Made:
    """Call a stage's function, or read its SQL, for an epoch that ends at ``upper``; ``check`` refuses what no log can hold."""
    named = list(zip(collection.parameters, collection.inputs, strict=True))
    if collection.query is None:
        function = declared.functions[collection.name]
        with _CALLING, in_utc(), noted() as noticed:
            with recorded() as sites, at(upper, is_timed=declared.graph.schedule.timed):
                result = function(**{each: frames[name] for each, name in named})
            frame = check(result, collection)
            relation = relation_of(frame)
        known = {pickled: fingerprint(each, declared.root) for pickled, each in noticed.items()}
        return Made(frame, relation, sites, known, None)
    given = {each: frames[name] for each, name in named}
    frame, refusal = queried(session, collection.query, given)
    try:
        check(frame, collection)
    except AnalysisException as error:
        # If Spark does not read the text itself either, it says so in the user's own words.
        frame = check(verbatim(session, collection.query, given), collection)
        refusal = refusal or FirnlineError("OPAQUE_SQL", f"Spark does not read what it was translated into: {_first_line(error)}")
    return Made(frame, relation_of(frame), {}, {}, refusal)


def plan_of(
    session: SparkSession,
    collection: Collection,
    frames: Mapping[str, DataFrame],
    made: Made,
    graph: Graph,
    names: Mapping[str, str],
    fit: Fit = lambda frame, _: frame,
) -> StagePlan:
    """The plan of what a stage's function made of its inputs; a refusal that its ``refresh`` does not allow is raised.

    ``names`` are what collections are known as that are called otherwise today (``runtime.renaming``). ``fit`` gives the rows the
    columns of the log, once it is known what the plan means.
    """

    def analyze(relation: Relation) -> Schema:
        return _schema(frame_of(session, relation))

    def of_empty(relation: Relation) -> Schema:
        return _of_empty(session, relation.SerializeToString(deterministic=True))

    def tell(relation: Relation) -> str:
        return analyzed(frame_of(session, relation))

    relations = {name: relation_of(frame) for name, frame in frames.items()}
    binder = Binder({each.common.plan_id: (name, frames[name].columns) for name, each in relations.items()}, analyze, made.sites)
    try:
        if made.refusal is not None:
            raise made.refusal
        bound = binder.bind(made.relation)
        time = [("time", "timestamp" if graph.schedule.timed else "bigint")]
        typing = Typing({EPOCH_TIME: time, **{name: _schema(frame) for name, frame in frames.items()}}, of_empty, tell)
        outline = outline_of(bound, collection, Canonical(typing.schemas, made.functions, names))
        frame = fit(made.frame, outline)
        bound = bound if frame is made.frame else binder.bind(relation_of(frame))
        canonical = Canonical(typing.schemas, made.functions, names)
        keys = {name: graph.collection(name).keys for name in (*frames, collection.name)}
        steps = arranged(bound.node, collection.name, typing, canonical, keys, is_kept=collection.refresh != "full")
    except (FirnlineError, AnalysisException) as error:
        refusal = error if isinstance(error, FirnlineError) else _unread(error)
        if refusal.code in (*ALWAYS, "LOG_UNREADABLE") or collection.refresh == "incremental":
            raise refusal from (error.__cause__ if refusal is error else error)
        _logger.info("%s is computed in full: %s", collection.name, refusal)
        return StagePlan(unmarked(with_sets_in_order(session, fit(made.frame, None))), None, (), {}, refusal)
    kept = {step.name: typing.schemas[step.name] for step in steps.arrangements}
    is_top = any(isinstance(node, Top) for node in walk(bound.node))
    notes = ("a sort without a limit says nothing about a set of rows, and is dropped",) if bound.order and not is_top else ()
    ids = tuple(field.id for field in bound.fields)
    return StagePlan(with_sets_in_order(session, frame), steps, ids, kept, None, notes, outline)


@lru_cache(maxsize=4096)
def _of_empty(session: SparkSession, relation: bytes) -> Schema:
    """The columns of a plan over inputs that stand in it, empty: asked once for all epochs."""
    return _schema(frame_of(session, Relation.FromString(relation)))


def _unread(error: AnalysisException) -> FirnlineError:
    """What was derived means something else to Spark than to us, or nothing."""
    return FirnlineError("UNSUPPORTED_EXPRESSION", f"Spark does not read the plan of its change: {_first_line(error)}")


def _first_line(error: AnalysisException) -> str:
    return str(error).strip().partition("\n")[0]


def _schema(frame: DataFrame) -> Schema:
    return tuple((field.name, ddl(field.dataType)) for field in frame.schema.fields)
