"""Random stages as data: a tree that can be built in PySpark, evaluated by the Z-set reference, and printed.

A tree's ``repr`` is Python that makes it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Literal

from pyspark.sql import Column, DataFrame, WindowSpec
from pyspark.sql import Window as Parts
from pyspark.sql import functions as F

from firnline.model.sql_value import conjunction as all_true
from firnline.model.sql_value import equal, member, negation
from firnline.model.zset import Order, Row, ZSet
from tests.spark.grammar.aggregate import Agg
from tests.spark.grammar.expression import Expr, Field, conjunction
from tests.spark.grammar.window import Over

Inputs = Mapping[str, ZSet]


@dataclass
class Building:
    """Stages as DataFrames, each once; with ``is_plain`` in other words where those of a person have no fixed answer in Spark."""

    frames: Mapping[str, DataFrame]
    is_plain: bool = False
    made: dict[Stage, DataFrame] = field(default_factory=dict)

    def of(self, stage: Stage) -> DataFrame:
        if stage not in self.made:
            self.made[stage] = stage.build(self)
        return self.made[stage]


@dataclass(frozen=True)
class Stage:
    @property
    def fields(self) -> tuple[Field, ...]:
        raise NotImplementedError

    def build(self, building: Building) -> DataFrame:
        raise NotImplementedError

    def evaluate(self, inputs: Inputs) -> ZSet:
        raise NotImplementedError

    @property
    def names(self) -> list[str]:
        return [each.name for each in self.fields]

    @property
    def below(self) -> tuple[Stage, ...]:
        return tuple(value for name in self.__dataclass_fields__ if isinstance(value := getattr(self, name), Stage))

    def row(self, values: Row) -> dict[str, Any]:
        return dict(zip(self.names, values, strict=True))

    def places(self, names: tuple[str, ...]) -> list[int]:
        return [self.names.index(name) for name in names]


@dataclass(frozen=True)
class Source(Stage):
    name: str
    columns: tuple[Field, ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.columns

    def build(self, building: Building) -> DataFrame:
        return building.frames[self.name]

    def evaluate(self, inputs: Inputs) -> ZSet:
        return inputs[self.name]


@dataclass(frozen=True)
class Select(Stage):
    """A projection; ``style`` is how it is written."""

    input: Stage
    outputs: tuple[tuple[str, Expr], ...]
    style: Literal["columns", "text", "steps"]

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(Field(name, each.kind) for name, each in self.outputs)

    def build(self, building: Building) -> DataFrame:
        below = building.of(self.input)
        if self.style == "text":
            return below.selectExpr(*(f"{each.text()} AS {name}" for name, each in self.outputs))
        if self.style == "columns":
            return below.select(*(each.column().alias(name) for name, each in self.outputs))
        made = below.withColumns({f"{name}_": each.column() for name, each in self.outputs}).drop(*self.input.names)
        for name, _ in self.outputs:
            made = made.withColumnRenamed(f"{name}_", name)
        return made

    def evaluate(self, inputs: Inputs) -> ZSet:
        def made(values: Row) -> Row:
            row = self.input.row(values)
            return tuple(each.value(row) for _, each in self.outputs)

        return self.input.evaluate(inputs).map(made)


@dataclass(frozen=True)
class Where(Stage):
    input: Stage
    condition: Expr
    as_text: bool

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields

    def build(self, building: Building) -> DataFrame:
        return building.of(self.input).where(self.condition.text() if self.as_text else self.condition.column())

    def evaluate(self, inputs: Inputs) -> ZSet:
        return self.input.evaluate(inputs).filter(lambda values: self.condition.value(self.input.row(values)))


@dataclass(frozen=True)
class Explode(Stage):
    """A row for each of some expressions, or of those that are not null; with their positions if ``place`` is given."""

    input: Stage
    values: tuple[Expr, ...]
    name: str
    place: str | None
    is_compact: bool
    is_outer: bool

    @property
    def fields(self) -> tuple[Field, ...]:
        place = (Field(self.place, "int"),) if self.place else ()
        return (*self.input.fields, *place, Field(self.name, self.values[0].kind))

    def build(self, building: Building) -> DataFrame:
        values = F.array(*(each.column() for each in self.values))
        values = F.array_compact(values) if self.is_compact else values
        function = {
            (False, False): F.explode,
            (False, True): F.explode_outer,
            (True, False): F.posexplode,
            (True, True): F.posexplode_outer,
        }[self.place is not None, self.is_outer]
        names = [self.place, self.name] if self.place else [self.name]
        return building.of(self.input).select("*", function(values).alias(*names))

    def evaluate(self, inputs: Inputs) -> ZSet:
        def made(values: Row) -> list[Row]:
            found = [each.value(self.input.row(values)) for each in self.values]
            kept = [value for value in found if value is not None or not self.is_compact]
            rows: list[tuple[Any, Any]] = [*enumerate(kept)]
            if self.is_outer and not rows:
                rows = [(None, None)]
            return [values + (row if self.place else row[1:]) for row in rows]

        return self.input.evaluate(inputs).flat_map(made)


@dataclass(frozen=True)
class Unpivot(Stage):
    input: Stage
    ids: tuple[str, ...]
    values: tuple[str, ...]
    name: str
    value: str

    @property
    def fields(self) -> tuple[Field, ...]:
        known = {each.name: each for each in self.input.fields}
        return (*(known[name] for name in self.ids), Field(self.name, "str"), Field(self.value, known[self.values[0]].kind))

    def build(self, building: Building) -> DataFrame:
        return building.of(self.input).unpivot([*self.ids], [*self.values], self.name, self.value)

    def evaluate(self, inputs: Inputs) -> ZSet:
        def made(values: Row) -> list[Row]:
            row = self.input.row(values)
            return [(*(row[name] for name in self.ids), each, row[each]) for each in self.values]

        return self.input.evaluate(inputs).flat_map(made)


@dataclass(frozen=True)
class Union(Stage):
    """All rows of both, by position, or by name after a turn of the right side's columns."""

    left: Stage
    right: Stage
    is_by_name: bool

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.left.fields

    def build(self, building: Building) -> DataFrame:
        left, right = building.of(self.left), building.of(self.right)
        if not self.is_by_name:
            return left.union(right)
        pairs = [*zip(self.right.names, self.left.names, strict=True)]
        return left.unionByName(right.select(*(F.col(name).alias(to) for name, to in reversed(pairs))))

    def evaluate(self, inputs: Inputs) -> ZSet:
        return self.left.evaluate(inputs) + self.right.evaluate(inputs)


