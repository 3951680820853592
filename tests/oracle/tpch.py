"""What TPC-H's tables and queries must hold after an epoch of a refresh stream, computed from scratch by DuckDB.

Shares no code with Firnline, nor with ``bench/tpch``. A table is the sum of its diffs. How results are compared:

- as multisets of rows; text, dates, counts and years as they are, decimals by value, whatever their scale;
- no tolerance: with decimals in, Spark's results are decimals, counts, text and dates throughout: there is no double to compare.
  Sums, differences and products are exact decimals in DuckDB too. Its avg and its division give doubles, where Spark rounds half
  up to six digits: avg(decimal(15,2)) is decimal(19,6), a ratio of two sums is decimal(38,6). ``ratio`` below does the same with
  128-bit integers. That holds for Q1 (averages), Q8, Q14, Q17 (quotients) and the average in Q22;
- Q17 asks for less than a fifth of an average: 5 * quantity * count < sum, without a division. Spark rounds the average to six
  digits first, which is the same, as quantities are whole and parts have fewer than 100,000 lines;
- Q11's threshold is exact here; Spark rounds it to six digits, which are all it has up to scale factor 1. Above, a part would
  have to be worth the threshold to a millionth to make a difference.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb

# By this column a table's changed rows are found.
TABLES = {
    "customer": "c_custkey",
    "lineitem": "l_orderkey",
    "nation": "n_nationkey",
    "orders": "o_orderkey",
    "part": "p_partkey",
    "partsupp": "ps_partkey",
    "region": "r_regionkey",
    "supplier": "s_suppkey",
}

# Only rows whose key was ever removed need to be summed: all others are there as they were inserted.
_STATE = """
create table {table} as
  with log as (from read_parquet({files})), removed as (select distinct {key} from log where _diff < 0)
  select * exclude (_diff) from log anti join removed using ({key})
  union all
  select * exclude (_diff) from log semi join removed using ({key}) group by all having sum(_diff) > 0
