"""What everything stands on fails for a while: the catalog, the disks, the clock. On real Spark, Iceberg and SQLite.

Short enough, and the epoch only takes longer. Too long, and it ends with a coded error that a retry may mend; nothing of it is
visible, and once the fault is gone the retry goes on. In the end every epoch is there exactly once and right.
"""

from __future__ import annotations

import json
import os
import resource
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql.connect.session import SparkSession

from firnline.errors import FirnlineError
from firnline.runtime.project import Project
from firnline.runtime.status import status, steps
from firnline.tables import commit, database
from firnline.world import World, replaced
from tests.faults.judging import PIPELINE, Make, again, check, new_name, remote
from tests.happening import At
from tests.project import ROOT, make_project
from tests.spark.running import rows, run_epoch


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two seconds instead of two minutes."""
    monkeypatch.setattr(database, "_BUSY_SECONDS", 0.3)
    monkeypatch.setattr(commit, "_PATIENCE_SECONDS", 2)


@contextmanager
def refused(code: str, *reasons: str, within: float = 40) -> Iterator[None]:
    """An error with a code that a retry may mend, soon."""
    began = time.monotonic()
    with pytest.raises(FirnlineError) as caught:
        yield
    assert time.monotonic() - began < within
    assert (caught.value.code, caught.value.retryable) == (code, True), str(caught.value)
    assert [reason for reason in reasons if reason not in caught.value.what] == [], str(caught.value)


def invisible(made: Project, name: str, collection: str = "numbers") -> None:
    """Nothing of the first epoch can be read."""
    head = made.log(name, collection).head()
    assert head is None or head.snapshot is None
    assert made.control(name).frontier() is None


def finish(made: Project, spark: SparkSession, name: str) -> None:
    """The fault is gone, and the retry goes on."""
    again(made, spark, name)
    check(made, name, epochs=1)
    assert all(line.failed == () for line in status(made, made.graph(name)).collections)


class Lock:
    """``BEGIN EXCLUSIVE`` on the catalog by somebody else."""

    def __init__(self, file: Path) -> None:
        self._connection = sqlite3.connect(file, timeout=30, isolation_level=None, check_same_thread=False)

    def take(self) -> None:
        self._connection.execute("BEGIN EXCLUSIVE")

    def take_for(self, seconds: float) -> None:
        self.take()
        threading.Timer(seconds, self.release).start()

    def release(self) -> None:
        self._connection.execute("ROLLBACK")

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def catalog(lake: tuple[Path, SparkSession]) -> Path:
    return lake[0] / "catalog.db"


@pytest.fixture
def pipeline(project: Make) -> tuple[Project, str]:
    name = new_name()
    return project(**{name: PIPELINE.format(name=name)}), name


Made = tuple[Project, str]


def test_a_catalog_locked_for_a_while_only_takes_longer(pipeline: Made, spark: SparkSession, catalog: Path) -> None:
    made, name = pipeline
    with closing(Lock(catalog)) as lock, replaced(At("publish.judged", lambda: lock.take_for(3))):
        run_epoch(made, spark, name, "0")
    check(made, name, epochs=1)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("point", ["log.created", "publish.judged", pytest.param("frontier.judged", marks=pytest.mark.nightly)])
def test_a_catalog_locked_for_too_long_is_told_and_the_retry_goes_on(
    point: str, pipeline: Made, spark: SparkSession, catalog: Path
) -> None:
    made, name = pipeline
    session = SparkSession.builder.remote(remote(spark)).create()
    session.conf.set("spark.sql.catalog.lake.uri", f"jdbc:sqlite:{catalog}?busy_timeout=300")
    try:
        with closing(Lock(catalog)) as lock:
            with refused("CATALOG_UNAVAILABLE", "locked"), replaced(At(point, lock.take)):
                run_epoch(made, session, name, "0")
            lock.release()
        if point != "frontier.judged":
            invisible(made, name)
            assert "CATALOG_UNAVAILABLE" in status(made, made.graph(name)).collections[0].failed[0]
        assert made.control(name).frontier() is None
        finish(made, session, name)
    finally:
        session.stop()


def test_a_slow_catalog_only_takes_longer(pipeline: Made, spark: SparkSession, catalog: Path) -> None:
    made, name = pipeline
    is_over = threading.Event()

    def hold() -> None:
        with closing(Lock(catalog)) as lock:
            while not is_over.wait(0.2):
                lock.take_for(0.3)
                time.sleep(0.4)

    holding = threading.Thread(target=hold)
    holding.start()
    try:
        run_epoch(made, spark, name, "0")
    finally:
        is_over.set()
        holding.join()
    check(made, name, epochs=1)


CONTENTS = {"an empty file": b"", "no database": b"not a database at all " * 500}


@contextmanager
def away(catalog: Path, put: Callable[[], object] = lambda: None) -> Iterator[None]:
    """The catalog's file is elsewhere, and something else or nothing in its place."""
    aside = catalog.with_suffix(".aside")
    catalog.rename(aside)
    try:
        put()
        yield
    finally:
        aside.replace(catalog)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("instead", ["nothing", *(pytest.param(each, marks=pytest.mark.nightly) for each in CONTENTS)])
