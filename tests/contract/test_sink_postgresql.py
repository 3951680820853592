"""A table of a real PostgreSQL follows a collection exactly once, whatever dies, doubles or goes away."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from firnline.errors import FirnlineError
from firnline.runtime.project import Project
from firnline.runtime.rewind import rewind
from firnline.runtime.sink import deliver
from firnline.world import World, replaced
from tests.contract.housekeeping import Mortal
from tests.happening import Killed
from tests.postgresql import running
from tests.shelf import multiset
from tests.sinking import HISTORY, SCHEMA, Sinking, killed, made, row

POINTS = ["sink.chosen", "sink.written", "sink.delivered", "safepoint.judged", "safepoint.committed"]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("sinking"))


@pytest.fixture
def uri(postgres_uri: Callable[[], str], monkeypatch: pytest.MonkeyPatch) -> str:
    found = postgres_uri()
    monkeypatch.setenv("REPORTS", found)
    return found


@pytest.fixture
def sinking(compiled: Path, uri: str) -> Sinking:
    return Sinking.at(compiled)


@pytest.fixture
def database(uri: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(uri, autocommit=True) as connection:
        yield connection


def rows(database: psycopg.Connection[Any], table: str = "visits") -> list[str]:
    """What is in the table, in the words of the log: lists and structs are as JSON has them."""
    found = database.execute(f'SELECT * FROM "{table}"')  # type: ignore[arg-type]
    names = [column.name for column in found.description or ()]
    return multiset([dict(zip(names, each, strict=True)) for each in found.fetchall()])


def expected(sinking: Sinking, epochs: int) -> list[str]:
    def told(name: str, value: Any) -> Any:
        if name == "inner" and value is not None:
            return {"n": 1.1, "x": "NaN" if value["x"] != value["x"] else value["x"]}
        if name == "small" and value is not None:
            return float(f"{value:g}")
        return value

    state = sinking.state(epochs)
    return multiset([{name: told(name, each[name]) for name in SCHEMA.names} for each in state])


def test_after_every_epoch_the_table_holds_the_state(sinking: Sinking, database: psycopg.Connection[Any]) -> None:
    for number, delta in enumerate(HISTORY):
        sinking.follow(delta)
        assert sinking.deliver("table") == [str(number)]
        assert sinking.deliver("table") == []
        assert rows(database) == expected(sinking, number + 1)
    types = database.execute(
        "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'visits' ORDER BY ordinal_position"
    ).fetchall()
    assert dict(types) == {
        "id": "bigint",
        "zone": "text",
        "rate": "double precision",
        "small": "real",
        "price": "numeric",
        "day": "date",
        "at": "timestamp with time zone",
        "local": "timestamp without time zone",
        "seen": "boolean",
        "count": "integer",
        "raw": "bytea",
        "tags": "jsonb",
        "inner": "jsonb",
        "odd \"näme'": "text",
    }


def test_a_changed_row_is_updated_and_one_that_stays_is_not_touched(sinking: Sinking, database: psycopg.Connection[Any]) -> None:
    sinking.follow(HISTORY[0])
    sinking.deliver("table")
    database.execute("ALTER TABLE visits ADD COLUMN note text")
    database.execute("UPDATE visits SET note = 'mine'")
    before = dict(database.execute("SELECT id, xmin::text FROM visits").fetchall())
    sinking.follow(HISTORY[1])
    sinking.deliver("table")
    after = dict(database.execute("SELECT id, xmin::text FROM visits").fetchall())
    assert {key for key in after if after[key] != before[key]} == {1, 3}
    assert database.execute("SELECT count(*) FROM visits WHERE note = 'mine'").fetchone() == (len(after),), "an update keeps it"


def test_a_column_that_became_wider_in_the_log_becomes_so_in_the_table(
    sinking: Sinking, database: psycopg.Connection[Any]
) -> None:
    kind = "SELECT data_type FROM information_schema.columns WHERE table_name = 'visits' AND column_name = 'id'"
    sinking.follow(HISTORY[0])
    sinking.deliver("table")
    database.execute("ALTER TABLE visits ALTER COLUMN id TYPE integer")
    sinking.follow(HISTORY[1])
    sinking.deliver("table")
    assert database.execute(kind).fetchone() == ("bigint",)


@pytest.mark.parametrize("point", POINTS)
def test_whatever_dies_every_row_is_there_once(sinking: Sinking, database: psycopg.Connection[Any], point: str) -> None:
    for number, delta in enumerate(HISTORY):
        sinking.follow(delta)
        dying = Mortal()
        dying.kill_at = point
        with replaced(dying), pytest.raises(Killed):
            sinking.deliver("table")
        sinking.deliver("table")
        assert rows(database) == expected(sinking, number + 1)


@pytest.mark.parametrize(
    "point", [point if point.startswith("sink.") else pytest.param(point, marks=pytest.mark.nightly) for point in POINTS]
)
def test_a_process_that_is_killed_is_followed_by_another(
    sinking: Sinking, database: psycopg.Connection[Any], uri: str, point: str
) -> None:
    root = sinking.project.settings.root
    sinking.follow(HISTORY[0])
    sinking.deliver("table")
    sinking.follow(*HISTORY[1:3])
    killed(root, "table", point, REPORTS=uri)
    sinking.deliver("table")
    assert rows(database) == expected(sinking, 3)
    assert sinking.project.control("web").agreement().held("table").at == 3  # type: ignore[union-attr]


def test_of_two_at_once_one_finds_the_work_done(sinking: Sinking, database: psycopg.Connection[Any]) -> None:
    sinking.follow(*HISTORY[:2])
    declared, failed = sinking.declared, []
    barrier = threading.Barrier(2)

    class Together(World):
        def reach(self, point: str) -> None:
            if point == "sink.chosen":
                barrier.wait(30)

    def run() -> None:
        try:
            list(deliver(Project(sinking.project.settings), declared, "table"))
        except BaseException as error:
            failed.append(error)

    with replaced(Together()):
        both = [threading.Thread(target=run) for _ in range(2)]
        for each in both:
            each.start()
        for each in both:
            each.join(60)
    assert not failed
    assert rows(database) == expected(sinking, 2)


def test_a_zombie_that_wakes_up_much_later_changes_nothing(sinking: Sinking, database: psycopg.Connection[Any]) -> None:
    sinking.follow(HISTORY[0])
    sinking.deliver("table")
    sinking.follow(HISTORY[1])
    asleep, awake = threading.Event(), threading.Event()

    class Sleeping(World):
        def reach(self, point: str) -> None:
            if point == "sink.chosen" and threading.current_thread().name == "zombie":
                asleep.set()
                awake.wait(60)

    with replaced(Sleeping()):
        zombie = threading.Thread(target=sinking.deliver, args=("table",), name="zombie")
        zombie.start()
        assert asleep.wait(60)
        sinking.follow(*HISTORY[2:])
        assert sinking.deliver("table") == ["1", "2", "3", "4"]
        awake.set()
        zombie.join(60)
    assert rows(database) == expected(sinking, 5)


def test_a_warehouse_that_was_made_anew_is_followed_from_the_start(
    sinking: Sinking, compiled: Path, database: psycopg.Connection[Any]
) -> None:
    sinking.follow(*HISTORY[:3])
    sinking.deliver("table")
    anew = Sinking.at(compiled)
    anew.follow([(row(2, 1), 1), (row(90), 1)])
    assert anew.deliver("table") == ["0"]
    assert rows(database) == expected(anew, 1)


@pytest.mark.parametrize("when", ["sink.written", "sink.chosen"])
def test_a_connection_that_is_lost_loses_no_row(sinking: Sinking, database: psycopg.Connection[Any], when: str) -> None:
    sinking.follow(HISTORY[0])
    sinking.deliver("table")
    sinking.follow(*HISTORY[1:])

    class Cut(World):
        def reach(self, point: str) -> None:
            if point == when:
                others = "pid <> pg_backend_pid() AND datname = current_database()"
                database.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}".encode())

    if when == "sink.written":
        with replaced(Cut()), pytest.raises(FirnlineError, match="SINK_UNAVAILABLE") as caught:
            sinking.deliver("table")
        assert caught.value.retryable
        assert rows(database) == expected(sinking, 1)
    else:
        with replaced(Cut()):
            sinking.deliver("table")
    sinking.deliver("table")
    assert rows(database) == expected(sinking, 5)


@pytest.mark.parametrize("when", ["sink.written", "sink.chosen"])
def test_a_server_that_is_restarted_in_the_middle_has_every_row_once(
    compiled: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    with running() as server:
        uri = server.database("reports")
        monkeypatch.setenv("REPORTS", uri)
        sinking = Sinking.at(compiled)
        sinking.follow(HISTORY[0])
        sinking.deliver("table")
        sinking.follow(*HISTORY[1:])

        class Failing(World):
            def reach(self, point: str) -> None:
                if point == when:
                    server.stop()

        with replaced(Failing()), pytest.raises(FirnlineError, match="SINK_UNAVAILABLE") as caught:
            sinking.deliver("table")
        assert caught.value.retryable
        server.start()
        with psycopg.connect(uri) as database:
            assert rows(database) == expected(sinking, 1), "nothing is half written"
        sinking.deliver("table")
        with psycopg.connect(uri) as database:
            assert rows(database) == expected(sinking, 5)


def test_a_database_that_is_not_there_is_told_without_its_password(sinking: Sinking, monkeypatch: pytest.MonkeyPatch) -> None:
    sinking.follow(HISTORY[0])
    for address, code in (
        ("postgresql://me:s3cret@127.0.0.1:1/db", "SINK_UNAVAILABLE"),
        ("host=127.0.0.1 password=s3cret nonsense", "SINK_REFUSED"),
        ("postgresql://me:s3cret@127.0.0.1:x/db?odd=1", "SINK_REFUSED"),
    ):
        monkeypatch.setenv("REPORTS", address)
        with pytest.raises(FirnlineError, match=code) as caught:
            sinking.deliver("table")
        trace: BaseException | None = caught.value
        while trace is not None:
            assert "s3cret" not in str(trace)
            trace = trace.__cause__ or (None if trace.__suppress_context__ else trace.__context__)
    monkeypatch.delenv("REPORTS")
    with pytest.raises(FirnlineError, match="BAD_SETTING"):
        sinking.deliver("table")


def test_a_database_that_was_set_back_is_brought_up_again(sinking: Sinking, database: psycopg.Connection[Any]) -> None:
    sinking.follow(*HISTORY[:2])
    sinking.deliver("table")
    database.execute("CREATE TABLE kept AS SELECT * FROM visits")
    database.execute("CREATE TABLE kept_marks AS SELECT * FROM firnline_sinks")
    sinking.follow(HISTORY[2], HISTORY[3])
    sinking.deliver("table")
    for merged in (False, True):
        database.execute("TRUNCATE visits; INSERT INTO visits SELECT * FROM kept")
        database.execute("TRUNCATE firnline_sinks; INSERT INTO firnline_sinks SELECT * FROM kept_marks")
        if merged:
            sinking.merge(0, len(sinking.deltas))
        sinking.follow(HISTORY[4] if not merged else [])
        sinking.deliver("table")
        assert rows(database) == expected(sinking, len(sinking.deltas)), f"merged: {merged}"


def test_a_table_that_is_gone_is_made_anew_and_one_of_somebody_else_is_left_alone(
    sinking: Sinking, database: psycopg.Connection[Any]
) -> None:
    sinking.follow(HISTORY[0])
    database.execute("CREATE TABLE visits (id bigint, zone text)")
    database.execute("INSERT INTO visits VALUES (1, 'theirs')")
    with pytest.raises(FirnlineError, match=r"SINK_REFUSED: the table visits has rows that 'web.table' did not write"):
        sinking.deliver("table")
    assert database.execute("SELECT * FROM visits").fetchall() == [(1, "theirs")]
    database.execute("TRUNCATE visits")
    sinking.deliver("table")
    assert rows(database) == expected(sinking, 1), "the columns that it lacked were added"
    database.execute("DROP TABLE visits")
    sinking.follow(HISTORY[1])
    sinking.deliver("table")
    assert rows(database) == expected(sinking, 2)


def test_what_the_database_cannot_hold_is_refused_and_nothing_is_half_written(
    sinking: Sinking, database: psycopg.Connection[Any]
) -> None:
    sinking.follow(HISTORY[0])
    sinking.deliver("table")
    bad = {**row(50), "odd \"näme'": "a\0b"}
    sinking.follow([(row(2), -1), (bad, 1)])
    with pytest.raises(FirnlineError, match="SINK_REFUSED") as caught:
        sinking.deliver("table")
    assert not caught.value.retryable
    assert rows(database) == expected(sinking, 1)
    sinking.follow([(bad, -1)])
    with pytest.raises(FirnlineError, match="SINK_REFUSED"):
        sinking.deliver("table")


def test_after_a_rewind_the_table_is_right_and_others_are_told_what_is_undone(
    sinking: Sinking, database: psycopg.Connection[Any]
) -> None:
    root = sinking.project.settings.root
    for left in ("told", "broken"):
        (root / left).unlink(missing_ok=True)
    sinking.follow(*HISTORY)
    for sink in ("table", "parquet", "tell"):
        sinking.deliver(sink)
    before = Counter(multiset(sinking.state(5)))
    rewind(sinking.project, sinking.project.graph("web"), 2, None, "me")
    del sinking.deltas[2:]
    assert [sinking.deliver(sink) for sink in ("table", "parquet", "tell")] == [[], [], []]
    for number, delta in enumerate(([(row(2), -1), (row(40), 1)], [(row(40), -1), (row(40, 1), 1)]), 2):
        sinking.follow(delta)
        for sink in ("table", "parquet", "tell"):
            assert sinking.deliver(sink) == [str(number)]
        assert rows(database) == expected(sinking, number + 1)
    assert sorted(each.name for each in (root / "out" / "parquet").iterdir()) == ["2__1", "3__1", "4"]
    after = Counter(multiset(sinking.state(3)))
    assert [(each["key"], each["after"], each["rows"]) for each in sinking.told()] == [
        ("web.tell/4", None, 13),
        ("web.tell/2__1", "1", ((before - after) + (after - before)).total()),
        ("web.tell/3__1", "2", 2),
    ]
