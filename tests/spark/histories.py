"""Histories of inputs in memory, and the check that every change that is derived leads to what a run from scratch gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.connect.proto import Relation
from pyspark.sql.connect.session import SparkSession

from firnline.engine.call_sites import recorded
from firnline.engine.frames import analyzed, arrow_of, ddl, frame_of, relation_of
from firnline.engine.sets import with_sets_in_order
from firnline.engine.sharing import Find, shared
from firnline.incremental.arranging import Arranged, arranged
from firnline.incremental.binding import Binder
from firnline.incremental.canonical import Canonical
from firnline.incremental.derivation import Derivation, Lookup, Moment, Rows
from firnline.incremental.relation import column, consolidated, project
from firnline.incremental.rules import RULES
from firnline.incremental.sql_relation import translated
from firnline.incremental.typing import Typing
from firnline.model.names import DIFF, quoted
from firnline.model.sql_value import NAN, settled

Row = tuple[Any, ...]
Kept = dict[str, list[list[tuple[Row, int]]]]


@dataclass(frozen=True)
class History:
    """What happens to one input: a schema, and per epoch rows with their weights."""

    schema: str
    epochs: Sequence[Sequence[tuple[Row, int]]]

    def upto(self, epoch: int) -> list[tuple[Row, int]]:
        return [change for changes in self.epochs[:epoch] for change in changes]

    def rows(self, epoch: int) -> list[Row]:
        """The multiset after so many epochs, every row in a form in which it came."""
        as_given = {settled(row): row for row, _ in self.upto(epoch)}
        return [as_given[row] for row, weight in summed(self.upto(epoch)).items() for _ in range(weight)]


@dataclass(frozen=True)
class Planned:
    """A stage's plan, the ids of its columns, and the types of what it keeps."""

    steps: Arranged
    ids: list[str]
    typing: Typing


class MemoryLeaves:
    """Inputs of one epoch, as rows in the plan."""

    def __init__(self, session: SparkSession, histories: Mapping[str, History], epoch: int) -> None:
        self._session, self._histories, self._epoch = session, histories, epoch

    def delta(self, collection: str, names: Sequence[str]) -> Rows | None:
        changes = self._histories[collection].epochs[self._epoch]
        return self._rows(collection, changes, names) if changes else None

    def state(self, collection: str, moment: Moment, names: Sequence[str]) -> Rows:
        upto = self._epoch + (moment == "new")
        return self._rows(collection, self._histories[collection].upto(upto), names)

    def found(self, lookup: Lookup, keys: pa.Table | None) -> pa.Table:
        """More than was asked for: all rows, whatever their keys are."""
        names = [name for name, _ in lookup.columns if name != DIFF]
        rows = self.delta(lookup.collection, names) if keys is None else self.state(lookup.collection, lookup.moment, names)
        assert rows is not None
        return arrow_of(frame_of(self._session, rows.relation)).rename_columns([name for _, name in lookup.columns])

    def _rows(self, collection: str, changes: Sequence[tuple[Row, int]], names: Sequence[str]) -> Rows:
        schema = ", ".join(filter(None, [self._histories[collection].schema, f"{DIFF} bigint"]))
        rows = frame(self._session, [(*row, weight) for row, weight in changes], schema)
        return Rows(project(relation_of(rows), map(column, (*names, DIFF))))


def frame(session: SparkSession, rows: Sequence[Row], schema: str) -> DataFrame:
    return session.createDataFrame(list(rows), schema)


def summed(changes: Sequence[tuple[Row, int]]) -> Counter[Row]:
    found: Counter[Row] = Counter()
    for row, weight in changes:
        found[settled(row)] += weight
    return Counter({row: weight for row, weight in found.items() if weight})


def planned(session: SparkSession, function: Callable[..., DataFrame], histories: Mapping[str, History]) -> Planned:
    """The plan of a function, in steps."""
    frames = {name: frame(session, [], history.schema) for name, history in histories.items()}
    inputs = {relation_of(each).common.plan_id: (name, each.columns) for name, each in frames.items()}

    def analyze(relation: Relation) -> list[tuple[str, str]]:
        return [(field.name, ddl(field.dataType)) for field in frame_of(session, relation).schema.fields]

    def tell(relation: Relation) -> str:
        return analyzed(frame_of(session, relation))

    with recorded() as sites:
        made = function(**frames)
    found = Binder(inputs, analyze, sites).bind(relation_of(made))
    assert found.names == made.columns
    typing = Typing({name: analyze(relation_of(each)) for name, each in frames.items()}, analyze, tell)
    ids = [field.id for field in found.fields]
    return Planned(arranged(found.node, "kept", typing, Canonical(typing.schemas, {}, {}), {}), ids, typing)