@dataclass(frozen=True)
class SetOperation(Stage):
    left: Stage
    right: Stage
    kind: Literal["intersect", "subtract"]
    is_all: bool

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.left.fields

    def build(self, building: Building) -> DataFrame:
        methods = {("intersect", False): "intersect", ("intersect", True): "intersectAll", ("subtract", True): "exceptAll"}
        method = methods.get((self.kind, self.is_all), "subtract")
        made: DataFrame = getattr(building.of(self.left), method)(building.of(self.right))
        return made

    def evaluate(self, inputs: Inputs) -> ZSet:
        left, right = self.left.evaluate(inputs), self.right.evaluate(inputs)
        return (left.intersect if self.kind == "intersect" else left.subtract)(right, is_all=self.is_all)


@dataclass(frozen=True)
class Join(Stage):
    """A join by pairs of columns and a condition about ``l_`` and ``r_`` columns; its own columns are named after their side."""

    left: Stage
    right: Stage
    kind: Literal["inner", "left", "right", "full", "semi", "anti"]
    on: tuple[tuple[str, str], ...]
    condition: Expr | None
    number: int
    style: Literal["alias", "renamed", "frames"]

    @property
    def fields(self) -> tuple[Field, ...]:
        left = tuple(Field(f"l{self.number}_{each.name}", each.kind) for each in self.left.fields)
        right = tuple(Field(f"r{self.number}_{each.name}", each.kind) for each in self.right.fields)
        return left if self.kind in ("semi", "anti") else (*left, *right)

    def build(self, building: Building) -> DataFrame:
        left, right = self._sides(building)
        conditions = [left[1][one] == right[1][other] for one, other in self.on]
        if self.condition is not None:
            conditions.append(self.condition.column())
        made = left[0].join(right[0], conjunction(conditions), self.kind) if conditions else left[0].crossJoin(right[0])
        columns = [*left[1].values(), *(() if self.kind in ("semi", "anti") else right[1].values())]
        return made.select(*(each.alias(name) for each, name in zip(columns, self.names, strict=True)))

    def _sides(self, building: Building) -> list[tuple[DataFrame, dict[str, Column]]]:
        """Both sides with their columns by name; a condition needs the prefixes."""
        sides = []
        for prefix, stage in (("l", self.left), ("r", self.right)):
            below = building.of(stage)
            if self.condition is not None or self.style == "renamed":
                below = below.toDF(*(f"{prefix}_{name}" for name in stage.names))
                sides.append((below, {name: F.col(f"{prefix}_{name}") for name in stage.names}))
            elif self.style == "alias" or self.left == self.right:
                sides.append((below.alias(prefix), {name: F.col(f"{prefix}.{name}") for name in stage.names}))
            else:
                sides.append((below, {name: below[name] for name in stage.names}))
        return sides

    def evaluate(self, inputs: Inputs) -> ZSet:
        def matches(left: Row, right: Row) -> bool | None:
            one, other = self.left.row(left), self.right.row(right)
            found = [equal(one[name], other[of]) for name, of in self.on]
            if self.condition is not None:
                both = {
                    **{f"l_{name}": value for name, value in one.items()},
                    **{f"r_{name}": value for name, value in other.items()},
                }
                found.append(self.condition.value(both))
            return all_true(found)

        widths = len(self.left.fields), len(self.right.fields)
        return self.left.evaluate(inputs).join(self.right.evaluate(inputs), self.kind, matches, widths)


