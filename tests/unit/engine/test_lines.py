"""Lines that are too long for any engine."""

from __future__ import annotations

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