def test_a_catalog_that_is_not_there_is_not_taken_for_a_new_one(
    instead: str, pipeline: Made, spark: SparkSession, catalog: Path
) -> None:
    made, name = pipeline
    run_epoch(made, spark, name, "0")
    with away(catalog, lambda: catalog.write_bytes(CONTENTS[instead]) if instead in CONTENTS else None):
        other = Project.load(made.settings.root)
        for ask in (
            lambda: other.log(name, "numbers").head(),
            lambda: status(other, other.graph(name)),
            lambda: made.catalog.names(name),
        ):
            with refused("CATALOG_UNAVAILABLE"):
                ask()
        with refused("CATALOG_UNAVAILABLE"):
            run_epoch(made, spark, name, "1")
        assert catalog.exists() == (instead in CONTENTS)
    run_epoch(made, spark, name, "1")
    check(made, name)


def test_a_catalog_moved_away_during_a_publish_only_takes_longer(pipeline: Made, spark: SparkSession, catalog: Path) -> None:
    made, name = pipeline
    is_gone, is_back = threading.Event(), threading.Event()

    def move() -> None:
        with away(catalog):
            is_gone.set()
            time.sleep(2)
        is_back.set()

    def happen() -> None:
        threading.Thread(target=move).start()
        is_gone.wait()

    with replaced(At("publish.judged", happen)):
        run_epoch(made, spark, name, "0")
    assert is_back.is_set()
    check(made, name, epochs=1)


class Disk:
    """A small disk of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self._mount("size=4m", "-t", "tmpfs", "tmpfs")

    def fill(self) -> None:
        with suppress(OSError), (self.folder / "ballast").open("wb", buffering=0) as ballast:
            while True:
                ballast.write(bytes(1024))

    def lock(self) -> None:
        self._mount("remount,ro")

    def mend(self) -> None:
        self._mount("remount,rw,size=16m")

    def close(self) -> None:
        subprocess.run(["umount", "--lazy", str(self.folder)], check=True)

    def _mount(self, options: str, *more: str) -> None:
        subprocess.run(["mount", "-o", options, *more, str(self.folder)], check=True)


FAULTS = {"full": (Disk.fill, "No space left on device"), "read-only": (Disk.lock, "")}
# The determinant's file, the new log, Spark's data, the sidecar, the commit; one point per fault and writer is tried always.
REACHED = ("advance.planned", "determinant.logged", "log.created", "stage.audited", "publish.described")
ALWAYS = {("full", "determinant.logged"), ("full", "log.created"), ("full", "publish.described")}
ALWAYS |= {("read-only", "advance.planned"), ("read-only", "log.created")}


def _cases() -> list[object]:
    cases = [(fault, point) for fault in FAULTS for point in REACHED]
    return [pytest.param(*case, marks=() if case in ALWAYS else pytest.mark.nightly) for case in cases]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    if os.geteuid() != 0:
        pytest.skip("only root may mount a disk; the tests of a limited process run for everybody")
    with closing(Disk(tmp_path / "disk")) as made:
        yield made


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(("fault", "point"), _cases())
def test_a_warehouse_that_takes_nothing(fault: str, point: str, project: Make, spark: SparkSession, disk: Disk) -> None:
    name = new_name()
    made = project(f'warehouse = "file://{disk.folder}"', **{name: PIPELINE.format(name=name)})
    happen, reason = FAULTS[fault]
    with refused("STORAGE_UNAVAILABLE", str(disk.folder), reason), replaced(At(point, lambda: happen(disk))):
        run_epoch(made, spark, name, "0")
    invisible(made, name)
    disk.mend()
    finish(made, spark, name)


def test_a_full_local_disk_holds_up_no_epoch(
    lake: tuple[Path, SparkSession], spark: SparkSession, tmp_path: Path, disk: Disk
) -> None:
    name = new_name()
    places = {"work": disk.folder, "warehouse": f"file://{lake[0]}/warehouse", "catalog_uri": f"sqlite:///{lake[0]}/catalog.db"}
    settings = "\n".join(f'{key} = "{value}"' for key, value in places.items())
    made = make_project(tmp_path, settings, **{name: PIPELINE.format(name=name)})
    disk.fill()
    run_epoch(made, spark, name, "0")
    assert status(made, made.graph(name)).frontier == "1"
    disk.mend()
    run_epoch(made, spark, name, "1")
    check(made, name)


class Clock(World):
    """A world whose clock is wrong."""

    def __init__(self, days: int) -> None:
        super().__init__()
        self._days = timedelta(days=days)

    def now(self) -> datetime:
        return super().now() + self._days


DAILY = """
    import firnline as fl

    {name} = fl.Pipeline("{name}", schedule="@daily", start="{start}")

    @{name}.source(keys=["day"])
    def days(epoch):
        if epoch.label == "{bad}":
            raise ValueError("not today")
        return epoch.spark.createDataFrame([(epoch.label,)], "day string")