@dataclass(frozen=True)
class Member(Stage):
    """Rows whose value is, or is not, among those of another stage: IN, with its nulls."""

    input: Stage
    other: Stage
    name: str
    of: str
    is_negated: bool

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields

    def build(self, building: Building) -> DataFrame:
        found = F.col(self.name).isin(building.of(self.other).select(self.of))
        return building.of(self.input).where(~found if self.is_negated else found)

    def evaluate(self, inputs: Inputs) -> ZSet:
        (place,), (at,) = self.input.places((self.name,)), self.other.places((self.of,))
        values = [row[at] for row, _ in self.other.evaluate(inputs)]

        def is_there(row: Row) -> bool | None:
            found = member(row[place], values)
            return negation(found) if self.is_negated else found

        return self.input.evaluate(inputs).filter(is_there)


@dataclass(frozen=True)
class Group(Stage):
    """Groups; grouping sets are all keys, the first, and none, and their keys are written as expressions."""

    input: Stage
    keys: tuple[str, ...]
    aggregates: tuple[Agg, ...]
    sets: Literal["plain", "rollup", "cube", "sets"]
    as_text: bool

    @property
    def fields(self) -> tuple[Field, ...]:
        known = {each.name: each for each in self.input.fields}
        return (*(known[name] for name in self.keys), *(Field(each.name, each.kind) for each in self.aggregates))

    def build(self, building: Building) -> DataFrame:
        below = building.of(self.input)
        aggregates = [each.column(as_text=self.as_text) for each in self.aggregates]
        if self.sets == "sets":
            written = {name: F.coalesce(F.col(name), F.col(name)) for name in self.keys}
            sets = [[written[name] for name in chosen] for chosen in self._chosen()]
            return below.groupingSets(sets, *written.values()).agg(*aggregates).toDF(*self.names)
        groups = {"plain": below.groupBy, "rollup": below.rollup, "cube": below.cube}[self.sets](*self.keys)
        return groups.agg(*aggregates)

    def evaluate(self, inputs: Inputs) -> ZSet:
        below = self.input.evaluate(inputs)
        whole = ZSet({})
        if self.sets != "plain" and not below.weights:
            return whole  # so Spark has it: no total of nothing
        for chosen in self._chosen():
            found = below.group(self.input.places(chosen), self._aggregated)
            whole += found.map(lambda row, chosen=chosen: self._padded(row, chosen))  # type: ignore[misc]
        return whole

    def _chosen(self) -> list[tuple[str, ...]]:
        if self.sets == "plain":
            return [self.keys]
        if self.sets == "sets":
            return [self.keys, self.keys[:1], ()]
        if self.sets == "rollup":
            return [self.keys[:count] for count in range(len(self.keys) + 1)]
        return [chosen for count in range(len(self.keys) + 1) for chosen in combinations(self.keys, count)]

    def _aggregated(self, rows: list[Row]) -> Row:
        named = [self.input.row(row) for row in rows]
        return tuple(each.value(named) for each in self.aggregates)

    def _padded(self, row: Row, chosen: tuple[str, ...]) -> Row:
        known = dict(zip(chosen, row, strict=False))
        return (*(known.get(name) for name in self.keys), *row[len(chosen) :])


@dataclass(frozen=True)
class Pivot(Stage):
    input: Stage
    keys: tuple[str, ...]
    on: str
    values: tuple[tuple[Any, str], ...]
    aggregate: Agg

    @property
    def fields(self) -> tuple[Field, ...]:
        known = {each.name: each for each in self.input.fields}
        return (*(known[name] for name in self.keys), *(Field(name, self.aggregate.kind) for _, name in self.values))

    def build(self, building: Building) -> DataFrame:
        values = [value for value, _ in self.values]
        made = building.of(self.input).groupBy(*self.keys).pivot(self.on, values).agg(self.aggregate.column(as_text=False))
        return made.toDF(*self.names)

    def evaluate(self, inputs: Inputs) -> ZSet:
        is_list = self.aggregate.kind == "out"  # of which Spark collects the rows of other values too, as nulls

        def aggregated(rows: list[Row]) -> Row:
            named = [self.input.row(row) for row in rows]
            chosen = [[row for row in named if row[self.on] == value] for value, _ in self.values]
            return tuple(self.aggregate.value(each) if each or is_list else None for each in chosen)

        return self.input.evaluate(inputs).group(self.input.places(self.keys), aggregated)


