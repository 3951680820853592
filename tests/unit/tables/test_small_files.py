"""Small files beside the logs: read whole or not at all, whoever dies while writing one and whatever the folder is called."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fsspec.implementations.local import LocalFileSystem

from firnline.errors import FirnlineError
from firnline.replicas import Place
from firnline.runtime.history import Run
from firnline.tables.catalog import Catalog
from firnline.tables.check_results import CheckResult, CheckResults
from firnline.tables.failures import Failure, Failures
from firnline.tables.metadata import Metadata
from firnline.tables.pruning import prunable
from firnline.tables.trash import Record, Trash

_KILLED = """
import resource, signal, sys
from firnline.tables.catalog import Catalog

signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_FSIZE, (5, 5))
Catalog("sqlite://", sys.argv[1]).write(sys.argv[2], b'{"some": "words"}')
"""
FAILURE = Failure("visits", 3, 4, "a", "CHECK_FAILED", "no", False, "2026-01-01T00:00:00+00:00")
RESULT = CheckResult("visits", 3, 4, "a", "sane", "delta", False, False, 1, ("no",), 1, 0.1, "2026-01-01T00:00:00+00:00")


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return Catalog(f"sqlite:///{tmp_path}/catalog.db", f"file://{tmp_path}/lake [of] *all? {{kinds}}")


def killed(catalog: Catalog, path: str) -> None:
    """Let a process die in the middle of a write."""
    before = len(catalog.paths(catalog.warehouse))
    assert subprocess.run([sys.executable, "-c", _KILLED, catalog.warehouse, path]).returncode < 0
    assert len(catalog.paths(catalog.warehouse)) == before + 1, "what an erasure looks for is told"


def test_nobody_reads_what_a_killed_writer_left(catalog: Catalog) -> None:
    web = f"{catalog.warehouse}/web"
    failures, results = Failures(catalog, "web"), CheckResults(catalog, "web")
    failures.note(FAILURE)
    results.keep(RESULT, {})
    killed(catalog, f"{web}/_failures/visits/4.json")
    killed(catalog, f"{web}/_checks/last/visits/sane.state.json")
    assert failures.open({}) == [FAILURE]
    assert results.last() == [RESULT]


def test_the_trash_knows_no_record_that_was_not_written(catalog: Catalog) -> None:
    table = Metadata("web", "visits", "v", f"{catalog.warehouse}/web/visits", {}, {}, {}, {}, None)
    record = Record(f"{table.location}/firnline/trash/a.json", datetime(2026, 1, 1, tzinfo=UTC), "merged", ())
    catalog.write(record.path, record.as_json())
    killed(catalog, f"{table.location}/firnline/trash/b.json")
    assert Trash(catalog).records(table) == [record]


def test_what_a_killed_writer_left_goes_with_what_is_known_of_its_epoch(catalog: Catalog) -> None:
    folder = f"{catalog.warehouse}/web/_failures"
    killed(catalog, f"{folder}/visits/4.json")
    assert prunable(catalog, folder, {"visits": 4}) == []
    assert prunable(catalog, folder, {"visits": 5}) == catalog.paths(folder)


def test_a_run_is_remembered_beside_what_a_killed_writer_left(catalog: Catalog) -> None:
    run = Run(datetime(2026, 1, 1, tzinfo=UTC), 1.0, 0, (), ())
    folder = f"{catalog.warehouse}/web/_maintenance"
    catalog.write(f"{folder}/a.json", run.as_json())
    killed(catalog, f"{folder}/b.json")
    assert [*map(Run.of_json, catalog.read_all(folder).values())] == [run]


def test_a_catalog_that_is_gone_is_missed_whatever_the_warehouse_is_called(catalog: Catalog) -> None:
    catalog.write(f"{catalog.warehouse}/web/visits/metadata/0.metadata.json", b"{}")
    with pytest.raises(FirnlineError) as refused:
        catalog.names("web")
    assert refused.value.code == "CATALOG_UNAVAILABLE"


def test_a_place_is_read_whatever_it_is_called(catalog: Catalog) -> None:
    place = Place(catalog.warehouse)
    place.write("web/one.json", b"1")
    killed(catalog, f"{catalog.warehouse}/web/two.json")
    assert place.read_all("web") == {"one.json": b"1"}


def test_a_record_that_goes_while_others_are_read_is_no_outage(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(catalog.warehouse)
    place.write("web/one.json", b"1")
    place.write("web/two.json", b"2")
    find = LocalFileSystem.find

    def found(self: LocalFileSystem, path: str, **options: object) -> list[str]:
        listed: list[str] = find(self, path, **options)
        place.remove("web/two.json")
        return listed

    monkeypatch.setattr(LocalFileSystem, "find", found)
    assert place.read_all("web") == {"one.json": b"1"}