"""


def test_a_clock_that_is_a_day_off_moves_only_what_is_due(project: Make, spark: SparkSession) -> None:
    name = new_name()
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    labels = [(today + timedelta(days=day)).date().isoformat() for day in range(-4, 2)]
    made = project(**{name: DAILY.format(name=name, start=labels[0], bad=labels[2])})
    graph = made.graph(name)
    for done, days in ((1, 1), (2, -1)):
        with replaced(Clock(days)):
            run_epoch(made, spark, name, labels[done - 1])
            found = status(made, graph)
            assert (found.frontier, found.horizon) == (labels[done], labels[4 + days])
            assert steps(made, graph, None)[0].epochs == tuple(labels[done : 4 + days])
    with replaced(Clock(1)), pytest.raises(FirnlineError, match="not today"):
        run_epoch(made, spark, name, labels[2])
    found = status(made, graph)
    assert found.horizon == labels[4]
    assert [line.split(":")[0] for line in found.collections[0].failed] == [labels[2]]
    assert rows(made, graph, "days") == [(labels[0],), (labels[1],)]


@pytest.mark.usefixtures("impatient")
def test_after_a_publish_with_a_clock_that_is_ahead_the_next_is_refused(
    pipeline: Made, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, name = pipeline
    right = time.time
    with monkeypatch.context() as wrong:
        wrong.setattr(time, "time", lambda: right() + 3600)
        run_epoch(made, spark, name, "0")
    with refused("CLOCK_BEHIND"):
        run_epoch(made, spark, name, "1")
    check(made, name, epochs=1)


@pytest.mark.usefixtures("impatient")
def test_a_clock_behind_the_last_publish_is_told(pipeline: Made, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    made, name = pipeline
    right = time.time
    run_epoch(made, spark, name, "0")
    with monkeypatch.context() as wrong, refused("CLOCK_BEHIND", "seconds after"):
        back = At("publish.judged", lambda: wrong.setattr(time, "time", lambda: right() - 86400))
        with replaced(back):
            run_epoch(made, spark, name, "1")
    run_epoch(made, spark, name, "1")
    check(made, name)


def test_a_process_that_may_write_no_large_file(pipeline: Made, spark: SparkSession) -> None:
    made, name = pipeline
    path = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.child", str(made.settings.root), remote(spark), name, "run"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20)),
    )
    assert done.returncode == 1, done.stdout + done.stderr
    error = json.loads(done.stdout.splitlines()[-1])
    assert (error["code"], error["retryable"]) == ("STORAGE_UNAVAILABLE", True)
    invisible(made, name)
    finish(made, spark, name)
