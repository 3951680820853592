"""Change feeds: after every epoch the rows are those of all events so far, done one after the other in plain Python."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from pyspark.sql.connect.session import SparkSession

from firnline.errors import FirnlineError
from firnline.runtime.certificate import certify
from firnline.runtime.erase import erase
from firnline.runtime.maintain import maintained
from firnline.runtime.project import Project
from firnline.runtime.repair import repair
from firnline.runtime.rescale import rescale, rescales
from firnline.runtime.verify import verify
from firnline.world import World, replaced
from tests.oracle.amplab import comparable
from tests.oracle.feed import Event, history, present, versions
from tests.spark.running import rows, run_epoch
from tests.verifying import local, taken

Make = Callable[..., Project]
Row = tuple[Any, ...]

PIPELINE = """
    import firnline as fl
    from pathlib import Path
    from pyspark.sql import functions as F

    {name} = fl.Pipeline("{name}", schedule=1, start=0, keep="1 epoch")
    DELIVERED = {delivered!r}
    ASKED = Path(__file__).parents[2] / "asked"

    def events(epoch):
        with ASKED.open("a") as file:
            file.write(f"{{epoch.lower}}\\n")
        number = epoch.logged("number", lambda: len(ASKED.read_text()))
        return epoch.spark.createDataFrame(DELIVERED[epoch.lower], "k int, v string, seq int, op string")

    said = dict(sequence_by="seq", apply_as_deletes="op = 'delete'", except_column_list=["seq", "op"])

    @{name}.source(keys=["k"], parts={parts}, apply_as_truncates="op = 'truncate'", **said)
    def present(epoch):
        return events(epoch)

    @{name}.source(keys=["k"], parts={parts}, stored_as_scd_type=2, **said)
    def versions(epoch):
        return events(epoch).where("op != 'truncate'")

    @{name}.stage(keys=["v"])
    def now(versions):
        return versions.where("__END_AT IS NULL").groupBy("v").agg(F.count("*").alias("n"))
