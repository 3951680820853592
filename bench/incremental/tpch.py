"""TPC-H: the join of lineitem and orders, summed up by customer, and the 22 queries.

Orders are inserted and removed with all of their lineitems, single lineitems are updated. For the 22 queries customers, parts,
partsupps and suppliers are updated too. For the join the tables have the columns that it needs and their keys, in every engine.
"""

from __future__ import annotations

import inspect

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bench.incremental.workload import Frames, Stage, Table, Workload
from bench.tpch.data import FREE, KEYS, TABLES, UPDATED
from bench.tpch.queries import KEYS as QUERY_KEYS
from bench.tpch.queries import discounted, queries
from tests.oracle import tpch as oracle

PARTS = 2
_SMALL = 0.5
"""Below this scale factor collections have one part."""
_NARROW = {
    "orders": "o_orderkey, o_custkey",
    "lineitem": "l_orderkey, l_linenumber, l_extendedprice, l_discount",
}
# As in dbgen, every third customer never orders.
_CUSTOMER = "3 * (mixed(o_orderkey, 4) % (select count(*) // 3 from customer))::bigint + 1"
_DIMENSIONS = tuple(table for table in UPDATED)


def join(scale: float) -> Workload:
    """Revenue and lines of every customer."""
    stage = Stage(
        "revenue",
        ("o_custkey",),
        _revenue,
        """select o_custkey, sum(l_extendedprice * (1 - l_discount)) as revenue, count(*) as line_count
           from lineitem join orders on l_orderkey = o_orderkey group by o_custkey""",
        ("lineitem", "orders"),
        _affected,
        _restricted,
    )
    tables = {name: _table(name, columns, scale) for name, columns in _NARROW.items()}
    return Workload("tpch", scale, tables, {stage.name: stage}, _views(), build_side="orders")


def all_queries(scale: float) -> Workload:
    """The 22 queries."""
    stages = {
        name: Stage(name, QUERY_KEYS[name], query, oracle.text(name, scale), tuple(inspect.signature(query).parameters))
        for name, query in queries(scale).items()
    }
    return Workload("tpch22", scale, {name: _table(name, "*", scale) for name in TABLES}, stages, _views(), words=oracle.WORDS)


def _revenue(lineitem: DataFrame, orders: DataFrame) -> DataFrame:
    return (
        lineitem.join(orders, lineitem.l_orderkey == orders.o_orderkey)
        .groupBy("o_custkey")
        .agg(F.sum(discounted()).alias("revenue"), F.count("*").alias("line_count"))
    )


def _affected(changes: Frames, tables: Frames) -> DataFrame:
    """Customers of changed orders, and of orders that have changed lines."""
    lines = changes["lineitem"].select(F.col("l_orderkey").alias("o_orderkey")).distinct()
    of_lines = tables["orders"].join(F.broadcast(lines), "o_orderkey", "left_semi").select("o_custkey")
    return changes["orders"].select("o_custkey").union(of_lines).distinct()


def _restricted(tables: Frames, keys: DataFrame) -> Frames:
    orders = tables["orders"].join(F.broadcast(keys), "o_custkey", "left_semi")
    return {**tables, "orders": F.broadcast(orders)}


def _views() -> str:
    return "".join(f"create view {table} as from '{{base}}/{table}.parquet';" for table in TABLES)


def _table(name: str, columns: str, scale: float) -> Table:
    parts = PARTS if scale >= _SMALL else 1
    base = f"select {columns} from {name}"
    if name == "orders":
        changes = f"""
            select {columns}, -1 as _diff from orders where is_drawn(o_orderkey, 1, {{low}}, {{high}}) union all
            select {columns}, 1 from (
              select * replace (o_orderkey + {FREE} as o_orderkey, {_CUSTOMER} as o_custkey)
              from orders where is_drawn(o_orderkey, 2, {{low}}, {{high}}))"""
        return Table(KEYS[name], base, changes, 2, ("o_orderkey",), parts)
    if name == "lineitem":
        updated = """from lineitem
              where drawn(l_orderkey, 1) >= 0.5 and is_drawn(l_orderkey * 8 + l_linenumber, 3, 2 * {low}, 2 * {high})"""
        changes = f"""
            select {columns}, -1 as _diff from lineitem where is_drawn(l_orderkey, 1, {{low}}, {{high}}) union all
            select {columns}, 1 from (
              select * replace (l_orderkey + {FREE} as l_orderkey)
              from lineitem where is_drawn(l_orderkey, 2, {{low}}, {{high}})) union all
            select {columns}, -1 {updated} union all
            select {columns}, 1 from (
              select * replace ((l_extendedprice + 1)::decimal(15, 2) as l_extendedprice,
                                ((l_discount + 0.01) % 0.11)::decimal(15, 2) as l_discount) {updated})"""
        return Table(KEYS[name], base, changes, 3, ("l_orderkey",), parts)
    if name in _DIMENSIONS:
        drawn = f"from {name} where is_drawn(({', '.join(KEYS[name])}), 5, {{low}}, {{high}})"
        changes = f"""
            select {columns}, -1 as _diff {drawn} union all
            select {columns}, 1 from (select * replace ({UPDATED[name].replace("version", "1")}) {drawn})"""
        return Table(KEYS[name], base, changes, 1, parts=1 if name == "supplier" else parts)
    return Table(KEYS[name], base, f"select *, -1 as _diff from {name} limit 0", 0)
