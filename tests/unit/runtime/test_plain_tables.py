"""``publish="table"``: a plain table that any engine reads, true after every epoch, whatever dies or doubles; without a JVM."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from firnline.errors import FirnlineError
from firnline.failpoints import VARIABLE
from firnline.model.declaration import Pipeline
from firnline.model.epoch import Epoch
from firnline.model.graph import check
from firnline.plan.frontier import Frontier
from firnline.runtime.advance import complete
from firnline.runtime.plain_tables import bring_up
from firnline.runtime.project import Project
from firnline.runtime.rewind import rewind
from firnline.tables import plain
from firnline.tables.erasing import strays
from firnline.tables.log import Log
from firnline.world import World, replaced
from tests.contract.housekeeping import Mortal
from tests.happening import At, Killed
from tests.project import make_project
from tests.shelf import Delta, Row, Shelf, emptied, multiset

PIPELINE = """
    import firnline as fl

    web = fl.Pipeline("web", schedule=1, start=0)

    @web.source(keys=["id", "part"], parts=2, publish="table")
    def visits(epoch): ...
"""
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("part", pa.string()),
        ("rate", pa.float64()),
        ("tags", pa.list_(pa.string())),
        ("at", pa.timestamp("us", "UTC")),
    ]
)


def row(number: int | None, version: int = 0) -> Row:
    rate = (0.5, float("nan"), -0.0, None)[(number or 0) % 4]
    return {"id": number, "part": None if number == 3 else f"ä{version}", "rate": rate, "tags": [str(version)], "at": None}


HISTORY: list[Delta] = [
    [(row(number), 1) for number in (None, *range(20))],
    [(row(3), -1), (row(3, 1), 1), (row(None), -1), (row(7), -1)],
    [],
    [(row(number), 1) for number in range(20, 30)],
    [(row(3, 1), -1), (row(3), 1), *((row(number), -1) for number in range(20, 30))],
]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("plain")
    make_project(root, web=PIPELINE).graph("web")
    return root


@pytest.fixture
def shelf(compiled: Path) -> Shelf:
    return Shelf(emptied(compiled), "web", "visits", SCHEMA, ("id", "part"), parts=2)


def advance(shelf: Shelf, delta: Delta) -> None:
    """One more epoch, and what follows when it is complete."""
    shelf.publish(delta)
    follow(shelf)


def follow(shelf: Shelf) -> None:
    """What follows when an epoch is published."""
    graph = shelf.project.graph("web")
    complete(shelf.project, graph, Epoch(len(shelf.deltas) - 1, len(shelf.deltas)))


def alone(project: Project) -> Any:
    """The table as PyIceberg finds it, without any of ours."""
    catalog = SqlCatalog("lake", uri=project.settings.catalog_uri, warehouse=project.settings.warehouse)
    return catalog.load_table(("web__tables", "visits"))


def rows(project: Project) -> list[str]:
    return multiset(alone(project).scan().to_arrow().to_pylist())


def test_after_every_epoch_it_holds_the_rows_of_the_state_and_nothing_of_ours(shelf: Shelf) -> None:
    for delta in HISTORY:
        advance(shelf, delta)
        assert rows(shelf.project) == multiset(shelf.state(len(shelf.deltas)))
        summary = alone(shelf.project).current_snapshot().summary
        assert (summary["firnline.upper"], summary["firnline.generation"]) == (str(len(shelf.deltas)), "0")
    found = alone(shelf.project)
    assert [field.name for field in found.schema().fields] == SCHEMA.names
    visits = found.scan().to_arrow()
    with duckdb.connect() as connection:
        connection.register("visits", visits)
        (counted,) = connection.execute("SELECT count(*), count(DISTINCT id), sum(isnan(rate)::int) FROM visits").fetchall()
    state = shelf.state(5)
    expected = (len(state), len({each["id"] for each in state}), sum(each["rate"] != each["rate"] for each in state))
    assert counted == expected


def test_rows_that_stay_are_not_written_anew(shelf: Shelf) -> None:
    advance(shelf, HISTORY[0])
    advance(shelf, HISTORY[3])
    first, second = sorted(task.file.file_path for task in alone(shelf.project).scan().plan_files())
    advance(shelf, [(row(25), -1), (row(25, 2), 1)])
    after = {task.file.file_path for task in alone(shelf.project).scan().plan_files()}
    assert len(after & {first, second}) == 1
    assert rows(shelf.project) == multiset(shelf.state(3))


def test_many_small_files_become_one(shelf: Shelf) -> None:
    for number in range(20):
        advance(shelf, [(row(number), 1)])
    assert len(list(alone(shelf.project).scan().plan_files())) < 17
    assert rows(shelf.project) == multiset(shelf.state(20))


class Dying(Mortal):
    def __init__(self, point: str, kind: type[BaseException]) -> None:
        super().__init__()
        self.point, self.kind = point, kind

    def reach(self, point: str) -> None:
        if point == self.point:
            self.point = ""
            raise self.kind(point)


@pytest.mark.parametrize("point", ["table.judged", "table.written", "table.committed"])
@pytest.mark.parametrize("kind", [Killed, OSError])
def test_whatever_dies_or_is_not_answered_every_row_is_there_once(shelf: Shelf, point: str, kind: type[BaseException]) -> None:
    """A process that is killed is followed by another; one that hears an error looks again by itself."""
    for delta in HISTORY:
        shelf.publish(delta)
        try:
            with replaced(Dying(point, kind)):
                follow(shelf)
            assert kind is OSError
        except Killed:
            assert kind is Killed
            follow(shelf)
        before = alone(shelf.project).metadata_location
        follow(shelf)
        assert alone(shelf.project).metadata_location == before, "a third one has nothing to do"
        assert rows(shelf.project) == multiset(shelf.state(len(shelf.deltas)))


@pytest.mark.parametrize("point", ["table.judged", "table.written", "table.committed"])
def test_a_process_that_is_killed_is_followed_by_another(shelf: Shelf, point: str) -> None:
    advance(shelf, HISTORY[0])
    shelf.publish(HISTORY[1])
    code = (
        "from firnline.model.epoch import Epoch; from firnline.runtime.advance import complete; "
        "from firnline.runtime.project import Project; project = Project.load(); "
        "complete(project, project.graph('web'), Epoch(1, 2))"
    )
    command, root = [sys.executable, "-c", code], shelf.project.settings.root
    killed = subprocess.run(command, cwd=root, env={**os.environ, VARIABLE: f"{point}=kill"}, capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    again = subprocess.run(command, cwd=root, capture_output=True)
    assert again.returncode == 0, again.stderr
    assert rows(shelf.project) == multiset(shelf.state(2))
    assert len([each for each in alone(shelf.project).snapshots() if each.summary["firnline.upper"] == "2"]) == 1


def test_what_a_dead_one_left_out_the_next_epoch_brings(shelf: Shelf) -> None:
    for delta in HISTORY:
        shelf.publish(delta)
        if len(shelf.deltas) % 2 == 0:
            with replaced(Dying("table.written", Killed)), pytest.raises(Killed):
                follow(shelf)
        else:
            follow(shelf)
    assert rows(shelf.project) == multiset(shelf.state(5))


class Together(World):
    """Two threads that stand at the same point before either goes on."""

    def __init__(self) -> None:
        super().__init__()
        self.barrier = threading.Barrier(2)

    def reach(self, point: str) -> None:
        if point == "table.written":
            try:
                self.barrier.wait(10)
            except threading.BrokenBarrierError:
                return


def test_of_two_at_once_one_finds_the_work_done(shelf: Shelf) -> None:
    advance(shelf, HISTORY[0])
    shelf.publish(HISTORY[1])
    shelf.complete()
    graph, failed = shelf.project.graph("web"), []

    def bring() -> None:
        try:
            bring_up(Project(shelf.project.settings), graph)
        except BaseException as error:
            failed.append(error)

    with replaced(Together()):
        both = [threading.Thread(target=bring) for _ in range(2)]
        for each in both:
            each.start()
        for each in both:
            each.join(60)
    assert not failed
    assert rows(shelf.project) == multiset(shelf.state(2))
    assert len([each for each in alone(shelf.project).snapshots() if each.summary["firnline.upper"] == "2"]) == 1


def test_what_somebody_else_wrote_is_put_right_at_the_next_epoch(shelf: Shelf) -> None:
    advance(shelf, HISTORY[0])
    alone(shelf.project).delete("id < 5")
    advance(shelf, HISTORY[1])
    assert rows(shelf.project) == multiset(shelf.state(2))


def test_a_table_that_lags_behind_what_is_merged_is_made_anew(shelf: Shelf) -> None:
    advance(shelf, HISTORY[0])
    for delta in HISTORY[1:4]:
        shelf.publish(delta)
    shelf.complete()
    shelf.merge(0, 4)
    advance(shelf, HISTORY[4])
    assert rows(shelf.project) == multiset(shelf.state(5))


def test_a_collection_of_one_row_is_one_row(compiled: Path) -> None:
    project = emptied(compiled)
    table = plain.PlainTable(project.catalog, "web", "total")
    columns = pa.schema([("n", pa.int64())])
    for number in (1, 2, 3):
        weighted = pa.table({"n": [number - 1, number], "_diff": [-1, 1]}) if number > 1 else pa.table({"n": [1], "_diff": [1]})
        found = table.load() or table.create(columns, ())
        change = plain.changed(table.iceberg(), weighted, ())
        assert change is not None
        table.commit(found, plain.Mark(0, number), change)
        assert table.iceberg().scan().to_arrow().to_pylist() == [{"n": number}]


def test_another_word_than_table_is_refused() -> None:
    pipeline = Pipeline("web", schedule=1, start=0)

    @pipeline.source(keys=["k"], publish="view")  # type: ignore[arg-type]
    def visits(epoch: Any) -> Any: ...

    with pytest.raises(FirnlineError, match="BAD_OPTION: 'visits' has publish='view'"):
        check(pipeline, {"visits": "f"})


def test_a_rewind_between_the_frontier_and_the_log_leaves_no_row_that_is_void(shelf: Shelf) -> None:
    advance(shelf, HISTORY[0])
    shelf.publish(HISTORY[1])
    others = [(row(50), 1)]

    class Rewound(Project):
        """Somebody rewinds the pipeline, and computes it again, after the first look at its frontier."""

        is_done = False

        def log(self, pipeline: str, collection: str) -> Log:
            if not Rewound.is_done:
                Rewound.is_done = True
                rewind(shelf.project, graph, 1, None, "ana")
                del shelf.deltas[1:]
                shelf.publish(others)
                shelf.project.control("web").advance(Frontier(2, {"visits": 1}))
            return super().log(pipeline, collection)

    graph = shelf.project.graph("web")
    shelf.project.control("web").advance(Frontier(2, {"visits": 0}))
    bring_up(Rewound(shelf.project.settings), graph)
    assert Rewound.is_done
    assert rows(shelf.project) == multiset(shelf.state(2))
    summary = alone(shelf.project).current_snapshot().summary
    assert (summary["firnline.upper"], summary["firnline.generation"]) == ("2", "1")


def test_of_a_table_without_history_only_the_present_rows_are_left_and_epochs_go_on(shelf: Shelf) -> None:
    for delta in HISTORY[:3]:
        advance(shelf, delta)
    folder = Path(alone(shelf.project).location().removeprefix("file://"))
    (folder / "data" / "left.parquet").write_bytes(b"by an attempt that died")
    table = plain.PlainTable(shelf.project.catalog, "web", "visits")
    for _ in range(2):
        table.forget_history()
        found = alone(shelf.project)
        assert len(found.metadata.snapshots) == 1
        named = {task.file.file_path.removeprefix("file://") for task in found.scan().plan_files()}
        assert {str(path) for path in folder.rglob("*.parquet")} == named
        stored = table.load()
        assert stored is not None
        assert strays(shelf.project.catalog, stored) == []
        assert rows(shelf.project) == multiset(shelf.state(3))
    for delta in HISTORY[3:]:
        advance(shelf, delta)
        assert rows(shelf.project) == multiset(shelf.state(len(shelf.deltas)))


def test_who_wrote_to_a_table_before_its_history_was_forgotten_writes_anew(shelf: Shelf) -> None:
    advance(shelf, HISTORY[0])
    shelf.publish(HISTORY[1])
    table = plain.PlainTable(shelf.project.catalog, "web", "visits")

    with replaced(At("table.written", table.forget_history)):
        follow(shelf)
    assert rows(shelf.project) == multiset(shelf.state(2))
    assert all(Path(task.file.file_path.removeprefix("file://")).exists() for task in alone(shelf.project).scan().plan_files())
