"""From the stash to the ledger, whatever fails on the way: nothing lost that the logs have, nothing doubled, nobody waits."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from subprocess import PIPE

import pyarrow as pa
import pytest

from firnline.errors import FirnlineError
from firnline.ledger import Input, Ledger, Part, Publication
from firnline.model.digest import Digest
from firnline.model.epoch import Epoch
from firnline.model.fingerprint import Fingerprint
from firnline.runtime.flusher import flush, hand_over
from firnline.runtime.index import published, rebuild
from firnline.runtime.project import Project
from firnline.runtime.stash import Stash
from firnline.tables.sidecar import Sidecar
from tests.project import make_project
from tests.publishing import READS, publish, publish_all, web

Content = tuple[list[Publication], list[Input], list[Part]]


@pytest.fixture(params=["sqlite", "postgresql"])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Project:
    if request.param == "sqlite":
        return make_project(tmp_path)
    make: Callable[[], str] = request.getfixturevalue("postgres_uri")
    return make_project(tmp_path, f'ledger_uri = "{make()}"')


@pytest.fixture
def local(tmp_path: Path) -> Project:
    return make_project(tmp_path)


def content(project: Project) -> Content:
    return project.ledger.publications("web"), project.ledger.inputs("web"), project.ledger.parts("web")


def whole(project: Project) -> Content:
    """What the ledger holds when it is made from the logs."""
    before = content(project)
    rebuild(project, web())
    found = content(project)
    project.ledger.forget("web")
    project.ledger.record(*before)
    return found


def stash(project: Project, collection: str, epoch: int) -> None:
    line = published(project, "web", collection, epoch, f"{collection}{epoch}")
    assert line is not None
    project.stash.put(line)


def lowers(project: Project, collection: str) -> list[int]:
    return [entry.lower for entry in project.ledger.publications("web", collection)]


def test_a_line_comes_back_from_the_stash_as_it_was(local: Project) -> None:
    publish_all(local, 0)
    line = published(local, "web", "seen", 0, "seen0")
    assert line is not None
    assert [each.input for each in line.inputs] == ["pages", "visits"]
    assert [(each.part, each.first) for each in line.parts] == [(0, 2**64 - 1), (1, 2**64 - 2)]
    local.stash.put(line)
    assert list(local.stash.batch().values()) == [line]


def test_what_is_handed_over_reaches_the_ledger_and_leaves_the_stash(project: Project) -> None:
    for epoch in range(3):
        for collection in READS:
            publish(project, collection, epoch)
            hand_over(project, "web", collection, Epoch(epoch, epoch + 1), f"{collection}{epoch}")
    assert project.flusher.drain(60)
    assert len(content(project)[0]) == 12
    assert content(project) == whole(project)
    assert list((project.settings.work / "stash").iterdir()) == []


def test_an_attempt_that_published_nothing_is_not_stashed(local: Project) -> None:
    publish(local, "visits", 0)
    hand_over(local, "web", "visits", Epoch(0, 1), "somebody else's")
    assert local.stash.files() == []


def test_a_quarantine_goes_with_its_source(local: Project) -> None:
    publish(local, "visits", 0)
    log = local.log("web", "visits__quarantine")
    log.create(pa.schema([("record", pa.string())]), (), 0, {})
    log.publish(0, Sidecar("visits__quarantine", 0, 1, "visits0q", Fingerprint("f"), {}, {(0, 0): Digest(1, 1, 1, 1)}, 0.1), None)
    hand_over(local, "web", "visits", Epoch(0, 1), "visits0")
    assert local.flusher.drain(60)
    assert {each.collection for each in local.ledger.publications("web")} == {"visits", "visits__quarantine"}


def test_inputs_that_the_ledger_never_heard_of_come_with_their_reader(project: Project) -> None:
    publish_all(project, 0, 1)
    stash(project, "totals", 1)  # all the others were stashed on a machine that is lost
    assert flush(project) == 1
    assert content(project) == whole(project)


def test_a_hole_in_the_middle_is_filled(local: Project) -> None:
    publish_all(local, 0, 1, 2)
    for epoch in (0, 2):
        stash(local, "visits", epoch)
        local.ledger.record([each.publication for each in local.stash.batch().values()])
        local.stash.remove(local.stash.files())
    assert lowers(local, "visits") == [0, 2]
    stash(local, "seen", 2)
    flush(local)
    assert lowers(local, "visits") == [0, 1, 2]


def test_two_flushers_at_once_leave_one_entry_each(project: Project) -> None:
    publish_all(project, 0, 1, 2)
    for collection in READS:
        for epoch in range(3):
            stash(project, collection, epoch)
    others = [Project.load(project.settings.root) for _ in range(4)]
    threads = [threading.Thread(target=flush, args=(each,)) for each in others]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert project.stash.files() == []
    assert content(project) == whole(project)


KILLED = """
import os, signal, sys
from pathlib import Path
from firnline.runtime import flusher, index
from firnline.runtime.project import Project
from firnline.runtime.stash import Stash

