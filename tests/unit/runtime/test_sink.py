"""Sinks: epochs in order, at least once by a function, exactly once as files; what is not delivered is held."""

from __future__ import annotations

import csv
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import firnline as fl
from firnline.errors import FirnlineError
from firnline.runtime import scan
from firnline.runtime.safepoint import let_go, safety
from firnline.runtime.sink import deliver, deliver_all
from firnline.runtime.status import status
from firnline.world import replaced
from tests.contract.housekeeping import Mortal
from tests.happening import Killed
from tests.project import command
from tests.shelf import comparable, merged
from tests.sinking import HISTORY, SCHEMA, Sinking, killed, made

POINTS = ["sink.chosen", "sink.written", "sink.delivered", "safepoint.judged", "safepoint.committed"]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("sinking"))


@pytest.fixture
def sinking(compiled: Path) -> Sinking:
    for left in (compiled / "told", compiled / "broken"):
        left.unlink(missing_ok=True)
    shutil.rmtree(compiled / "out", ignore_errors=True)
    return Sinking.at(compiled)


def weights(rows: list[dict[str, Any]], names: list[str]) -> list[tuple[str, int]]:
    found: dict[str, int] = {}
    for each in rows:
        text = repr(comparable({name: each[name] for name in names}))
        found[text] = found.get(text, 0) + (1 if each["_change_type"] == "INSERT" else -1)
    return sorted((text, weight) for text, weight in found.items() if weight)


def brought(sinking: Sinking, first: int, last: int, names: list[str]) -> list[tuple[str, int]]:
    """What epochs changed, by an own sum."""
    found: dict[str, int] = {}
    for each, weight in merged(sinking.deltas[first : last + 1]):
        text = repr(comparable({name: each[name] for name in names}))
        found[text] = found.get(text, 0) + weight
    return sorted((text, weight) for text, weight in found.items() if weight)


def test_a_function_is_called_for_every_epoch_in_order_with_its_key(sinking: Sinking) -> None:
    for delta in HISTORY:
        sinking.follow(delta)
        sinking.deliver("tell")
    assert [(each["lower"], each["upper"], each["after"]) for each in sinking.told()] == [
        (0, 1, None),
        (1, 2, "0"),
        (2, 3, "1"),
        (3, 4, "2"),
        (4, 5, "3"),
    ]
    assert [each["key"] for each in sinking.told()] == [f"web.tell/{epoch}" for epoch in range(5)]
    assert [each["rows"] for each in sinking.told()] == [13, 6, 0, 4, 8]


def test_a_sink_that_comes_late_begins_with_all_there_is(sinking: Sinking) -> None:
    sinking.follow(*HISTORY[:4])
    sinking.merge(0, 3)
    assert sinking.deliver("tell") == ["3"]
    sinking.follow(HISTORY[4])
    sinking.deliver("tell")
    state = len(sinking.state(4))
    assert [(each["key"], each["after"], each["rows"]) for each in sinking.told()] == [
        ("web.tell/3", None, state),
        ("web.tell/4", "3", 8),
    ]


def test_which_epoch_it_begins_with_is_the_same_after_a_crash(sinking: Sinking) -> None:
    sinking.follow(*HISTORY[:2])
    dying = Mortal()
    dying.kill_at = "sink.delivered"
    with replaced(dying), pytest.raises(Killed):
        sinking.deliver("tell")
    sinking.follow(*HISTORY[2:4])
    assert sinking.deliver("tell") == ["1", "2", "3"]
    first, again, *_ = sinking.told()
    assert first == again


@pytest.mark.parametrize("point", POINTS)
def test_a_function_gets_every_epoch_at_least_once_and_none_with_another_key(sinking: Sinking, point: str) -> None:
    died = 0
    for delta in HISTORY:
        sinking.follow(delta)
        dying = Mortal()
        dying.kill_at = point
        try:
            with replaced(dying):
                sinking.deliver("tell")
        except Killed:
            died += 1
        sinking.deliver("tell")
    assert died == (0 if point == "sink.written" else 5)
    distinct = {each["key"]: each for each in sinking.told()}
    assert list(distinct) == [f"web.tell/{epoch}" for epoch in range(5)]
    assert all(each == distinct[each["key"]] for each in sinking.told()), "a key always tells the same"


