"""Text files that no engine can read: a line that does not fit into memory, be it compressed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa

from firnline.errors import FirnlineError

LONGEST = 64 << 20
"""Bytes that a line may have: Spark holds it whole, several times over."""
_CHUNK = 1 << 20
_COMPRESSED: Mapping[str, str] = MappingProxyType({".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"})
"""What Spark unpacks by the file's name."""
_END = re.compile(rb"[\r\n]")


def check_lines(paths: Iterable[Path]) -> None:
    """Refuse a file with a line that is too long. Only files that may hold such a line are looked into."""
    for path in paths:
        if (path.suffix in _COMPRESSED or path.stat().st_size > LONGEST) and _has_long_line(path):
            raise FirnlineError("UNREADABLE_FILE", f"{path} has a line of more than {LONGEST >> 20} MiB")


def _has_long_line(path: Path) -> bool:
    length = 0
    try:
        with pa.input_stream(str(path), compression=_COMPRESSED.get(path.suffix)) as file:
            while chunk := file.read(_CHUNK):
                first = _END.search(chunk)
                if length + (len(chunk) if first is None else first.start()) > LONGEST:
                    return True
                last = max(chunk.rfind(b"\n"), chunk.rfind(b"\r"))
                length = len(chunk) - 1 - last if first is not None else length + len(chunk)
    except OSError:
        return False  # a damaged file is left to Spark's own words
    return False
