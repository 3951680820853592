"""Guides whose pipelines run on files, followed to the letter."""

from __future__ import annotations

import csv
import re
import shutil
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from pyspark.sql.connect.session import SparkSession

from firnline.runtime import show
from firnline.runtime.project import Project
from tests.oracle.amplab import comparable
from tests.project import ROOT
from tests.spark.running import rows, run_epoch

Make = Callable[..., Project]


class Guide:
    """A guide's text, and its pipeline in a project."""

    def __init__(self, page: str, pipeline: str, root: Path) -> None:
        self.text = (ROOT / "docs" / "guides" / page).read_text()
        self.landing = root / "include" / "landing" / pipeline
        self.landing.mkdir(parents=True)
        shutil.copy(ROOT / "docs" / "snippets" / f"{pipeline}.py", root / "include" / "pipelines" / f"{pipeline}.py")

    def files(self, days: Sequence[str]) -> list[tuple[str, str]]:
        return list(zip(days, re.findall(r"```csv\n(.*?)```", self.text, re.DOTALL), strict=True))

    def tables(self) -> list[list[tuple[str, ...]]]:
        """The cells of what commands print."""
        printed = [text for text in re.findall(r"```text\n(.*?)```", self.text, re.DOTALL) if "│" in text]
        lines = [[line for line in text.splitlines() if line.startswith("│")] for text in printed]
        return [[tuple(cell.strip() for cell in line.strip("│").split("│")) for line in each] for each in lines]


def shown(found: Sequence[tuple[Any, ...]]) -> list[tuple[str, ...]]:
    return [tuple("" if cell is None else str(cell) for cell in row) for row in found]


def test_late_rows_correct_the_windows_they_belong_to(project: Make, spark: SparkSession, tmp_path: Path) -> None:
    made = project()
    guide = Guide("late_rows.md", "traffic", tmp_path)
    for day, content in guide.files(("2026-01-01", "2026-01-02", "2026-01-03")):
        (guide.landing / f"{day}.csv").write_text(content)
        run_epoch(made, spark, "traffic", day)
        assert rows(made, made.graph("traffic"), "requests_by_hour") == by_hour(guide.landing)
    assert guide.tables() == [shown(show.changes(made, made.graph("traffic"), "requests_by_hour")[1])]
    before = rows(made, made.graph("traffic"), "requests_by_hour", "2026-01-01")
    assert {hour.hour: count for hour, count, _ in before} == {9: 2, 10: 1}, "what was known on the first day"


def by_hour(landing: Path) -> list[tuple[Any, ...]]:
    """Counted in plain Python, from all files at once."""
    lines = [line for file in landing.glob("*.csv") for line in csv.DictReader(file.read_text().splitlines())]
    hours: dict[datetime, list[int]] = {}
    for line in lines:
        at = datetime.fromisoformat(line["happened_at"])
        hours.setdefault(at.replace(minute=0, second=0), []).append(int(line["bytes"]))
    return comparable([(hour, len(sizes), sum(sizes)) for hour, sizes in hours.items()])


def test_a_feed_leaves_what_spark_says_it_does(project: Make, spark: SparkSession, tmp_path: Path) -> None:
    made = project()
    guide = Guide("change_feeds.md", "crm", tmp_path)
    for day, content in guide.files(("2026-01-01", "2026-01-02")):
        (guide.landing / f"{day}.csv").write_text(content)
        run_epoch(made, spark, "crm", day)
    found = [shown(show.rows(made, made.graph("crm"), name)[1]) for name in ("customers", "customer_history")]
    assert guide.tables() == found
