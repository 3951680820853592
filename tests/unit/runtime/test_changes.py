"""``firnline.changes`` and registered readers on real tables, without a JVM."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import firnline as fl
from firnline.errors import FirnlineError
from firnline.runtime.project import Project
from firnline.runtime.rewind import rewind
from firnline.runtime.safepoint import let_go
from firnline.world import replaced
from tests.contract.housekeeping import Mortal
from tests.happening import Killed
from tests.project import make_project
from tests.shelf import Delta, Shelf, comparable, emptied, rescaled

PIPELINE = """
    import firnline as fl

    web = fl.Pipeline("web", schedule=1, start=0, keep="1 epochs")

    @web.source(keys=["id"], parts=2)
    def visits(epoch): ...

    @web.source(keys=["id"])
    def pages(epoch): ...
"""
SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("rate", pa.float64()), ("tags", pa.list_(pa.string()))])


def row(number: int, n: int, rate: float = 0.0) -> dict[str, Any]:
    return {"id": number, "n": n, "rate": rate, "tags": [str(n)]}


HISTORY: list[Delta] = [
    [(row(number, 0), 1) for number in range(6)],
    [(row(0, 0), -1), (row(0, 1, float("nan")), 1), (row(5, 0, -0.0), -1)],
    [],
    [(row(0, 1, float("nan")), -1), (row(0, 0), 1), (row(6, 0), 1)],
    [(row(1, 0), -1), (row(1, 9), 1)],
]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("changed")
    make_project(root, web=PIPELINE).graph("web")
    return root


@pytest.fixture
def shelf(compiled: Path) -> Shelf:
    made = Shelf(emptied(compiled), "web", "visits", SCHEMA, ("id",), parts=2)
    made.publish(*HISTORY)
    made.complete()
    return made


def weights(rows: list[dict[str, Any]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for each in rows:
        found[repr(comparable({name: each[name] for name in SCHEMA.names}))] += 1 if each["_change_type"] == "INSERT" else -1
    return found


def summed(deltas: list[Delta]) -> Counter[str]:
    """The weights of what deltas bring, by an own sum."""
    found: Counter[str] = Counter()
    for each, diff in (change for delta in deltas for change in delta):
        found[repr(comparable(each))] += diff
    return Counter({text: weight for text, weight in found.items() if weight})


def test_changes_lead_from_every_state_to_every_later_one(shelf: Shelf) -> None:
    for after in (None, 0, 1, 2, 3, 4):
        for upto in range(after or 0, 5):
            first = 0 if after is None else after + 1
            asked = {"after": None if after is None else str(after), "upto": str(upto), "project": shelf.project}
            net = fl.changes("web.visits", **asked)  # type: ignore[call-overload]
            rows = net.to_arrow().to_pylist()
            assert weights(rows) == summed(HISTORY[first : upto + 1])
            assert len(rows) == sum(abs(weight) for weight in weights(rows).values()), "nothing is told that was undone"
            single = fl.changes("web.visits", net=False, **asked)  # type: ignore[call-overload]
            assert single.epochs == tuple(map(str, range(first, upto + 1)))
            told = single.to_arrow().to_pylist()
            for ordinal, epoch in enumerate(single.epochs):
                assert weights([each for each in told if each["_change_ordinal"] == ordinal]) == summed([HISTORY[int(epoch)]])


def test_each_epoch_names_its_snapshot_and_removes_before_it_inserts(shelf: Shelf) -> None:
    rows = fl.changes("web.visits", after="0", net=False, columns=["id"], where="id = 0", project=shelf.project).to_arrow()
    snapshots = {entry.lower: entry.snapshot for entry in shelf.log.entries()}
    assert rows.schema.names == ["id", "_change_type", "_change_ordinal", "_commit_snapshot_id"]
    assert [str(kind) for kind in rows.schema.types] == ["int64", "string", "int32", "int64"]
    assert not rows.num_rows, "the column that is asked for did not change"
    rows = fl.changes("web.visits", after="0", net=False, columns=["n"], where="id = 0", project=shelf.project).to_arrow()
    assert [tuple(each.values()) for each in rows.to_pylist()] == [
        (0, "DELETE", 0, snapshots[1]),
        (1, "INSERT", 0, snapshots[1]),
        (1, "DELETE", 2, snapshots[3]),
        (0, "INSERT", 2, snapshots[3]),
    ]


def test_single_epochs_are_told_only_since_they_were_merged(shelf: Shelf) -> None:
    begun = fl.changes("web.visits", after="0", net=False, project=shelf.project)
    for path in shelf.merge(0, 3):
        shelf.project.catalog.remove(path)

    def changes(after: str | None, net: bool) -> Counter[str]:
        return weights(fl.changes("web.visits", after=after, net=net, project=shelf.project).to_arrow().to_pylist())

    assert changes(None, True) == summed(HISTORY)
    assert changes("2", False) == changes("2", True) == summed(HISTORY[3:])
    for after, net in (("0", True), ("1", False), (None, False)):
        with pytest.raises(FirnlineError, match="EPOCH_COMPACTED"):
            changes(after, net)
    with pytest.raises(FirnlineError, match="EPOCH_COMPACTED"):
        begun.to_arrow()


def test_a_range_that_cannot_be_is_refused(shelf: Shelf) -> None:
    for options, code in (
        ({"after": "3", "upto": "2"}, "BAD_OPTION"),
        ({"after": "9"}, "EPOCH_NOT_COMPLETE"),
        ({"upto": "9"}, "EPOCH_NOT_COMPLETE"),
        ({"after": "soon"}, "BAD_EPOCH"),
    ):
        with pytest.raises(FirnlineError, match=code):
            fl.changes("web.visits", project=shelf.project, **options)  # type: ignore[call-overload]
    nothing = fl.changes("web.visits", after="4", project=shelf.project)
    assert (nothing.after, nothing.upto, nothing.epochs, nothing.to_arrow().num_rows) == ("4", "4", (), 0)


class Copy:
    """What a consumer keeps of a collection, in a database of its own, with the epoch up to which it is true."""

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path)
        self.connection.execute("CREATE TABLE IF NOT EXISTS copy (id INTEGER, n INTEGER)")
        self.connection.execute("CREATE TABLE IF NOT EXISTS mark (epoch TEXT)")

    @property
    def epoch(self) -> str | None:
        found = self.connection.execute("SELECT epoch FROM mark").fetchone()
        return None if found is None else str(found[0])

    def take(self, changes: fl.Changes) -> None:
        with self.connection:  # one transaction
            for each in changes.to_arrow().to_pylist():
                how = (
                    "DELETE FROM copy WHERE id = ? AND n = ?"
                    if each["_change_type"] == "DELETE"
                    else "INSERT INTO copy VALUES (?, ?)"
                )
                assert self.connection.execute(how, (each["id"], each["n"])).rowcount == 1
            self.connection.execute("DELETE FROM mark")
            self.connection.execute("INSERT INTO mark VALUES (?)", (changes.upto,))

    def rows(self) -> list[tuple[int, int]]:
        return sorted(self.connection.execute("SELECT id, n FROM copy").fetchall())


def consume(project: Project, copy: Copy) -> None:
    """One run of a consumer, from wherever the one before it ended; its own mark says what it has taken."""
    reader = fl.reader("copier", lease="1d", position=copy.epoch, project=project)
    reader.advance(copy.epoch)
    changes = reader.changes("web.visits").select("id", "n")
    copy.take(changes)
    reader.advance(changes.upto)


class Dying(Mortal):
    """A process that dies when it reaches a point so many times."""

    def __init__(self, point: str, passes: int) -> None:
        super().__init__()
        self.point, self.passes = point, passes

    def reach(self, point: str) -> None:
        self.passes -= point == self.point
        if point == self.point and self.passes == 0:
            raise Killed(point)


@pytest.mark.parametrize(
    ("point", "which"), [*(("safepoint.judged", number) for number in (1, 2, 3)), ("safepoint.committed", 1)]
)
def test_a_reader_that_dies_anywhere_goes_on_exactly_where_it_stopped(
    compiled: Path, tmp_path: Path, point: str, which: int
) -> None:
    shelf = Shelf(emptied(compiled), "web", "visits", SCHEMA, ("id",), parts=2)
    shelf.publish(HISTORY[0])
    shelf.complete()
    copy = Copy(tmp_path / "copy.db")
    copy.take(fl.changes("web.visits", project=shelf.project))
    died = 0
    for delta in HISTORY[1:]:
        shelf.publish(delta)
        shelf.complete()
        try:
            with replaced(Dying(point, which)):
                consume(shelf.project, copy)
        except Killed:
            died += 1
            consume(shelf.project, copy)
        assert copy.rows() == sorted((each["id"], each["n"]) for each in shelf.state(len(shelf.deltas)))
        assert fl.reader("copier", lease="1d", project=shelf.project).position == copy.epoch
    assert died == len(HISTORY) - 1


def test_a_reader_holds_what_it_has_not_seen_and_is_told_if_it_came_too_late(shelf: Shelf) -> None:
    pages = Shelf(shelf.project, "web", "pages", pa.schema([("id", pa.int64())]), ("id",))
    pages.publish(*([({"id": epoch}, 1)] for epoch in range(5)))
    reader = fl.reader("late", lease="1d", position="1", project=shelf.project)
    visits, others = reader.changes("web.visits", "web.pages", upto="3")
    assert (visits.after, visits.upto, others.after, others.upto) == ("1", "3", "1", "3")
    assert sorted(each["id"] for each in others.to_arrow().to_pylist()) == [2, 3]
    graph = shelf.project.graph("web")
    assert let_go(shelf.project, graph) == 2, "nothing after what it has seen is let go of"
    reader.advance(visits.upto)
    assert reader.changes("web.visits").epochs == ("4",)
    shelf.merge(0, 5)  # as if its lease had ended
    with pytest.raises(FirnlineError, match="LEASE_EXPIRED"):
        reader.changes("web.visits")


STEP = """
import json, os, signal, sys
import firnline as fl
reader = fl.reader("other", lease="1d")
changes = reader.changes("web.visits", upto=sys.argv[1], net=False)
found = {"after": changes.after, "epochs": changes.epochs, "rows": changes.to_arrow().num_rows}
reader.advance(changes.upto)
print(json.dumps(found), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_another_process_goes_on_where_one_that_was_killed_stopped(shelf: Shelf) -> None:
    fl.reader("other", lease="1d", position="0", project=shelf.project)

    def process(upto: str) -> Any:
        done = subprocess.run([sys.executable, "-c", STEP, upto], cwd=shelf.project.settings.root, capture_output=True, text=True)
        assert done.returncode == -signal.SIGKILL, done.stderr
        return json.loads(done.stdout)

    assert process("1") == {"after": "0", "epochs": ["1"], "rows": 3}
    assert process("4") == {"after": "1", "epochs": ["2", "3", "4"], "rows": 5}
    assert process("4") == {"after": "4", "epochs": [], "rows": 0}


def test_what_a_rewind_took_back_is_told_of_rows_that_were_in_other_parts_then(shelf: Shelf) -> None:
    reader = fl.reader("copier", lease="1d", pipeline="web", project=shelf.project)
    rewind(shelf.project, shelf.project.graph("web"), 3, "visits", "ana")
    del shelf.deltas[3:]
    rescaled(shelf, 8)
    told = reader.changes("web.visits")
    for number in (0, 1, 6):
        found = told.where(f"id = {number}").to_arrow().to_pylist()
        assert weights(found) == summed(
            [[(each, -diff) for each, diff in delta if each["id"] == number] for delta in HISTORY[3:]]
        )


def test_spark_is_not_given_what_was_rewound_meanwhile(shelf: Shelf) -> None:
    scan, told = fl.scan("web.visits", project=shelf.project), fl.changes("web.visits", after="2", project=shelf.project)
    rewind(shelf.project, shelf.project.graph("web"), 3, "visits", "ana")
    del shelf.deltas[3:]
    shelf.publish([], [(row(50, 0), 1)])
    for given in (scan, told):
        with pytest.raises(FirnlineError, match="GENERATION_CHANGED"):
            given.to_spark()
    assert weights(told.to_arrow().to_pylist()) == summed(HISTORY[3:]), "without it, what was there then is still read"
