"""Parquet files that lack columns: of several files Spark looks into one, and reads nulls where another has no such column."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from firnline.errors import FirnlineError


def check_columns(paths: Iterable[Path], names: Iterable[str]) -> None:
    """Refuse a file without one of the columns; one that is no Parquet file is left to Spark's own words."""
    wanted = {name.lower(): name for name in names}
    for path in paths:
        try:
            there = {name.lower() for name in pq.read_schema(path).names}
        except (pa.ArrowInvalid, OSError):
            continue
        missing = [name for lowered, name in wanted.items() if lowered not in there]
        if missing:
            raise FirnlineError("SCHEMA_MISMATCH", f"{path} has no column {', '.join(missing)}")
