"""Lines that are too long for any engine."""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from firnline.engine.lines import LONGEST, check_lines
from firnline.errors import FirnlineError


def test_a_row_of_two_gigabytes_is_refused_before_spark_meets_it(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    with path.open("wb") as file:
        file.write(b"{}\n")
        file.truncate(2 << 30)  # zeros that take no room
    with pytest.raises(FirnlineError, match="has a line of more than 64 MiB") as caught:
        check_lines([path])
    assert caught.value.code == "UNREADABLE_FILE"


def test_many_lines_may_be_as_long_together_as_they_like(tmp_path: Path) -> None:
    path = tmp_path / "many.csv"
    with path.open("wb") as file:
        for _ in range(2):
            file.write(b"x" * (LONGEST - 1) + b"\n")
        file.write(b"y" * LONGEST)
    check_lines([path])
    with path.open("ab") as file:
        file.write(b"y")
    with pytest.raises(FirnlineError):
        check_lines([path])


@pytest.mark.parametrize(("suffix", "packed"), [(".gz", gzip.compress), (".bz2", bz2.compress)])
def test_a_compressed_line_counts_as_long_as_it_will_be(suffix: str, packed: Callable[..., bytes], tmp_path: Path) -> None:
    path = tmp_path / f"one.json{suffix}"
    path.write_bytes(packed(b"{}\r" + b"x" * LONGEST, 1))
    check_lines([path])
    path.write_bytes(packed(b"{}\r" + b"x" * (LONGEST + 1), 1))
    with pytest.raises(FirnlineError):
        check_lines([path])
    (tmp_path / f"damaged{suffix}").write_bytes(b"no such thing")
    check_lines([tmp_path / f"damaged{suffix}"])
