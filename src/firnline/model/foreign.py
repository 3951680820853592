"""Collections of other pipelines as inputs, written ``pipeline.collection``; no pipeline reads one that reads it in turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from firnline.errors import FirnlineError
from firnline.model.declaration import Collection, Pipeline
from firnline.model.epoch import Schedule

NO_OTHERS: Mapping[str, Pipeline] = MappingProxyType({})


def is_foreign(name: str) -> bool:
    """Whether a name is that of another pipeline's collection."""
    return "." in name


def pipelines_read(pipeline: Pipeline) -> tuple[str, ...]:
    """The other pipelines that one reads."""
    names = (name for collection, _ in pipeline.declared for name in collection.inputs if is_foreign(name))
    return tuple(sorted({name.partition(".")[0] for name in names}))


def foreign_of(pipeline: Pipeline, others: Mapping[str, Pipeline]) -> dict[str, Collection]:
    """The collections of other pipelines that one reads."""
    names = {name for collection, _ in pipeline.declared for name in collection.inputs if is_foreign(name)}
    return {name: found for name in sorted(names) if (found := _found(name, others)) is not None}


def foreign_problems(pipeline: Pipeline, others: Mapping[str, Pipeline]) -> Iterator[FirnlineError]:
    """What is wrong with what a pipeline reads of others."""
    circle = _circle(pipeline, others)
    for collection, _ in pipeline.declared:
        stage, where = collection.name, collection.where
        foreign = [name for name in collection.inputs if is_foreign(name)]
        for name in foreign:
            owner = name.partition(".")[0]
            if owner == pipeline.name:
                own = name.partition(".")[2]
                what = f"{stage!r} asks for {name!r} of its own pipeline: call the parameter {own!r} instead"
                yield FirnlineError("UNKNOWN_INPUT", what, where)
            elif _found(name, others) is None:
                yield FirnlineError("UNKNOWN_INPUT", f"{stage!r} asks for {name!r}, which no pipeline writes", where)
            elif _is_timed(others[owner]) is not _is_timed(pipeline):
                what = f"{stage!r} asks for {name!r}, whose epochs are not of the same kind: times, or integers"
                yield FirnlineError("BAD_SCHEDULE", what, where)
            elif circle and owner == circle[1]:
                yield FirnlineError("CYCLE", f"the pipelines feed each other: {' -> '.join(circle)}", where)
        twice = [name for name, count in Counter(foreign).items() if count > 1]
        if twice:
            yield FirnlineError("BAD_OPTION", f"{stage!r} asks for {twice[0]!r} twice; alias() makes two of one DataFrame", where)


def _found(name: str, others: Mapping[str, Pipeline]) -> Collection | None:
    owner, _, wanted = name.partition(".")
    declared = others[owner].declared if owner in others else ()
    return next((collection for collection, _ in declared if collection.name == wanted), None)


def _circle(pipeline: Pipeline, others: Mapping[str, Pipeline]) -> tuple[str, ...]:
    """The names on a way that leads from a pipeline back to itself, if there is one."""
    ways: list[tuple[str, ...]] = [(pipeline.name, name) for name in pipelines_read(pipeline)]
    seen = set[str]()
    while ways:
        way = ways.pop()
        if way[-1] == pipeline.name:
            return way
        if way[-1] in others and way[-1] not in seen:
            seen.add(way[-1])
            ways += [(*way, name) for name in pipelines_read(others[way[-1]])]
    return ()


def _is_timed(pipeline: Pipeline) -> bool | None:
    try:
        return Schedule.parse(pipeline.schedule, pipeline.start, pipeline.end).timed
    except FirnlineError:
        return None  # told where it is declared
