"""Determinants on real storage: of several values for one name the first stands, whole, for everybody."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

from firnline.tables.catalog import Catalog
from firnline.tables.determinants import Determinants

# A process that logs its own value for a name as soon as it may, and prints which one stands.
LOGGING = """
import os, sys, time
from pathlib import Path
from firnline.tables.catalog import Catalog
from firnline.tables.determinants import Determinants

folder, mine, fault = sys.argv[1:]
exec(fault)
determinants = Determinants(Catalog("sqlite://", f"file://{folder}/warehouse"), "web", "visits", 7)
Path(folder, f"ready-{mine}").touch()
while not Path(folder, "go").exists():
    pass
print(determinants.log("rate", mine * 5000)[:1])
"""
DYING = "os.link = lambda *_: os.kill(os.getpid(), 9)"


@pytest.fixture(params=["file", "memory"])
def warehouse(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "file":
        yield f"file://{tmp_path}/warehouse"
    else:
        yield f"memory://{tmp_path}/warehouse"
        fsspec.filesystem("memory").store.clear()


@pytest.fixture
def catalog(warehouse: str) -> Catalog:
    return Catalog("sqlite://", warehouse)


@pytest.fixture
def determinants(catalog: Catalog) -> Determinants:
    return Determinants(catalog, "web", "visits", 7)


def logging(folder: Path, mine: str, fault: str = "") -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", LOGGING, str(folder), mine, fault], stdout=subprocess.PIPE, text=True)


def await_ready(folder: Path, processes: dict[str, subprocess.Popen[str]]) -> None:
    while not all((folder / f"ready-{name}").exists() for name in processes):
        assert all(process.poll() is None for process in processes.values())
    (folder / "go").touch()


def test_the_first_value_stands(determinants: Determinants) -> None:
    assert determinants.find("rate", "nothing") == "nothing"
    assert determinants.log("rate", {"eur": 1.25}) == {"eur": 1.25}
    assert determinants.log("rate", {"eur": 7}) == {"eur": 1.25}
    assert determinants.find("rate") == {"eur": 1.25}


def test_a_logged_null_is_a_value(determinants: Determinants) -> None:
    assert determinants.log("rate", None) is None
    assert determinants.log("rate", 5) is None
    assert determinants.find("rate", "nothing") is None


def test_a_forgotten_value_makes_room_for_another(determinants: Determinants) -> None:
    determinants.log("rate", 1)
    determinants.forget("rate")
    determinants.forget("rate")
    assert determinants.log("rate", 2) == 2


def test_any_text_is_a_name(determinants: Determinants) -> None:
    names = ["rate", "../rate", "files:landing/2026/*.csv", "ü 雪", "", ".", "x" * 300, "x" * 301, "雪" * 300]
    for position, name in enumerate(names):
        determinants.log(name, position)
    assert determinants.all() == {name: position for position, name in enumerate(names)}
    assert [determinants.find(name) for name in names] == list(range(len(names)))


def test_collections_and_epochs_have_their_own(catalog: Catalog, determinants: Determinants) -> None:
    determinants.log("rate", 1)
    assert Determinants(catalog, "web", "visits", 8).all() == {}
    assert Determinants(catalog, "web", "pages", 7).all() == {}
    assert determinants.all() == {"rate": 1}


def test_of_two_processes_at_once_both_use_one_value(tmp_path: Path) -> None:
    processes = {name: logging(tmp_path, name) for name in ("a", "b")}
    await_ready(tmp_path, processes)
    stands = {process.communicate(timeout=60)[0].strip() for process in processes.values()}
    assert len(stands) == 1
    determinants = Determinants(Catalog("sqlite://", f"file://{tmp_path}/warehouse"), "web", "visits", 7)
    assert determinants.find("rate") == stands.pop() * 5000
    assert len([path for path in (tmp_path / "warehouse").rglob("*") if path.is_file()]) == 1, "nothing else is left"


def test_a_process_that_dies_before_its_value_is_whole_logged_nothing(tmp_path: Path) -> None:
    processes = {"a": logging(tmp_path, "a", DYING)}
    await_ready(tmp_path, processes)
    processes["a"].communicate(timeout=60)
    assert processes["a"].returncode == -signal.SIGKILL
    determinants = Determinants(Catalog("sqlite://", f"file://{tmp_path}/warehouse"), "web", "visits", 7)
    assert determinants.find("rate", "nothing") == "nothing"
    assert determinants.all() == {}
    assert determinants.log("rate", "b") == "b"
    assert determinants.all() == {"rate": "b"}
