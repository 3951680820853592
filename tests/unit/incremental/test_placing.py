"""Which inputs a stage reads part by part, from plans as stages make them."""

from __future__ import annotations

import pytest
from pyspark.sql.connect.proto import Relation

from firnline.incremental.algebra import Input, walk
from firnline.incremental.arranging import Arrangement
from firnline.incremental.binding import Binder
from firnline.incremental.colocating import Placed
from firnline.incremental.placing import Stored, same_parts
from firnline.incremental.relation import (
    ANTI,
    INNER,
    LEFT_OUTER,
    SEMI,
    alias,
    call,
    column,
    distinct,
    filtered,
    grouped,
    integer,
    joined,
    project,
    union,
)
from tests.unit.incremental.test_plans import INPUTS, bound, table

ORDERS = {"id": "long", "who": "string", "amount": "long"}
PEOPLE = {"name": "string", "city": "string"}
CITIES = {"city_name": "string", "size": "long"}
FOUR = 4
BOTH, FIRST, SECOND, NEITHER = {"orders", "people"}, {"orders"}, {"people"}, set[str]()


def stored(types: dict[str, str], *by: str, parts: int = FOUR) -> Stored:
    return Stored(Placed(tuple((name, types[name]) for name in by), parts), types)


LOGS = {"orders": stored(ORDERS, "who"), "people": stored(PEOPLE, "name")}
RIGHT_OUTER, FULL_OUTER = (Relation().join.JoinType.Value(f"JOIN_TYPE_{name}_OUTER") for name in ("RIGHT", "FULL"))


def by_name(kind: int) -> Relation:
    return joined(table(1), table(2), kind, call("==", column("who"), column("name")))


def counted(*keys: str) -> Relation:
    return grouped(table(1), map(column, keys), [alias(call("count", integer(1)), "n")])


