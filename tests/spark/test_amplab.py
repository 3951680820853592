"""The main job on one session: every epoch of every collection equals DuckDB's answer from scratch."""

from __future__ import annotations

import shutil
from itertools import chain, repeat
from pathlib import Path

import pytest
from pyspark.sql.connect.session import SparkSession

from firnline.model.digest import digest, part_of
from firnline.plan.frontier import Frontier
from firnline.runtime.project import Project
from firnline.runtime.read import read
from firnline.runtime.show import changes, summary
from firnline.tables.control import Control
from firnline.tables.scan import changes as changed_rows
from tests.oracle.amplab import EPOCHS, comparable, expected
from tests.project import copy_amplab, make_project
from tests.spark.running import rows, run_epoch

COLLECTIONS = ("rankings", "user_visits", "revenue_by_ip", "revenue_by_prefix", "top_sources")


@pytest.fixture(scope="module")
def run(lake: tuple[Path, SparkSession], tmp_path_factory: pytest.TempPathFactory) -> Project:
    root = tmp_path_factory.mktemp("amplab")
    copy_amplab(root)
    project = make_project(root, f'work = "{lake[0]}"')
    for epoch in EPOCHS:
        run_epoch(project, lake[1], "amplab", epoch)
    return project


@pytest.mark.parametrize("epoch", EPOCHS)
@pytest.mark.parametrize("collection", COLLECTIONS)
def test_state_at_every_epoch_equals_duckdb(run: Project, collection: str, epoch: str) -> None:
    assert rows(run, run.graph("amplab"), collection, epoch) == expected(collection, epoch)


def test_read_as_of_in_spark_equals_duckdb(run: Project, spark: SparkSession) -> None:
    found = read("amplab.revenue_by_ip", as_of="2026-01-02", session=spark, project=run).collect()
    assert comparable([tuple(row) for row in found]) == expected("revenue_by_ip", "2026-01-02")


def test_several_collections_are_read_after_one_epoch_while_the_frontier_moves(
    run: Project, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    second, third, last = map(run.graph("amplab").schedule.point, ("2026-01-02", "2026-01-03", "2026-01-04"))
    points = chain((second, second, third), repeat(last))  # asked for generations, then for the cut; from then on it moves
    monkeypatch.setattr(Control, "frontier", lambda _: Frontier(next(points), {}))
    names = ("revenue_by_ip", "top_sources")
    both = read(*(f"amplab.{name}" for name in names), session=spark, project=run)
    for name, frame in zip(names, both, strict=True):
        assert comparable([tuple(row) for row in frame.collect()]) == expected(name, "2026-01-01")


@pytest.mark.parametrize("collection", COLLECTIONS)
def test_sidecar_digests_equal_the_python_twin(run: Project, collection: str) -> None:
    log = run.log("amplab", collection)
    metadata = log.load()
    assert metadata is not None
    ids, table = metadata.columns, run.catalog.iceberg("amplab", collection)
    declared = run.graph("amplab").collection(collection)
    for entry in log.entries():
        sidecar = log.sidecar(entry)
        by_part: dict[int, list[tuple[dict[int, object], int]]] = {}
        for row in changed_rows(table, entry.lower, entry.description.upper).to_pylist():
            weight, _ = row.pop("_diff"), row.pop("_epoch")
            part = part_of([row[name] for name in declared.partition_by], declared.parts)
            by_part.setdefault(part, []).append(({ids[name]: value for name, value in row.items()}, weight))
        assert sidecar.digests == {(entry.lower, part): digest(found) for part, found in by_part.items()}
        assert sidecar.fingerprint.code == run.graph("amplab").fingerprints[collection]
        assert set(sidecar.inputs) == set(declared.inputs)


def test_malformed_records_are_in_quarantine_with_reason_file_and_record(run: Project) -> None:
    found = rows(run, run.graph("amplab"), "user_visits__quarantine")
    assert len(found) == 6
    assert {reason for reason, _, _ in found} == {"ad_revenue: 'n/a' is not decimal(12,4)", "visit_date: 'yesterday' is not date"}
    assert all(file.endswith("user_visits.csv") and ("n/a" in record or "yesterday" in record) for _, file, record in found)


def test_changes_say_what_an_epoch_inserted_and_removed(run: Project) -> None:
    graph = run.graph("amplab")
    _, found = changes(run, graph, "rankings", "2026-01-02")
    feed = (run.settings.root / "include/landing/amplab/2026-01-02/rankings.csv").read_text().splitlines()[1:]
    assert sorted(f"{row[1][0]},{row[2]},{row[3]},{row[4]}" for row in found) == sorted(feed)
    totals = {(change.epoch, change.collection): (change.inserted, change.removed) for change in summary(run, graph)}
    signs = [line[0] for line in feed]
    assert totals["2026-01-02", "rankings"] == (signs.count("+"), signs.count("-"))


def test_a_second_run_keeps_everything_and_needs_no_source_file(run: Project, spark: SparkSession) -> None:
    shutil.move(run.settings.root / "include/landing", run.settings.root / "elsewhere")
    try:
        outcomes = [outcome for epoch in EPOCHS for outcome in run_epoch(run, spark, "amplab", epoch)]
    finally:
        shutil.move(run.settings.root / "elsewhere", run.settings.root / "include/landing")
    assert {outcome.how for outcome in outcomes} == {"kept"}


def test_log_tables_are_as_designed(run: Project, spark: SparkSession) -> None:
    table = run.catalog.iceberg("amplab", "user_visits")
    assert table.format_version == 2
    assert [field.name for field in table.schema().fields][-3:] == ["_epoch", "_diff", "_part"]
    assert [(field.name, str(field.transform)) for field in table.spec().fields] == [("_part", "identity")]
    assert table.properties["gc.enabled"] == "false"
    assert len(table.snapshots()) == len(EPOCHS), "staged snapshots are gone after their publish"
    assert all("firnline.upper" in (snapshot.summary or {}).additional_properties for snapshot in table.snapshots())  # type: ignore[union-attr]
    assert spark.table("lake.amplab.user_visits").select("_part").distinct().count() == 4
