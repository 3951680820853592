"""The checked graph of a pipeline: collections in an order in which every input stands before its readers.

``check`` returns a graph or raises a ``GraphError`` that holds every problem found, each with the user's file and line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection as Names
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from typing import Any, cast, get_args

from firnline.errors import FirnlineError, GraphError, Location
from firnline.model.check import Check, On
from firnline.model.declaration import Collection, OnChange, OnLoss, Pipeline, Publish, Refresh, Tasks
from firnline.model.durability import NOWHERE_ELSE, Keeping, durability_problems, kept, replicas_of
from firnline.model.duration import seconds_of
from firnline.model.epoch import Schedule
from firnline.model.feed import Feed
from firnline.model.foreign import NO_OTHERS, foreign_of, foreign_problems, is_foreign
from firnline.model.intake import Dedup, intake_of
from firnline.model.names import SEEN_AT, check_name, instead, is_reserved
from firnline.model.retention import Retention
from firnline.model.sink import Sink, sink_problems


@dataclass(frozen=True, slots=True)
class Graph:
    """A pipeline that passed all checks."""

    name: str
    schedule: Schedule
    collections: tuple[Collection, ...]
    fingerprints: Mapping[str, str]
    recovery_budget: float
    """In seconds."""
    keep: Retention
    doc: str = ""
    has_loss_handler: bool = False
    replicas: tuple[str, ...] = ()
    """The URLs of places that batches are copied to."""
    recovery_time: float = 3600.0
    """In seconds: how much computing may be lost with the warehouse before copying comes before epochs that wait."""
    foreign: Mapping[str, Collection] = field(default_factory=dict)
    """The collections of other pipelines that it reads, by ``pipeline.collection``."""
    sinks: tuple[Sink, ...] = ()
    """What takes changes elsewhere."""
    tasks: Tasks = "per-collection"
    """What Airflow has of an epoch: a task for each collection, or one for all."""
    on_change: OnChange = "await_approval"
    """What becomes of an epoch whose stage has other code than made the epochs before it."""
    freshness: float | None = None
    """In seconds: how soon after its end an epoch has to be complete."""

    def collection(self, name: str) -> Collection:
        """The collection of that name; one of another pipeline that is read here by its full name."""
        for collection in self.collections:
            if collection.name == name:
                return collection
        if name in self.foreign:
            return self.foreign[name]
        there = instead(name, (each.name for each in self.collections))
        raise FirnlineError("NO_SUCH_COLLECTION", f"the pipeline {self.name!r} has no collection {name!r}{there}")

    def sink(self, name: str) -> Sink:
        """The sink of that name."""
        for sink in self.sinks:
            if sink.name == name:
                return sink
        raise FirnlineError("NO_SUCH_COLLECTION", f"the pipeline {self.name!r} has no sink {name!r}")

    def readers(self, name: str) -> tuple[str, ...]:
        """The stages that read a collection."""
        return tuple(each.name for each in self.collections if name in each.inputs)

    def descendants(self, name: str) -> tuple[str, ...]:
        """All that comes of a collection, in order."""
        found: list[str] = []
        for each in self.collections:
            if any(of == name or of in found for of in each.inputs):
                found.append(each.name)
        return tuple(found)

    def as_json(self) -> dict[str, Any]:
        """The graph as plain JSON values."""
        foreign = {name: asdict(collection) for name, collection in self.foreign.items()}
        return {**asdict(replace(self, foreign={})), "fingerprints": dict(self.fingerprints), "foreign": foreign}

    @classmethod
    def of_json(cls, data: dict[str, Any]) -> Graph:
        """Read ``as_json`` back."""
        collections = tuple(map(_collection, data["collections"]))
        foreign = {name: _collection(entry) for name, entry in data["foreign"].items()}
        more = (data["fingerprints"], data["recovery_budget"], Retention(**data["keep"]), data["doc"], data["has_loss_handler"])
        kept = (tuple(data["replicas"]), data["recovery_time"])
        sinks = tuple(map(Sink.of_json, data["sinks"]))
        schedule, running = Schedule(**data["schedule"]), (data["tasks"], data["on_change"], data["freshness"])
        return cls(data["name"], schedule, collections, *more, *kept, foreign, sinks, *running)


def branched(graph: Graph, name: str) -> Graph:
    """The graph of a branch: the same under another name, with nothing that others get to see: copies, tables, sinks.

    A branch is where changed code is tried, so that none is asked about.
    """
    collections = tuple(replace(each, publish=None, level="disk") for each in graph.collections)
    return replace(graph, name=name, collections=collections, replicas=(), sinks=(), on_change="allow")


def _collection(entry: dict[str, Any]) -> Collection:
    """Read a collection back from JSON values."""
    tuples = {name: tuple(entry[name]) for name in ("keys", "partition_by", "inputs", "parameters")}
    checks = tuple(Check(**each) for each in entry["checks"])
    values = {"where": Location(**entry["where"]), "checks": checks, "intake": intake_of(entry["intake"])}
    return Collection(**{**entry, **tuples, **values})


def check(
    pipeline: Pipeline,
    fingerprints: Mapping[str, str],
    suites: Names[str] = (),
    keeping: Keeping = NOWHERE_ELSE,
    others: Mapping[str, Pipeline] = NO_OTHERS,
) -> Graph:
    """The pipeline's graph, or all that is wrong with it.

    Args:
        pipeline: What was declared.
        fingerprints: Those of its functions.
        suites: Those that its checks may name.
        keeping: The project's warehouse, and its replicas for a pipeline that names none.
        others: The pipelines whose collections it reads, and those whose collections these read.
    """
    problems = [*_pipeline_problems(pipeline), *_collection_problems(pipeline), *_check_problems(pipeline, suites)]
    problems += [*durability_problems(pipeline, keeping), *foreign_problems(pipeline, others)]
    problems += sink_problems((sink for sink, _ in pipeline.sinks), {collection.name for collection, _ in pipeline.declared})
    order: tuple[Collection, ...] = ()
    try:
        order = _ordered(pipeline)
    except FirnlineError as cycle:
        problems.append(cycle)
    if problems:
        raise GraphError(problems)
    schedule = Schedule.parse(pipeline.schedule, pipeline.start, pipeline.end)
    replicas = replicas_of(pipeline, keeping)
    return Graph(
        pipeline.name,
        schedule,
        tuple(_taken_in(kept(each, pipeline, replicas), pipeline) for each in order),
        fingerprints,
        seconds_of(pipeline.recovery_budget),
        Retention.parse(pipeline.keep, schedule.timed),
        has_loss_handler=bool(pipeline.loss_handlers),
        replicas=replicas,
        recovery_time=seconds_of(pipeline.recovery_time),
        foreign={name: _taken_in(each, others[name.partition(".")[0]]) for name, each in foreign_of(pipeline, others).items()},
        sinks=tuple(sink for sink, _ in pipeline.sinks),
        tasks=pipeline.tasks,
        on_change=pipeline.on_change,
        freshness=None if pipeline.freshness is None else seconds_of(pipeline.freshness),
    )


def _taken_in(collection: Collection, pipeline: Pipeline) -> Collection:
    """A collection with the intake that its options ask for, and with the keys that this leads to."""
    try:
        is_timed = Schedule.parse(pipeline.schedule, pipeline.start, pipeline.end).timed
        intake = pipeline.asked[collection.name].intake(collection.keys, is_timed=is_timed)
    except (FirnlineError, ValueError):
        return collection  # of another pipeline, and told where it is declared
    is_forgetful = isinstance(intake, Dedup) and intake.horizon is not None
    return replace(collection, intake=intake, keys=(*collection.keys, *((SEEN_AT,) if is_forgetful else ())))


def _pipeline_problems(pipeline: Pipeline) -> Iterator[FirnlineError]:
    try:
        check_name("pipeline", pipeline.name, pipeline.where)
    except FirnlineError as problem:
        yield problem
    is_timed = True
    try:
        is_timed = Schedule.parse(pipeline.schedule, pipeline.start, pipeline.end).timed
    except FirnlineError as problem:
        yield FirnlineError(problem.code, problem.what, pipeline.where, todo=problem.todo)
    try:
        Retention.parse(pipeline.keep, is_timed)
    except ValueError as problem:
        yield FirnlineError("BAD_OPTION", f"keep: {problem}", pipeline.where)
    if pipeline.freshness is not None and not is_timed:
        yield FirnlineError("BAD_OPTION", "freshness: integer epochs know no clock", pipeline.where)
    for name in ("recovery_budget", "recovery_time", *(() if pipeline.freshness is None else ("freshness",))):
        try:
            seconds_of(getattr(pipeline, name))
        except ValueError as problem:
            yield FirnlineError("BAD_OPTION", f"{name}: {problem}", pipeline.where)
    for option, choices in (("tasks", get_args(Tasks)), ("on_change", get_args(OnChange))):
        if (chosen := getattr(pipeline, option)) not in choices:
            known = " or ".join(map(repr, choices))
            yield FirnlineError("BAD_OPTION", f"{option} is {known}, not {chosen!r}", pipeline.where)
    for handler in pipeline.loss_handlers[1:]:
        where = Location(handler.__code__.co_filename, handler.__code__.co_firstlineno)
        yield FirnlineError("BAD_OPTION", f"{pipeline.name!r} has two functions with @on_loss", where)


def _collection_problems(pipeline: Pipeline) -> Iterator[FirnlineError]:
    names = {collection.name for collection, _ in pipeline.declared}
    first = dict[str, Location]()
    for collection, _ in pipeline.declared:
        name, where = collection.name, collection.where
        try:
            check_name("collection", name, where)
        except FirnlineError as problem:
            yield problem
        if name in first:
            yield FirnlineError("DUPLICATE_COLLECTION", f"{name!r} is also written at {first[name]}", where)
        first.setdefault(name, where)
        if collection in pipeline.without_keys:
            yield FirnlineError("MISSING_KEY", f"{name!r} has no keys", where)
        for column in dict.fromkeys((*collection.keys, *collection.partition_by)):
            if not isinstance(column, str):
                yield FirnlineError("BAD_OPTION", f"{name!r} names the column {column!r}, which is no text", where)
            elif is_reserved(column):
                yield FirnlineError("RESERVED_COLUMN", f"{name!r} uses the column {column!r}", where)
        if not isinstance(collection.parts, int) or collection.parts < 1 or collection.parts & (collection.parts - 1):
            yield FirnlineError("BAD_OPTION", f"{name!r} has parts={collection.parts!r}, not a power of two", where)
        if collection.refresh not in get_args(Refresh):
            yield FirnlineError("BAD_OPTION", f"{name!r} has refresh={collection.refresh!r}", where)
        if collection.on_loss not in get_args(OnLoss):
            yield FirnlineError("BAD_OPTION", f"{name!r} has on_loss={collection.on_loss!r}", where)
        if collection.publish not in (None, *get_args(Publish)):
            yield FirnlineError("BAD_OPTION", f"{name!r} has publish={collection.publish!r}", where)
        try:
            is_timed = Schedule.parse(pipeline.schedule, pipeline.start, pipeline.end).timed
            pipeline.asked[name].intake(collection.keys, is_timed=is_timed)
        except ValueError as problem:
            yield FirnlineError("BAD_OPTION", f"{name!r}: {problem}", where)
        except FirnlineError:
            pass  # told of the pipeline
        for what in _feed_problems(collection, pipeline.asked[name].feed):
            yield FirnlineError("BAD_OPTION", f"{name!r}: {what}", where)
        for parameter in collection.inputs:
            if parameter not in names and not is_foreign(parameter):
                there = instead(parameter, names - {name})
                yield FirnlineError("UNKNOWN_INPUT", f"{name!r} asks for {parameter!r}, which nothing writes{there}", where)
        if collection.kind == "stage" and not collection.inputs:
            yield FirnlineError("UNKNOWN_INPUT", f"the stage {name!r} has no parameter, so no input", where)


def _feed_problems(collection: Collection, feed: Feed | None) -> Iterator[str]:
    """What does not go together with a feed."""
    if feed is None:
        return
    if collection.on_loss == "gap":
        yield "it is a feed with on_loss='gap', and without an event nobody knows which row it left"
    for column in feed.except_column_list:
        if column in collection.partition_by and column not in feed.keys:
            yield f"partition_by names {column!r}, which except_column_list leaves out"


def _check_problems(pipeline: Pipeline, suites: Names[str]) -> Iterator[FirnlineError]:
    for collection, _ in pipeline.declared:
        name, where = collection.name, collection.where
        for each in collection.checks:
            if not isinstance(each.suite, str):
                yield FirnlineError("BAD_OPTION", f"{name!r} has the check {each.suite!r}, which is no name", where)
            elif each.suite not in suites:
                yield FirnlineError("UNKNOWN_SUITE", f"{name!r} has the check {each.suite!r}, and no such suite is there", where)
            if each.on not in get_args(On):
                yield FirnlineError("BAD_OPTION", f"{name!r} has a check with on={each.on!r}", where)
            if not isinstance(each.blocking, bool):
                yield FirnlineError("BAD_OPTION", f"{name!r} has a check with blocking={each.blocking!r}", where)
        twice = [suite for suite, count in Counter(str(each.suite) for each in collection.checks).items() if count > 1]
        if twice:
            yield FirnlineError("BAD_OPTION", f"{name!r} has the check {twice[0]!r} twice; on='both' asks twice", where)


def _ordered(pipeline: Pipeline) -> tuple[Collection, ...]:
    by_name = {collection.name: collection for collection, _ in pipeline.declared}
    wanted = {name: [i for i in collection.inputs if i in by_name] for name, collection in by_name.items()}
    try:
        return tuple(by_name[name] for name in TopologicalSorter(wanted).static_order())
    except CycleError as error:
        names = cast(list[str], error.args[1])
        circle = " -> ".join(names)
        raise FirnlineError("CYCLE", f"the stages feed each other: {circle}", by_name[names[0]].where) from None
