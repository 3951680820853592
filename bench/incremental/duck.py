"""DuckDB's side: its own tables in a file, two threads, every question asked anew and its answer written.

Its answers are what all others are compared with.
"""

from __future__ import annotations

import time
from pathlib import Path

import duckdb
import pyarrow as pa

from bench.incremental.history import History
from bench.incremental.workload import Stage, Workload

TOLERANCE = 1e-12
"""Floats may differ by this much relatively: their sums depend on the order of rows in Spark and in DuckDB."""


class Duck:
    """A DuckDB database with the current rows; its answers are what the others' are compared to."""

    def __init__(self, path: Path, workload: Workload, history: History) -> None:
        self._database = duckdb.connect(str(path))
        self._database.execute("set threads = 2; set memory_limit = '8GB'; set enable_progress_bar = false")
        self._workload = workload
        self._history = history

    def close(self) -> None:
        """Let go of the database."""
        self._database.close()

    def ingest(self, epoch: int) -> None:
        """Bring an epoch's changes into the tables."""
        for name, table in self._workload.tables.items():
            file = self._history.file(epoch, name)
            rows = f"(select * exclude (_diff) from '{file}' where _diff > 0)"
            if epoch == 1:
                self._database.execute(f"create or replace table {name} as from {rows}")
                continue
            same = " and ".join(f"{name}.{key} = gone.{key}" for key in table.keys)
            self._database.execute(f"delete from {name} using (from '{file}' where _diff < 0) gone where {same}")
            self._database.execute(f"insert into {name} from {rows}")
        if epoch == 1 and self._workload.words:
            self._database.execute(self._workload.words)

    def run(self, stage: Stage) -> float:
        """Ask a stage's question and write the answer; the seconds it took."""
        began = time.monotonic()
        self._database.execute(f"create or replace table {_answer(stage)} as {stage.sql}")
        return time.monotonic() - began

    def difference(self, stage: Stage, found: pa.Table) -> str | None:
        """How somebody's answer differs from DuckDB's, as multisets: decimals exactly, floats within the tolerance."""
        answer = _answer(stage)
        names = found.column_names
        given = f"answer({', '.join(f'c{number}' for number in range(len(names)))})"
        self._database.register("found", found.rename_columns([f"c{number}" for number in range(len(names))]))
        try:
            keys = [f"c{names.index(key)}" for key in stage.keys]
            same = " and ".join(f"answer.{key} is not distinct from found.{key}" for key in keys) or "true"
            wrong = " or ".join(self._differs(f"c{number}", kind) for number, kind in enumerate(found.schema.types))
            counts = self._database.execute(f"""
                select (select count(*) from {answer}), (select count(*) from found),
                       (select count(*) from (select distinct {", ".join(keys) or "true"} from found)),
                       (select count(*) from {answer} as {given} join found on {same} where not ({wrong}))""").fetchall()[0]
        finally:
            self._database.unregister("found")
        expected, rows, distinct, equal = counts
        if expected == rows == distinct == equal:
            return None
        return f"{stage.name}: {rows} rows ({distinct} keys) where DuckDB has {expected}; {equal} of them are equal"

    def _differs(self, name: str, kind: pa.DataType) -> str:
        ours, theirs = f"found.{name}", f"answer.{name}"
        if pa.types.is_floating(kind):
            return f"""({ours} is null) <> ({theirs} is null)
                or coalesce(abs({ours} - {theirs}) > {TOLERANCE} * greatest(abs({ours}), abs({theirs})), false)"""
        return f"{ours} is distinct from {theirs}"


def _answer(stage: Stage) -> str:
    return f"answer_{stage.name}"
