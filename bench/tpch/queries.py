"""The 22 queries of TPC-H in plain PySpark, with the validation parameters of the specification.

A query takes its input tables by name. An order without a limit is left out, since a result is a set of rows; an order with a
limit is total. ``KEYS`` says what identifies a row of each result; () stands for a result of one row.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.functions import col

Query = Callable[..., DataFrame]

KEYS: dict[str, tuple[str, ...]] = {
    "q1": ("l_returnflag", "l_linestatus"),
    "q2": ("p_partkey", "s_name"),
    "q3": ("l_orderkey",),
    "q4": ("o_orderpriority",),
    "q5": ("n_name",),
    "q6": (),
    "q7": ("supp_nation", "cust_nation", "l_year"),
    "q8": ("o_year",),
    "q9": ("nation", "o_year"),
    "q10": ("c_custkey",),
    "q11": ("ps_partkey",),
    "q12": ("l_shipmode",),
    "q13": ("c_count",),
    "q14": (),
    "q15": ("s_suppkey",),
    "q16": ("p_brand", "p_type", "p_size"),
    "q17": (),
    "q18": ("o_orderkey",),
    "q19": (),
    "q20": ("s_name",),
    "q21": ("s_name",),
    "q22": ("cntrycode",),
}


def queries(scale: float = 1) -> dict[str, Query]:
    """All queries by name; only Q11 depends on the scale factor."""
    return {name: q11_at(scale) if name == "q11" else globals()[name] for name in KEYS}


def discounted() -> Column:
    """The price of a line, discount taken off."""
    return col("l_extendedprice") * (1 - col("l_discount"))


def q1(lineitem: DataFrame) -> DataFrame:
    """Pricing summary."""
    return (
        lineitem.where(col("l_shipdate") <= date(1998, 9, 2))
        .groupBy("l_returnflag", "l_linestatus")
        .agg(
            F.sum("l_quantity").alias("sum_qty"),
            F.sum("l_extendedprice").alias("sum_base_price"),
            F.sum(discounted()).alias("sum_disc_price"),
            F.sum(discounted() * (1 + col("l_tax"))).alias("sum_charge"),
            F.avg("l_quantity").alias("avg_qty"),
            F.avg("l_extendedprice").alias("avg_price"),
            F.avg("l_discount").alias("avg_disc"),
            F.count("*").alias("count_order"),
        )
    )


def q2(nation: DataFrame, part: DataFrame, partsupp: DataFrame, region: DataFrame, supplier: DataFrame) -> DataFrame:
    """Minimum cost supplier."""
    offers = (
        part.where((col("p_size") == 15) & col("p_type").endswith("BRASS"))
        .join(partsupp, part.p_partkey == partsupp.ps_partkey)
        .join(supplier, partsupp.ps_suppkey == supplier.s_suppkey)
        .join(nation, supplier.s_nationkey == nation.n_nationkey)
        .join(region.where(col("r_name") == "EUROPE"), nation.n_regionkey == region.r_regionkey)
    )
    lowest = offers.groupBy("p_partkey").agg(F.min("ps_supplycost").alias("lowest"))
    return (
        offers.join(lowest, "p_partkey")
        .where(col("ps_supplycost") == col("lowest"))
        .select("s_acctbal", "s_name", "n_name", "p_partkey", "p_mfgr", "s_address", "s_phone", "s_comment")
        .orderBy(F.desc("s_acctbal"), "n_name", "s_name", "p_partkey")
        .limit(100)
    )


def q3(customer: DataFrame, lineitem: DataFrame, orders: DataFrame) -> DataFrame:
    """Shipping priority."""
    return (
        customer.where(col("c_mktsegment") == "BUILDING")
        .join(orders.where(col("o_orderdate") < date(1995, 3, 15)), customer.c_custkey == orders.o_custkey)
        .join(lineitem.where(col("l_shipdate") > date(1995, 3, 15)), orders.o_orderkey == lineitem.l_orderkey)
        .groupBy("l_orderkey", "o_orderdate", "o_shippriority")
        .agg(F.sum(discounted()).alias("revenue"))
        .select("l_orderkey", "revenue", "o_orderdate", "o_shippriority")
        .orderBy(F.desc("revenue"), "o_orderdate", "l_orderkey")
        .limit(10)
    )


def q4(lineitem: DataFrame, orders: DataFrame) -> DataFrame:
    """Order priority checking."""
    late = lineitem.where(col("l_commitdate") < col("l_receiptdate"))
    return (
        orders.where((col("o_orderdate") >= date(1993, 7, 1)) & (col("o_orderdate") < date(1993, 10, 1)))
        .join(late, orders.o_orderkey == late.l_orderkey, "left_semi")
        .groupBy("o_orderpriority")
        .agg(F.count("*").alias("order_count"))
    )


def q5(
    customer: DataFrame, lineitem: DataFrame, nation: DataFrame, orders: DataFrame, region: DataFrame, supplier: DataFrame
) -> DataFrame:
    """Local supplier volume."""
    return (
        customer.join(orders, customer.c_custkey == orders.o_custkey)
        .where((col("o_orderdate") >= date(1994, 1, 1)) & (col("o_orderdate") < date(1995, 1, 1)))
        .join(lineitem, orders.o_orderkey == lineitem.l_orderkey)
        .join(supplier, (lineitem.l_suppkey == supplier.s_suppkey) & (customer.c_nationkey == supplier.s_nationkey))
        .join(nation, supplier.s_nationkey == nation.n_nationkey)
        .join(region.where(col("r_name") == "ASIA"), nation.n_regionkey == region.r_regionkey)
        .groupBy("n_name")
        .agg(F.sum(discounted()).alias("revenue"))
    )


def q6(lineitem: DataFrame) -> DataFrame:
    """Forecasting revenue change."""
    return lineitem.where(
        (col("l_shipdate") >= date(1994, 1, 1))
        & (col("l_shipdate") < date(1995, 1, 1))
        & col("l_discount").between(Decimal("0.05"), Decimal("0.07"))
        & (col("l_quantity") < 24)
    ).agg(F.sum(col("l_extendedprice") * col("l_discount")).alias("revenue"))


def q7(customer: DataFrame, lineitem: DataFrame, nation: DataFrame, orders: DataFrame, supplier: DataFrame) -> DataFrame:
    """Volume shipping."""
    sellers = nation.select(col("n_nationkey").alias("s_nationkey"), col("n_name").alias("supp_nation"))
    buyers = nation.select(col("n_nationkey").alias("c_nationkey"), col("n_name").alias("cust_nation"))
    between = ((col("supp_nation") == "FRANCE") & (col("cust_nation") == "GERMANY")) | (
        (col("supp_nation") == "GERMANY") & (col("cust_nation") == "FRANCE")
    )
    return (
        lineitem.where(col("l_shipdate").between(date(1995, 1, 1), date(1996, 12, 31)))
        .join(supplier, lineitem.l_suppkey == supplier.s_suppkey)
        .join(orders, lineitem.l_orderkey == orders.o_orderkey)
        .join(customer, orders.o_custkey == customer.c_custkey)
        .join(sellers, "s_nationkey")
        .join(buyers, "c_nationkey")
        .where(between)
        .groupBy("supp_nation", "cust_nation", F.year("l_shipdate").alias("l_year"))
        .agg(F.sum(discounted()).alias("revenue"))
    )


def q8(
    customer: DataFrame,
    lineitem: DataFrame,
    nation: DataFrame,
    orders: DataFrame,
    part: DataFrame,
    region: DataFrame,
    supplier: DataFrame,
) -> DataFrame:
    """National market share."""
    america = nation.join(region.where(col("r_name") == "AMERICA"), nation.n_regionkey == region.r_regionkey)
    buyers = america.select(col("n_nationkey").alias("c_nationkey"))
    sellers = nation.select(col("n_nationkey").alias("s_nationkey"), col("n_name").alias("nation"))
    sales = (
        part.where(col("p_type") == "ECONOMY ANODIZED STEEL")
        .join(lineitem, part.p_partkey == lineitem.l_partkey)
        .join(supplier, lineitem.l_suppkey == supplier.s_suppkey)
        .join(orders, lineitem.l_orderkey == orders.o_orderkey)
        .where(col("o_orderdate").between(date(1995, 1, 1), date(1996, 12, 31)))
        .join(customer, orders.o_custkey == customer.c_custkey)
        .join(buyers, "c_nationkey")
        .join(sellers, "s_nationkey")
        .select(F.year("o_orderdate").alias("o_year"), discounted().alias("volume"), "nation")
    )
    brazil = F.when(col("nation") == "BRAZIL", col("volume")).otherwise(0)
    return sales.groupBy("o_year").agg((F.sum(brazil) / F.sum("volume")).alias("mkt_share"))


def q9(
    lineitem: DataFrame, nation: DataFrame, orders: DataFrame, part: DataFrame, partsupp: DataFrame, supplier: DataFrame
) -> DataFrame:
    """Product type profit."""
    return (
        part.where(col("p_name").contains("green"))
        .join(lineitem, part.p_partkey == lineitem.l_partkey)
        .join(partsupp, (lineitem.l_partkey == partsupp.ps_partkey) & (lineitem.l_suppkey == partsupp.ps_suppkey))
        .join(supplier, lineitem.l_suppkey == supplier.s_suppkey)
        .join(orders, lineitem.l_orderkey == orders.o_orderkey)
        .join(nation, supplier.s_nationkey == nation.n_nationkey)
        .withColumn("amount", discounted() - col("ps_supplycost") * col("l_quantity"))
        .groupBy(col("n_name").alias("nation"), F.year("o_orderdate").alias("o_year"))
        .agg(F.sum("amount").alias("sum_profit"))
    )


def q10(customer: DataFrame, lineitem: DataFrame, nation: DataFrame, orders: DataFrame) -> DataFrame:
    """Returned items."""
    return (
        customer.join(orders, customer.c_custkey == orders.o_custkey)
        .where((col("o_orderdate") >= date(1993, 10, 1)) & (col("o_orderdate") < date(1994, 1, 1)))
        .join(lineitem.where(col("l_returnflag") == "R"), orders.o_orderkey == lineitem.l_orderkey)
        .join(nation, customer.c_nationkey == nation.n_nationkey)
        .groupBy("c_custkey", "c_name", "c_acctbal", "c_phone", "n_name", "c_address", "c_comment")
        .agg(F.sum(discounted()).alias("revenue"))
        .select("c_custkey", "c_name", "revenue", "c_acctbal", "n_name", "c_address", "c_phone", "c_comment")
        .orderBy(F.desc("revenue"), "c_custkey")
        .limit(20)
    )


def q11_at(scale: float) -> Query:
    """Important stock; what is important depends on the scale factor."""
    fraction = important(scale)

    def q11(nation: DataFrame, partsupp: DataFrame, supplier: DataFrame) -> DataFrame:
        german = (
            nation.where(col("n_name") == "GERMANY")
            .join(supplier, nation.n_nationkey == supplier.s_nationkey)
            .join(partsupp, supplier.s_suppkey == partsupp.ps_suppkey)
            .withColumn("stock", col("ps_supplycost") * col("ps_availqty"))
        )
        total = german.agg((F.sum("stock") * F.lit(fraction)).alias("threshold"))
        return (
            german.groupBy("ps_partkey")
            .agg(F.sum("stock").alias("value"))
            .crossJoin(total)
            .where(col("value") > col("threshold"))
            .select("ps_partkey", "value")
        )

    return q11


def important(scale: float) -> Decimal:
    """The share of the whole stock that Q11 asks for: 0.0001 / scale factor."""
    return (Decimal("0.0001") / Decimal(str(scale))).quantize(Decimal("1e-12")).normalize()


def q12(lineitem: DataFrame, orders: DataFrame) -> DataFrame:
    """Shipping modes and order priority."""
    urgent = col("o_orderpriority").isin("1-URGENT", "2-HIGH")
    return (
        lineitem.where(
            col("l_shipmode").isin("MAIL", "SHIP")
            & (col("l_commitdate") < col("l_receiptdate"))
            & (col("l_shipdate") < col("l_commitdate"))
            & (col("l_receiptdate") >= date(1994, 1, 1))
            & (col("l_receiptdate") < date(1995, 1, 1))
        )
        .join(orders, lineitem.l_orderkey == orders.o_orderkey)
        .groupBy("l_shipmode")
        .agg(
            F.sum(F.when(urgent, 1).otherwise(0)).alias("high_line_count"),
            F.sum(F.when(urgent, 0).otherwise(1)).alias("low_line_count"),
        )
    )


def q13(customer: DataFrame, orders: DataFrame) -> DataFrame:
    """Customer distribution."""
    usual = orders.where(~col("o_comment").like("%special%requests%"))
    return (
        customer.join(usual, customer.c_custkey == usual.o_custkey, "left")
        .groupBy("c_custkey")
        .agg(F.count("o_orderkey").alias("c_count"))
        .groupBy("c_count")
        .agg(F.count("*").alias("custdist"))
    )


def q14(lineitem: DataFrame, part: DataFrame) -> DataFrame:
    """Promotion effect."""
    promoted = F.when(col("p_type").startswith("PROMO"), discounted()).otherwise(0)
    return (
        lineitem.where((col("l_shipdate") >= date(1995, 9, 1)) & (col("l_shipdate") < date(1995, 10, 1)))
        .join(part, lineitem.l_partkey == part.p_partkey)
        .agg((100 * F.sum(promoted) / F.sum(discounted())).alias("promo_revenue"))
    )


def q15(lineitem: DataFrame, supplier: DataFrame) -> DataFrame:
    """Top supplier."""
    revenue = (
        lineitem.where((col("l_shipdate") >= date(1996, 1, 1)) & (col("l_shipdate") < date(1996, 4, 1)))
        .groupBy("l_suppkey")
        .agg(F.sum(discounted()).alias("total_revenue"))
    )
    best = revenue.select(F.max("total_revenue"))
    return (
        supplier.join(revenue, supplier.s_suppkey == revenue.l_suppkey)
        .where(col("total_revenue") == best.scalar())
        .select("s_suppkey", "s_name", "s_address", "s_phone", "total_revenue")
    )


def q16(part: DataFrame, partsupp: DataFrame, supplier: DataFrame) -> DataFrame:
    """Parts and how many suppliers they have."""
    disliked = supplier.where(col("s_comment").like("%Customer%Complaints%"))
    return (
        part.where(
            (col("p_brand") != "Brand#45")
            & ~col("p_type").startswith("MEDIUM POLISHED")
            & col("p_size").isin(49, 14, 23, 45, 19, 3, 36, 9)
        )
        .join(partsupp, part.p_partkey == partsupp.ps_partkey)
        .join(disliked, partsupp.ps_suppkey == disliked.s_suppkey, "left_anti")
        .groupBy("p_brand", "p_type", "p_size")
        .agg(F.count_distinct("ps_suppkey").alias("supplier_cnt"))
    )


def q17(lineitem: DataFrame, part: DataFrame) -> DataFrame:
    """Revenue of small quantities."""
    small = lineitem.groupBy("l_partkey").agg((F.lit(Decimal("0.2")) * F.avg("l_quantity")).alias("small"))
    return (
        part.where((col("p_brand") == "Brand#23") & (col("p_container") == "MED BOX"))
        .join(lineitem, part.p_partkey == lineitem.l_partkey)
        .join(small, "l_partkey")
        .where(col("l_quantity") < col("small"))
        .agg((F.sum("l_extendedprice") / 7).alias("avg_yearly"))
    )


def q18(customer: DataFrame, lineitem: DataFrame, orders: DataFrame) -> DataFrame:
    """Customers of large volume."""
    large = lineitem.groupBy("l_orderkey").agg(F.sum("l_quantity").alias("sum_qty")).where(col("sum_qty") > 300)
    return (
        orders.join(large, orders.o_orderkey == large.l_orderkey)
        .join(customer, orders.o_custkey == customer.c_custkey)
        .select("c_name", "c_custkey", "o_orderkey", "o_orderdate", "o_totalprice", "sum_qty")
        .orderBy(F.desc("o_totalprice"), "o_orderdate", "o_orderkey")
        .limit(100)
    )


def q19(lineitem: DataFrame, part: DataFrame) -> DataFrame:
    """Discounted revenue."""

    def fits(brand: str, size: int, quantity: int, containers: str) -> Column:
        return (
            (col("p_brand") == brand)
            & col("p_container").isin(*containers.split(", "))
            & col("l_quantity").between(quantity, quantity + 10)
            & col("p_size").between(1, size)
        )

    return (
        lineitem.where(col("l_shipmode").isin("AIR", "AIR REG") & (col("l_shipinstruct") == "DELIVER IN PERSON"))
        .join(part, lineitem.l_partkey == part.p_partkey)
        .where(
            fits("Brand#12", 5, 1, "SM CASE, SM BOX, SM PACK, SM PKG")
            | fits("Brand#23", 10, 10, "MED BAG, MED BOX, MED PKG, MED PACK")
            | fits("Brand#34", 15, 20, "LG CASE, LG BOX, LG PACK, LG PKG")
        )
        .agg(F.sum(discounted()).alias("revenue"))
    )


def q20(lineitem: DataFrame, nation: DataFrame, part: DataFrame, partsupp: DataFrame, supplier: DataFrame) -> DataFrame:
    """Potential part promotion."""
    shipped = (
        lineitem.where((col("l_shipdate") >= date(1994, 1, 1)) & (col("l_shipdate") < date(1995, 1, 1)))
        .groupBy(col("l_partkey").alias("ps_partkey"), col("l_suppkey").alias("ps_suppkey"))
        .agg(F.sum("l_quantity").alias("quantity"))
    )
    forest = part.where(col("p_name").startswith("forest"))
    excess = (
        partsupp.join(forest, partsupp.ps_partkey == forest.p_partkey, "left_semi")
        .join(shipped, ["ps_partkey", "ps_suppkey"])
        .where(col("ps_availqty") > F.lit(Decimal("0.5")) * col("quantity"))
    )
    return (
        supplier.join(nation.where(col("n_name") == "CANADA"), supplier.s_nationkey == nation.n_nationkey)
        .join(excess, supplier.s_suppkey == excess.ps_suppkey, "left_semi")
        .select("s_name", "s_address")
    )


def q21(lineitem: DataFrame, nation: DataFrame, orders: DataFrame, supplier: DataFrame) -> DataFrame:
    """Suppliers who kept orders waiting."""
    late = lineitem.where(col("l_receiptdate") > col("l_commitdate"))

    def of_another_supplier(other: str) -> Column:
        return (col("l1.l_orderkey") == col(f"{other}.l_orderkey")) & (col("l1.l_suppkey") != col(f"{other}.l_suppkey"))

    return (
        late.alias("l1")
        .join(lineitem.alias("l2"), of_another_supplier("l2"), "left_semi")
        .join(late.alias("l3"), of_another_supplier("l3"), "left_anti")
        .join(orders.where(col("o_orderstatus") == "F"), col("l_orderkey") == col("o_orderkey"))
        .join(supplier, col("l_suppkey") == col("s_suppkey"))
        .join(nation.where(col("n_name") == "SAUDI ARABIA"), col("s_nationkey") == col("n_nationkey"))
        .groupBy("s_name")
        .agg(F.count("*").alias("numwait"))
        .orderBy(F.desc("numwait"), "s_name")
        .limit(100)
    )


def q22(customer: DataFrame, orders: DataFrame) -> DataFrame:
    """Global sales opportunity."""
    abroad = customer.withColumn("cntrycode", F.substring("c_phone", 1, 2)).where(
        col("cntrycode").isin("13", "31", "23", "29", "30", "18", "17")
    )
    usual = abroad.where(col("c_acctbal") > 0).agg(F.avg("c_acctbal"))
    return (
        abroad.where(col("c_acctbal") > usual.scalar())
        .join(orders, abroad.c_custkey == orders.o_custkey, "left_anti")
        .groupBy("cntrycode")
        .agg(F.count("*").alias("numcust"), F.sum("c_acctbal").alias("totacctbal"))
    )
