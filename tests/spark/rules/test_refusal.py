"""What has no single answer, or no rule, is refused with a code and the user's line."""

from __future__ import annotations

import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F
from pyspark.sql.connect.session import SparkSession

from firnline.errors import FirnlineError
from tests.spark.histories import planned
from tests.spark.rules.data import LEFT

CASES = {
    "NONDETERMINISTIC_FUNCTION": [
        lambda left: left.withColumn("r", F.rand()),
        lambda left: left.withColumn("r", F.uuid()),
        lambda left: left.withColumn("t", F.current_timestamp()),
        lambda left: left.selectExpr("now() AS t"),
        lambda left: left.withColumn("t", F.unix_timestamp()),
        lambda left: left.withColumn("i", F.monotonically_increasing_id()),
        lambda left: left.groupBy("k").agg(F.first("x")),
        lambda left: left.groupBy("k").agg(F.collect_list("x")),
        lambda left: left.select(F.udf(lambda: 1, "int").asNondeterministic()()),
        lambda left: left.select(F.randn(1)),
        lambda left: left.selectExpr("random()"),
        lambda left: left.select(F.shuffle(F.array("x", "k"))),
        lambda left: left.select(F.spark_partition_id()),
        lambda left: left.select(F.input_file_name()),
        lambda left: left.where(F.current_date() > "2020-01-01"),
        lambda left: left.selectExpr("date'today'"),
        lambda left: left.withColumn("d", F.make_date(F.lit(2026), "k", "k")).where("d BETWEEN '2026-01-01' AND 'today'"),
        lambda left: left.selectExpr("try_cast(' NOW utc' AS timestamp_ntz)"),
        lambda left: left.select(F.lit("yesterday").cast("date")),
        lambda left: left.select(F.year(F.lit("today"))),
        lambda left: left.selectExpr("filter(array(make_date(2026, k, k)), day -> day > 'today')"),
        lambda left: left.join(left.select("a", F.make_date("x", "k", "k").alias("d")), F.expr("nvl(d, 'now') > d"), "left_semi"),
        lambda left: left.select(F.aes_encrypt("a", F.lit("0000111122223333"))),
        lambda left: left.select(F.to_timestamp(F.lit("tomorrow"))),
        lambda left: left.orderBy(F.rand()).limit(1),
        lambda left: left.groupBy("k").agg(F.last("x")),
        lambda left: left.groupBy("k").agg(F.any_value("x")),
        lambda left: left.groupBy("k").agg(F.mode("x")),
        lambda left: left.groupBy("k").agg(F.percentile_approx("x", 0.5)),
        lambda left: left.groupBy("k").agg(F.sort_array(F.first(F.array("x")))),
        lambda left: left.select(F.first("x").over(Window.partitionBy("k"))),
        lambda left: left.select(F.row_number().over(Window.partitionBy("k").orderBy(F.rand()))),
        lambda left: left.select(F.current_user()),
        lambda left: left.sample(0.5, seed=1),
        lambda left: left.randomSplit([0.5, 0.5], seed=1)[0],
        lambda left: left.sampleBy("k", {1: 0.5}, seed=1),
        lambda left: left.describe("x"),
    ],
    "DEDUP_WITHOUT_ORDER": [
        lambda left: left.dropDuplicates(["k"]),
        lambda left: left.orderBy("x").repartition(2).dropDuplicates(["k"]),
    ],
    "LIMIT_WITHOUT_ORDER": [
        lambda left: left.limit(3),
        lambda left: left.offset(3),
        lambda left: left.orderBy("x").groupBy("k").count().limit(1),
        lambda left: left.orderBy("x").repartition(2).limit(1),
        lambda left: left.orderBy("x").offset(1).repartition(2).limit(1),
        lambda left: left.orderBy("x").sortWithinPartitions("a").limit(1),
    ],
    "PIVOT_WITHOUT_VALUES": [lambda left: left.groupBy("k").pivot("a").count()],
    "UNSUPPORTED_EXPRESSION": [
        lambda left: left.select(left.colRegex("`k|x`")),
        lambda left: left.groupBy(F.session_window(F.timestamp_seconds("x"), "1 second")).count(),
        lambda left: left.groupingSets([[F.upper("a")], []], F.upper("a").alias("u")).count(),
        lambda left: left.alias("l").where(
            left.where(F.col("k") == F.col("l.k").outer()).union(left.where(F.col("x") == F.col("l.x").outer())).exists()
        ),
    ],
    "UNSUPPORTED_OPERATOR": [
        lambda left: left.sparkSession.sql("SELECT 1"),
        lambda left: left.select(F.struct("k", "x").alias("s")).unionByName(left.select(F.struct("x", "k").alias("s"))),
    ],
}


def test_a_word_that_stays_a_text_is_none_of_the_clock(spark: SparkSession) -> None:
    def stage(left):
        day = left.withColumn("day", F.make_date(F.lit(2026), "k", "k"))
        said = F.when(F.col("day") > "2026-01-01", "today").otherwise(F.concat(F.lit("now "), "day"))
        return day.where("a <> 'yesterday'").select(said.alias("said"), F.filter(F.array("a"), lambda each: each > "tomorrow"))

    planned(spark, stage, {"left": LEFT})


@pytest.mark.parametrize(("code", "number"), [(code, number) for code, cases in CASES.items() for number in range(len(cases))])
def test_refusals(spark: SparkSession, code: str, number: int) -> None:
    case = CASES[code][number]
    with pytest.raises(FirnlineError) as refused:
        planned(spark, lambda left: case(left), {"left": LEFT})
    assert refused.value.code == code
    assert refused.value.where is not None
    assert refused.value.where.file == __file__
