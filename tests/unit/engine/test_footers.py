from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from firnline.engine.footers import check_columns
from firnline.errors import FirnlineError


def test_each_file_has_all_columns(tmp_path: Path) -> None:
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    pq.write_table(pa.table({"k": [1], "V": ["x"], "more": [2]}), paths[0])
    pq.write_table(pa.table({"k": [1]}), paths[1])
    check_columns(paths[:1], ["k", "v"])
    with pytest.raises(FirnlineError, match=r"SCHEMA_MISMATCH: .*b\.parquet has no column v"):
        check_columns(paths, ["k", "v"])


def test_what_is_no_parquet_file_is_left_to_spark(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_text("nothing of the kind")
    check_columns([tmp_path / "a.parquet", tmp_path / "missing.parquet"], ["k"])
