"""AMPLab's join: revenue and mean rank by source address, over visits of a span of years. The scale is millions of visits.

A tenth as many pages as visits, a quarter as many addresses; one visit in eleven leads to a page that is not there (yet).
Visits and pages are inserted, removed and updated.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bench.incremental.history import SPAN
from bench.incremental.workload import Frames, Stage, Table, Workload

PARTS = 2
_FIRST, _LAST = "1980-01-01", "2009-12-31"

_VIEWS = """
create macro url(number) as 'http://www.' || md5(number::varchar) || '.example/' || number % 100;
create macro address(number) as
  concat_ws('.', number // 16777216 % 256, number // 65536 % 256, number // 256 % 256, number % 256);
create macro below(key, number, bound) as (mixed(key, number) % bound)::bigint;
create view rankings as
  select url(range) as page_url, (1 + below(range, 10, 999))::integer as page_rank,
         (1 + below(range, 11, 99))::integer as avg_duration
  from range({pages});
create view unranked as
  select url(range + {pages}) as page_url, (1 + below(range, 12, 999))::integer as page_rank, 1::integer as avg_duration,
         range / {unranked} as draw
  from range({unranked});
create view user_visits as
  select range as visit_id, address(16777216 + below(range, 13, {addresses}) * 97) as source_ip,
         url(below(range, 14, {pages} + {unranked})) as dest_url,
         date '1980-01-01' + below(range, 15, 12000)::integer as visit_date,
         ((1 + below(range, 16, 99999)) / 10000)::decimal(12, 4) as ad_revenue
  from range({visits});
"""
_UPDATED_VISITS = """from user_visits where drawn(visit_id, 1) >= 0.5 and is_drawn(visit_id, 3, 2 * {low}, 2 * {high})"""
_UPDATED_PAGES = """from rankings where drawn(page_url, 1) >= 0.5 and is_drawn(page_url, 3, 2 * {low}, 2 * {high})"""


def join(scale: float) -> Workload:
    """Revenue by source address, at so many millions of visits."""
    visits = round(scale * 1_000_000)
    pages = visits // 10
    # As many unranked pages as all epochs together may insert.
    counts = {"visits": visits, "pages": pages, "unranked": max(1, round(pages * SPAN)), "addresses": max(1, visits // 4)}
    tables = {
        "rankings": Table(
            ("page_url",),
            "select * from rankings",
            f"""select *, -1 as _diff from rankings where is_drawn(page_url, 1, {{low}}, {{high}}) union all
                select * exclude (draw), 1 from unranked where draw >= {{low}} / {SPAN} and draw < {{high}} / {SPAN} union all
                select *, -1 {_UPDATED_PAGES} union all
                select * replace (page_rank + 1 as page_rank), 1 {_UPDATED_PAGES}""",
            3,
            ("page_url",),
            PARTS,
        ),
        "user_visits": Table(
            ("visit_id",),
            "select * from user_visits",
            f"""select *, -1 as _diff from user_visits where is_drawn(visit_id, 1, {{low}}, {{high}}) union all
                select * replace (visit_id + {visits} as visit_id, (ad_revenue + 0.5)::decimal(12, 4) as ad_revenue), 1
                from user_visits where is_drawn(visit_id, 2, {{low}}, {{high}}) union all
                select *, -1 {_UPDATED_VISITS} union all
                select * replace ((ad_revenue + 1)::decimal(12, 4) as ad_revenue), 1 {_UPDATED_VISITS}""",
            3,
            ("dest_url",),
            PARTS,
        ),
    }
    stage = Stage(
        "revenue_by_ip",
        ("source_ip",),
        _revenue,
        f"""select source_ip, sum(ad_revenue) as revenue, avg(page_rank) as page_rank
            from user_visits join rankings on dest_url = page_url
            where visit_date between '{_FIRST}' and '{_LAST}' group by source_ip""",
        ("user_visits", "rankings"),
        _affected,
        _restricted,
    )
    views = _VIEWS.format(**counts)
    return Workload("amplab", scale, tables, {stage.name: stage}, views, build_side="rankings", is_tpch=False)


def _revenue(user_visits: DataFrame, rankings: DataFrame) -> DataFrame:
    return (
        user_visits.where(F.col("visit_date").between(F.lit(_FIRST).cast("date"), F.lit(_LAST).cast("date")))
        .join(rankings, user_visits.dest_url == rankings.page_url)
        .groupBy("source_ip")
        .agg(F.sum("ad_revenue").alias("revenue"), F.avg("page_rank").alias("page_rank"))
    )


def _affected(changes: Frames, tables: Frames) -> DataFrame:
    """Addresses of changed visits, and of visits to changed pages."""
    pages = changes["rankings"].select(F.col("page_url").alias("dest_url")).distinct()
    of_pages = tables["user_visits"].join(F.broadcast(pages), "dest_url", "left_semi").select("source_ip")
    return changes["user_visits"].select("source_ip").union(of_pages).distinct()


def _restricted(tables: Frames, keys: DataFrame) -> Frames:
    visits = tables["user_visits"].join(F.broadcast(keys), "source_ip", "left_semi")
    return {**tables, "user_visits": F.broadcast(visits)}