def test_a_sink_that_fails_holds_only_itself_and_what_it_has_not_delivered(sinking: Sinking) -> None:
    root = sinking.project.settings.root
    sinking.follow(HISTORY[0])
    sinking.deliver("tell")
    (root / "broken").touch()
    sinking.follow(*HISTORY[1:4])
    with pytest.raises(
        FirnlineError, match=r"SINK_FAILED: the sink 'tell' failed at 1: ConnectionError: nobody answers"
    ) as caught:
        sinking.deliver("tell")
    assert caught.value.retryable
    assert caught.value.where is not None
    assert caught.value.where.file.endswith("web.py")
    graph = sinking.project.graph("web")
    assert fl.scan("web.visits", project=sinking.project).to_arrow().num_rows == len(sinking.state(4)), "readers go on"
    found = next(line for line in status(sinking.project, graph).sinks if line.sink == "tell")
    assert (found.upper, found.waiting) == ("1", 3)
    (failure,) = found.failed
    assert failure.startswith("1: SINK_FAILED")
    hold = next(each for each in safety(sinking.project, graph).holds if each.kind == "sink")
    assert (hold.name, hold.at, hold.until) == ("tell", "1", None)
    assert let_go(sinking.project, graph) == 1, "nothing that it has not delivered is let go of"
    (root / "broken").unlink()
    assert sinking.deliver("tell") == ["1", "2", "3"]
    assert next(line for line in status(sinking.project, graph).sinks if line.sink == "tell").failed == ()
    assert let_go(sinking.project, graph) == 3


