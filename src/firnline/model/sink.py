"""Sinks: functions that take what epochs changed to somewhere outside, in the order of the epochs.

A sink runs after an epoch is complete and holds nothing up but itself. Its name is that of a task and of a hold, so that no
collection of the pipeline has it.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from firnline.errors import FirnlineError, Location
from firnline.model.epoch import Epoch, Schedule, to_datetime
from firnline.model.names import check_name

EPOCH = "epoch"
"""What a sink's function calls its first parameter."""


@dataclass(frozen=True, slots=True)
class Sink:
    """A function of an epoch and of what it changed in collections."""

    name: str
    parameters: tuple[str, ...]
    """``epoch``, and the collections whose changes it takes."""
    doc: str
    where: Location

    @property
    def inputs(self) -> tuple[str, ...]:
        """The collections whose changes it takes."""
        return self.parameters[1:]

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Sink:
        """What a function says about itself."""
        code = function.__code__
        where = Location(code.co_filename, code.co_firstlineno)
        return cls(function.__name__, tuple(inspect.signature(function).parameters), inspect.getdoc(function) or "", where)

    @classmethod
    def of_json(cls, entry: Mapping[str, Any]) -> Sink:
        """Read plain JSON values back."""
        return cls(**{**entry, "parameters": tuple(entry["parameters"]), "where": Location(**entry["where"])})


@dataclass(frozen=True, slots=True)
class SinkEpoch:
    """The epoch whose changes a sink is given.

    Attributes:
        label: The epoch's name, as the command line writes it.
        lower: Its beginning, a UTC datetime, or an integer where the schedule is one of integers.
        upper: Its end, which is not part of it.
        key: The same whenever the same changes are delivered, and another for all others: an idempotence key.
    """

    label: str
    lower: datetime | int
    upper: datetime | int
    key: str

    @classmethod
    def of(cls, schedule: Schedule, epoch: Epoch, key: str) -> SinkEpoch:
        """The user's view of an epoch."""
        lower, upper = (to_datetime(point) if schedule.timed else point for point in (epoch.lower, epoch.upper))
        return cls(schedule.label(epoch.lower), lower, upper, key)


def sink_problems(sinks: Iterable[Sink], collections: Collection[str]) -> Iterator[FirnlineError]:
    """What is wrong with the sinks of a pipeline that has these collections."""
    several = tuple(sinks)
    names = Counter(sink.name for sink in several)
    for sink in several:
        try:
            check_name("sink", sink.name, sink.where)
        except FirnlineError as problem:
            yield problem
        if names[sink.name] > 1 or sink.name in collections:
            taken = "a collection" if sink.name in collections else "another sink"
            yield FirnlineError("BAD_OPTION", f"the sink {sink.name!r} has the name of {taken}", sink.where)
        if sink.parameters[:1] != (EPOCH,):
            yield FirnlineError("BAD_OPTION", f"the first parameter of the sink {sink.name!r} is not called 'epoch'", sink.where)
            continue
        if not sink.inputs:
            yield FirnlineError(
                "UNKNOWN_INPUT", f"the sink {sink.name!r} names no collection, so it has nothing to take", sink.where
            )
        for name in sink.inputs:
            if name not in collections:
                yield FirnlineError(
                    "UNKNOWN_INPUT", f"the sink {sink.name!r} asks for {name!r}, which nothing writes", sink.where
                )