"""
LOGS = ("present", "versions", "present__events", "versions__events")
_numbers = count()


@pytest.fixture
def name() -> str:
    return f"fed_{os.getpid()}_{next(_numbers)}"


def text(name: str, epochs: Sequence[Sequence[Event]], parts: int = 1) -> dict[str, str]:
    delivered = [[(each.key, each.value, each.sequence, each.op) for each in events] for events in epochs]
    return {name: PIPELINE.format(name=name, delivered=delivered, parts=parts)}


def asked(made: Project) -> int:
    return len((made.settings.root / "asked").read_text().splitlines())


def assert_right(made: Project, name: str, epochs: Sequence[Sequence[Event]]) -> None:
    events = [event for epoch in epochs for event in epoch]
    kept = [event for event in events if event.op != "truncate"]
    graph = made.graph(name)
    assert rows(made, graph, "present") == comparable(present(events))
    assert rows(made, graph, "versions") == comparable(versions(kept))
    values = [value for _, value, _, end in versions(kept) if end is None]
    assert rows(made, graph, "now") == comparable([(value, values.count(value)) for value in {*values}])


def staged(made: Project, name: str, log: str) -> list[int]:
    """What is staged in a log and not published."""
    table = made.log(name, log).load()
    return [] if table is None else [each for each in table.snapshots if each not in {of.id for of in table.main_line()}]


def lose(made: Project, name: str, log: str) -> None:
    """The newest data file of a log."""
    manifests = [each for revision in taken(made, name, log).revisions for each in revision.manifests or ()]
    newest = max((data for each in manifests for data in each.data), key=lambda data: (data.first, data.file.path))
    local(newest.file.path).unlink()


def mended(made: Project, spark: SparkSession, name: str) -> None:
    assert verify(made, name).problems
    repair(made, lambda: spark, name)
    assert verify(made, name, spark).problems == ()


class Dying(World):
    """Where it has reached a point so many times, something happens, once."""

    def __init__(self, point: str, passes: int, happens: Callable[[], None]) -> None:
        super().__init__()
        self.point, self.left, self.happens = point, passes, happens

    def reach(self, point: str) -> None:
        if point == self.point:
            self.left -= 1
            if not self.left:
                self.happens()


class DiedError(BaseException):
    """As if by kill -9, as far as one process can."""


def die() -> None:
    raise DiedError


def test_events_are_played_epoch_by_epoch_and_lost_files_come_back(project: Make, spark: SparkSession, name: str) -> None:
    epochs = history(7, epochs=5, size=9, truncates=True)
    assert {event.op for events in epochs for event in events} == {"upsert", "delete", "truncate"}
    made = project(**text(name, epochs, parts=4))
    for epoch in range(4):
        run_epoch(made, spark, name, str(epoch))
        assert_right(made, name, epochs[: epoch + 1])
    for log in LOGS:
        lose(made, name, log)
    mended(made, spark, name)
    assert_right(made, name, epochs[:4])
    for source in ("present", "versions"):
        found = certify(made, spark, f"{name}.{source}")
        told = {(each.collection, each.difference, each.skipped) for each in found}
        assert told == {(log, None, "") for log in LOGS if source in log}

    assert [done.error for done in maintained(made, made.graph(name), lambda: spark, timedelta()) if done.error] == []
    lose(made, name, "versions")
    mended(made, spark, name)
    run_epoch(made, spark, name, "4")
    assert_right(made, name, epochs)


def test_who_dies_between_the_two_publishes_goes_on_without_the_source(project: Make, spark: SparkSession, name: str) -> None:
    epochs = history(3, epochs=3, size=9)
    made = project(**text(name, epochs))
    run_epoch(made, spark, name, "0")
    with replaced(Dying("publish.judged", 2, die)), pytest.raises(DiedError):
        run_epoch(made, spark, name, "1")
    ends = {log: head.description.upper for log in LOGS[::2] if (head := made.log(name, log).head())}
    assert ends == {"present": 1, "present__events": 2}
    before, left = asked(made), [staged(made, name, log) for log in LOGS]
    run_epoch(made, spark, name, "1")
    assert_right(made, name, epochs[:2])
    assert asked(made) == before + 1, "only the other source was asked"
    taken_with = [made.log(name, log).sidecar(next(made.log(name, log).entries())).determinants for log in LOGS[::2]]
    assert taken_with[0] == taken_with[1] != {}

    def come_between() -> None:
        run_epoch(made, spark, name, "2")

    with replaced(Dying("publish.judged", 1, come_between)):
        run_epoch(made, spark, name, "2")
    assert_right(made, name, epochs)
    assert [staged(made, name, log) for log in LOGS] == left, "who loses a race leaves nothing"


def test_what_is_refused_leaves_no_events(project: Make, spark: SparkSession, name: str) -> None:
    good, mended_now = [Event("upsert", 1, 1, "a")], [Event("upsert", 1, 2, "b"), Event("delete", 2, 3)]
    made = project(**text(name, [good, [Event("upsert", 1, None, "b")]]))
    run_epoch(made, spark, name, "0")
    with pytest.raises(FirnlineError) as refused:
        run_epoch(made, spark, name, "1")
    assert refused.value.code == "NULL_SEQUENCE"
    assert [made.log(name, log).head().description.upper for log in LOGS] == [1] * 4  # type: ignore[union-attr]
    assert [staged(made, name, log) for log in LOGS] == [[], [], [], []]
    made = project(**text(name, [good, mended_now]))
    run_epoch(made, spark, name, "1")
    assert_right(made, name, [good, mended_now])

    rescaled = project(**text(name, [good, mended_now, mended_now], parts=4))
    with suppress(FirnlineError):
        run_epoch(rescaled, spark, name, "2")
    for source in ("present", "versions"):
        for each in rescales(rescaled, rescaled.graph(name), source):
            rescale(rescaled, lambda: spark, each)
    run_epoch(rescaled, spark, name, "2")
    assert_right(rescaled, name, [good, mended_now])
    assert [entry.rows for entry in rescaled.log(name, "present__events").entries()] == [0, 3, 1], "nothing new is not written"


def test_an_erasure_forgets_events_with_their_rows(project: Make, spark: SparkSession, name: str) -> None:
    epochs = [
        [Event("upsert", 1, 1, "a"), Event("upsert", 2, 1, "secret"), Event("upsert", 3, 1, "c")],
        [Event("upsert", 2, 2, "b"), Event("delete", 3, 4), Event("upsert", 1, 3, "d")],
    ]
    made = project(**text(name, [*epochs, [Event("upsert", 3, 2, "late"), Event("upsert", 2, 1, "again")]]))
    for epoch in range(2):
        run_epoch(made, spark, name, str(epoch))
    graph = made.graph(name)
    with pytest.raises(FirnlineError) as refused:
        erase(made, spark, graph, "versions", "v = 'secret'", quarantine=False)
    assert refused.value.code == "BAD_CONDITION"
    for source in ("present", "versions"):
        report = erase(made, spark, graph, source, "k = 2", quarantine=False)
        assert report.proof.is_complete, report.proof.left
        assert {each.collection for each in report.logs} >= {source, f"{source}__events"}
    left = [[event for event in events if event.key != 2] for events in epochs]
    assert_right(made, name, left)
    held = [sum(entry.weight for entry in made.log(name, log).entries()) for log in LOGS]
    assert held == [1, 3, 2, 4], "the events of other keys stand"
    run_epoch(made, spark, name, "2")
    assert_right(made, name, [*left, [Event("upsert", 3, 2, "late"), Event("upsert", 2, 1, "again")]])


def test_a_source_that_holds_rows_does_not_become_a_feed(project: Make, spark: SparkSession, name: str) -> None:
    plain = f"""
        import firnline as fl

        {name} = fl.Pipeline("{name}", schedule=1, start=0)

        @{name}.source(keys=["k"]OPTIONS)
        def items(epoch):
            return epoch.spark.createDataFrame([(epoch.lower, 1)], "k int, at int")
    """
    run_epoch(project(**{name: plain.replace("OPTIONS", "")}), spark, name, "0")
    with pytest.raises(FirnlineError) as refused:
        run_epoch(project(**{name: plain.replace("OPTIONS", ', sequence_by="at"')}), spark, name, "1")
    assert refused.value.code == "INTAKE_CHANGED"


def test_versions_may_begin_at_several_columns(project: Make, spark: SparkSession, name: str) -> None:
    composite = f"""
        import firnline as fl

        {name} = fl.Pipeline("{name}", schedule=1, start=0)
        DELIVERED = [[(None, "b", 2.5, 1)], [(None, "a", 2.5, 0), (None, "a", float("-inf"), 9), (1, "c", float("nan"), 0)]]

        @{name}.source(keys=["k"], sequence_by="struct(at, n)", except_column_list=["at", "n"], stored_as_scd_type=2)
        def items(epoch):
            return epoch.spark.createDataFrame(DELIVERED[epoch.lower], "k int, v string, at double, n int")
    """
    made = project(**{name: composite})
    for epoch in range(2):
        run_epoch(made, spark, name, str(epoch))
    found = [(k, v, start["n"], end and end["n"]) for k, v, start, end in rows(made, made.graph(name), "items")]
    assert comparable(found) == comparable([(None, "a", 9, 1), (None, "b", 1, None), (1, "c", 0, None)])
    assert verify(made, name, spark).problems == ()
