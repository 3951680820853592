"""Binding without Spark: what a plan hash sees and does not see, what is pruned, and how products become joins."""

from __future__ import annotations

import pytest
from pyspark.sql.connect.proto import Expression, Relation

from firnline.errors import FirnlineError
from firnline.incremental.algebra import Filter, Input, Join, Map, Node, walk
from firnline.incremental.arranging import Arranged
from firnline.incremental.binding import Binder
from firnline.incremental.canonical import Canonical
from firnline.incremental.explaining import scanned
from firnline.incremental.pruning import pruned
from firnline.incremental.relation import INNER, alias, call, column, filtered, integer, joined, project
from firnline.incremental.scope import Bound
from firnline.incremental.sql_relation import translated

INPUTS = {1: ("orders", ("id", "who", "amount")), 2: ("people", ("name", "city")), 3: ("cities", ("city_name", "size"))}


def table(plan: int) -> Relation:
    relation = Relation()
    relation.common.plan_id = plan
    relation.read.named_table.unparsed_identifier = "t"
    return relation


def bound(relation: Relation, skipped: int = 0) -> Bound:
    binder = Binder(INPUTS, lambda _: [])
    for _ in range(skipped):
        binder.new("unused")
    return binder.bind(relation)


def plan_hash(relation: Relation, skipped: int = 0) -> str:
    found = bound(relation, skipped)
    return Canonical({}, {}, {}).hash(found.node, [field.id for field in found.fields])


def large(least: int, name: str = "big") -> Relation:
    return project(
        filtered(table(1), call(">", column("amount"), integer(least))),
        [column("who"), alias(call("*", column("AMOUNT"), integer(2)), name)],
    )


def test_a_plan_hash_sees_meaning_and_not_ids() -> None:
    assert plan_hash(large(5)) == plan_hash(large(5), skipped=7)
    assert plan_hash(large(5)) == plan_hash(large(5, "huge"))
    assert plan_hash(large(5)) != plan_hash(large(6))


def test_only_needed_columns_are_read() -> None:
    found = bound(large(5))
    narrow = pruned(found.node, [found.fields[1].id])
    assert [[of.name for of in node.columns] for node in walk(narrow) if isinstance(node, Input)] == [["amount"]]


def test_products_under_a_filter_become_joins() -> None:
    product = joined(joined(table(1), table(3), INNER, None), table(2), INNER, None)
    conditions = call(
        "and",
        call("==", column("who"), column("name")),
        call("and", call("==", column("city"), column("city_name")), call(">", column("size"), integer(9))),
    )
    node = bound(filtered(product, conditions)).node
    assert isinstance(node, Join)
    assert [len(each.keys) for each in walk(node) if isinstance(each, Join)] == [1, 1]
    assert [collections(each) for each in walk(node) if isinstance(each, Filter)] == [["cities"]]


def collections(node: Node) -> list[str]:
    return [each.collection for each in walk(node) if isinstance(each, Input)]


def with_exists(root: Relation, plan: int = 50) -> Relation:
    """A relation that refers to the people of its orders as a subquery."""
    inner = project(filtered(table(2), call("==", column("name"), column("who"))), [integer(1)])
    inner.common.plan_id = plan
    relation = Relation()
    relation.with_relations.root.CopyFrom(root)
    relation.with_relations.references.append(inner)
    return relation


def exists(plan: int = 50) -> Expression:
    expression = Expression()
    expression.subquery_expression.plan_id = plan
    expression.subquery_expression.subquery_type = expression.subquery_expression.SUBQUERY_TYPE_EXISTS
    return expression


def joins(node: Node) -> list[tuple[str, int]]:
    return [(each.kind, len(each.keys)) for each in walk(node) if isinstance(each, Join)]


def test_subqueries_become_semi_joins() -> None:
    assert joins(bound(with_exists(filtered(table(1), call("not", exists())))).node) == [("anti", 1)]


def test_existence_as_a_value_is_a_left_join_with_distinct_keys() -> None:
    either = call("or", exists(), call(">", column("amount"), integer(9)))
    for relation in (filtered(table(1), either), project(table(1), [alias(exists(), "there")])):
        assert joins(bound(with_exists(relation)).node) == [("left", 1)]


def test_equality_that_takes_nulls_as_equal_is_a_key() -> None:
    assert joins(bound(joined(table(1), table(2), INNER, call("<=>", column("who"), column("name")))).node) == [("inner", 1)]


def test_structs_are_made_with_the_names_of_their_columns() -> None:
    node = bound(project(table(1), [alias(call("struct", column("WHO"), integer(1)), "s")])).node
    assert isinstance(node, Map)
    assert node.outputs[0].expression.unresolved_function.arguments[0].alias.name == ["WHO"]


def test_states_are_read_below_a_join_only() -> None:
    pairs = joined(large(5), table(2), INNER, call("==", column("who"), column("name")))
    assert scanned(Arranged((), bound(pairs).node)) == {"orders", "people"}
    assert scanned(Arranged((), bound(large(5)).node)) == set()


def test_a_relation_that_asks_the_clock_is_refused() -> None:
    with pytest.raises(FirnlineError, match="NONDETERMINISTIC_FUNCTION: unix_timestamp"):
        bound(translated("SELECT * FROM range(unix_timestamp())", {}))
