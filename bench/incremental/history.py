"""A workload's history as files: <day of the epoch>/<table>.parquet, rows with _diff +1 or -1; epoch 1 is the base load.

Every row has draws in [0, 1), hashes of its key. An epoch changes the rows whose draws fall into its own span, so no row is
changed in the same way twice, keys spread over the whole range, and epochs can be added for as long as there are draws left:
rows removed have draw 1, rows copied as new ones draw 2, rows updated (one removed, one inserted) draw 3.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import duckdb

from bench.incremental.workload import Workload
from bench.tpch.data import base as tpch_base
from bench.tpch.data import day, file
from firnline.errors import FirnlineError

_STATE = "history.json"
SPAN = 0.1
"""All draws that epochs may use. Rows of a higher draw 1 are never removed, so they can be updated."""

# DuckDB's hash of two values is that of the one, shifted by the other: hashed again, two draws of a key are independent.
_WORDS = """
set enable_progress_bar = false; set threads = 2; set memory_limit = '8GB';
create macro mixed(key, number) as hash(hash(key, number));
create macro drawn(key, number) as mixed(key, number)::double / 18446744073709551616.0;
create macro is_drawn(key, number, low, high) as drawn(key, number) >= low and drawn(key, number) < high;
"""


class History:
    """The change files of a workload. A history that was not settled before is unsettled until ``settle``."""

    @staticmethod
    def is_settled(root: Path) -> bool:
        """Whether all engines have taken in all epochs of the history in a folder."""
        return (root / _STATE).exists()

    def __init__(self, root: Path, workload: Workload) -> None:
        self.folder = root / "changes"
        self._workload = workload
        self._state = root / _STATE
        self._database = duckdb.connect()
        self._database.execute(_WORDS + f"set temp_directory = '{root}/spill';")
        base = tpch_base(root.parent, workload.scale) if workload.is_tpch else root
        self._database.execute(workload.views.format(base=base))
        self.rows: dict[str, int]
        self.used: float
        self.epochs: int
        if self._state.exists():
            self.rows, self.used, self.epochs = json.loads(self._state.read_text()).values()
        else:
            shutil.rmtree(self.folder, ignore_errors=True)
            self._write(1, {name: f"select *, 1 as _diff from ({table.base})" for name, table in workload.tables.items()})
            self.rows = {name: self._count(f"'{self.file(1, name)}'") for name in workload.tables}
            self.used, self.epochs = 0.0, 1

    def file(self, epoch: int, table: str) -> Path:
        """What an epoch changes in a table."""
        return file(self.folder, epoch, table)

    @property
    def size(self) -> int:
        """The rows of all tables after the base load."""
        return sum(self.rows.values())

    def add(self, change: float) -> tuple[int, int]:
        """Write one more epoch that changes a share of all rows (or, from 1 on, that many rows); its number and the rows changed.

        An update counts as one row changed.
        """
        share = change / self.size if change >= 1 else change
        tables = self._workload.tables
        width = share * self.size / sum(table.changed_per_row * self.rows[name] for name, table in tables.items())
        low, high = self.used, self.used + width
        if high > SPAN:
            raise FirnlineError("BAD_OPTION", "the history has no rows left to change", todo="Run without --resume.")
        self._state.unlink(missing_ok=True)
        self.epochs, self.used = self.epochs + 1, high
        self._write(self.epochs, {name: table.changes.format(low=low, high=high) for name, table in tables.items()})
        changed = sum(self._changed(name) for name in tables)
        return self.epochs, changed

    def settle(self) -> None:
        """All engines have taken in all epochs: whoever comes later may go on from here."""
        self._state.write_text(json.dumps({"rows": self.rows, "used": self.used, "epochs": self.epochs}))

    def close(self) -> None:
        """Let go of the database."""
        self._database.close()

    def _changed(self, table: str) -> int:
        keys = ", ".join(self._workload.tables[table].keys)
        return self._count(f"(select distinct {keys} from '{self.file(self.epochs, table)}')")

    def _write(self, epoch: int, queries: dict[str, str]) -> None:
        (self.folder / day(epoch)).mkdir(parents=True, exist_ok=True)
        for name, query in queries.items():
            self._database.execute(f"copy ({query}) to '{self.file(epoch, name)}' (format parquet)")

    def _count(self, relation: str) -> int:
        (count,) = self._database.execute(f"select count(*) from {relation}").fetchall()[0]
        return int(count)
