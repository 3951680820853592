"""The plans of stages without Spark: whether a changed text changes a plan can mostly be told before anything runs.

A stage's function is called on DataFrames that know their columns from the logs, and the plan that it makes is bound and hashed,
in a process of its own that starts no JVM. Where a function or the binding asks Spark for something, the answer is left open.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

from firnline.model.graph import Graph
from firnline.model.names import BOOKKEEPING, EPOCH_TIME, place
from firnline.model.outline import Outline
from firnline.runtime.cache import keep, recall
from firnline.runtime.project import Declared, Project
from firnline.runtime.renaming import known_names

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_PATIENCE = 60
_NONE: Mapping[str, str] = MappingProxyType({})
_Told = dict[str, dict[str, Any] | None]
_logger = logging.getLogger(__name__)


def offline_plans(
    project: Project, graph: Graph, names: Sequence[str], renames: Mapping[str, str] = _NONE
) -> Mapping[str, str | None]:
    """The fingerprints of the plans that stages have today; None where it takes Spark to know."""
    outlines = offline_outlines(project, graph, names, renames)
    return {name: None if found is None else found.plan for name, found in outlines.items()}


def offline_outlines(
    project: Project, graph: Graph, names: Sequence[str], renames: Mapping[str, str] = _NONE
) -> Mapping[str, Outline | None]:
    """The outlines of the plans that stages have today; None where it takes Spark to know.

    ``renames`` are collections whose logs have other names (``runtime.renaming``).
    """
    inputs = {name for stage in names for name in graph.collection(stage).inputs}
    tables = {name: project.log(graph.name, renames.get(name, name)).load() for name in sorted(inputs)}
    schemas = {name: table.types for name, table in tables.items() if table is not None}
    known = {name: known_names(project, graph, graph.collection(name), renames) for name in sorted(names)}
    state = hashlib.sha256(repr((project.home(graph.name).state(), schemas, known)).encode()).hexdigest()[:16]
    folder, name = project.settings.work / "plans", f"{graph.name}.{hashlib.sha256(repr(sorted(names)).encode()).hexdigest()[:8]}"
    plans: _Told | None = recall(folder, name, state)
    if plans is None:
        plans = _asked(project, graph.name, names, renames)
        keep(folder, name, state, plans)
    return {name: None if told is None else Outline.of_json(told) for name, told in plans.items()}


def _asked(project: Project, pipeline: str, names: Sequence[str], renames: Mapping[str, str]) -> _Told:
    root, asked = project.settings.root, f"{pipeline!r}, {list(names)!r}, {dict(renames)!r}"
    try:
        done = subprocess.run(
            [sys.executable, "-c", f"from {__name__} import print_plans; print_plans({asked})"],
            cwd=root,
            env={**os.environ, "FIRNLINE_ROOT": str(root)},
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
        )
        found: _Told = json.loads(done.stdout.splitlines()[-1])
    except (subprocess.TimeoutExpired, IndexError, ValueError) as error:
        _logger.info("the plans of %s are not known without Spark: %s", pipeline, error)
        return dict.fromkeys(names)
    return found


def print_plans(pipeline: str, names: Sequence[str], renames: Mapping[str, str]) -> None:
    """Print the outlines of stages' plans, as one line of JSON."""
    project = Project.load()
    declared = project.declared(pipeline)
    print(json.dumps({name: _told(project, declared, name, renames) for name in names}))


def _told(project: Project, declared: Declared, name: str, renames: Mapping[str, str]) -> dict[str, Any] | None:
    try:
        found = offline_plan(project, declared, name, renames)
    except Exception as error:  # without Spark, the user's function may fail in any way
        _logger.info("the plan of %s is not known without Spark: %s", name, error)
        return None
    return None if found is None else found.as_json()


def offline_plan(project: Project, declared: Declared, name: str, renames: Mapping[str, str] = _NONE) -> Outline | None:
    """The outline of a stage's plan, or an error of any kind if that takes Spark."""
    from firnline.engine.frames import frame_of, relation_of, table_name
    from firnline.engine.unplugged import UnpluggedError, known, unplugged
    from firnline.incremental.binding import Binder
    from firnline.incremental.canonical import Canonical
    from firnline.incremental.relation import named
    from firnline.runtime.plan_fingerprint import outline_of
    from firnline.runtime.stage_plan import made_of

    graph = declared.graph
    collection = graph.collection(name)
    inputs: dict[int, tuple[str, list[str]]] = {}

    def refuse(_: object) -> NoReturn:
        raise UnpluggedError("names or types of columns")

    def columns(frame: DataFrame) -> list[str]:
        return Binder(inputs, refuse).bind(relation_of(frame)).names

    schemas = {each: _columns(project, graph.name, renames.get(each, each)) for each in collection.inputs}
    with unplugged(project.settings.spark_conf, columns) as session:
        frames = {each: known(frame_of(session, named(table_name(graph.name, each))), of) for each, of in schemas.items()}
        inputs |= {relation_of(frame).common.plan_id: (each, frame.columns) for each, frame in frames.items()}
        made = made_of(session, declared, collection, frames, graph.schedule.start, lambda frame, _: _frame(frame))
        if made.refusal is not None:
            raise made.refusal
        bound = Binder(inputs, refuse).bind(made.relation)
    types = {each: [(field.name, field.dataType.simpleString()) for field in of.fields] for each, of in schemas.items()}
    time = [("time", "timestamp" if graph.schedule.timed else "bigint")]
    names = known_names(project, graph, collection, renames)
    return outline_of(bound, collection, Canonical({EPOCH_TIME: time, **types}, made.functions, names))


def _frame(made: object) -> DataFrame:
    """What a function made, unchecked: its columns' types are not known here."""
    from pyspark.sql import DataFrame

    if not isinstance(made, DataFrame):
        raise TypeError(f"{type(made).__name__} is no DataFrame")
    return made


def _columns(project: Project, pipeline: str, name: str) -> StructType:
    """The columns of a collection, as Spark would read them from its log."""
    from pyspark.sql.pandas.types import from_arrow_schema
    from pyspark.sql.types import StructType

    table = project.catalog.iceberg(*place(pipeline, name))
    found = from_arrow_schema(table.schema().as_arrow(), prefer_timestamp_ntz=True)
    return StructType([field for field in found.fields if field.name not in BOOKKEEPING])
