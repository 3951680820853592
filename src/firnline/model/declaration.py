"""What a user declares. Declaring only records; ``graph.check`` judges all of it at once when a pipeline is loaded."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from firnline.errors import Location
from firnline.model.check import Check, checks_of
from firnline.model.feed import feed_of
from firnline.model.intake import NOTHING_ASKED, ROWS, Asked, Intake
from firnline.model.sink import Sink

Function = Callable[..., Any]
Kind = Literal["source", "stage"]
Refresh = Literal["auto", "incremental", "full"]
OnLoss = Literal["replay", "fail", "gap"]
Publish = Literal["table"]
Tasks = Literal["per-collection", "per-epoch"]
OnChange = Literal["await_approval", "allow", "reject"]
"""What becomes of an epoch whose stage has other code than made the epochs before it."""
Level = Literal["memory", "disk", "remote"]
"""How well what is published is kept: as cheap to make again, in the warehouse only, or on replicas too."""


@dataclass(frozen=True, slots=True)
class Foreign:
    """A collection of another pipeline of the project, as the default of a stage's parameter."""

    name: str


def collection(name: str) -> Any:
    """A collection of another pipeline as an input: ``def report(visits=firnline.collection("web.visits"))``.

    An epoch of the stage waits until that pipeline is complete up to its own end, whatever the two schedules are.

    Args:
        name: ``pipeline.collection``.
    """
    return Foreign(name)


@dataclass(frozen=True, slots=True)
class Collection:
    """A named multiset of rows that changes from epoch to epoch, and how it is fed."""

    name: str
    kind: Kind
    keys: tuple[str, ...]
    partition_by: tuple[str, ...]
    parts: int
    refresh: Refresh
    inputs: tuple[str, ...]
    """The collections that it reads; those of other pipelines by ``pipeline.collection``."""
    doc: str
    where: Location
    query: str | None = None
    """The text of a stage that is written in SQL."""
    checks: tuple[Check, ...] = ()
    """What its rows have to meet before they are published."""
    on_loss: OnLoss = "replay"
    """What happens when its published rows are lost."""
    nondeterministic: bool = False
    """Whether a second run may give other rows, so that there is never one."""
    durability: int | None = None
    """On how many places a batch has to be, the warehouse being one; in a checked graph never None."""
    level: Level | None = None
    """In a checked graph never None."""
    parameters: tuple[str, ...] = ()
    """What a stage's function calls its inputs."""
    publish: Publish | None = None
    """Whether its present rows are kept in a plain table too."""
    intake: Intake = ROWS
    """How a source's rows become the delta of an epoch; as its options ask in a checked graph."""
    adopt: str | None = None
    """The table, not ours, whose rows are a source's first epoch."""


