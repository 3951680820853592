"""What is under test: a collection, and a pipeline of its own in which given rows take the place of all that it does not need.

A given source keeps its declaration: rows are what its function would have returned. A given stage, or a collection of another
pipeline, becomes a source of the same keys.
"""

from __future__ import annotations

import sys
from collections.abc import Collection as Names
from collections.abc import Mapping
from dataclasses import dataclass, replace

from firnline.errors import FirnlineError
from firnline.model.declaration import Collection, Function, Pipeline
from firnline.model.foreign import is_foreign
from firnline.model.graph import Graph
from firnline.runtime.project import Declared, Project


@dataclass(frozen=True, slots=True)
class Subject:
    """A collection under test, and the pipeline that declares it."""

    declared: Declared
    name: str

    def alone(self, given: Names[str], namespace: str, start: object = None) -> tuple[Declared, dict[str, str]]:
        """The pipeline of a test; by the names that were given, those of its sources, whose functions are missing yet.

        Args:
            given: The names of collections that have a history; of another pipeline's also what the stage calls it.
            namespace: The name of that pipeline.
            start: Where its first epoch begins; as declared by default.
        """
        graph = self.declared.graph
        meant = {name: _meaning(graph, name) for name in given}
        needed = self._needed(set(meant.values()))
        unread = [name for name, meaning in meant.items() if meaning not in needed]
        if unread:
            raise _wrong(f"it gives {', '.join(unread)}, which {self.name!r} does not read")
        collections = tuple(_given(name, each) if name in meant.values() else _own(each) for name, each in needed.items())
        schedule = replace(graph.schedule, end=None)
        if start is not None:
            schedule = replace(schedule, start=schedule.epoch_at(schedule.point(start)).lower)
        fingerprints = {each.name: graph.fingerprints.get(each.name, "given") for each in collections}
        alone = replace(
            graph,
            name=namespace,
            schedule=schedule,
            collections=collections,
            fingerprints=fingerprints,
            replicas=(),
            foreign={},
            sinks=(),
        )
        return replace(self.declared, graph=alone), {name: local(meaning) for name, meaning in meant.items()}

    def _needed(self, given: Names[str]) -> Mapping[str, Collection]:
        """The collections of the test by name, inputs before their readers."""
        graph, found = self.declared.graph, dict[str, Collection]()

        def visit(name: str) -> None:
            collection = graph.collection(name)
            if name not in given:
                if collection.kind == "source" or is_foreign(name):
                    raise _wrong(f"it gives no rows of {name!r}, which {self.name!r} reads")
                for each in collection.inputs:
                    if each not in found:
                        visit(each)
            found[name] = collection

        if self.name in given and graph.collection(self.name).kind == "stage":
            raise _wrong(f"it gives rows of the stage {self.name!r} that is under test")
        visit(self.name)
        return found


def subject_of(project: Project, stage: str | Function) -> Subject:
    """What is meant by ``pipeline.stage``, or by a function that a pipeline's decorator was given."""
    if isinstance(stage, str):
        pipeline, dot, name = stage.partition(".")
        if not dot:
            raise FirnlineError("NO_SUCH_COLLECTION", f"{stage!r} is no stage: write pipeline.stage")
        declared = project.declared(pipeline)
        declared.graph.collection(name)
        return Subject(declared, name)
    for value in stage.__globals__.values():
        if isinstance(value, Pipeline):
            for collection, function in value.declared:
                if function is stage:
                    _ship_by_value(stage.__module__)
                    return Subject(project.checked(value), collection.name)
    raise FirnlineError(
        "NO_SUCH_COLLECTION", f"no pipeline of {stage.__module__} declares {stage.__name__!r}: write pipeline.stage"
    )


def _meaning(graph: Graph, name: str) -> str:
    """The collection that a name of a history means."""
    for collection in graph.collections:
        for parameter, read in zip(collection.parameters, collection.inputs, strict=False):
            if parameter == name and is_foreign(read):
                return read
    return name


def _given(name: str, collection: Collection) -> Collection:
    """A collection whose rows are given."""
    named = replace(collection, name=local(name), checks=(), publish=None, adopt=None)
    return named if collection.kind == "source" else replace(named, kind="source", inputs=(), parameters=(), query=None)


def _own(collection: Collection) -> Collection:
    """A collection that is computed."""
    return replace(collection, inputs=tuple(map(local, collection.inputs)))


def local(name: str) -> str:
    """What a collection, be it of another pipeline, is called in a test."""
    return name.replace(".", "__")


def _ship_by_value(module: str) -> None:
    """Let the module's functions travel to Python workers whole, which may have nowhere to import it from."""
    from pyspark.cloudpickle import register_pickle_by_value

    register_pickle_by_value(sys.modules[module])  # type: ignore[no-untyped-call]


def _wrong(what: str) -> FirnlineError:
    return FirnlineError("BAD_HISTORY", f"the history: {what}")
