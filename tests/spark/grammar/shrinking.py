"""A failing case made small: fewer rows, fewer epochs, less of a stage, as long as it fails in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace

from firnline.model.zset import ZSet
from tests.spark.grammar.case import Case
from tests.spark.grammar.stage import Stage, walk
from tests.spark.histories import History


def smallest(case: Case, fails: Callable[[Case], bool], tries: int) -> Case:
    """A case that fails, from which nothing can be taken, or the best after so many tries."""
    seen = {repr(case)}
    while True:
        for candidate in _smaller(case):
            if repr(candidate) in seen or not _has_meaning(candidate):
                continue
            seen.add(repr(candidate))
            tries -= 1
            if tries < 0:
                return case
            if fails(candidate):
                case = candidate
                break
        else:
            return case


def _smaller(case: Case) -> Iterator[Case]:
    """Cases with a little less, the largest steps first."""
    yield from (replace(case, stage=below) for below in case.stage.below)
    for name, history in case.histories.items():
        yield replace(case, histories={**case.histories, name: History(history.schema, [[] for _ in history.epochs])})
    for epoch in range(case.epochs if case.epochs > 2 else 0):
        yield replace(case, histories={name: _without(history, epoch) for name, history in case.histories.items()})
    yield from (replace(case, stage=stage) for stage in _stages(case.stage))
    for name, history in case.histories.items():
        for epoch, changes in enumerate(history.epochs):
            for number in range(len(changes)):
                rest = [*changes[:number], *changes[number + 1 :]]
                made = [*history.epochs[:epoch], rest, *history.epochs[epoch + 1 :]]
                yield replace(case, histories={**case.histories, name: History(history.schema, made)})


def _without(history: History, epoch: int) -> History:
    """Two epochs as one."""
    at = min(epoch, len(history.epochs) - 2)
    both = [*history.epochs[at], *history.epochs[at + 1]]
    return History(history.schema, [*history.epochs[:at], both, *history.epochs[at + 2 :]])


def _stages(stage: Stage) -> Iterator[Stage]:
    """The stage with one node left out, or with less in it."""
    for each in fields(stage):
        value = getattr(stage, each.name)
        if isinstance(value, Stage):
            yield from (replace(stage, **{each.name: made}) for made in (*value.below, *_stages(value)))
        elif isinstance(value, tuple) and each.name != "columns":
            for number in range(len(value)):
                yield replace(stage, **{each.name: (*value[:number], *value[number + 1 :])})
        elif each.name in ("condition", "place", "then") and value is not None:
            yield replace(stage, **{each.name: None})


def _has_meaning(case: Case) -> bool:
    """Whether all names are there and no more rows go than came; asked of the reference."""
    try:
        if not all(each.fields for each in walk(case.stage)):
            return False
        for epoch in range(case.epochs + 1):
            for history in case.histories.values():
                ZSet.of(history.upto(epoch)).rows()
            case.reference(epoch)
    except (KeyError, ValueError, IndexError, AttributeError, TypeError):
        return False
    return True
