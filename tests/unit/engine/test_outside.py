"""What an attempt takes from the outside, over determinants in a folder, without Spark."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firnline.engine.outside import Outside
from firnline.errors import FirnlineError
from firnline.tables.catalog import Catalog
from firnline.tables.determinants import Determinants


@pytest.fixture
def determinants(tmp_path: Path) -> Determinants:
    return Determinants(Catalog("sqlite://", f"file://{tmp_path}/warehouse"), "web", "visits", 7)


@pytest.fixture
def attempt(determinants: Determinants, tmp_path: Path) -> Callable[[], Outside]:
    return lambda: Outside(determinants, tmp_path)


def never() -> Any:
    raise AssertionError("the outside was asked again")


def test_a_value_is_asked_for_once(attempt: Callable[[], Outside]) -> None:
    first = attempt()
    assert first.value("rate", lambda: [1, {"a": None}]) == [1, {"a": None}]
    assert first.value("rate", never) == [1, {"a": None}]
    assert attempt().value("rate", never) == [1, {"a": None}]


def test_a_value_that_is_null_is_asked_for_once_too(attempt: Callable[[], Outside]) -> None:
    assert attempt().value("rate", lambda: None) is None
    assert attempt().value("rate", never) is None


def test_a_user_who_changes_a_value_does_not_change_what_was_used(attempt: Callable[[], Outside]) -> None:
    outside = attempt()
    outside.value("rates", lambda: [1]).append(2)
    assert outside.used == {"rates": [1]}


def test_a_value_stands_after_an_error_and_a_listing_does_not(attempt: Callable[[], Outside], tmp_path: Path) -> None:
    (tmp_path / "a.csv").touch()
    failing = attempt()
    failing.value("rate", lambda: 1)
    failing.files("*.csv", lambda: [tmp_path / "a.csv"], is_optional=False)
    failing.failed(KeyboardInterrupt())
    again = attempt()
    assert again.value("rate", never) == 1
    assert again.files("*.csv", list, is_optional=True) == []


def test_files_outside_the_project_are_listed_by_their_whole_path(attempt: Callable[[], Outside], tmp_path: Path) -> None:
    outside = Outside(attempt()._determinants, tmp_path / "project")
    paths = [tmp_path / "other" / "a.csv", tmp_path / "project" / "b.csv", tmp_path / "project" / "in" / "c.csv"]
    for path in paths:
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text("x")
    assert outside.files("**", lambda: [*paths, *paths], is_optional=False) == paths
    ((name, listing),) = outside.used.items()
    assert name == "files:**"
    assert list(listing) == [str(tmp_path / "other"), ".", "in"]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({1, 2}, "type set"),
        (datetime.date(2026, 1, 1), "type date"),
        ({"a": (1, 2)}, r"\{'a': \(1, 2\)\}: it comes back as \{'a': \[1, 2\]\}"),
        ({1: 2}, r"not \{1: 2\}: it comes back"),
        (float("nan"), "not nan"),
    ],
)
def test_a_value_that_json_does_not_keep_is_refused(
    attempt: Callable[[], Outside], determinants: Determinants, value: object, said: str
) -> None:
    with pytest.raises(FirnlineError) as caught:
        attempt().value("rate", lambda: value)
    assert caught.value.code == "BAD_OPTION"
    assert "logged('rate')" in caught.value.what
    assert re.search(said, caught.value.what), caught.value.what
    assert determinants.all() == {}


def test_a_value_cannot_take_the_name_of_a_listing(attempt: Callable[[], Outside]) -> None:
    with pytest.raises(FirnlineError, match="BAD_OPTION"):
        attempt().value("files:*.csv", never)


def test_files_are_new_once(tmp_path: Path) -> None:
    logged: list[dict[str, Any]] = []

    def epoch(number: int) -> list[str]:
        determinants = Determinants(Catalog("sqlite://", f"file://{tmp_path}/warehouse"), "web", "visits", number)
        outside = Outside(determinants, tmp_path, lambda _: reversed(logged))
        found = outside.new_files("in/*", lambda: sorted((tmp_path / "in").iterdir()))
        logged.extend(outside.used.values())
        return [path.name for path in found]

    (tmp_path / "in").mkdir()
    assert epoch(0) == []
    for name in ("b", "a"):
        (tmp_path / "in" / name).write_text(name)
    assert epoch(1) == ["a", "b"]
    assert epoch(2) == []
    (tmp_path / "in" / "a").write_text("written anew")
    (tmp_path / "in" / "c").touch()
    assert epoch(3) == ["c"]
    for number in range(4, 80):
        (tmp_path / "in" / f"{number}").touch()
        assert epoch(number) == [f"{number}"]
    assert [number for number, each in enumerate(logged) if each["seen"]] == [32, 64]
    assert epoch(80) == []


def test_new_files_of_an_attempt_that_died_are_those_of_its_retry(attempt: Callable[[], Outside], tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    assert attempt().new_files("*", lambda: [tmp_path / "a"]) == [tmp_path / "a"]
    assert attempt().new_files("*", never) == [tmp_path / "a"]
    (tmp_path / "a").write_text("2")
    with pytest.raises(FirnlineError, match="FILE_CHANGED"):
        attempt().new_files("*", never)


def test_a_file_that_is_written_to_after_it_was_listed_is_told(attempt: Callable[[], Outside], tmp_path: Path) -> None:
    outside, paths = attempt(), [tmp_path / name for name in ("a", "b", "c")]
    for path in paths:
        path.write_text("1")
    outside.files("*", lambda: paths, is_optional=False)
    assert outside.changed() == []
    paths[0].write_text("12")
    paths[1].unlink()
    assert outside.changed() == paths[:2]


def test_a_range_goes_on_where_the_last_epoch_ended(determinants: Determinants, tmp_path: Path) -> None:
    first = Outside(determinants, tmp_path)
    assert first.since_last("offsets", lambda before: [before, 5]) == (None, [None, 5])
    second = Outside(determinants, tmp_path, lambda _: iter([{"after": 1, "upto": 7}, {"after": None, "upto": 1}]))
    assert second.since_last("more", lambda before: before + 1) == (7, 8)
    assert Outside(determinants, tmp_path).since_last("more", never) == (7, 8)


def test_two_places_do_not_share_a_range(attempt: Callable[[], Outside]) -> None:
    outside = attempt()
    assert outside.since_last("jdbc orders id", lambda _: 900, "jdbc:postgresql://one/shop?password=secret") == (None, 900)
    assert outside.since_last("jdbc orders id", never, "jdbc:postgresql://one/shop?password=secret") == (None, 900)
    with pytest.raises(FirnlineError, match="BAD_OPTION: the source asks two places for 'jdbc orders id'") as caught:
        outside.since_last("jdbc orders id", never, "jdbc:postgresql://two/shop?password=secret")
    assert "secret" not in str(caught.value)
    assert attempt().since_last("jdbc orders id", never, "jdbc:postgresql://moved/shop") == (None, 900), "a database may move"
