"""Six stages; what if the fourth, which all customers go through, put about one in a hundred of them on another level?"""

NAME = "whatif"
CHANGED = "customers"
STAGES = ("described", "sold", "spend", "customers", "by_level", "by_item")
"""By_item is sideways of what changes, by_level comes of it."""
KEYS = {
    "described": "order_id",
    "sold": "order_id",
    "spend": "customer",
    "customers": "customer",
    "by_level": "level",
    "by_item": "item",
}
SETTINGS = """\
spark_master = "local[2]"
spark_memory = "4g"
spark_shuffle_partitions = 4
"""
LEAST = {"before": 0.80, "after": 0.81}
"""From which share of the most spent on a customer is a good one."""
MODULE = """\
import firnline as fl
from pyspark.sql import functions as F

whatif = fl.Pipeline("whatif", schedule=1, start=0, keep="{epochs} epochs")
ROWS, CUSTOMERS, ITEMS = {rows}, 20_000, 1_000


@whatif.source(keys=["item"])
def items(epoch):
    numbers = epoch.spark.range(ITEMS if epoch.lower == 0 else 0)
    return numbers.selectExpr("id AS item", "concat('item ', id) AS title", "id % 7 AS kind")


@whatif.source(keys=["order_id"], parts=4)
def orders(epoch):
    numbers = epoch.spark.range(epoch.lower * ROWS, (epoch.lower + 1) * ROWS, numPartitions=4)
    hashed = F.xxhash64("id")
    return numbers.select(
        F.col("id").alias("order_id"),
        F.pmod(hashed, F.lit(CUSTOMERS)).alias("customer"),
        F.pmod(F.xxhash64("id", F.lit(1)), F.lit(ITEMS)).alias("item"),
        F.pmod(F.xxhash64("id", F.lit(2)), F.lit(10_000)).alias("cents"),
    )


@whatif.stage(keys=["order_id"], partition_by=["order_id"], parts=4)
def described(orders, items):
    return orders.join(items, "item")


@whatif.stage(keys=["order_id"], parts=4)
def sold(described):
    return described.where("cents >= 100")


@whatif.stage(keys=["customer"])
def spend(sold):
    return sold.groupBy("customer").agg(F.count("*").alias("orders"), F.sum("cents").alias("cents"))


@whatif.stage(keys=["customer"])
def customers(spend):
    return spend.withColumn("level", F.when(F.pmod(F.xxhash64("customer"), F.lit(100)) >= {least} * 100, "good").otherwise("new"))


@whatif.stage(keys=["level"])
def by_level(customers):
    return customers.groupBy("level").agg(F.count("*").alias("customers"), F.sum("cents").alias("cents"))


@whatif.stage(keys=["item"])
def by_item(sold):
    return sold.groupBy("item").agg(F.count("*").alias("orders"))
"""
