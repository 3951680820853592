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
    ],
    "DEDUP_WITHOUT_ORDER": [lambda left: left.dropDuplicates(["k"])],
    "LIMIT_WITHOUT_ORDER": [lambda left: left.limit(3)],
    "PIVOT_WITHOUT_VALUES": [lambda left: left.groupBy("k").pivot("a").count()],
    "UNSUPPORTED_EXPRESSION": [lambda left: left.select(F.stddev("x").over(Window.partitionBy("k")))],
    "UNSUPPORTED_OPERATOR": [lambda left: left.sample(0.5, seed=1), lambda left: left.sparkSession.sql("SELECT 1")],
}


@pytest.mark.parametrize(("code", "number"), [(code, number) for code, cases in CASES.items() for number in range(len(cases))])
def test_refusals(spark: SparkSession, code: str, number: int) -> None:
    case = CASES[code][number]
    with pytest.raises(FirnlineError) as refused:
        planned(spark, lambda left: case(left), {"left": LEFT})
    assert refused.value.code == code
    assert refused.value.where is not None
    assert refused.value.where.file == __file__