"""

WORDS = """
create macro units(x) as (x * 10000)::hugeint;
create macro ratio(x, y) as ((units(x) * 2000000 + units(y)) // (2 * units(y)))::decimal(25, 0) * 0.000001;
create macro average(x) as ratio(sum(x), count(x));
create view line as select *, l_extendedprice * (1 - l_discount) as revenue from lineitem;
create view place as select * from nation join region on n_regionkey = r_regionkey;
create view seller as select * from supplier join place on s_nationkey = n_nationkey;
create view buyer as select * from customer join place on c_nationkey = n_nationkey;
"""


def state(stream: Path, epoch: int) -> duckdb.DuckDBPyConnection:
    """A database with the eight tables as they are after the n-th epoch of a stream (folders in order of name)."""
    database = duckdb.connect()
    database.execute("set enable_progress_bar = false")
    days = sorted(folder for folder in stream.iterdir() if folder.is_dir())[:epoch]
    for table, key in TABLES.items():
        files = str([str(folder / f"{table}.parquet") for folder in days])
        database.execute(_STATE.format(table=table, key=key, files=files))
    database.execute(WORDS)
    return database


def expected(database: duckdb.DuckDBPyConnection, query: str, scale: float) -> list[tuple[Any, ...]]:
    """The rows of a query's result, comparable."""
    return comparable(database.execute(text(query, scale)).fetchall())


def text(query: str, scale: float) -> str:
    """A query as DuckDB is asked it; it stands on ``WORDS``."""
    return _QUERIES[query].replace(":fraction", f"{Decimal(1) / Decimal(str(scale)) / 10_000:.12f}")


def comparable(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows as a sorted multiset, decimals by value."""
    settled = (tuple(value.normalize() if isinstance(value, Decimal) else value for value in row) for row in rows)
    return sorted(settled, key=repr)


_QUERIES = {
    "q1": """
        select l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice), sum(revenue), sum(revenue * (1 + l_tax)),
               average(l_quantity), average(l_extendedprice), average(l_discount), count(*)
        from line where l_shipdate <= '1998-09-02' group by all""",
    "q2": """
        select s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
        from part join partsupp on p_partkey = ps_partkey join seller on ps_suppkey = s_suppkey
        where p_size = 15 and p_type like '%BRASS' and r_name = 'EUROPE'
        qualify ps_supplycost = min(ps_supplycost) over (partition by p_partkey)
        order by s_acctbal desc, n_name, s_name, p_partkey limit 100""",
    "q3": """
        select l_orderkey, sum(revenue), o_orderdate, o_shippriority
        from customer join orders on c_custkey = o_custkey join line on o_orderkey = l_orderkey
        where c_mktsegment = 'BUILDING' and o_orderdate < '1995-03-15' and l_shipdate > '1995-03-15'
        group by all order by sum(revenue) desc, o_orderdate, l_orderkey limit 10""",
    "q4": """
        select o_orderpriority, count(*) from orders
        where o_orderdate >= '1993-07-01' and o_orderdate < '1993-10-01'
          and o_orderkey in (select l_orderkey from lineitem where l_commitdate < l_receiptdate)
        group by all""",
    "q5": """
        select seller.n_name, sum(revenue)
        from customer join orders on c_custkey = o_custkey join line on o_orderkey = l_orderkey
        join seller on l_suppkey = s_suppkey and c_nationkey = s_nationkey
        where r_name = 'ASIA' and year(o_orderdate) = 1994 group by all""",
    "q6": """
        select sum(l_extendedprice * l_discount) from lineitem
        where year(l_shipdate) = 1994 and l_discount in (0.05, 0.06, 0.07) and l_quantity < 24""",
    "q7": """
        select seller.n_name, buyer.n_name, year(l_shipdate), sum(revenue)
        from line join seller on l_suppkey = s_suppkey join orders on l_orderkey = o_orderkey join buyer on o_custkey = c_custkey
        where (seller.n_name, buyer.n_name) in (('FRANCE', 'GERMANY'), ('GERMANY', 'FRANCE')) and year(l_shipdate) in (1995, 1996)
        group by all""",
    "q8": """
        select year(o_orderdate), ratio(coalesce(sum(revenue) filter (seller.n_name = 'BRAZIL'), 0), sum(revenue))
        from line join part on l_partkey = p_partkey join seller on l_suppkey = s_suppkey
        join orders on l_orderkey = o_orderkey join buyer on o_custkey = c_custkey
        where buyer.r_name = 'AMERICA' and year(o_orderdate) in (1995, 1996) and p_type = 'ECONOMY ANODIZED STEEL' group by 1""",
    "q9": """
        select n_name, year(o_orderdate), sum(revenue - ps_supplycost * l_quantity)
        from line join part on l_partkey = p_partkey join partsupp on l_partkey = ps_partkey and l_suppkey = ps_suppkey
        join seller on l_suppkey = s_suppkey join orders on l_orderkey = o_orderkey
        where contains(p_name, 'green') group by all""",
    "q10": """
        select c_custkey, c_name, sum(revenue), c_acctbal, n_name, c_address, c_phone, c_comment
        from buyer join orders on c_custkey = o_custkey join line on o_orderkey = l_orderkey
        where o_orderdate >= '1993-10-01' and o_orderdate < '1994-01-01' and l_returnflag = 'R'
        group by all order by sum(revenue) desc, c_custkey limit 20""",
    "q11": """
        with stock as (
          select ps_partkey, sum(ps_supplycost * ps_availqty) as value
          from partsupp join seller on ps_suppkey = s_suppkey where n_name = 'GERMANY' group by all)
        select * from stock where value > (select sum(value)::decimal(25, 2) * :fraction from stock)""",
    "q12": """
        select l_shipmode, count(*) filter (o_orderpriority in ('1-URGENT', '2-HIGH')),
               count(*) filter (o_orderpriority not in ('1-URGENT', '2-HIGH'))
        from orders join lineitem on o_orderkey = l_orderkey
        where l_shipmode in ('MAIL', 'SHIP') and l_shipdate < l_commitdate and l_commitdate < l_receiptdate
          and year(l_receiptdate) = 1994 group by all""",
    "q13": """
        with counted as (
          select c_custkey, (
            select count(*) from orders where o_custkey = c_custkey and o_comment not like '%special%requests%') as n
          from customer)
        select n, count(*) from counted group by all""",
    "q14": """
        select ratio(100 * coalesce(sum(revenue) filter (p_type like 'PROMO%'), 0), sum(revenue))
        from line join part on l_partkey = p_partkey where l_shipdate >= '1995-09-01' and l_shipdate < '1995-10-01'""",
    "q15": """
        select s_suppkey, s_name, s_address, s_phone, sum(revenue)
        from supplier join line on s_suppkey = l_suppkey where l_shipdate >= '1996-01-01' and l_shipdate < '1996-04-01'
        group by 1, 2, 3, 4 qualify rank() over (order by sum(revenue) desc) = 1""",
    "q16": """
        select p_brand, p_type, p_size, count(distinct ps_suppkey) from partsupp join part on ps_partkey = p_partkey
        where p_brand <> 'Brand#45' and p_type not like 'MEDIUM POLISHED%' and p_size in (49, 14, 23, 45, 19, 3, 36, 9)
          and ps_suppkey not in (select s_suppkey from supplier where s_comment like '%Customer%Complaints%')
        group by all""",
    "q17": """
        with counted as (select l_partkey, sum(l_quantity) as total, count(*) as lines from lineitem group by all)
        select ratio(sum(l_extendedprice), 7)
        from lineitem join part on l_partkey = p_partkey join counted using (l_partkey)
        where p_brand = 'Brand#23' and p_container = 'MED BOX' and 5 * l_quantity * lines < total""",
    "q18": """
        select c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity)
        from customer join orders on c_custkey = o_custkey join lineitem on o_orderkey = l_orderkey
        group by all having sum(l_quantity) > 300 order by o_totalprice desc, o_orderdate, o_orderkey limit 100""",
    "q19": """
        select sum(revenue) from line join part on l_partkey = p_partkey
        where l_shipmode in ('AIR', 'AIR REG') and l_shipinstruct = 'DELIVER IN PERSON' and p_size >= 1 and (
          (p_brand = 'Brand#12' and p_container in ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG')
            and l_quantity between 1 and 11 and p_size <= 5) or
          (p_brand = 'Brand#23' and p_container in ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK')
            and l_quantity between 10 and 20 and p_size <= 10) or
          (p_brand = 'Brand#34' and p_container in ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG')
            and l_quantity between 20 and 30 and p_size <= 15))""",
    "q20": """
        with shipped as (
          select l_partkey, l_suppkey, sum(l_quantity) as quantity from lineitem where year(l_shipdate) = 1994 group by all)
        select distinct s_name, s_address
        from seller join partsupp on s_suppkey = ps_suppkey join part on ps_partkey = p_partkey
        join shipped on ps_partkey = l_partkey and ps_suppkey = l_suppkey
        where n_name = 'CANADA' and starts_with(p_name, 'forest') and 2 * ps_availqty > quantity""",
    "q21": """
        with suppliers as (
          select l_orderkey, count(distinct l_suppkey) as involved,
                 count(distinct l_suppkey) filter (l_receiptdate > l_commitdate) as late
          from lineitem group by all)
        select s_name, count(*)
        from seller join lineitem on s_suppkey = l_suppkey join orders on l_orderkey = o_orderkey
        join suppliers using (l_orderkey)
        where n_name = 'SAUDI ARABIA' and o_orderstatus = 'F' and l_receiptdate > l_commitdate and involved > 1 and late = 1
        group by all order by count(*) desc, s_name limit 100""",
    "q22": """
        with abroad as (
          select *, left(c_phone, 2) as code from customer where left(c_phone, 2) in ('13', '31', '23', '29', '30', '18', '17'))
        select code, count(*), sum(c_acctbal) from abroad
        where c_acctbal > (select average(c_acctbal) from abroad where c_acctbal > 0)
          and c_custkey not in (select o_custkey from orders) group by all""",
}
