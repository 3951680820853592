"""Text files that no engine can read: a line that does not fit into memory."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from firnline.errors import FirnlineError

LONGEST = 64 << 20
"""Bytes that a line may have: Spark holds it whole, several times over."""
_CHUNK = 1 << 20


def check_lines(paths: Iterable[Path]) -> None:
    """Refuse a file with a line that is too long. Only files that are longer than such a line are looked into."""
    for path in paths:
        if path.stat().st_size > LONGEST and _has_long_line(path):
            raise FirnlineError("UNREADABLE_FILE", f"{path} has a line of more than {LONGEST >> 20} MiB")


def _has_long_line(path: Path) -> bool:
    length = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            first = chunk.find(b"\n")
            if length + (len(chunk) if first < 0 else first) > LONGEST:
                return True
            length = length + len(chunk) if first < 0 else len(chunk) - 1 - chunk.rfind(b"\n")
    return False
