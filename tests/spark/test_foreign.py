"""Collections of other pipelines as inputs: an hourly log read by a daily stage, exactly, and kept for it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql.connect.session import SparkSession

from firnline.errors import FirnlineError
from firnline.runtime import show
from firnline.runtime.lineage import lineage
from firnline.runtime.maintain import maintained
from firnline.runtime.project import Project
from firnline.runtime.safepoint import safety
from tests.spark.running import rows, run_epoch

HOURLY, DAILY = f"clicks_{os.getpid()}", f"report_{os.getpid()}"
PIPELINES = {
    HOURLY: f"""
    import firnline as fl

    hourly = fl.Pipeline("{HOURLY}", schedule="0 */6 * * *", start="2026-01-01", keep="1 epoch")

    @hourly.source(keys=["id"])
    def clicks(epoch):
        hour = epoch.lower.day * 24 + epoch.lower.hour
        rows = [(hour * 10 + n, n % 3, 1) for n in range(4)]
        if epoch.lower.hour:  # what came six hours ago is taken back, in part
            rows.append(((hour - 6) * 10, 0, -1))
        return epoch.spark.createDataFrame(rows, "id bigint, page bigint, _diff bigint")
    """,
    DAILY: f"""
    import firnline as fl
    from pyspark.sql import functions as F

    daily = fl.Pipeline("{DAILY}", schedule="@daily", start="2026-01-01")

    @daily.source(keys=["page"])
    def pages(epoch):
        names = [(0, "home"), (1, "shop"), (2, "é")] if epoch.lower.day == 1 else []
        return epoch.spark.createDataFrame(names, "page bigint, name string")

    @daily.stage(keys=["name"], refresh="incremental")
    def by_page(pages, seen=fl.collection("{HOURLY}.clicks")):
        return pages.join(seen, "page").groupBy("name").agg(F.count("*").alias("clicks"))

    @daily.sql("SELECT name, clicks, (SELECT count(*) FROM seen) AS total FROM by_page", keys=["name"])
    def shares(by_page, seen=fl.collection("{HOURLY}.clicks")): ...
    """,
}
QUARTERS = ("", "T06:00", "T12:00", "T18:00")


def expected(days: int) -> list[tuple[str, int]]:
    """The daily counts, from scratch."""
    kept: Counter[int] = Counter()
    for day in range(1, days + 1):
        for hour in (0, 6, 12, 18):
            kept.update({(day * 24 + hour) * 10 + n: 1 for n in range(4)})
            if hour:
                kept.subtract({(day * 24 + hour - 6) * 10: 1})
    names = {0: "home", 1: "shop", 2: "é"}
    return sorted(Counter(names[each % 10 % 3] for each, weight in kept.items() if weight).items())


def test_an_hourly_log_is_a_daily_input(project: Callable[..., Project], spark: SparkSession) -> None:
    made = project(**PIPELINES)
    graph = made.graph(DAILY)
    run_epoch(made, spark, HOURLY, "2026-01-01")
    with pytest.raises(FirnlineError, match=rf"'by_page' needs 2026-01-01 of {HOURLY}\.clicks") as late:
        run_epoch(made, spark, DAILY, "2026-01-01")
    assert (late.value.code, late.value.retryable) == ("INPUT_NOT_READY", True)

    for day in (1, 2, 3):
        for quarter in QUARTERS:
            run_epoch(made, spark, HOURLY, f"2026-01-0{day}{quarter}")
        run_epoch(made, spark, DAILY, f"2026-01-0{day}")
        assert rows(made, graph, "by_page") == expected(day)
        total = sum(clicks for _, clicks in expected(day))
        assert rows(made, graph, "shares") == [(name, clicks, total) for name, clicks in expected(day)]
        if day == 2:  # what the daily stages have taken may be merged, and no more
            for quarter in QUARTERS:
                run_epoch(made, spark, HOURLY, f"2026-01-03{quarter}")
            held = safety(made, made.graph(HOURLY))
            assert held.why.startswith(f"held at 2026-01-03 by the pipeline '{DAILY}'")
            done = list(maintained(made, made.graph(HOURLY), lambda: spark, timedelta()))
            assert [each.error for each in done if each.error] == []
            assert "merge" in {each.step.what for each in done}
            head = made.log(HOURLY, "clicks").head()
            assert head is not None
            assert made.graph(HOURLY).schedule.label(head.description.since) == "2026-01-03"
    assert rows(made, graph, "by_page", "2026-01-01") == expected(1)

    found = lineage(made, graph, "shares", "2026-01-03")
    assert {f"{HOURLY}.clicks@2026-01-03{quarter}" for quarter in QUARTERS} < {node.id for node in found.nodes}
    changed = show.changes(made, graph, "by_page", "2026-01-02")[1]
    assert {row[0] for row in changed} == {"2026-01-02"}


def test_a_pipeline_that_does_not_load_holds_those_it_may_read(project: Callable[..., Project], tmp_path: Path) -> None:
    made = project(**PIPELINES)
    (tmp_path / "include" / "pipelines" / f"{DAILY}.py").write_text("import nowhere")
    held = safety(made, made.graph(HOURLY))
    assert f"mend '{DAILY}', which does not load" in held.why