project, at = Project.load(Path(sys.argv[1])), sys.argv[2]
die = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
if at == "before":
    flusher.record = die
elif at == "forwarding":
    flusher.lacking = die
elif at == "removing":
    Stash.remove = lambda self, files: (next(iter(files)).unlink(), die())
flusher.flush(project)
"""


@pytest.mark.parametrize("at", ["before", "forwarding", "removing"])
def test_after_a_flusher_is_killed_the_next_process_carries_the_rest(local: Project, at: str) -> None:
    publish_all(local, 0, 1)
    stash(local, "totals", 0)
    stash(local, "totals", 1)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", KILLED, str(local.settings.root), at], env=environment)
    assert done.returncode == -signal.SIGKILL
    assert local.stash.files()
    assert local.flusher.drain(60)
    assert content(local) == whole(local)


EXITING = """
import sys, time
from pathlib import Path
from firnline.model.epoch import Epoch
from firnline.runtime.flusher import hand_over
from firnline.runtime.project import Project

project = Project.load(Path(sys.argv[1]))
hand_over(project, "web", "visits", Epoch(0, 1), "visits0")
print(time.time(), flush=True)
"""


@contextmanager
def locked(project: Project) -> Iterator[None]:
    """The ledger, and somebody who does not let go of it."""
    project.ledger.publications("web")
    with closing(sqlite3.connect(project.settings.work / "ledger.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield


def test_a_process_ends_without_waiting_for_the_ledger(local: Project) -> None:
    publish(local, "visits", 0)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with locked(local):
        command = [sys.executable, "-c", EXITING, str(local.settings.root)]
        done = subprocess.run(command, env=environment, stdout=PIPE, check=True, text=True)
        assert time.time() - float(done.stdout) < 10, "a lock is waited for thirty seconds"
    assert len(local.stash.files()) == 1
    assert local.flusher.drain(60)
    assert lowers(local, "visits") == [0]


def test_while_the_ledger_is_away_lines_wait_and_nobody_else(local: Project) -> None:
    asked: list[int] = []

    class Away(Ledger):
        def record(self, *_: object) -> None:
            asked.append(threading.get_ident())
            raise FirnlineError("LEDGER_UNAVAILABLE", "it is away")

    local.__dict__["ledger"] = Away(local.settings.ledger_uri)
    publish(local, "visits", 0)
    hand_over(local, "web", "visits", Epoch(0, 1), "visits0")
    assert not local.flusher.drain(2)
    assert len(asked) >= 2
    assert threading.get_ident() not in asked
    local.__dict__["ledger"] = Ledger(local.settings.ledger_uri)
    publish(local, "visits", 1)
    hand_over(local, "web", "visits", Epoch(1, 2), "visits1")
    assert local.flusher.drain(60)
    assert lowers(local, "visits") == [0, 1]


def test_a_stash_without_room_costs_nothing_but_time(local: Project) -> None:
    publish(local, "visits", 0)
    (local.settings.work / "stash").write_text("a file where the folder should be")
    hand_over(local, "web", "visits", Epoch(0, 1), "visits0")
    (local.settings.work / "stash").unlink()
    publish(local, "visits", 1)
    hand_over(local, "web", "visits", Epoch(1, 2), "visits1")
    assert local.flusher.drain(60)
    assert lowers(local, "visits") == [0, 1], "the next flush brings what was not stashed"


def test_a_full_disk_leaves_no_half_a_line(tmp_path: Path, local: Project) -> None:
    publish(local, "visits", 0)
    line = published(local, "web", "visits", 0, "visits0")
    assert line is not None
    folder = tmp_path / "small"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            Stash(folder).put(line)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert list(folder.iterdir()) == []


def test_a_broken_file_holds_up_nobody(local: Project) -> None:
    publish(local, "visits", 0)
    stash(local, "visits", 0)
    for name, text in {"a": "", "b": "[]", "c": '{"publication": {}}'}.items():
        (local.settings.work / "stash" / f"{name}.json").write_text(text)
    assert flush(local) == 1
    assert local.stash.files() == []
    assert lowers(local, "visits") == [0]


def test_a_log_that_cannot_be_read_holds_up_nobody(local: Project) -> None:
    publish_all(local, 0)
    stash(local, "totals", 0)
    (entry,) = local.log("web", "seen").entries()
    Path(entry.sidecar.removeprefix("file://")).unlink()
    assert flush(local) == 1
    assert lowers(local, "totals") == [0]


def test_rebuilding_gives_the_same_and_empties_the_stash(project: Project) -> None:
    publish_all(project, 0, 1)
    for collection in READS:
        stash(project, collection, 0)
        stash(project, collection, 1)
    flush(project)
    before = content(project)
    stash(project, "totals", 1)
    project.ledger.forget("web")
    rebuild(project, web())
    assert content(project) == before
    assert project.stash.files() == []
