"""Subqueries: scalar, IN and EXISTS, about rows outside or not, as conditions, as values and in conditions of joins."""

from __future__ import annotations

import pytest
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.connect.session import SparkSession

from tests.spark.histories import check, check_sql
from tests.spark.rules.data import BOTH, sampled


def outer(name: str) -> Column:
    return F.col(name).outer()


def correlated_count(left, right):
    counted = right.where(F.col("k") == outer("l.k")).select(F.count("*"))
    return left.alias("l").select("k", "a", counted.scalar().alias("n"))


def correlated_most(left, right):
    most = left.alias("i").where(F.col("i.k") == outer("o.k")).select(F.max("x"))
    return left.alias("o").where(F.col("o.x") == most.scalar())


CASES = {
    "scalar": lambda left, right: left.where(F.col("x") > left.select(F.avg("x")).scalar()),
    "in select": lambda left, right: left.select("a", left.select(F.sum("x")).scalar().alias("all")),
    "in": lambda left, right: left.where(F.col("k").isin(right.select("k"))),
    "not in": lambda left, right: left.where(~F.col("k").isin(right.where("k > 1").select("k"))),
    "not in with nulls": lambda left, right: left.where(~F.col("k").isin(right.select("k"))),
    "exists": lambda left, right: left.alias("l").where(right.where(F.col("k") == outer("l.k")).exists()),
    "not exists": lambda left, right: left.alias("l").where(~right.where(F.col("k") == outer("l.k")).exists()),
    "count of each": correlated_count,
    "most of each": correlated_most,
}


@pytest.mark.parametrize("case", sampled(CASES, "scalar", "not in with nulls", "exists", "count of each"))
def test_conditions(spark: SparkSession, case: str) -> None:
    check(spark, lambda left, right: CASES[case](left, right), BOTH)


def in_case(left, right):
    there = right.where(F.col("k") == outer("l.k")).exists()
    return left.alias("l").withColumn("c", F.when(there, "yes").otherwise("no"))


def in_groups(left, right):
    return left.groupBy("a").agg((F.sum("x") + right.select(F.count("*")).scalar()).alias("s"))


def in_a_join(left, right):
    return left.join(right, (left.k == right.k) & (left.x > left.select(F.min("x")).scalar()))


def several(left, right):
    named = right.where(F.col("k") == outer("l.k")).select(F.max("b")).scalar()
    after = right.where(F.col("k") == outer("l.k") + 1).select(F.count("*")).scalar()
    return left.alias("l").select("k", "a", named.alias("n"), after.alias("m"), right.select(F.count("*")).scalar())


VALUES = {
    "in or": lambda left, right: left.where(F.col("k").isin(right.select("k")) | (F.col("x") > 7)),
    "not in or": lambda left, right: left.where(~F.col("k").isin(right.select("k")) | (F.col("x") > 7)),
    "selected": lambda left, right: left.select("k", "a", F.col("k").isin(right.select("k")).alias("i")),
    "not, selected": lambda left, right: left.select("k", "a", (~F.col("k").isin(right.select("k"))).alias("i")),
    "grouped by": lambda left, right: left.groupBy(F.col("k").isin(right.select("k")).alias("i")).count(),
    "exists in case": in_case,
    "without reference": lambda left, right: left.select("a", right.where("k = 3").exists().alias("e")),
    "by an inequality": lambda left, right: left.alias("l").where(
        right.where(F.col("k") < outer("l.k")).exists() | (F.col("x") == 5)
    ),
    "in groups": in_groups,
    "in a join": in_a_join,
    "several": several,
}


@pytest.mark.parametrize("case", sampled(VALUES, "not in or", "not, selected", "several", "in groups"))
def test_values(spark: SparkSession, case: str) -> None:
    check(spark, lambda left, right: VALUES[case](left, right), BOTH)


def counted_beside(left, right):
    counted = right.where(F.col("k") == outer("l.k")).select(F.count("*").alias("n"), F.max("b").alias("m"))
    return left.alias("l").lateralJoin(counted)


LATERAL = {
    "rows": lambda left, right: left.alias("l").lateralJoin(right.where(F.col("k") == outer("l.k")).select("b"), how="left"),
    "by a condition": lambda left, right: left.alias("l").lateralJoin(
        right.where(F.col("k") <= outer("l.k")).select(F.col("b").alias("c")), F.col("c") != "b1", how="left"
    ),
    "of nothing": counted_beside,
    "a generator": lambda left, right: left.lateralJoin(left.sparkSession.tvf.explode(F.array(outer("x"), F.lit(3)))),
}


@pytest.mark.parametrize("case", sampled(LATERAL, "rows", "a generator"))
def test_lateral_joins(spark: SparkSession, case: str) -> None:
    check(spark, lambda left, right: LATERAL[case](left, right), BOTH)


TEXTS = {
    "tuples": "select * from left where (k, a) not in (select k, b from right)",
    "in about rows outside": "select * from left l where a in (select 'q' from right r where r.k = l.k) or x = 5",
    "having": "select k, count(*) n from left l group by k having exists (select 1 from right r where r.k = l.k)",
    "an aggregate of exists": "select count_if(exists (select 1 from right r where r.k = l.k)) n from left l",
    "a left join": "select l.k, r.b from left l left join right r on l.k = r.k and r.k in (select k from left where x > 7)",
    "of nothing": "select a, k in (select k from right where k > 9) i, k not in (select k from right where k > 9) j from left",
    "always a row": "select k from left l where exists (select count(*) from right r where r.k = l.k)",
    "a count of nothing": "select k, (select count(*) from right r where r.k = l.k having count(*) = 0) n from left l",
    "first of an order": "select k, (select b from right r where r.k = l.k order by b limit 1) b from left l",
    "several that nobody meets": "select k from left l where (select a from left r where r.k * 10 = l.x) = 'w'",
    "lists of nothing": """select k, (select sort_array(collect_set(b)) from right r where r.k = l.k) s,
        (select approx_count_distinct(b) from right r where r.k = l.k) n from left l""",
    "one row by itself": "select k, (select b from right where b = 'b1') b from left",
    "an inequality under an aggregate": "select k, (select max(r.b) from right r where r.k <= l.k) m from left l",
    "distinct rows": """select k, (select count(*) from (select distinct b from right r where r.k = l.k) q) n from left l
        where exists (select 1 from (select distinct b, upper(b) u from right r where r.k = l.k) q where u > 'B1')""",
    "lateral": "select k, n from left l, lateral (select count(*) n from right r where r.k = l.k)",
}


@pytest.mark.parametrize(
    "case",
    sampled(TEXTS, "in about rows outside", "lists of nothing", "several that nobody meets", "a left join", "distinct rows"),
)
def test_texts(spark: SparkSession, case: str) -> None:
    check_sql(spark, TEXTS[case], BOTH)
