"""What may be said of a feed, and what a checked graph says of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from firnline.errors import GraphError
from firnline.model.declaration import Pipeline
from firnline.model.feed import Feed
from firnline.model.graph import Graph, check


def pipeline(**options: Any) -> Pipeline:
    made = Pipeline("shop", schedule=1, start=0)

    @made.source(**{"keys": ["id"], **options})
    def customers(epoch: object) -> None: ...

    return made


def test_a_graph_keeps_what_a_feed_is() -> None:
    said = pipeline(sequence_by="at", apply_as_deletes="op = 'D'", except_column_list="op", stored_as_scd_type="2", parts=4)
    graph = check(said, {})
    assert Graph.of_json(json.loads(json.dumps(graph.as_json()))) == graph
    customers = graph.collection("customers")
    assert customers.intake == Feed(("id",), "at", "op = 'D'", None, ("op",), 2)
    assert (customers.keys, customers.partition_by) == (("id", "__START_AT"), ("id",))


def test_the_present_rows_are_identified_by_the_keys_alone() -> None:
    assert check(pipeline(sequence_by="at"), {}).collection("customers").keys == ("id",)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"apply_as_deletes": "gone"}, "without sequence_by"),
        ({"stored_as_scd_type": 1}, "without sequence_by"),
        ({"except_column_list": ["op"]}, "without sequence_by"),
        ({"sequence_by": 5}, "sequence_by=5 is no SQL expression"),
        ({"sequence_by": "at", "keys": []}, "a feed has keys"),
        ({"sequence_by": "at", "stored_as_scd_type": 3}, "neither 1 nor 2"),
        ({"sequence_by": "at", "stored_as_scd_type": 2, "apply_as_truncates": "all_gone"}, "for stored_as_scd_type=1 only"),
        ({"sequence_by": "at", "except_column_list": ["at", "id"]}, "names the key 'id'"),
        ({"sequence_by": "at", "except_column_list": ["day"], "partition_by": ["day"]}, "partition_by names 'day'"),
        ({"sequence_by": "at", "snapshot": True}, "either the whole or events"),
        ({"sequence_by": "at", "on_loss": "gap"}, "on_loss='gap'"),
    ],
    ids=str,
)
def test_what_contradicts_itself_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(GraphError) as refused:
        check(pipeline(**options), {})
    assert [problem.code for problem in refused.value.problems] == ["BAD_OPTION"]
    assert said in str(refused.value)
