"""Plans whose rows carry their epoch: which can, what they look like, and why others cannot."""

from __future__ import annotations

import pytest
from pyspark.sql.connect.proto import Join, Relation

from firnline.incremental.algebra import Accumulate, Column, Input, Map, Output, Series, walk
from firnline.incremental.arranging import Arranged
from firnline.incremental.relation import (
    ANTI,
    INNER,
    LEFT_OUTER,
    alias,
    call,
    column,
    filtered,
    grouped,
    integer,
    joined,
    project,
)
from firnline.incremental.stretching import apart, stretched
from firnline.model.names import EPOCH, EPOCH_TIME
from tests.unit.incremental.test_plans import bound, table


def with_people(kind: Join.JoinType.ValueType) -> Relation:
    return joined(table(1), table(2), kind, call("==", column("who"), column("name")))


AT_ONCE = {
    "rows": table(1),
    "filtered": filtered(table(1), call(">", column("amount"), integer(1))),
    "projected": project(table(1), [alias(call("+", column("id"), integer(1)), "next"), column("who")]),
    "joined": with_people(INNER),
    "pairs": joined(table(1), table(2), INNER, None),
}
APART = {
    "left": (with_people(LEFT_OUTER), "a row of the left join"),
    "anti": (with_people(ANTI), "a row of the anti join"),
    "largest": (grouped(table(1), [column("who")], [alias(call("max", column("amount")), "most")]), "an aggregate"),
}


@pytest.mark.parametrize("name", AT_ONCE)
def test_what_is_linear_in_each_input_carries_the_epoch_as_one_column_more(name: str) -> None:
    node = bound(AT_ONCE[name]).node
    assert apart(Arranged((), node)) is None
    found = stretched(node)
    assert found.node.ids == [*node.ids, found.epoch]
    assert all(each.columns[-1].name == EPOCH for each in walk(found.node) if isinstance(each, Input))
    for each in walk(found.node):
        assert len({*each.ids}) == len(each.ids), "every column has an id of its own"


@pytest.mark.parametrize("name", APART)
def test_what_hangs_on_states_in_between_is_computed_epoch_by_epoch(name: str) -> None:
    relation, reason = APART[name]
    assert (apart(Arranged((), bound(relation).node)) or "").startswith(reason)


def test_a_row_of_a_join_is_there_from_the_later_of_its_epochs_on() -> None:
    found = stretched(bound(with_people(INNER)).node)
    assert isinstance(found.node, Map)
    later = found.node.outputs[-1].expression.unresolved_function
    assert later.function_name == "greatest"
    assert len({argument.unresolved_attribute.unparsed_identifier for argument in later.arguments}) == 2


def test_sums_that_are_kept_become_a_series_and_logical_time_stays_apart() -> None:
    below = bound(table(1)).node
    count = Column("n", "c1")
    node = Accumulate(
        (below.columns[0], count), None, below, (below.ids[0],), ((Output((count,), integer(1)), "bigint"),), "n", "a"
    )
    found = stretched(node)
    assert isinstance(found.node, Series)
    assert found.node.epoch == found.epoch == found.node.input.ids[-1]
    assert apart(Arranged((), Input((Column("t", "time"),), "web.py:3", EPOCH_TIME))) == "it asks what time it is (web.py:3)"
