"""Two sources and four stages over small epochs: rows that are filtered, joined, summed up, and summed up once more."""

NAMES = ("one_by_one", "together")
"""The same pipeline twice: one is run epoch by epoch, the other catches up."""
SETTINGS = """\
spark_master = "local[2]"
spark_memory = "4g"
spark_shuffle_partitions = 4
"""
MODULE = """\
import firnline as fl
from pyspark.sql import functions as F

{name} = fl.Pipeline("{name}", schedule=1, start=0, keep="1000 epochs")
ROWS, CUSTOMERS, ITEMS = {rows}, 2_000, 100


@{name}.source(keys=["item"])
def items(epoch):
    numbers = epoch.spark.range(ITEMS if epoch.lower == 0 else 0)
    return numbers.selectExpr("id AS item", "concat('item ', id) AS title")


@{name}.source(keys=["order_id"])
def orders(epoch):
    numbers = epoch.spark.range(epoch.lower * ROWS, (epoch.lower + 1) * ROWS, numPartitions=1)
    return numbers.select(
        F.col("id").alias("order_id"),
        F.pmod(F.xxhash64("id"), F.lit(CUSTOMERS)).alias("customer"),
        F.pmod(F.xxhash64("id", F.lit(1)), F.lit(ITEMS)).alias("item"),
        (F.pmod(F.xxhash64("id", F.lit(2)), F.lit(10_000)) / 7).alias("amount"),
    )


@{name}.stage(keys=["order_id"])
def sold(orders):
    return orders.where("amount >= 10").withColumn("taxed", F.col("amount") * 1.19)


@{name}.stage(keys=["order_id"])
def described(sold, items):
    return sold.join(items, "item")


@{name}.stage(keys=["customer"])
def spend(described):
    return described.groupBy("customer").agg(F.sum("taxed").alias("taxed"), F.count("*").alias("orders"))


@{name}.stage(keys=["orders"])
def customers(spend):
    return spend.groupBy("orders").agg(F.count("*").alias("customers"), F.avg("taxed").alias("taxed"))
"""
