"""Customers' orders in; what each of them spent, and how many of them are on which level, out."""

from pyspark.sql import functions as F

import firnline as fl

sales = fl.Pipeline("sales", schedule="@daily", start="2026-01-01", end="2026-01-04")


@sales.source(keys=["order_id"])
def orders(epoch):
    """Orders. The feed says what changed: '+' a new row, '-' one that is gone; a correction is both."""
    changes = epoch.files(
        "include/landing/sales/{epoch:%Y-%m-%d}/orders.csv",
        format="csv",
        schema="change string, order_id string, customer string, item string, amount decimal(10,2)",
    )
    return changes.withColumn("_diff", F.when(F.col("change") == "-", -1).otherwise(1)).drop("change")


@sales.stage(keys=["customer"])
def spend_by_customer(orders):
    """What each customer ordered and spent."""
    return orders.groupBy("customer").agg(F.count("*").alias("orders"), F.sum("amount").alias("spent"))


@sales.stage(keys=["level"], checks=["levels_are_known"])
def customers_by_level(spend_by_customer):
    """How many customers are on which level, and what they spent."""
    level = F.when(F.col("spent") >= 500, "gold").when(F.col("spent") >= 100, "silver").otherwise("bronze")
    by_level = spend_by_customer.groupBy(level.alias("level"))
    return by_level.agg(F.count("*").alias("customers"), F.sum("spent").alias("spent"))
