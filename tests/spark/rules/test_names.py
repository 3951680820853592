"""Columns with any name, structs, and arrays of structs: nothing is lost on the way to ids and back."""

from __future__ import annotations

import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F
from pyspark.sql.connect.session import SparkSession

from tests.spark.histories import History, check
from tests.spark.rules.data import LEFT, sampled

ODD = History(
    "`a.b` int, `c d` string, `e``f` int, `Mixed` int, s struct<u:int,`v w`:struct<z:string>>, ar array<struct<p:int,q:string>>",
    [
        [
            ((1, "x", 1, 1, (1, ("k",)), [(1, "a"), (2, None)]), 1),
            ((2, "y", None, 2, (None, None), []), 2),
            ((3, "z", 3, 3, None, None), 1),
        ],
        [((2, "y", None, 2, (None, None), []), -1), ((1, "x", 5, 7, (1, ("k",)), [(3, "c")]), 1)],
        [((1, "x", 1, 1, (1, ("k",)), [(1, "a"), (2, None)]), -1)],
    ],
)
CASES = {
    "selected": lambda odd: odd.select("`a.b`", "`c d`", F.col("`e``f`").alias("odd `x`"), "mixed", "MIXED"),
    "grouped": lambda odd: odd.groupBy("`a.b`").agg(F.sum("`e``f`"), F.max("mixed")),
    "fields": lambda odd: odd.select("s.u", "s.`v w`.z", F.col("s")["u"].alias("i"), odd["s"]["v w"]["z"].alias("h"), "s.*"),
    "by a struct": lambda odd: odd.groupBy("s").agg(F.count("*").alias("n")),
    "by a field": lambda odd: odd.groupBy("s.u").agg(F.sum("s.u").alias("n")),
    "arrays": lambda odd: odd.select("ar.p", F.get("ar", 0)["q"], F.transform("ar", lambda each: each.p + 1).alias("t")),
    "exploded": lambda odd: odd.select("mixed", F.explode("ar").alias("e")).join(odd.select("mixed", "`c d`"), "mixed", "full"),
    "renamed": lambda odd: odd.withColumnRenamed("a.b", "ab").withColumnsRenamed({"c d": "cd", "MIXED": "m"}).select("ab", "m"),
    "changed": lambda odd: odd.withColumn("s", F.col("s").withField("n", F.lit(1)).dropFields("u")).select("s"),
    "distinct": lambda odd: odd.select("s", "ar").distinct(),
    "windowed": lambda odd: odd.select("`a.b`", F.sum("mixed").over(Window.partitionBy("s.u").orderBy("`a.b`", "mixed"))),
    "joined": lambda odd: odd.alias("a").join(odd.alias("b"), F.col("a.s.u") == F.col("b.`a.b`"), "left").select("b.mixed"),
    "unpivoted": lambda odd: odd.unpivot(["`a.b`"], ["mixed", "`e``f`"], "n.a", "v"),
}


@pytest.mark.parametrize("case", sampled(CASES, "selected", "fields", "by a struct"))
def test_odd_names(spark: SparkSession, case: str) -> None:
    check(spark, lambda odd: CASES[case](odd), {"odd": ODD})


def test_structs_are_made_with_the_names_of_their_columns(spark: SparkSession) -> None:
    def made(left):
        whole, some = F.to_json(F.struct("*")), F.struct("K", (F.col("x") + 1))
        zipped = F.to_json(F.arrays_zip("xs", "ys"))
        return (
            left.withColumns({"xs": F.array("k"), "ys": F.array("x"), "whole": whole, "some": some})
            .withColumn("zipped", zipped)
            .groupBy("a")
            .agg(F.to_json(F.max(F.struct("x", "whole", "zipped", "some"))).alias("last"))
        )

    check(spark, made, {"left": LEFT})
