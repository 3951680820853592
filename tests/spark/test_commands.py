"""The command line on the README's pipeline: run, run again, show, status, plan, lineage, ledger."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from firnline.runtime.project import Project
from tests.oracle.amplab import expected
from tests.project import ROOT, command, copy_amplab, firnline

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


def best(epoch: str) -> list[str]:
    pages = sorted(expected("rankings", epoch), key=lambda page: (-page[1], page[0]))[:5]
    return sorted(page[0] for page in pages)


def test_run_computes_the_epochs_asked_for_and_then_keeps_them(root: Path) -> None:
    first = firnline(root, "run", "pages", "--from", EPOCHS[0], "--to", EPOCHS[1], "--json")
    assert [(entry["epoch"], entry["collection"], entry["how"]) for entry in first] == [
        (epoch, name, "computed") for epoch in EPOCHS[:2] for name in ("rankings", "best_pages")
    ]
    (plan,) = firnline(root, "plan", "pages", "--json")
    assert [(step["collection"], step["epochs"], step["code"]) for step in plan["run"]] == [
        (name, [EPOCHS[2]], "same") for name in ("rankings", "best_pages")
    ]
    said = firnline(root, "run", "pages")
    assert "2 computed, 4 kept" in said
    assert {entry["how"] for entry in command(root, "run", "pages", "--json")} == {"kept"}
    for epoch in EPOCHS:
        shown = command(root, "show", "best_pages", "--as-of", epoch, "--json")
        assert [row["page_url"] for row in shown] == best(epoch)
    changes = firnline(root, "show", "pages.best_pages", "--changes", "--as-of", EPOCHS[1], "--json")
    gone, came = set(best(EPOCHS[0])) - set(best(EPOCHS[1])), set(best(EPOCHS[1])) - set(best(EPOCHS[0]))
    assert {(row["change"], row["page_url"]) for row in changes} == {("-1", url) for url in gone} | {("+1", url) for url in came}


def test_answers_are_the_same_from_a_ledger_made_anew(root: Path) -> None:
    asked = [
        ("status", "pages"),
        ("plan", "pages"),
        ("lineage", "pages.best_pages", "--epoch", EPOCHS[1]),
        ("lineage", "pages.rankings", "--epoch", EPOCHS[0], "--downstream"),
    ]
    before = [command(root, *words, "--json") for words in asked]
    (status,) = before[0]
    assert status["frontier"] == "2026-01-04"
    assert {(line["done"], line["missing"]) for line in status["collections"]} == {(3, 0)}
    project = Project.load(root)
    assert project.flusher.drain(60), "the runs left some for the next process"
    held = indexed(project)
    publications, inputs, parts = held
    assert (len(publications), len(inputs)) == (6, 3)
    assert [(each.collection, each.epoch) for each in parts] == [
        (each.collection, each.lower) for each in publications if each.rows
    ]
    for file in project.settings.work.glob("ledger.db*"):
        file.unlink()
    command(root, "ledger", "rebuild")
    assert [command(root, *words, "--json") for words in asked] == before
    assert indexed(Project.load(root)) == held


def indexed(project: Project) -> tuple[list[Any], ...]:
    return project.ledger.publications("pages"), project.ledger.inputs("pages"), project.ledger.parts("pages")


def test_lineage_as_a_tree_and_as_a_picture(root: Path) -> None:
    told = command(root, "lineage", "best_pages", "--epoch", EPOCHS[2], "--part", "0", "--json")
    assert [(node["collection"], node["epochs"]) for node in told["nodes"]] == [
        ("best_pages", [EPOCHS[2]]),
        ("rankings", [EPOCHS[2]]),
    ]
    assert [(edge["reader"], edge["input"], edge["parts"]) for edge in told["edges"]] == [
        (f"best_pages@{EPOCHS[2]}", f"rankings@{EPOCHS[2]}", "same")
    ]
    said = command(root, "lineage", "best_pages", "--epoch", EPOCHS[2], "--picture", "drawn.svg")
    assert said.index("best_pages") < said.index("rankings")
    drawn = ElementTree.parse(root / "drawn.svg").getroot()
    assert drawn.tag.endswith("svg")
    assert "rankings" in "".join(drawn.itertext())


def test_lineage_imports_neither_spark_nor_pyiceberg_nor_sqlalchemy(root: Path) -> None:
    words = ["lineage", "best_pages", "--epoch", EPOCHS[2], "--json"]
    run = f"from firnline.cli.app import app; app({words!r}, standalone_mode=False)"
    program = f"import sys; {run}; print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True)
    assert not {"pyspark", "pyiceberg", "sqlalchemy"} & set(done.stderr.split())


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
        (("lineage", "nothing", "--epoch", "2026-01-01"), "NO_SUCH_COLLECTION"),
        (("lineage", "amplab.rankings", "--epoch", "2026-01-01"), "NO_SUCH_COLLECTION"),
        (("lineage", "best_pages", "--epoch", "someday"), "BAD_EPOCH"),
        (("lineage", "best_pages", "--epoch", "2026-01-01", "--part", "1"), "BAD_OPTION"),
        (("lineage", "best_pages", "--epoch", "2026-01-01", "--picture", "no/folder/x.svg"), "BAD_OPTION"),
    ],
)
def test_a_refusal_has_a_code_and_exit_code_1(root: Path, words: tuple[str, ...], code: str) -> None:
    assert command(root, *words, "--json", code=1)["error"]["code"] == code


def test_wrong_usage_is_exit_code_2(root: Path) -> None:
    command(root, "show", code=2)
    command(root, "run", "pages", "--nonsense", code=2)


def test_what_a_module_makes_when_it_is_loaded_works_in_its_stages(root: Path) -> None:
    (root / "include/pipelines/early.py").write_text(EARLY)
    firnline(root, "run", "early", "--to", "0")
    rows = command(root, "show", "early.made", "--json")
    assert [tuple(row.values()) for row in rows] == [
        (0, 0, 0, "A", 1, True),
        (1, 3, 1, "B", 1, False),
        (2, 6, 4, "A", 2, True),
        (3, 9, 9, "B", 2, False),
    ]
