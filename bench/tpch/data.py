"""TPC-H as Parquet, and refresh streams over it: what every epoch inserts and removes, always the same.

    base(root, scale)                              <table>.parquet                     dbgen's rows, from tpchgen-cli
    stream(root, scale, epochs, fraction, seed)    <day of the epoch>/<table>.parquet  changes: rows with _diff +1 or -1

Epoch 1 is the base load. As RF1 and RF2 do, every later epoch inserts new orders and removes old ones with their lineitems,
``fraction`` of all orders each. A new order resembles one drawn from the whole key range and has its key plus 8, which dbgen
leaves free; its customer is drawn anew. One in ten of the new orders is removed again in the next epoch. Besides, a tenth of
``fraction`` of the customers, parts, partsupps and suppliers (at least five rows each) is updated, one row in two epochs running:
the old row is removed, the new one inserted. All rows are a function of the arguments; ``(epochs - 1) * fraction`` is at most 1.

Usage: python bench/tpch/data.py ROOT [--scale 1] [--epochs 3] [--fraction 0.001] [--seed 1]
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sysconfig
from collections import Counter
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from random import Random
from typing import NamedTuple

import duckdb
import pyarrow as pa

KEYS: dict[str, tuple[str, ...]] = {
    "customer": ("c_custkey",),
    "lineitem": ("l_orderkey", "l_linenumber"),
    "nation": ("n_nationkey",),
    "orders": ("o_orderkey",),
    "part": ("p_partkey",),
    "partsupp": ("ps_partkey", "ps_suppkey"),
    "region": ("r_regionkey",),
    "supplier": ("s_suppkey",),
}
TABLES = tuple(KEYS)

_MOVED = """({0}_nationkey + version) % 25 as {0}_nationkey,
    (10 + ({0}_nationkey + version) % 25)::varchar || substr({0}_phone, 3) as {0}_phone,
    ({0}_acctbal + 100 * version)::decimal(15, 2) as {0}_acctbal"""
_SEGMENTS = "['AUTOMOBILE', 'BUILDING', 'FURNITURE', 'HOUSEHOLD', 'MACHINERY']"
# What the version-th update of a row has made of it; version 0 is the row as it was loaded.
UPDATED = {
    "customer": f"""{_MOVED.format("c")},
    {_SEGMENTS}[1 + (list_position({_SEGMENTS}, c_mktsegment) - 1 + version) % 5] as c_mktsegment""",
    "part": """((p_size + version - 1) % 50 + 1)::integer as p_size,
    'Brand#' || (substr(p_brand, 7, 1)::integer + version - 1) % 5 + 1 || substr(p_brand, 8) as p_brand,
    (p_retailprice + version)::decimal(15, 2) as p_retailprice""",
    "partsupp": """((ps_availqty + 100 * version - 1) % 9999 + 1)::integer as ps_availqty,
    (ps_supplycost + 10 * version)::decimal(15, 2) as ps_supplycost""",
    "supplier": f"""{_MOVED.format("s")},
    if(version % 2 = 1, 'Customer Complaints: ' || substr(s_comment, 1, 80), s_comment) as s_comment""",
}
FREE = 8
"""How far above an order's key dbgen leaves a key free for a new order."""


class OrderChange(NamedTuple):
    """The order in a row of the base, or the one that resembles it (``gap`` above it, by another customer), comes or goes."""

    row: int
    epoch: int
    diff: int
    gap: int
    customer: int | None


class Update(NamedTuple):
    """A version of a row of the base comes or goes."""

    row: int
    epoch: int
    diff: int
    version: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--fraction", type=float, default=0.001)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    print(stream(given.root, given.scale, given.epochs, given.fraction, given.seed))


def base(root: Path, scale: float) -> Path:
    """The folder of the eight tables at a scale factor; made if it is not there."""
    folder = root / f"sf{scale:g}" / "base"
    if not folder.exists():
        partial = _empty(folder)
        tool = Path(sysconfig.get_path("scripts")) / "tpchgen-cli"
        subprocess.run([tool, "parquet", "--quiet", f"--scale-factor={scale:g}", f"--output-dir={partial}"], check=True)
        partial.rename(folder)
    return folder


def stream(root: Path, scale: float, epochs: int, fraction: float, seed: int = 1) -> Path:
    """The folder of a refresh stream; made, with its base, if it is not there."""
    folder = root / f"sf{scale:g}" / f"epochs{epochs}-fraction{fraction:g}-seed{seed}"
    if not folder.exists():
        loaded = base(root, scale)
        partial = _empty(folder)
        with duckdb.connect() as database:
            database.execute(f"set memory_limit = '6GB'; set temp_directory = '{partial}/spill'; set enable_progress_bar = false")
            for table in TABLES:
                database.execute(f"create view {table} as from read_parquet('{loaded / table}.parquet', file_row_number = true)")
            _change_orders(database, Random(f"orders {seed}"), epochs, fraction)
            for table in TABLES:
                if table not in ("orders", "lineitem"):
                    _update(database, table, Random(f"{table} {seed}"), epochs, fraction / 10)
            for epoch in range(1, epochs + 1):
                _write(database, partial, epoch)
        shutil.rmtree(partial / "spill", ignore_errors=True)
        partial.rename(folder)
    return folder


