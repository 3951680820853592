"""What identifies a row, proven from the plan."""

from __future__ import annotations

import pytest
from pyspark.sql.connect.proto import Relation

from firnline.incremental.relation import (
    ANTI,
    INNER,
    LEFT_OUTER,
    alias,
    call,
    column,
    distinct,
    filtered,
    grouped,
    integer,
    joined,
    project,
    text,
)
from firnline.incremental.uniqueness import is_unique
from tests.unit.incremental.test_plans import bound, table

KEYS = {"orders": ["id"], "people": ["name"]}


def with_people(kind: int) -> Relation:
    return joined(table(1), table(2), kind, call("==", column("who"), column("name")))


def counted() -> Relation:
    return grouped(table(1), [column("who")], [alias(call("count", integer(1)), "n")])


PROVEN = {
    "a key": (table(1), ["id"]),
    "more than a key": (table(1), ["id", "who"]),
    "filtered": (filtered(table(1), call(">", column("amount"), integer(1))), ["id"]),
    "projected": (project(table(1), [alias(column("id"), "number"), column("who")]), ["number"]),
    "groups": (counted(), ["who"]),
    "one group": (grouped(table(1), [], [alias(call("count", integer(1)), "n")]), []),
    "distinct": (distinct(project(table(1), [column("who")])), ["who"]),
    "looked up": (with_people(INNER), ["id"]),
    "looked up or not": (with_people(LEFT_OUTER), ["id"]),
    "kept": (with_people(ANTI), ["id"]),
    "pairs": (joined(table(1), table(2), INNER, None), ["id", "name"]),
    "groups looked up": (joined(counted(), table(2), INNER, call("==", column("who"), column("name"))), ["name"]),
}
OPEN = {
    "no key": (table(1), ["who"]),
    "an unkeyed input": (table(3), ["city_name"]),
    "projected away": (project(table(1), [column("who")]), ["who"]),
    "computed": (project(table(1), [alias(call("+", column("id"), integer(1)), "id")]), ["id"]),
    "exploded": (project(table(1), [column("id"), alias(call("explode", call("array", column("who"))), "e")]), ["id"]),
    "in several windows": (
        project(table(1), [column("id"), alias(call("window", column("who"), text("2 days"), text("1 day")), "w")]),
        ["id"],
    ),
    "many matches": (joined(table(2), table(1), INNER, call("==", column("who"), column("name"))), ["name"]),
    "no condition": (joined(table(1), table(2), INNER, None), ["id"]),
    "part of the groups": (grouped(table(1), [column("who"), column("amount")], []), ["who"]),
}


@pytest.mark.parametrize("case", PROVEN)
def test_proven(case: str) -> None:
    assert _is_unique(*PROVEN[case])


@pytest.mark.parametrize("case", OPEN)
def test_open(case: str) -> None:
    assert not _is_unique(*OPEN[case])


def _is_unique(relation: Relation, names: list[str]) -> bool:
    found = bound(relation)
    ids = {field.name: field.id for field in found.fields}
    return is_unique(found.node, [ids[name] for name in names], KEYS)