def roughly(rows: Counter[Row]) -> Counter[Row]:
    """Doubles to eleven digits: the sums of plain Spark depend on the order of rows."""
    found: Counter[Row] = Counter()
    for row, weight in rows.items():
        cut = (float(f"{value:.10e}") if isinstance(value, float) and value is not NAN else value for value in row)
        found[tuple(cut)] += weight
    return found


def check(
    session: SparkSession,
    function: Callable[..., DataFrame],
    histories: Mapping[str, History],
    *,
    plain: Callable[..., DataFrame] | None = None,
    reference: Callable[[int], Counter[Row]] | None = None,
) -> None:
    """At every epoch the changes so far add up to what plain Spark gives; at the end, bit for bit, to ours from scratch.

    Args:
        session: Of Spark.
        function: The stage.
        histories: What happens to its inputs.
        plain: The stage for plain Spark, where the same words have no fixed answer there.
        reference: A third opinion: the rows after so many epochs.
    """
    plan = planned(session, function, histories)
    kept: Kept = {step.name: [] for step in plan.steps.arrangements}
    state: Counter[Row] = Counter()
    last = max(len(history.epochs) for history in histories.values()) - 1
    for epoch in range(last + 1):
        for row, weight in _run(session, plan, histories, kept, epoch, is_first=epoch == 0).items():
            state[row] += weight
        found = Counter({row: weight for row, weight in state.items() if weight})
        frames = {name: frame(session, history.rows(epoch + 1), history.schema) for name, history in histories.items()}
        scratch = with_sets_in_order(session, (plain or function)(**frames))
        expected = summed([(tuple(row), 1) for row in scratch.collect()])
        assert roughly(found) == roughly(expected), f"epoch {epoch}: {found} is not {expected}"
        if reference is not None:
            third = reference(epoch + 1)
            assert roughly(found) == roughly(third), f"epoch {epoch}: {found} is not the reference's {third}"
    again = _run(session, plan, histories, {name: [[]] * last for name in kept}, last, is_first=True)
    assert found == again, f"the sum of changes is {found}; from scratch it is {again}"


def check_sql(session: SparkSession, text: str, histories: Mapping[str, History]) -> None:
    """The same for a text, which plain Spark reads over views of the inputs."""

    def ours(**frames: DataFrame) -> DataFrame:
        return frame_of(session, translated(text, {name: relation_of(each) for name, each in frames.items()}))

    def plainly(**frames: DataFrame) -> DataFrame:
        for name, each in frames.items():
            each.createOrReplaceTempView(name)
        return session.sql(text)

    check(session, ours, histories, plain=plainly)


def _run(
    session: SparkSession, plan: Planned, histories: Mapping[str, History], kept: Kept, epoch: int, *, is_first: bool
) -> Counter[Row]:
    """One epoch, step by step; what is kept grows by it. In every other epoch all that can be looked up is."""
    result: list[tuple[Row, int]] = []
    steps = [(step.name, step.node, step.node.ids) for step in plan.steps.arrangements]
    for name, node, columns in [*steps, ("", plan.steps.root, plan.ids)]:
        known = dict(histories)
        for each, changes in kept.items():
            schema = ", ".join(f"{quoted(of)} {kind}" for of, kind in plan.typing.schemas[each])
            known[each] = History(schema, [*changes, []][: epoch + 1])
        leaves = MemoryLeaves(session, known, epoch)
        moments = ("old", "new", "change") if epoch % 2 else ()
        derivation = Derivation(leaves, RULES, at_hand={(each, moment) for each in known for moment in moments})
        rows = derivation.state(node, "new") if is_first else derivation.delta(node)
        result = run(session, derivation, rows, columns, leaves.found if moments else None) if rows else []
        if name:
            kept[name] = [*kept[name], result]
    return summed(result)


def run(
    session: SparkSession, derivation: Derivation, rows: Rows, ids: Sequence[str], find: Find | None = None
) -> list[tuple[Row, int]]:
    with shared(session, derivation.shared, find) as spell:
        collected = frame_of(session, spell(consolidated(rows.relation, ids))).collect()
    return [(tuple(row)[:-1], row[-1]) for row in collected]