def file(folder: Path, epoch: int, table: str) -> Path:
    """What an epoch changes in a table, in the folder of a stream; epochs count from 1."""
    return folder / day(epoch) / f"{table}.parquet"


def day(epoch: int) -> str:
    """The day that an epoch stands for, as the epochs of a daily pipeline are called."""
    return (date(2026, 1, 1) + timedelta(days=epoch - 1)).isoformat()


def order_changes(chance: Random, orders: int, customers: int, epochs: int, fraction: float) -> Iterator[OrderChange]:
    """Which orders are inserted and removed after the first epoch."""
    count = max(1, round(orders * fraction))
    total = count * (epochs - 1)
    for number, (old, new) in enumerate(
        zip(chance.sample(range(orders), total), chance.sample(range(orders), total), strict=True)
    ):
        epoch = 2 + number // count
        # As in dbgen, every third customer never orders.
        customer = 3 * chance.randrange(customers // 3) + chance.choice((1, 2))
        yield OrderChange(old, epoch, -1, 0, None)
        yield OrderChange(new, epoch, 1, FREE, customer)
        if number % 10 == 0 and epoch < epochs:
            yield OrderChange(new, epoch + 1, -1, FREE, customer)


def updates(chance: Random, rows: int, epochs: int, fraction: float) -> Iterator[Update]:
    """Which rows are updated after the first epoch."""
    count = max(5, round(rows * fraction))
    versions: Counter[int] = Counter()
    again: list[int] = []
    for epoch in range(2, epochs + 1):
        drawn = chance.sample(range(rows), count)
        for row in {*again, *drawn}:
            yield Update(row, epoch, -1, versions[row])
            versions[row] += 1
            yield Update(row, epoch, 1, versions[row])
        again = drawn[:1]


def _change_orders(database: duckdb.DuckDBPyConnection, chance: Random, epochs: int, fraction: float) -> None:
    changes = order_changes(chance, _count(database, "orders"), _count(database, "customer"), epochs, fraction)
    _load(database, "chosen", OrderChange, list(changes))
    database.execute("""
        create table picked as select o_orderkey as key, chosen.* from orders join chosen on file_row_number = row;
        create table orders_changes as
          select t.* exclude (file_row_number) replace (
                   o_orderkey + gap as o_orderkey, coalesce(customer, o_custkey) as o_custkey), epoch, diff as _diff
          from orders t join picked on o_orderkey = key;
        create table lineitem_changes as
          select t.* exclude (file_row_number) replace (l_orderkey + gap as l_orderkey), epoch, diff as _diff
          from lineitem t join picked on l_orderkey = key;""")


def _update(database: duckdb.DuckDBPyConnection, table: str, chance: Random, epochs: int, fraction: float) -> None:
    changes = updates(chance, _count(database, table), epochs, fraction) if table in UPDATED else []
    _load(database, f"{table}_chosen", Update, list(changes))
    replaced = f"replace ({UPDATED[table]})" if table in UPDATED else ""
    database.execute(f"""
        create table {table}_changes as select t.* exclude (file_row_number) {replaced}, epoch, diff as _diff
        from {table} t join {table}_chosen on file_row_number = row""")


def _write(database: duckdb.DuckDBPyConnection, folder: Path, epoch: int) -> None:
    (folder / day(epoch)).mkdir()
    for table in TABLES:
        if epoch == 1:
            rows = f"select * exclude (file_row_number), 1::integer as _diff from {table}"
        else:
            rows = f"select * exclude (epoch) from {table}_changes where epoch = {epoch} order by all"
        database.execute(f"copy ({rows}) to '{file(folder, epoch, table)}' (format parquet)")


def _load(database: duckdb.DuckDBPyConnection, name: str, kind: type[OrderChange] | type[Update], rows: list[NamedTuple]) -> None:
    types = {field: pa.int64() if field in ("row", "customer") else pa.int32() for field in kind._fields}
    columns = zip(*rows, strict=True) if rows else [() for _ in types]
    given = pa.table([pa.array(column, each) for column, each in zip(columns, types.values(), strict=True)], names=list(types))
    database.register("given", given)
    database.execute(f"create table {name} as from given")
    database.unregister("given")


def _count(database: duckdb.DuckDBPyConnection, table: str) -> int:
    (count,) = database.execute(f"select count(*) from {table}").fetchall()[0]
    return int(count)


def _empty(folder: Path) -> Path:
    """An empty folder beside the given one, to be renamed to it when it is complete."""
    partial = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    return partial


if __name__ == "__main__":
    main()