@dataclass(frozen=True)
class Distinct(Stage):
    input: Stage

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields

    def build(self, building: Building) -> DataFrame:
        return building.of(self.input).distinct()

    def evaluate(self, inputs: Inputs) -> ZSet:
        return self.input.evaluate(inputs).distinct()


@dataclass(frozen=True)
class Sorting:
    """An order by some column, then by all others, so that ties are rows that are equal."""

    name: str
    is_descending: bool
    has_nulls_last: bool

    def columns(self, stage: Stage) -> list[Column]:
        return [self.first(), *(F.col(name).asc() for name in stage.names if name != self.name)]

    def first(self) -> Column:
        method = ("desc" if self.is_descending else "asc") + ("_nulls_last" if self.has_nulls_last else "_nulls_first")
        made: Column = getattr(F.col(self.name), method)()
        return made

    def orders(self, stage: Stage) -> list[Order]:
        rest = [Order(place) for place, name in enumerate(stage.names) if name != self.name]
        return [Order(stage.names.index(self.name), self.is_descending, self.has_nulls_last), *rest]


@dataclass(frozen=True)
class Top(Stage):
    """The first rows of an order, after skipping some; with ``then`` the first by that of what was not skipped."""

    input: Stage
    sorting: Sorting
    limit: int
    offset: int
    then: Sorting | None = None

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields

    def build(self, building: Building) -> DataFrame:
        ordered = building.of(self.input).orderBy(*self.sorting.columns(self.input))
        found = ordered.offset(self.offset) if self.offset else ordered
        return (found.orderBy(*self.then.columns(self.input)) if self.then else found).limit(self.limit)

    def evaluate(self, inputs: Inputs) -> ZSet:
        below = self.input.evaluate(inputs)
        if self.then is None:
            return below.top(self.sorting.orders(self.input), self.limit, self.offset)
        rest = below.top(self.sorting.orders(self.input), len(below.rows()), self.offset)
        return rest.top(self.then.orders(self.input), self.limit)


@dataclass(frozen=True)
class Dedup(Stage):
    """One row for each key, the first of an order. Plain Spark promises no such thing, so there it is written as a window."""

    input: Stage
    keys: tuple[str, ...]
    sorting: Sorting

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields

    def build(self, building: Building) -> DataFrame:
        below = building.of(self.input)
        if not building.is_plain:
            return below.orderBy(*self.sorting.columns(self.input)).dropDuplicates([*self.keys])
        number = F.row_number().over(Parts.partitionBy(*self.keys).orderBy(*self.sorting.columns(self.input)))
        return below.withColumn("_number", number).where("_number = 1").drop("_number")

    def evaluate(self, inputs: Inputs) -> ZSet:
        def firsts(rows: list[Row]) -> list[Row]:
            return [(number == 0,) for number in range(len(rows))]

        below = self.input.evaluate(inputs)
        numbered = below.window(self.input.places(self.keys), self.sorting.orders(self.input), firsts)
        return numbered.filter(lambda row: row[-1]).map(lambda row: row[:-1])


@dataclass(frozen=True)
class Window(Stage):
    input: Stage
    partition: tuple[str, ...]
    sorting: Sorting
    functions: tuple[Over, ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        return (*self.input.fields, *(Field(each.name, each.kind) for each in self.functions))

    def build(self, building: Building) -> DataFrame:
        part: WindowSpec = Parts.partitionBy(*self.partition)
        specs = {
            "none": part,
            "first": part.orderBy(self.sorting.first()),
            "near": part.orderBy(self.sorting.first()).rangeBetween(-1, 1),
            "total": part.orderBy(*self.sorting.columns(self.input)),
        }
        return building.of(self.input).withColumns({each.name: each.column(specs[each.order]) for each in self.functions})

    def evaluate(self, inputs: Inputs) -> ZSet:
        place = self.input.names.index(self.sorting.name)

        def made(rows: list[Row]) -> list[Row]:
            named = [self.input.row(row) for row in rows]
            return [*zip(*(each.values(named, [row[place] for row in rows]) for each in self.functions), strict=True)]

        return self.input.evaluate(inputs).window(self.input.places(self.partition), self.sorting.orders(self.input), made)


ROW_BY_ROW = (Source, Select, Where, Explode, Unpivot, Union)
"""Stages without a state."""


def walk(stage: Stage) -> Iterator[Stage]:
    """The stage and all below it."""
    yield stage
    for each in stage.below:
        yield from walk(each)