CASES: dict[str, tuple[Relation, list[str], set[str]]] = {
    "as it is": (table(1), ["who"], FIRST),
    "by another column": (table(1), ["id"], NEITHER),
    "by one column more": (table(1), ["who", "id"], NEITHER),
    "filtered": (filtered(table(1), call(">", column("amount"), integer(1))), ["who"], FIRST),
    "renamed": (project(table(1), [alias(column("who"), "person"), column("id")]), ["person"], FIRST),
    "exchanged": (project(table(1), [alias(column("who"), "id"), alias(column("id"), "who")]), ["who"], NEITHER),
    "computed": (project(table(1), [alias(call("upper", column("who")), "who")]), ["who"], NEITHER),
    "exploded": (project(table(1), [column("who"), alias(call("explode", call("array", column("id"))), "e")]), ["who"], FIRST),
    "groups": (counted("who"), ["who"], FIRST),
    "finer groups": (counted("who", "amount"), ["who"], FIRST),
    "other groups": (counted("amount"), ["amount"], NEITHER),
    "distinct": (distinct(project(table(1), [column("who")])), ["who"], FIRST),
    "an inner join, by the left": (by_name(INNER), ["who"], BOTH),
    "an inner join, by the right": (by_name(INNER), ["name"], BOTH),
    "an inner join by something else": (by_name(INNER), ["city"], NEITHER),
    "a product": (joined(table(1), table(2), INNER, None), ["who"], FIRST),
    "a left join, by the left": (by_name(LEFT_OUTER), ["who"], BOTH),
    "a left join, by the side that may be null": (by_name(LEFT_OUTER), ["name"], NEITHER),
    "a right join, by the right": (by_name(RIGHT_OUTER), ["name"], BOTH),
    "a right join, by the side that may be null": (by_name(RIGHT_OUTER), ["who"], NEITHER),
    "a semi join": (by_name(SEMI), ["who"], BOTH),
    "an anti join": (by_name(ANTI), ["who"], BOTH),
    "an anti join by something else": (by_name(ANTI), ["id"], NEITHER),
    "a null-safe join": (joined(table(1), table(2), INNER, call("<=>", column("who"), column("name"))), ["who"], FIRST),
    "a join with a further condition": (
        joined(
            table(1),
            table(2),
            LEFT_OUTER,
            call("and", call("==", column("who"), column("name")), call(">", column("amount"), integer(3))),
        ),
        ["who"],
        BOTH,
    ),
    "groups of a join": (grouped(by_name(INNER), [column("name")], []), ["name"], BOTH),
    "joined with itself by other columns": (
        joined(
            project(table(1), [column("who")]),
            project(table(1), [alias(column("id"), "i"), alias(column("amount"), "a")]),
            INNER,
            call("==", column("i"), column("a")),
        ),
        ["who"],
        NEITHER,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_same_part_or_all(case: str) -> None:
    relation, columns, expected = CASES[case]
    assert _found(relation, columns) & read(relation) == expected


def test_a_full_join_reads_all_parts() -> None:
    binder = Binder(INPUTS, lambda _: [("id", "bigint"), ("who", "string"), ("amount", "bigint")])
    found = binder.bind(by_name(FULL_OUTER))
    ids = {field.name: field.id for field in found.fields}
    for name in ("who", "name"):
        assert same_parts(found.node, [ids[name]], Placed(((name, "string"),), FOUR), LOGS, ()) == NEITHER


@pytest.mark.parametrize(("by", "expected"), [("city_name", {"orders", "cities"}), ("size", {"orders"})])
def test_a_union_reads_the_same_part_of_each_side_that_is_cut_by_its_columns(by: str, expected: set[str]) -> None:
    whole = union(project(table(1), [column("who")]), project(table(3), [column("city_name")]))
    found = Binder(INPUTS, lambda _: [("who", "string")]).bind(whole)
    logs = {"orders": LOGS["orders"], "cities": stored(CITIES, by)}
    assert same_parts(found.node, [found.fields[0].id], Placed((("who", "string"),), FOUR), logs, ()) == expected


@pytest.mark.parametrize(
    "other",
    [stored(PEOPLE, "name", parts=2), stored({**PEOPLE, "name": "long"}, "name"), stored(PEOPLE, "name", "city")],
    ids=["in fewer parts", "of another type", "by one column more"],
)
def test_a_log_that_is_cut_otherwise_is_read_whole(other: Stored) -> None:
    logs = {**LOGS, "people": other}
    assert _found(by_name(INNER), ["who"], logs) == FIRST


def test_one_part_on_both_sides_is_the_same_part() -> None:
    logs = {"orders": stored(ORDERS, "id", parts=1), "people": LOGS["people"]}
    relation = joined(table(1), table(2), INNER, None)
    assert _found(relation, ["amount"], logs, parts=1) == FIRST


def test_equality_across_types_says_nothing_about_further_columns() -> None:
    """Text '01' and '1' both equal the number 1, and are in different parts."""
    first = joined(table(1), table(3), INNER, call("==", column("who"), column("size")))
    relation = joined(first, table(2), INNER, call("==", column("size"), column("name")))
    logs = {**LOGS, "cities": stored(CITIES, "city_name")}
    assert _found(relation, ["who"], logs) == FIRST


def test_what_is_kept_is_followed_to_its_inputs() -> None:
    node = bound(counted("who")).node
    who = node.ids[0]
    columns = tuple(type(of)(of.id, f"c{number}") for number, of in enumerate(node.columns))
    renamed = tuple(type(of)(f"x{of.id}", of.name) for of in columns)
    kept = Arrangement("stage__abc", node, columns, node.columns)
    placed = Placed((("who", "string"),), FOUR)
    assert same_parts(Input(renamed, None, "stage__abc"), [f"x{who}"], placed, {"orders": LOGS["orders"]}, [kept]) == FIRST
    assert same_parts(Input(renamed, None, "stage__abc"), [renamed[1].id], placed, {"orders": LOGS["orders"]}, [kept]) == NEITHER


def read(relation: Relation) -> set[str]:
    return {each.collection for each in walk(bound(relation).node) if isinstance(each, Input)}


def _found(relation: Relation, names: list[str], logs: dict[str, Stored] = LOGS, parts: int = FOUR) -> set[str]:
    found = bound(relation)
    ids = {field.name: field.id for field in found.fields}
    kinds = {**ORDERS, **PEOPLE, **CITIES, "person": "string", "i": "long", "a": "long"}
    placed = Placed(tuple((name, kinds[name]) for name in names), parts)
    return same_parts(found.node, [ids[name] for name in names], placed, logs, ())