def test_one_that_fails_keeps_no_other_from_delivering(sinking: Sinking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(sinking.project.settings.root)
    (sinking.project.settings.root / "broken").touch()
    sinking.follow(HISTORY[0])
    failed = deliver_all(sinking.project, sinking.declared)
    assert {name: error.code for name, error in failed.items()} == {"table": "BAD_SETTING", "tell": "SINK_FAILED"}
    assert sorted(each.name for each in Path("out").iterdir()) == ["csv", "json", "parquet"]


def test_a_sink_that_is_released_begins_anew(sinking: Sinking) -> None:
    sinking.follow(*HISTORY[:2])
    sinking.deliver("tell")
    command(sinking.project.settings.root, "safepoint", "web", "--release", "tell")
    sinking.follow(HISTORY[2])
    assert sinking.deliver("tell") == ["2"]
    assert sinking.told()[-1]["after"] is None


def test_a_reader_and_a_sink_of_one_name_do_not_share_a_hold(sinking: Sinking) -> None:
    sinking.follow(HISTORY[0])
    fl.reader("tell", lease="1d", project=sinking.project)
    with pytest.raises(FirnlineError, match="HOLD_TAKEN"):
        sinking.deliver("tell")


def parquet(sinking: Sinking, epoch: int) -> list[dict[str, Any]]:
    folder = sinking.project.settings.root / "out" / "parquet" / str(epoch)
    rows: list[dict[str, Any]] = pq.read_table(folder / "changes.parquet").to_pylist()
    return rows


def test_every_epoch_is_a_folder_of_its_changes_also_one_that_changes_nothing(sinking: Sinking) -> None:
    for epoch, delta in enumerate(HISTORY):
        sinking.follow(delta)
        assert sinking.deliver("parquet") == [str(epoch)]
        assert weights(parquet(sinking, epoch), SCHEMA.names) == brought(sinking, epoch, epoch, SCHEMA.names)
    folder = sinking.project.settings.root / "out" / "parquet"
    assert sorted(each.name for each in folder.iterdir()) == list("01234")
    assert json.loads((folder / "3" / "_delivered.json").read_text()) == {
        "sink": "web.parquet",
        "collection": "web.visits",
        "rows": 4,
    }


@pytest.mark.parametrize("point", POINTS)
def test_a_folder_is_there_entirely_and_once_whatever_dies(sinking: Sinking, point: str) -> None:
    out = sinking.project.settings.root / "out" / "parquet"
    for epoch, delta in enumerate(HISTORY):
        sinking.follow(delta)
        dying = Mortal()
        dying.kill_at = point
        with replaced(dying), pytest.raises(Killed):
            sinking.deliver("parquet")
        there = out / str(epoch)
        before = there.stat().st_ino if there.exists() else None
        if before is not None:
            assert weights(parquet(sinking, epoch), SCHEMA.names) == brought(sinking, epoch, epoch, SCHEMA.names)
        sinking.deliver("parquet")
        assert before in (None, there.stat().st_ino), "what is delivered is not written again"
        assert weights(parquet(sinking, epoch), SCHEMA.names) == brought(sinking, epoch, epoch, SCHEMA.names)
    assert sorted(each.name for each in out.iterdir()) == list("01234"), "nothing of those that died is left"


@pytest.mark.parametrize("point", ["sink.written", pytest.param("sink.delivered", marks=pytest.mark.nightly)])
def test_a_process_that_is_killed_leaves_no_half_of_a_folder(sinking: Sinking, point: str) -> None:
    sinking.follow(HISTORY[0])
    killed(sinking.project.settings.root, "parquet", point)
    sinking.deliver("parquet")
    assert weights(parquet(sinking, 0), SCHEMA.names) == brought(sinking, 0, 0, SCHEMA.names)
    assert [each.name for each in (sinking.project.settings.root / "out" / "parquet").iterdir()] == ["0"]


def test_text_tells_null_from_nothing_and_lists_as_json(sinking: Sinking) -> None:
    sinking.follow(HISTORY[0])
    sinking.deliver("text")
    root = sinking.project.settings.root / "out"
    state = {each["id"]: each for each in sinking.state(1)}
    lines = [json.loads(line) for line in (root / "json" / "0" / "changes.json").read_text(encoding="utf-8").splitlines()]
    assert {each["id"]: (each["zone"], each["tags"]) for each in lines} == {
        key: (each["zone"], each["tags"]) for key, each in state.items()
    }
    with (root / "csv" / "0" / "changes.csv").open(newline="", encoding="utf-8") as file:
        told = list(csv.DictReader(file))
    assert {each["id"]: (each["zone"], each["tags"]) for each in told} == {
        "" if key is None else str(key): (
            each["zone"] or "",
            "" if each["tags"] is None else json.dumps(each["tags"], separators=(",", ":")),
        )
        for key, each in state.items()
    }


def test_a_folder_of_somebody_else_is_left_alone(sinking: Sinking) -> None:
    taken = sinking.project.settings.root / "out" / "parquet" / "0"
    taken.mkdir(parents=True)
    (taken / "theirs").touch()
    sinking.follow(HISTORY[0])
    with pytest.raises(FirnlineError, match="SINK_REFUSED"):
        sinking.deliver("parquet")
    assert [each.name for each in taken.iterdir()] == ["theirs"]
    (taken / "_delivered.json").write_text(json.dumps({"sink": "web.other", "collection": "web.visits", "rows": 0}))
    with pytest.raises(FirnlineError, match=r"SINK_REFUSED: .* written by 'web.other'"):
        sinking.deliver("parquet")


def test_part_by_part_the_changes_are_the_same(sinking: Sinking, monkeypatch: pytest.MonkeyPatch) -> None:
    sinking.follow(*HISTORY)
    whole = fl.changes("web.visits", after="0", project=sinking.project)
    monkeypatch.setattr(scan, "_MOST_ROWS", 0)
    batches = list(whole.to_batches())
    assert len(batches) > 1
    assert weights([each for batch in batches for each in batch.to_pylist()], SCHEMA.names) == weights(
        whole.to_arrow().to_pylist(), SCHEMA.names
    )
    state = fl.scan("web.visits", project=sinking.project)
    assert sum(batch.num_rows for batch in state.to_batches()) == len(sinking.state(5))
    narrow = whole.select("rate")
    assert weights([each for batch in narrow.to_batches() for each in batch.to_pylist()], ["rate"]) == weights(
        narrow.to_arrow().to_pylist(), ["rate"]
    ), "without the columns that say in which part a row is, all are read at once"


@pytest.mark.parametrize(
    ("returned", "complaint"),
    [
        ("visits.to_arrow()", "BAD_OPTION: the sink 'tell' returned Table"),
        ("[visits]", "BAD_OPTION: the sink 'tell' returned Changes"),
        ("fl.to_files(visits.to_arrow(), 'x')", "BAD_OPTION: a sink delivers the changes"),
        ("fl.to_files(visits, 'x', format='orc')", "BAD_OPTION"),
        ("fl.to_files(visits, '/tmp/x')", "PATH_OUTSIDE_ROOT"),
        ("[fl.to_files(visits, 'x'), fl.to_files(visits, 'x')]", "BAD_OPTION: .* writes twice to 'x'"),
        ("fl.to_files(fl.changes('web.visits', after='0'), 'x')", "BAD_OPTION: .* delivers other changes"),
        ("fl.to_postgres(visits, table='t', dsn='postgresql://me:s3cret@host/db')", "BAD_OPTION: dsn= names"),
        ("fl.to_postgres(visits.select('rate'), table='t', dsn='PATH')", "BAD_OPTION: .* lack the key 'id'"),
        ("fl.to_postgres(visits, table='a.b.c', dsn='PATH')", "BAD_OPTION: table='a.b.c'"),
        ("fl.to_postgres(visits, table='t' * 64, dsn='PATH')", "SINK_REFUSED: PostgreSQL has no names as long"),
    ],
)
def test_what_a_function_cannot_return_is_refused(sinking: Sinking, returned: str, complaint: str, monkeypatch: Any) -> None:
    monkeypatch.chdir(sinking.project.settings.root)
    sinking.follow(*HISTORY[:2])

    def odd(epoch: Any, visits: Any) -> Any:
        return eval(returned, {"fl": fl, "visits": visits})

    changed = replace(sinking.declared, sinks={"tell": odd})
    with pytest.raises(FirnlineError, match=complaint) as caught:
        list(deliver(sinking.project, changed, "tell"))
    assert "s3cret" not in str(caught.value)


def test_a_run_with_nothing_to_compute_delivers_what_waits_and_tells_who_failed(sinking: Sinking) -> None:
    root = sinking.project.settings.root
    sinking.follow(*HISTORY[:2])
    found = command(root, "run", "web", "--json", code=1)
    assert found["error"]["code"] == "BAD_SETTING", "the table's database is not named"
    assert [each["key"] for each in sinking.told()] == ["web.tell/1"]
    lines = {each["sink"]: (each["upper"], each["waiting"]) for each in command(root, "status", "web", "--json")[0]["sinks"]}
    assert lines == {"table": ("0", 2), "parquet": ("2", 0), "text": ("2", 0), "tell": ("2", 0)}
