"""One behaviour of the ledger, on SQLite and on a real PostgreSQL."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from subprocess import PIPE

import pytest
from sqlalchemy import column, create_engine, table, text

from firnline.errors import FirnlineError
from firnline.ledger import Ledger, Publication
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
    assert (ledger.publications("web"), ledger.newest_snapshots("web")) == ([], {})


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
    assert ledger.newest_snapshots("web") == {"visits": (1, 20), "ranks": (0, 20)}


def test_pipelines_do_not_see_each_other(ledger: Ledger) -> None:
    theirs = replace(publication(generation=5), pipeline="other")
    ledger.record([publication(), theirs])
    assert ledger.publications("web") == [publication()]
    assert ledger.newest_snapshots("other") == {"visits": (5, 10)}


def test_forgetting_drops_publications_of_that_pipeline(ledger: Ledger) -> None:
    theirs = replace(publication(), pipeline="other")
    ledger.record([publication(), theirs])
    ledger.forget("web")
    ledger.forget("web")
    assert ledger.publications("web") == []
    assert ledger.publications("other") == [theirs]


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
