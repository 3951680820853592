"""Rows that are at hand stand in plans in place of their names."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.connect.proto import Relation
from pyspark.sql.types import LongType, StringType, StructField, StructType

from firnline.engine.sharing import _has_collations, _of_kind, _renamed, _Rows, _spelt
from firnline.incremental.relation import alias, call, column, consolidated, in_one, named, project, union

HELD: dict[str, _Rows] = {
    "one": (pa.table({"a": [1, 2], "b": ["x", "y"]}), None),
    "other": (pa.table({"a": [3], "b": ["z"]}), StructType([StructField("a", LongType()), StructField("b", StringType())])),
}


def kinds(relation: Relation, kind: str) -> int:
    return len([*_of_kind(relation, kind)])


def test_names_give_way_to_rows_and_little_is_grouped_by_one_task() -> None:
    plan = consolidated(consolidated(union(named("one"), named("other")), ["a"]), ["a"])
    spelt = _spelt(plan, HELD)
    assert (kinds(spelt, "read"), kinds(spelt, "local_relation"), kinds(spelt, "repartition")) == (0, 2, 2)
    assert kinds(plan, "read") == 2, "the plan itself stays as it is"


def test_what_spark_reads_is_grouped_by_as_many_tasks_as_there_are() -> None:
    spelt = _spelt(consolidated(union(named("one"), named("a log")), ["a"]), HELD)
    assert (kinds(spelt, "read"), kinds(spelt, "local_relation"), kinds(spelt, "repartition")) == (1, 1, 0)


def test_renamed_columns_need_no_spark() -> None:
    plan = project(in_one(project(named("other"), [alias(column("b"), "key"), column("a")])), [alias(column("key"), "_key0")])
    found = _renamed(plan, HELD)
    assert found is not None
    assert found[0].to_pydict() == {"_key0": ["z"]}
    assert found[1] == StructType([StructField("_key0", StringType())])
    assert _renamed(project(named("one"), [alias(call("upper", column("b")), "b")]), HELD) is None
    assert _renamed(named("a log"), HELD) is None


def test_texts_that_are_equal_without_being_the_same_are_noticed() -> None:
    assert not _has_collations(None)
    assert not _has_collations(StructType([StructField("a", StringType())]))
    assert _has_collations(StructType([StructField("a", StringType("UTF8_LCASE"))]))