class Pipeline:
    """A recorder of sources, stages and sinks.

    Args:
        name: Lower-case letters, digits and single underscores; also the Airflow DAG's id and the tables' namespace.
        schedule: A cron expression or preset in UTC, a timedelta, or an integer step.
        start: Where the first epoch begins.
        end: Where the last epoch ends, if there is a last one.
        recovery_budget: How much work a crash may cost, about: ``"30s"``, ``"10m"`` or a timedelta. Epochs that take longer
            are computed in waves, and a retry keeps those that were done.
        keep: How much history is kept epoch by epoch, behind what is complete: ``"30 epochs"``, ``"7d"`` or a timedelta.
        replicas: The URLs of places that what is published is copied to; those of the project's settings by default.
        durability: On how many places a batch has to be, the warehouse being one; on all by default.
        recovery_time: How much computing may be lost with the warehouse before copying is more urgent than epochs that wait.
        tasks: In Airflow, a task for each collection (``"per-collection"``), or one for all of them in one Spark session
            (``"per-epoch"``).
        on_change: What happens when an epoch meets a stage whose plan changed: ``"await_approval"`` stops until somebody approves
            the change, ``"allow"`` goes on with it, ``"reject"`` stops for good.
        freshness: How soon after its end an epoch has to be complete: ``"2h"`` or a timedelta. A pipeline that is late says so.
    """

    def __init__(
        self,
        name: str,
        *,
        schedule: object,
        start: object,
        end: object = None,
        recovery_budget: object = "60s",
        keep: object = "30 epochs",
        replicas: Sequence[str] | None = None,
        durability: int | None = None,
        recovery_time: object = "1h",
        tasks: Tasks = "per-collection",
        on_change: OnChange = "await_approval",
        freshness: object = None,
    ) -> None:
        frame = sys._getframe(1)
        self.name = name
        self.schedule = schedule
        self.start = start
        self.end = end
        self.recovery_budget = recovery_budget
        self.keep = keep
        self.replicas = replicas
        self.durability = durability
        self.recovery_time = recovery_time
        self.tasks: Tasks = tasks
        self.on_change: OnChange = on_change
        self.freshness = freshness
        self.where = Location(frame.f_code.co_filename, frame.f_lineno)
        self.declared: list[tuple[Collection, Function]] = []
        self.without_keys: list[Collection] = []
        self.asked: dict[str, Asked] = {}
        self.loss_handlers: list[Function] = []
        self.sinks: list[tuple[Sink, Function]] = []

    def source(
        self,
        *,
        keys: Sequence[str] | None = None,
        partition_by: Sequence[str] = (),
        parts: int = 1,
        checks: Sequence[str | Check] = (),
        on_loss: OnLoss = "replay",
        durability: int | None = None,
        level: Level | None = None,
        publish: Publish | None = None,
        snapshot: bool = False,
        shrink: float | None = None,
        dedup: bool = False,
        dedup_horizon: object = None,
        sequence_by: str | None = None,
        apply_as_deletes: str | None = None,
        apply_as_truncates: str | None = None,
        except_column_list: Sequence[str] = (),
        stored_as_scd_type: Literal[1, 2, "1", "2"] | None = None,
        adopt: str | None = None,
    ) -> Callable[[Function], Function]:
        """Declare a collection fed from outside: the function takes the epoch and returns its rows, or its changes.

        Args:
            keys: The columns that identify a row; none, ``[]``, for a collection of one row. Checked.
            partition_by: The columns whose hash places a row in a part; the keys by default.
            parts: How many parts, a power of two.
            checks: Suites of ``include/expectations`` that the rows have to meet, by name or as ``firnline.check(...)``.
            on_loss: What ``firnline repair`` does about lost rows: ``"replay"`` makes them again, the same or it is an error;
                ``"fail"`` stops and tells; ``"gap"`` goes on without those that cannot be made again, and says so everywhere.
            durability: On how many places its batches have to be, the warehouse being one; as the pipeline says by default.
            level: ``"remote"`` copies batches to replicas, the default where there are some; ``"disk"`` keeps them in the
                warehouse only; ``"memory"`` says of a stage that it is cheap to compute again, so that only its inputs matter.
            publish: ``"table"`` keeps the present rows in a plain Iceberg table too, for engines that know nothing of logs.
            snapshot: The function returns the whole collection every time, and the difference is kept.
            shrink: Of a snapshot: the fraction of its rows that it may lose in one epoch, 0.5 by default.
            dedup: A record whose keys were seen before, in this epoch or another, is left out.
            dedup_horizon: How long seen keys are remembered: ``"30 epochs"``, ``"7d"`` or a timedelta; for ever by default.
            sequence_by: The function returns events of a change feed, and this SQL expression over their columns says in which
                order they belong; ``"struct(a, b)"`` for several columns. Never null.
            apply_as_deletes: Of a feed: a condition, in SQL, for events that say that the row is gone.
            apply_as_truncates: Of a feed of type 1: a condition, in SQL, for events that say that all rows are gone.
            except_column_list: Of a feed: columns of events that the collection does not have.
            stored_as_scd_type: Of a feed: 1, the default, keeps the present rows; 2 every version of them, with ``__START_AT``
                and ``__END_AT``.
            adopt: An Iceberg table that is there, ``catalog.namespace.table``: its rows are the first epoch, by its own files
                where that is possible, and the function is called from the second on.
        """
        kept = (durability, level, publish)
        conditions = (sequence_by, apply_as_deletes, apply_as_truncates)
        feed = feed_of(_columns(keys or ()), *conditions, _columns(except_column_list), stored_as_scd_type)
        asked = Asked(snapshot, shrink, dedup, dedup_horizon, feed, adopt)
        return self._recording("source", keys, partition_by, parts, "full", checks, None, on_loss, False, *kept, asked=asked)

    def stage(
        self,
        *,
        keys: Sequence[str] | None = None,
        partition_by: Sequence[str] = (),
        parts: int = 1,
        refresh: Refresh = "auto",
        checks: Sequence[str | Check] = (),
        on_loss: OnLoss = "replay",
        nondeterministic: bool = False,
        durability: int | None = None,
        level: Level | None = None,
        publish: Publish | None = None,
    ) -> Callable[[Function], Function]:
        """Declare a deterministic function of the collections that its parameters name.

        Args:
            keys: The columns that identify a row; none, ``[]``, for a collection of one row. Checked.
            partition_by: The columns whose hash places a row in a part; the keys by default.
            parts: How many parts, a power of two.
            refresh: How a change is computed: ``"incremental"`` from the changes of the inputs, or refused; ``"full"`` from the
                whole state, as the difference to the log; ``"auto"`` incrementally where there is a rule, else in full.
            checks: As for ``source``.
            on_loss: As for ``source``.
            nondeterministic: Whether a second run may give other rows. A published epoch of such a stage is never run again.
            durability: As for ``source``.
            level: As for ``source``.
            publish: As for ``source``.
        """
        kept = (durability, level, publish)
        return self._recording("stage", keys, partition_by, parts, refresh, checks, None, on_loss, nondeterministic, *kept)

    def sql(
        self,
        query: str,
        *,
        keys: Sequence[str] | None = None,
        partition_by: Sequence[str] = (),
        parts: int = 1,
        refresh: Refresh = "auto",
        checks: Sequence[str | Check] = (),
        on_loss: OnLoss = "replay",
        nondeterministic: bool = False,
        durability: int | None = None,
        level: Level | None = None,
        publish: Publish | None = None,
    ) -> Callable[[Function], Function]:
        """Declare a stage in SQL: the function's name and parameters name the stage and its inputs, and it has no body.

        Args:
            query: A SELECT over the inputs, in Spark's SQL.
            keys: The columns that identify a row; none, ``[]``, for a collection of one row. Checked.
            partition_by: The columns whose hash places a row in a part; the keys by default.
            parts: How many parts, a power of two.
            refresh: As for ``stage``.
            checks: As for ``source``.
            on_loss: As for ``stage``.
            nondeterministic: As for ``stage``.
            durability: As for ``source``.
            level: As for ``source``.
            publish: As for ``source``.
        """
        kept = (durability, level, publish)
        return self._recording("stage", keys, partition_by, parts, refresh, checks, query, on_loss, nondeterministic, *kept)

    def sink(self) -> Callable[[Function], Function]:
        """Declare what takes changes elsewhere once an epoch is complete: a function of the epoch, and of collections by name.

        It is called in the order of the epochs, with a ``SinkEpoch`` and with the ``Changes`` of each collection. If it returns
        nothing, its epochs are delivered at least once, and ``epoch.key`` tells them apart. If it returns ``to_postgres(...)`` or
        ``to_files(...)``, or a list of these, exactly once.
        """

        def record(function: Function) -> Function:
            self.sinks.append((Sink.of(function), function))
            return function

        return record

    def on_loss(self, function: Function) -> Function:
        """Declare what is asked before lost rows are repaired: the function takes a ``firnline.Loss``.

        It may return ``"replay"``, ``"fail"`` or ``"gap"`` to choose another contract for this case, or raise to stop.
        """
        self.loss_handlers.append(function)
        return function

    def _recording(
        self,
        kind: Kind,
        keys: Sequence[str] | None,
        partition_by: Sequence[str],
        parts: int,
        refresh: Refresh,
        checks: Sequence[str | Check],
        query: str | None = None,
        on_loss: OnLoss = "replay",
        nondeterministic: bool = False,
        durability: int | None = None,
        level: Level | None = None,
        publish: Publish | None = None,
        asked: Asked = NOTHING_ASKED,
    ) -> Callable[[Function], Function]:
        def record(function: Function) -> Function:
            code = function.__code__
            parameters = inspect.signature(function).parameters if kind == "stage" else {}
            collection = Collection(
                name=function.__name__,
                kind=kind,
                keys=asked.feed.identity if asked.feed is not None else _columns(keys or ()),
                partition_by=_columns(partition_by) or _columns(keys or ()),
                parts=parts,
                refresh=refresh,
                inputs=tuple(_input(name, each.default) for name, each in parameters.items()),
                doc=inspect.getdoc(function) or "",
                where=Location(code.co_filename, code.co_firstlineno),
                query=query,
                checks=checks_of(checks),
                on_loss=on_loss,
                nondeterministic=nondeterministic,
                durability=durability,
                level=level,
                parameters=tuple(parameters),
                publish=publish,
                adopt=asked.adopt,
            )
            self.declared.append((collection, function))
            self.asked[collection.name] = asked
            if keys is None:
                self.without_keys.append(collection)
            return function

        return record


def _input(parameter: str, default: object) -> str:
    return default.name if isinstance(default, Foreign) else parameter


def _columns(columns: Sequence[str]) -> tuple[str, ...]:
    return (columns,) if isinstance(columns, str) else tuple(columns)
