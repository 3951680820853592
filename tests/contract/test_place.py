"""A place, on every filesystem that can be had here: whole files or nothing, checked by what is read back."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

from firnline.errors import FirnlineError
from firnline.model.replica import Kept
from firnline.replicas import Place
from tests.disk import small_disk

CONTENT = bytes(range(256)) * 40_000


@pytest.fixture
def warehouse(tmp_path: Path) -> str:
    (tmp_path / "lake" / "web").mkdir(parents=True)
    (tmp_path / "lake" / "web" / "large").write_bytes(CONTENT)
    return f"file://{tmp_path}/lake"


@pytest.fixture(params=["file", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    yield Place(f"file://{tmp_path}/b" if request.param == "file" else f"memory://{tmp_path.name}")
    fsspec.filesystem("memory").store.clear()


def test_a_file_goes_there_and_comes_back(place: Place, warehouse: str, tmp_path: Path) -> None:
    kept = place.put(warehouse, "web/large")
    assert kept.bytes == place.size("web/large") == len(CONTENT)
    assert place.put(warehouse, "web/large") == kept, "twice does no harm"
    target = tmp_path / "lake" / "back" / "large"
    assert place.fetch(kept, f"file://{target}")
    assert target.read_bytes() == CONTENT
    target.write_bytes(b"damaged")
    assert place.fetch(kept, f"file://{target}")
    assert target.read_bytes() == CONTENT, "a damaged file is replaced"
    assert [path.name for path in target.parent.iterdir()] == ["large"], "nothing else is left behind"


def test_a_copy_that_is_not_what_it_was_is_not_fetched(place: Place, warehouse: str, tmp_path: Path) -> None:
    kept = place.put(warehouse, "web/large")
    target = tmp_path / "back"
    place.write("web/large", CONTENT[:-1] + b"?")
    assert not place.fetch(kept, f"file://{target}")
    place.write("web/large", CONTENT[:-1])
    assert not place.fetch(kept, f"file://{target}")
    place.remove("web/large")
    assert not place.fetch(kept, f"file://{target}")
    assert not target.exists()


def test_what_is_not_there_is_an_answer(place: Place, warehouse: str) -> None:
    assert place.size("web/none") is place.checksum("web/none") is place.read("web/none") is None
    assert place.read_all("web/none") == {}
    place.remove("web/none")
    place.write("web/notes/one.json", b"1")
    place.write("web/notes/one.json", b"2")
    assert place.read_all("web/notes") == {"one.json": b"2"}
    with pytest.raises(FileNotFoundError):
        place.put(warehouse, "web/none")


@pytest.mark.parametrize("where", ["file://{folder}/lake/web/large/below", "nowhere://x"])
def test_a_place_that_cannot_be_written_is_told_by_a_code(where: str, warehouse: str, tmp_path: Path) -> None:
    place = Place(where.format(folder=tmp_path))
    with pytest.raises(FirnlineError) as refused:
        place.put(warehouse, "web/large")
    assert (refused.value.code, refused.value.retryable) == ("REPLICA_UNAVAILABLE", True)
    assert place.url in refused.value.what


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "small", "1m") as folder:
        yield folder


def test_a_full_disk_is_told_and_keeps_no_half_a_file(small: Path, warehouse: str) -> None:
    with pytest.raises(FirnlineError, match="No space left") as refused:
        Place(f"file://{small}").put(warehouse, "web/large")
    assert refused.value.code == "REPLICA_UNAVAILABLE"
    assert [path for path in small.rglob("*") if path.is_file()] == []
    assert shutil.disk_usage(small).used < 10_000


def test_another_content_of_the_same_size_is_not_taken(tmp_path: Path) -> None:
    place = Place(f"file://{tmp_path}/b")
    place.write("web/x", b"new")
    assert not place.fetch(Kept("web/x", 3, "0" * 64), f"file://{tmp_path}/back")
