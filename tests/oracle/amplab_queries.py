"""AMPLab's four queries by DuckDB, from scratch, over the rows that are there after an epoch.

Shares no code with Firnline.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import duckdb

from tests.oracle.amplab import comparable

Changes = Sequence[Sequence[tuple[Any, ...]]]
"""Per epoch rows, each with its weight behind."""

TABLES = {
    "rankings": "page_url varchar, page_rank int, avg_duration int",
    "user_visits": "visit_id int, source_ip varchar, dest_url varchar, visit_date date, ad_revenue double",
    "documents": "url varchar, contents varchar",
}
QUERIES = {
    "scan": "select page_url, page_rank from rankings where page_rank > 100",
    "aggregation": "select substr(source_ip, 1, 8), sum(ad_revenue) from user_visits group by 1",
    "best": """
        select source_ip, sum(ad_revenue) as revenue, avg(page_rank)
        from rankings join user_visits on page_url = dest_url
        where visit_date between date '1980-01-01' and date '1983-01-01'
        group by source_ip order by revenue desc limit 1
    """,
    "links": """
        select link, count(*) from (select unnest(regexp_extract_all(contents, 'https?://[a-z0-9./]+')) as link from documents)
        group by link
    """,
}


def answers(changes: Mapping[str, Changes], epochs: int) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of every query after so many epochs, sorted."""
    with duckdb.connect() as database:
        for table, columns in TABLES.items():
            there: Counter[tuple[Any, ...]] = Counter()
            for *row, weight in (each for epoch in changes[table][:epochs] for each in epoch):
                there[tuple(row)] += weight
            database.execute(f"create table {table} ({columns})")
            marks = ", ".join("?" * len(columns.split(",")))
            database.executemany(f"insert into {table} values ({marks})", [list(row) for row in there.elements()])
        return {name: comparable(database.execute(query).fetchall()) for name, query in QUERIES.items()}
