"""Random stages and histories: the same for the same seed.

Few rows and few values, so that keys meet: nulls, NaN, -0.0, infinities, large and small decimals, duplicates, updates, rows
that come and go in one epoch, epochs without a change, inputs without a row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from random import Random
from typing import Any

from tests.spark.grammar.aggregate import AGGREGATIONS, Agg
from tests.spark.grammar.expression import EXACT, OPERATIONS, Call, Expr, Field, Lit, Ref
from tests.spark.grammar.stage import (
    Dedup,
    Distinct,
    Explode,
    Group,
    Join,
    Member,
    Pivot,
    Select,
    SetOperation,
    Sorting,
    Source,
    Stage,
    Top,
    Union,
    Unpivot,
    Where,
    Window,
)
from tests.spark.grammar.window import FUNCTIONS, Over
from tests.spark.histories import History, Row, settled

NAN, INF = float("nan"), float("inf")
KEYS = [None, 1, 1, 2, 2, 2, 3]
DOUBLES = [None, NAN, -0.0, 0.0, INF, -INF, 0.5, 0.5, -3.25, 1024.0, 1.0]
TEXTS = [None, "", "p", "p", "q", "é😀", "Ω"]
DECIMALS = [None, *map(Decimal, ("12345678901234567890123.456789", "0.000001", "-0.000001", "2.5", "-7"))]
VALUES: dict[str, dict[str, list[Any]]] = {
    "a": {
        "k int": KEYS,
        "s string": TEXTS,
        "x int": [None, 0, 5, 5, -3, 7],
        "d double": DOUBLES,
        "b boolean": [None, True, False],
    },
    "b": {"k int": KEYS, "t string": TEXTS, "y bigint": [None, 10**12, -1, 2, 5], "m decimal(30,6)": DECIMALS},
    "c": {"j int": KEYS, "e double": [None, 0.1, 0.2, 0.7, 1e-20, 1e6, NAN, INF], "f double": DOUBLES},
}
KINDS = {"int": "int", "bigint": "int", "string": "str", "double": "dbl", "boolean": "bool", "decimal(30,6)": "dec"}
LITERALS: dict[str, list[Any]] = {
    "int": [0, 1, 2, 5, None],
    "str": ["p", "", "Ω"],
    "dbl": [0.0, 0.5, NAN],
    "dec": [Decimal("2.5"), Decimal("0.000001")],
    "bool": [True, False],
}
OPERATORS = {
    "select": 4,
    "where": 4,
    "explode": 1,
    "unpivot": 1,
    "union": 2,
    "set": 2,
    "join": 7,
    "member": 1,
    "group": 7,
    "pivot": 1,
    "distinct": 1,
    "top": 1,
    "dedup": 1,
    "window": 3,
}
MOST_JOINS = 3


def source(name: str) -> Source:
    split = [column.split(" ") for column in VALUES[name]]
    return Source(name, tuple(Field(of, "approx" if of == "e" else KINDS[kind]) for of, kind in split))


class Generator:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self._count = 0
        self._joins = 0

    def stage(self, depth: int) -> Stage:
        if depth == 0:
            return source(self._one(("a", "a", "b", "b", "c")))
        (operator,) = self.random.choices([*OPERATORS], [*OPERATORS.values()])
        if operator == "join" and self._joins >= MOST_JOINS:
            operator = "group"
        made: Stage = getattr(self, f"_{operator}")(depth)
        return made

    def histories(self, stage: Stage) -> dict[str, History]:
        epochs = self._one((2, 2, 3, 3, 4))
        return {name: self._history(name, epochs) for name in sorted(_sources(stage))}

    # ---- words

    def _new(self) -> str:
        self._count += 1
        return f"c{self._count}"

    def _one(self, choices: Sequence[Any]) -> Any:
        return self.random.choice(choices)

    def _some(self, choices: Sequence[Any], least: int, most: int) -> list[Any]:
        count = min(len(choices), self.random.randint(least, most))
        return self.random.sample(list(choices), count)

    def _chance(self, share: float) -> bool:
        return self.random.random() < share

    def _text(self) -> bool:
        return self._chance(0.25)

    # ---- expressions

    def _expression(self, fields: Sequence[Field], kind: str, depth: int) -> Expr:
        known = [each for each in fields if each.kind == kind]
        if depth == 0 or kind not in EXACT or self._chance(0.25):
            if known and (kind not in LITERALS or self._chance(0.85)):
                return Ref(self._one(known).name, kind)
            return Lit(self._one(LITERALS[kind]), kind)
        choices = [name for name, each in OPERATIONS.items() if each.gives in (kind, None)]
        name = self._one(choices)
        operation = OPERATIONS[name]
        there = sorted({each.kind for each in fields if each.kind in EXACT}) or ["int"]
        common = kind if operation.gives is None else self._one(there)
        arguments = tuple(self._expression(fields, common if of == "any" else of, depth - 1) for of in operation.takes)
        return Call(name, arguments, kind)

    def _exact(self, stage: Stage) -> Stage:
        """The columns that can be compared."""
        kept = [each for each in stage.fields if each.kind in EXACT]
        if len(kept) == len(stage.fields):
            return stage
        outputs = tuple((each.name, Ref(each.name, each.kind)) for each in kept) or ((self._new(), Lit(1, "int")),)
        return Select(stage, outputs, "columns")

    def _shaped(self, stage: Stage, kinds: Sequence[str]) -> Stage:
        """Columns of these kinds, some of them the stage's own."""
        outputs = tuple((self._new(), self._expression(stage.fields, kind, self._one((0, 0, 1)))) for kind in kinds)
        return Select(stage, outputs, "columns")

    # ---- row by row

    def _select(self, depth: int) -> Stage:
        below = self.stage(depth - 1)
        kept = self._some(below.fields, 1, 4)
        outputs: list[tuple[str, Expr]] = [(each.name, Ref(each.name, each.kind)) for each in kept]
        outputs += [(self._new(), self._expression(below.fields, self._one(EXACT), 2)) for _ in range(self._one((1, 2)))]
        return Select(below, tuple(outputs), self._one(("columns", "columns", "text", "steps")))

    def _where(self, depth: int) -> Stage:
        below = self.stage(depth - 1)
        return Where(below, self._expression(below.fields, "bool", 2), self._text())

    def _explode(self, depth: int) -> Stage:
        below = self.stage(depth - 1)
        kind = self._one(("int", "str", "dbl"))
        values = tuple(self._expression(below.fields, kind, self._one((0, 1))) for _ in range(self._one((1, 2))))
        place = self._new() if self._chance(0.3) else None
        return Explode(below, values, self._new(), place, self._chance(0.5), self._chance(0.4))

    def _unpivot(self, depth: int) -> Stage:
        below = self.stage(depth - 1)
        counts = Counter(each.kind for each in below.fields if each.kind in EXACT)
        if not counts:
            return below
        kind = max(sorted(counts), key=lambda each: counts[each])
        values = [each.name for each in below.fields if each.kind == kind][:2]
        ids = [each.name for each in below.fields if each.name not in values][:3]
        return Unpivot(below, tuple(ids), tuple(values), self._new(), self._new())

    # ---- of two

    def _pair(self, depth: int) -> tuple[Stage, Stage]:
        """Two stages, one of them as deep as asked for; sometimes the same."""
        left = self.stage(depth - 1)
        if self._chance(0.15):
            return left, left
        right = self.stage(self.random.randint(0, depth - 1))
        return (left, right) if self._chance(0.5) else (right, left)

    def _alike(self, depth: int, kinds_allowed: Sequence[str]) -> tuple[Stage, Stage]:
        left, right = self._pair(depth)
        known = [each.kind for each in left.fields if each.kind in kinds_allowed]
        kinds = self._some(known, 1, 3) or ["int"]
        return self._shaped(left, kinds), self._shaped(right, kinds)

    def _union(self, depth: int) -> Stage:
        left, right = self._alike(depth, EXACT)
        return Union(left, right, self._chance(0.3))

    def _set(self, depth: int) -> Stage:
        left, right = self._alike(depth, EXACT)
        return SetOperation(left, right, self._one(("intersect", "subtract")), self._chance(0.5))

    def _join(self, depth: int) -> Stage:
        self._joins += 1
        left, right = self._pair(depth)
        kind = self._one(("inner", "inner", "left", "left", "right", "full", "semi", "anti"))
        pairs = [
            (one.name, other.name)
            for one in left.fields
            for other in right.fields
            if one.kind == other.kind and one.kind in EXACT
        ]
        keyed = [pair for pair in pairs if pair[0].split("_")[-1] in "kjx"] or pairs
        on = [self._one(keyed)] if keyed else []
        if pairs and self._chance(0.2):
            on = [*dict.fromkeys([*on, self._one(pairs)])]
        if depth == 1 and self._chance(0.15):
            on = []
        condition = None
        if self._chance(0.3) or (not on and kind != "inner"):
            both = [Field(f"l_{each.name}", each.kind) for each in left.fields]
            both += [Field(f"r_{each.name}", each.kind) for each in right.fields]
            condition = self._expression(both, "bool", 2)
        is_apart = not (_sources(left) & _sources(right))
        style = self._one(("alias", "renamed", "frames") if is_apart else ("alias", "renamed"))
        return Join(left, right, kind, tuple(on), condition, self._joins, style)

    def _member(self, depth: int) -> Stage:
        left, right = self._pair(depth)
        pairs = [
            (one.name, other.name)
            for one in left.fields
            for other in right.fields
            if one.kind == other.kind and one.kind in EXACT
        ]
        if not pairs or _sources(left) & _sources(right):
            return left
        name, of = self._one(pairs)
        return Member(left, right, name, of, self._chance(0.5))

    # ---- of groups, parts and orders

    def _aggregate(self, fields: Sequence[Field], *, is_plain: bool = False) -> Agg:
        kinds = sorted({each.kind for each in fields} - {"out"}) or ["int"]
        kind = self._one(kinds)
        names = [name for name, each in AGGREGATIONS.items() if kind in each.gives]
        name = self._one(names)
        argument = self._expression(fields, kind, self._one((0, 0, 1)))
        has_filter = not is_plain and name not in ("set", "list") and self._chance(0.15)
        return Agg(self._new(), name, argument, self._expression(fields, "bool", 1) if has_filter else None)

    def _keys(self, stage: Stage, least: int, most: int) -> tuple[str, ...]:
        return tuple(each.name for each in self._some([each for each in stage.fields if each.kind in EXACT], least, most))

    def _group(self, depth: int) -> Stage:
        below = self.stage(depth - 1)
        keys = () if self._chance(0.1) else self._keys(below, 1, 2)
        sets = self._one(("plain",) * 6 + ("rollup", "cube", "sets")) if keys else "plain"
        aggregates = tuple(self._aggregate(below.fields) for _ in range(self.random.randint(1, 4)))
        if self._chance(0.4):  # only what adds up
            aggregates = tuple(replace(each, function="count") for each in aggregates)
            numbers = [each for each in below.fields if each.kind in ("int", "dbl", "dec", "approx")]
            aggregates += tuple(Agg(self._new(), self._one(("sum", "avg")), Ref(of.name, of.kind)) for of in numbers[:2])
        return Group(below, keys, aggregates, sets, self._text())

    def _pivot(self, depth: int) -> Stage:
        below = self.stage(depth - 1)
        texts = [each.name for each in below.fields if each.kind == "str"]
        if not texts:
            return below
        on = self._one(texts)
        rest = [each for each in below.fields if each.name != on]
        keys = tuple(each.name for each in self._some([each for each in rest if each.kind in EXACT], 1, 2))
        return Pivot(
            below, keys, on, (("p", self._new()), ("q", self._new())), self._aggregate(rest or below.fields, is_plain=True)
        )

    def _distinct(self, depth: int) -> Stage:
        below = self._exact(self.stage(depth - 1))
        return Distinct(self._shaped(below, [each.kind for each in self._some(below.fields, 1, 3)]))

    def _sorting(self, stage: Stage) -> Sorting:
        return Sorting(self._one(stage.names), self._chance(0.5), self._chance(0.5))

    def _top(self, depth: int) -> Stage:
        below = self._exact(self.stage(depth - 1))
        then = self._sorting(below) if self._chance(0.2) else None
        return Top(below, self._sorting(below), self.random.randint(1, 4), self._one((0, 0, 1)), then)

    def _dedup(self, depth: int) -> Stage:
        below = self._exact(self.stage(depth - 1))
        return Dedup(below, self._keys(below, 1, 2), self._sorting(below))

    def _window(self, depth: int) -> Stage:
        below = self._exact(self.stage(depth - 1))
        functions, sorting = [], self._sorting(below)
        is_of_integers = Field(sorting.name, "int") in below.fields
        for _ in range(self.random.randint(1, 3)):
            field = self._one(below.fields)
            fitting = [name for name, each in FUNCTIONS.items() if field.kind in each.gives]
            name = self._one([name for name in fitting if is_of_integers or FUNCTIONS[name].order != "near"])
            functions.append(Over(self._new(), name, Ref(field.name, field.kind)))
        partition = () if self._chance(0.1) else self._keys(below, 1, 2)
        return Window(below, partition, sorting, tuple(functions))

    # ---- histories

    def _history(self, name: str, epochs: int) -> History:
        schema = ", ".join(VALUES[name])
        if self._chance(0.05):
            return History(schema, [[]] * epochs)
        state: Counter[Row] = Counter()
        made = []
        for epoch in range(epochs):
            changes = [] if self._chance(0.2) else self._changes(name, state, 8 if epoch == 0 else 4)
            made.append(changes)
            for row, weight in changes:
                state[settled(row)] += weight
        return History(schema, made)

    def _changes(self, name: str, state: Counter[Row], most: int) -> list[tuple[Row, int]]:
        left = Counter(state)
        changes: list[tuple[Row, int]] = []

        def change(row: Row, weight: int) -> None:
            changes.append((row, weight))
            left[settled(row)] += weight

        for _ in range(self.random.randint(1, most)):
            there = sorted((row for row, weight in left.items() if weight > 0), key=repr)
            what = self.random.random()
            if there and what < 0.25:
                change(self._one(there), -1)
            elif there and what < 0.5:
                old = self._one(there)
                at = self.random.randrange(len(old))
                change(old, -1)
                change((*old[:at], self._one([*VALUES[name].values()][at]), *old[at + 1 :]), 1)
            elif what < 0.6:
                row = self._row(name)
                change(row, 1)
                change(row, -1)
            else:
                change(self._row(name), self._one((1, 1, 1, 2)))
        return changes

    def _row(self, name: str) -> Row:
        return tuple(self._one(values) for values in VALUES[name].values())


def _sources(stage: Stage) -> set[str]:
    return {stage.name} if isinstance(stage, Source) else {name for each in stage.below for name in _sources(each)}
