"""One behaviour of the ledger, on SQLite and on a real PostgreSQL."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from subprocess import PIPE

import pytest
from sqlalchemy import column, create_engine, table, text

from firnline.errors import FirnlineError
from firnline.ledger import Input, Ledger, Part, Publication
from firnline.ledger.schema import HEAD, METADATA, VERSION_TABLE

NOON = datetime(2026, 1, 1, 12, 0, 0, 123456, tzinfo=UTC)
BIG = 2**63 - 1


def publication(collection: str = "visits", lower: int = 0, upper: int | None = None, generation: int = 0) -> Publication:
    upto = lower + 10 if upper is None else upper
    return Publication("web", collection, generation, lower, upto, BIG, 7, -3, "f1", "a1", "s3://b/sidecar.json", NOON, 0.1)


@pytest.fixture(params=["sqlite", "postgresql"])
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'a new folder' / 'ledger.db'}"
    make: Callable[[], str] = request.getfixturevalue("postgres_uri")
    return make()


@pytest.fixture
def ledger(uri: str) -> Ledger:
    return Ledger(uri)


def test_publications_come_back_as_they_were_recorded(ledger: Ledger) -> None:
    micros = 1_767_225_600_000_000
    entries = [publication("a_b", micros), publication("ab", -5), publication("ab", 5)]
    ledger.record(list(reversed(entries)))
    assert ledger.publications("web") == entries
    assert ledger.publications("web", "ab") == entries[1:]
    assert ledger.publications("web")[0].published_at.tzinfo is UTC


def test_an_empty_ledger_answers_with_nothing(ledger: Ledger) -> None:
    ledger.record([])
    assert (ledger.publications("web"), ledger.known("web", ["visits"])) == ([], set())


def test_recording_twice_leaves_one_entry_the_last(ledger: Ledger) -> None:
    ledger.record([publication(), publication()])
    last = replace(publication(), attempt="a2", rows=8)
    ledger.record([last])
    assert ledger.publications("web") == [last]


def test_moments_are_kept_in_utc(ledger: Ledger) -> None:
    ledger.record([replace(publication(), published_at=NOON.astimezone(timezone(timedelta(hours=5))))])
    assert ledger.publications("web")[0].published_at.isoformat() == NOON.isoformat()


def test_only_the_newest_generation_of_each_collection_is_told(ledger: Ledger) -> None:
    old = [publication("visits", lower) for lower in (0, 10, 20)]
    new = [publication("visits", 10, generation=1)]
    other = [publication("ranks", 0), publication("ranks", 10)]
    ledger.record(old + new + other)
    assert ledger.publications("web") == other + new
    assert ledger.publications("web", "visits") == new
    assert ledger.known("web", ["visits"]) == {("visits", 0, 0), ("visits", 0, 10), ("visits", 0, 20), ("visits", 1, 10)}


def test_pipelines_do_not_see_each_other(ledger: Ledger) -> None:
    theirs = replace(publication(generation=5), pipeline="other")
    ledger.record([publication(), theirs])
    assert ledger.publications("web") == [publication()]
    assert ledger.known("other", ["visits"]) == {("visits", 5, 0)}


def test_forgetting_drops_publications_of_that_pipeline(ledger: Ledger) -> None:
    theirs = replace(publication(), pipeline="other")
    ledger.record([publication(), theirs])
    ledger.forget("web")
    ledger.forget("web")
    assert ledger.publications("web") == []
    assert ledger.publications("other") == [theirs]


def read_by(of: Publication, name: str = "clicks", parts: str = "same") -> Input:
    return Input(of.pipeline, of.collection, of.generation, of.lower, name, 2, of.upper, BIG, 11, parts)  # type: ignore[arg-type]


def part_of(of: Publication, number: int = 0) -> Part:
    return Part(of.pipeline, of.collection, of.generation, of.lower, number, 7, -3, 2**64 - 1 - number, 0)


def test_inputs_and_parts_come_back_as_they_were_recorded(ledger: Ledger) -> None:
    one, two = publication(), publication(lower=10)
    inputs = [read_by(one), read_by(one, "pages", "all"), read_by(two)]
    parts = [part_of(one, 0), part_of(one, 3), part_of(two, 1)]
    ledger.record([two, one], inputs[::-1], parts[::-1])
    assert (ledger.inputs("web"), ledger.parts("web")) == (inputs, parts)
    assert (ledger.inputs("web", "visits"), ledger.parts("web", "ranks")) == (inputs, [])
    assert ledger.known("web", ["visits", "ranks"]) == {("visits", 0, 0), ("visits", 0, 10)}


def test_recording_again_replaces_inputs_and_parts_of_that_publication_only(ledger: Ledger) -> None:
    one, two = publication(), publication(lower=10)
    ledger.record([one, two], [read_by(one), read_by(two)], [part_of(one, 0), part_of(two, 0)])
    for _ in range(2):
        ledger.record([one], [read_by(one, "pages")], [part_of(one, 1)])
    assert ledger.inputs("web") == [read_by(one, "pages"), read_by(two)]
    assert ledger.parts("web") == [part_of(one, 1), part_of(two, 0)]


def test_inputs_and_parts_are_told_of_the_newest_generation_and_forgotten_with_it(ledger: Ledger) -> None:
    old, new, theirs = publication(), publication(generation=1), replace(publication(), pipeline="other")
    all_of = [old, new, theirs]
    ledger.record(all_of, [read_by(each) for each in all_of], [part_of(each) for each in all_of])
    assert (ledger.inputs("web"), ledger.parts("web")) == ([read_by(new)], [part_of(new)])
    ledger.forget("web")
    assert (ledger.inputs("web"), ledger.parts("web")) == ([], [])
    assert (ledger.inputs("other"), ledger.parts("other")) == ([read_by(theirs)], [part_of(theirs)])


def test_two_writers_of_the_same_entries_leave_one_of_each(ledger: Ledger, uri: str) -> None:
    publications = [publication(lower=lower) for lower in range(0, 300, 10)]
    entries = (publications, [read_by(each) for each in publications], [part_of(each) for each in publications])
    ledger.publications("web")
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(Ledger(uri).record, *entries) for _ in range(8)]:
            done.result()
    assert (ledger.publications("web"), ledger.inputs("web"), ledger.parts("web")) == entries


def test_entries_survive_the_ledger_object(uri: str) -> None:
    Ledger(uri).record([publication()])
    assert Ledger(uri).publications("web") == [publication()]


def test_a_dropped_ledger_comes_back_empty_on_the_next_try(ledger: Ledger, uri: str) -> None:
    ledger.record([publication()])
    engine = create_engine(uri.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        for name in (*METADATA.tables, VERSION_TABLE):
            connection.execute(text(f"DROP TABLE {name}"))
    engine.dispose()
    with pytest.raises(FirnlineError, match="LEDGER_UNAVAILABLE"):
        ledger.publications("web")
    assert ledger.publications("web") == []


def test_migrations_lead_to_exactly_the_metadata(ledger: Ledger, uri: str) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    ledger.publications("web")
    with create_engine(uri.replace("postgresql://", "postgresql+psycopg://")).connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE, "compare_server_default": True})
        assert context.get_current_heads() == (HEAD,)
        assert compare_metadata(context, METADATA) == []


def test_a_ledger_of_a_newer_firnline_is_refused_untouched(ledger: Ledger, uri: str) -> None:
    ledger.record([publication()])
    version = table(VERSION_TABLE, column("version_num"))
    engine = create_engine(uri.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        connection.execute(version.update().values(version_num="9999"))
    with pytest.raises(FirnlineError, match=r"LEDGER_UNAVAILABLE: .* revision 9999"):
        Ledger(uri).publications("web")
    with engine.begin() as connection:
        assert connection.execute(version.select()).scalar() == "9999"
    engine.dispose()


FIRST_USE = """
import sys, alembic.command  # early, so that all of them migrate at the same moment
from datetime import UTC, datetime
from firnline.ledger import Ledger, Publication
ledger, number = Ledger(sys.argv[1]), int(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
ledger.record([Publication("web", "visits", 0, number, number + 1, 7, 1, 1, "f", "a", "s", datetime.now(UTC), 0.1)])
"""


@pytest.mark.parametrize("_round", range(2))
def test_four_processes_may_use_it_first_at_once(uri: str, _round: int) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    commands = [[sys.executable, "-c", FIRST_USE, uri, str(number)] for number in range(4)]
    processes = [subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True, env=environment) for command in commands]
    assert [process.stdout and process.stdout.readline() for process in processes] == ["ready\n"] * 4
    for process in processes:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()
    for process in processes:
        process.communicate(timeout=60)
    assert [process.returncode for process in processes] == [0, 0, 0, 0]
    assert [entry.lower for entry in Ledger(uri).publications("web")] == [0, 1, 2, 3]
