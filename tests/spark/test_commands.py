"""The command line on the README's pipeline: run, run again, show, status, plan, ledger."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from firnline.runtime.project import Project
from tests.oracle.amplab import expected
from tests.project import ROOT, copy_amplab

EARLY = """
import pandas as pd
from pyspark.sql import Window
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

import firnline as fl

early = fl.Pipeline("early", schedule=1, start=0, end=1)
of_group = Window.partitionBy("g").orderBy("id")
is_even = F.col("id") % 2 == 0


@F.udf("int")
def tripled(value):
    return value * 3


@F.udf(LongType())
def squared(value):
    return value * value


@F.pandas_udf("string")
def shouted(values: pd.Series) -> pd.Series:
    return values.str.upper()


@early.source(keys=["id"])
def numbers(epoch):
    return epoch.spark.createDataFrame([(n, "ab"[n % 2]) for n in range(4)], "id int, g string")


@early.stage(keys=["id"], refresh="incremental")
def made(numbers):
    return numbers.select(
        "id", tripled("id").alias("t"), squared("id").alias("s"), shouted("g").alias("g"),
        F.row_number().over(of_group).alias("n"), is_even.alias("even"),
    )
"""
EPOCHS = ("2026-01-01", "2026-01-02", "2026-01-03")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("a folder with spaces, ü")
    project = copy_amplab(place)
    shutil.copy(ROOT / "docs/snippets/pages.py", project.settings.root / "include/pipelines/pages.py")
    return project.settings.root


def firnline(root: Path, *words: str, code: int = 0) -> Any:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("FIRNLINE", "SPARK", "PYSPARK"))}
    command = [sys.executable, "-c", "from firnline.cli import main; main()", *words]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout) if "--json" in words else done.stdout


def best(epoch: str) -> list[str]:
    pages = sorted(expected("rankings", epoch), key=lambda page: (-page[1], page[0]))[:5]
    return sorted(page[0] for page in pages)


def test_run_computes_the_epochs_asked_for_and_then_keeps_them(root: Path) -> None:
    first = firnline(root, "run", "pages", "--from", EPOCHS[0], "--to", EPOCHS[1], "--json")
    assert [(entry["epoch"], entry["collection"], entry["how"]) for entry in first] == [
        (epoch, name, "computed") for epoch in EPOCHS[:2] for name in ("rankings", "best_pages")
    ]
    steps = firnline(root, "plan", "pages", "--json")
    assert [(step["collection"], step["epochs"], step["code"]) for step in steps] == [
        (name, [EPOCHS[2]], "same") for name in ("rankings", "best_pages")
    ]
    said = firnline(root, "run", "pages")
    assert "2 computed, 4 kept" in said
    assert {entry["how"] for entry in firnline(root, "run", "pages", "--json")} == {"kept"}
    for epoch in EPOCHS:
        shown = firnline(root, "show", "best_pages", "--as-of", epoch, "--json")
        assert [row["page_url"] for row in shown] == best(epoch)
    changes = firnline(root, "show", "pages.best_pages", "--changes", "--as-of", EPOCHS[1], "--json")
    gone, came = set(best(EPOCHS[0])) - set(best(EPOCHS[1])), set(best(EPOCHS[1])) - set(best(EPOCHS[0]))
    assert {(row["change"], row["page_url"]) for row in changes} == {("-1", url) for url in gone} | {("+1", url) for url in came}


def test_status_is_the_same_from_a_ledger_made_anew(root: Path) -> None:
    (status,) = firnline(root, "status", "pages", "--json")
    assert status["frontier"] == "2026-01-04"
    assert {(line["done"], line["missing"]) for line in status["collections"]} == {(3, 0)}
    ledger = Project.load(root).settings.work / "ledger.db"
    for file in ledger.parent.glob("ledger.db*"):
        file.unlink()
    firnline(root, "ledger", "rebuild")
    assert firnline(root, "status", "pages", "--json") == [status]
    assert len(Project.load(root).ledger.publications("pages")) == 6


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("run", "pages", "--to", "2025-12-31"), "BEFORE_START"),
        (("run", "pages", "--to", "2026-01-04"), "AFTER_END"),
        (("run", "pages", "--to", "someday"), "BAD_EPOCH"),
        (("run", "pages", "--from", "2026-01-03", "--to", "2026-01-01"), "BAD_EPOCH"),
        (("run", "nobody"), "NO_SUCH_PIPELINE"),
        (("plan", "../etc"), "NO_SUCH_PIPELINE"),
        (("show", "nothing"), "NO_SUCH_COLLECTION"),
        (("show", "rankings; drop table x"), "NO_SUCH_COLLECTION"),
        (("show", "amplab.rankings"), "EPOCH_NOT_COMPLETE"),
    ],
)
def test_a_refusal_has_a_code_and_exit_code_1(root: Path, words: tuple[str, ...], code: str) -> None:
    assert firnline(root, *words, "--json", code=1)["error"]["code"] == code


def test_wrong_usage_is_exit_code_2(root: Path) -> None:
    firnline(root, "show", code=2)
    firnline(root, "run", "pages", "--nonsense", code=2)


def test_what_a_module_makes_when_it_is_loaded_works_in_its_stages(root: Path) -> None:
    (root / "include/pipelines/early.py").write_text(EARLY)
    firnline(root, "run", "early", "--to", "0")
    rows = firnline(root, "show", "early.made", "--json")
    assert [tuple(row.values()) for row in rows] == [
        (0, 0, 0, "A", 1, True),
        (1, 3, 1, "B", 1, False),
        (2, 6, 4, "A", 2, True),
        (3, 9, 9, "B", 2, False),
    ]
