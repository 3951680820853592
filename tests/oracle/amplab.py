"""What the AMPLab pipeline must hold after each epoch, computed from scratch by DuckDB from the landing files.

Shares no code with Firnline.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb

LANDING = Path(__file__).parents[2] / "include" / "landing" / "amplab"
EPOCHS = ("2026-01-01", "2026-01-02", "2026-01-03")

_SETUP = """
create table feed as select * from read_csv({rankings}, header = true, all_varchar = true);
create table rankings as
  select page_url, page_rank::int as page_rank, avg_duration::int as avg_duration from feed where change = '+'
  except all
  select page_url, page_rank::int, avg_duration::int from feed where change = '-';
create table raw as select * from read_csv({visits}, header = true, all_varchar = true, escape = '\\', quote = '"');
create table user_visits as
  select visit_id, source_ip, dest_url, visit_date::date as visit_date, ad_revenue::decimal(12, 4) as ad_revenue, user_agent,
         country_code, language_code, search_word, duration::int as duration
  from raw where try_cast(visit_date as date) is not null and try_cast(ad_revenue as decimal(12, 4)) is not null;
create table revenue_by_ip as
  select source_ip, sum(ad_revenue) as revenue, avg(page_rank) as rank, count(*) as visits
  from user_visits join rankings on dest_url = page_url
  where visit_date between '1980-01-01' and '1980-12-31' group by source_ip;
create table revenue_by_prefix as
  select substr(source_ip, 1, 6) as prefix, sum(ad_revenue) as revenue from user_visits group by 1;
create table top_sources as select * from revenue_by_ip order by revenue desc, source_ip limit 10;
"""


def expected(collection: str, epoch: str) -> list[tuple[Any, ...]]:
    """The rows of a collection after an epoch, sorted."""
    days = [day for day in EPOCHS if day <= epoch]
    files = {name: str([str(LANDING / day / f"{name}.csv") for day in days]) for name in ("rankings", "user_visits")}
    with duckdb.connect() as database:
        database.execute(_SETUP.format(rankings=files["rankings"], visits=files["user_visits"]))
        return comparable(database.execute(f"select * from {collection}").fetchall())


def comparable(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows as a sorted multiset: floats to twelve digits, decimals by value, everything else as it is."""
    return sorted((tuple(_settled(value) for value in row) for row in rows), key=repr)


def _settled(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.12e}")
    return value.normalize() if isinstance(value, Decimal) else value
