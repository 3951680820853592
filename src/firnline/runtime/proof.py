"""The proof that nothing remains of erased rows.

Every file in the folders of the logs is one that a log names. No row of the source meets the condition. The stored rows of every
log that comes of it are, by their digests, those of an evaluation from scratch. And the values that the condition asks for by
themselves are in no small file, manifest or note, unless a row that stays has them.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from firnline.incremental.condition import literals
from firnline.model.digest import Digest
from firnline.model.feed import EVENTS
from firnline.model.names import QUARANTINE, parted, quoted
from firnline.runtime.forgetting import made_before, stray_copies, waiting_beyond
from firnline.runtime.merge import by_part
from firnline.runtime.project import Declared, Project
from firnline.tables import check_results, determinants, failures
from firnline.tables.avro import unpacked
from firnline.tables.control import TABLE as CONTROL
from firnline.tables.erasing import strays
from firnline.tables.log import head_of
from firnline.tables.plain import NAMESPACE
from firnline.tables.trash import file_key
from firnline.world import world

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

    from firnline.runtime.derived import Remade
    from firnline.tables.metadata import Metadata

_BOUND = 16
"""Iceberg keeps so many letters of a text in the bounds of a column."""


@dataclass(frozen=True, slots=True)
class Left:
    """Something that may remain of erased rows."""

    where: str
    what: str


@dataclass(frozen=True, slots=True)
class Proof:
    """What was looked at, and what was found."""

    files: int
    """Files in the logs' folders, each of them named by its log."""
    rows: int
    """Rows of the source that the condition was asked about."""
    compared: tuple[str, ...]
    """Logs that were compared with an evaluation from scratch."""
    searched: int
    """Files in which values of the condition were looked for."""
    left: tuple[Left, ...]

    @property
    def is_complete(self) -> bool:
        """Whether nothing remains."""
        return not self.left


def matching(session: SparkSession, table: Metadata, condition: str) -> dict[tuple[int, int], Digest]:
    """The digests of a log's rows that meet a condition, in all of its layers."""
    from firnline.engine.frames import deltas, table_name
    from firnline.engine.matching import divided
    from firnline.engine.staging import columns_of, digests

    assert table.current is not None, "whoever asks has seen rows"
    rows = deltas(session, table_name(table.pipeline, table.name), table.current, head_of(table).description.upper)
    found, _ = divided(rows, condition)
    return digests(found, columns_of(rows.schema, table.columns))


def prove(project: Project, session: SparkSession, declared: Declared, source: str, condition: str, logs: Sequence[str]) -> Proof:
    """Look at all logs that an erasure reached."""
    return _Proving(project, session, declared, source, condition, logs).proof()


@dataclass
class _Proving:
    project: Project
    session: SparkSession
    declared: Declared
    source: str
    condition: str
    logs: Sequence[str]
    left: list[Left] = field(default_factory=list)
    compared: list[str] = field(default_factory=list)

    def proof(self) -> Proof:
        tables = [table for name in self.logs if (table := self._load(name)) is not None]
        files = [path for table in tables for path in self._listed(table)]
        rows = self._ask()
        for name in self.declared.graph.descendants(self.source):
            self._evaluate(name)
        for url, path in stray_copies(self.project, self.declared.graph, self.logs):
            self.left.append(Left(f"{url}/{path}", "a copy of a file that no log names: it was made meanwhile; erase again"))
        self._look_beyond()
        searched = self._search(tables, files)
        for table in tables:
            if table.name.endswith(QUARANTINE) and any(self._holds(table, value) for value in literals(self.condition)):
                what = "malformed records hold a value of the condition; --quarantine drops them all"
                self.left.append(Left(f"{table.pipeline}.{table.name}", what))
        return Proof(len(files), rows, tuple(self.compared), searched, tuple(self.left))

    def _look_beyond(self) -> None:
        """What plain tables hold beside the present rows, and what other pipelines made."""
        graph = self.declared.graph
        cone = (self.source, *graph.descendants(self.source))
        for name in cone:
            what = "a plain table still has what it held before; erase again"
            if graph.collection(name).publish != "table":
                what = f"no code publishes this plain table now, and it has what it held: drop {graph.name}{NAMESPACE}.{name}"
            self.left += (Left(path, what) for path in self._outdated(name))
        for name in made_before(self.project, graph, cone):
            space, _, of = name.partition(".")
            pipeline, branch = parted(space)
            what = "it comes of these rows, and no erasure reaches other pipelines"
            todo = f"take it out of the code, let go of it (firnline plan {pipeline} --retire {of}), put it back after that"
            if branch is not None:
                todo = f"drop the branch (firnline branch drop {branch} --pipeline {pipeline})"
            self.left.append(Left(name, f"{what}: {todo}, and empty the trash (firnline maintain {pipeline} --grace 0s)"))
        for space, folder in waiting_beyond(self.project, graph, cone):
            what = "a log that was let go of may hold what came of these rows, and waits to be removed"
            self.left.append(Left(folder, f"{what}: firnline maintain {parted(space)[0]} --grace 0s"))

    def _outdated(self, name: str) -> list[str]:
        """The files of a collection's plain table that are not those of its present rows."""
        from firnline.tables.plain import GENERATION, PlainTable

        table, log = PlainTable(self.project.catalog, self.declared.graph.name, name).load(), self._load(name)
        if table is None or log is None:
            return []
        generation = str(head_of(log).description.generation)
        old = [each.manifest_list for each in table.snapshots.values() if each.summary.get(GENERATION) != generation]
        return [*old, *strays(self.project.catalog, table)]

    def _load(self, name: str) -> Metadata | None:
        return self.project.log(self.declared.graph.name, name).load()

    def _listed(self, table: Metadata) -> list[str]:
        for path in strays(self.project.catalog, table) if not table.name.endswith(QUARANTINE) else ():
            self.left.append(Left(path, "no log names this file: an attempt that was under way left it; erase again"))
        return self.project.catalog.paths(table.location)

    def _ask(self) -> int:
        """Ask every row of the source, and every event that it keeps."""
        tables = [table for name in (self.source, self.source + EVENTS) if (table := self._load(name)) is not None]
        for table in tables:
            found = sum(digest.rows for digest in matching(self.session, table, self.condition).values())
            if found:
                name = f"{table.pipeline}.{table.name}"
                self.left.append(Left(name, f"{found} rows meet the condition: they came meanwhile; erase again"))
        return sum(digest.rows for table in tables for digest in self._stored(table).values())

    def _stored(self, table: Metadata, upto: int | None = None) -> dict[tuple[int, int], Digest]:
        """The digests of a log's rows as they stand in storage."""
        from firnline.engine.frames import deltas, table_name
        from firnline.engine.staging import columns_of, digests

        assert table.current is not None
        end = head_of(table).description.upper if upto is None else upto
        rows = deltas(self.session, table_name(table.pipeline, table.name), table.current, end)
        return digests(rows, columns_of(rows.schema, table.columns))

    def _evaluate(self, name: str) -> None:
        """Compare a stage, and what it keeps, with what comes out of its inputs now."""
        from firnline.runtime.stage_run import StageRun

        graph, table = self.declared.graph, self._load(name)
        assert table is not None
        upto = head_of(table).description.upper
        epoch = graph.schedule.epoch_at(upto - 1)

        def take(made: Remade) -> None:
            of = self._load(made.log)
            assert of is not None
            stored, again = by_part(self._stored(of, upto)), by_part(made.staged.digests)
            parts = stored.keys() | again.keys()
            is_same = all(stored.get(part, Digest()).is_same_state(again.get(part, Digest())) for part in parts)
            if is_same or made.is_exact:
                self.compared.append(made.log)
            if made.is_exact and not is_same:
                what = "its rows are not those that come out of its inputs; erase again"
                self.left.append(Left(f"{graph.name}.{made.log}", what))

        StageRun(self.project, self.declared, self.session, graph.collection(name), epoch, world().new_id()).rebuild(
            take, is_written=False
        )

    def _search(self, tables: Sequence[Metadata], files: Sequence[str]) -> int:
        """Look for the values of the condition where rows leave traces; how many files."""
        values = literals(self.condition)
        if not values:
            return 0
        small = [path for path in (*files, *self._beside()) if not path.endswith((".parquet", ".crc"))]
        for path in small:
            content = self._content(path)
            for value in values if content is not None else ():
                if _is_in(value, content or b"", is_packed=path.endswith(".avro")) and not self._is_explained(
                    value, path, tables
                ):
                    self.left.append(Left(path, "a value of the condition is in this file"))
        return len(small)

    def _beside(self) -> Iterator[str]:
        """Small files about the pipeline that are in no log's folder."""
        folder = f"{self.project.catalog.warehouse}/{self.declared.graph.name}"
        for each in (CONTROL, check_results.FOLDER, determinants.FOLDER, failures.FOLDER):
            yield from self.project.catalog.paths(f"{folder}/{each}")
        yield from map(str, self.project.stash.files())

    def _content(self, path: str) -> bytes | None:
        try:
            content = self.project.catalog.read(path)
            if path.endswith(".gz.metadata.json"):
                return gzip.decompress(content)
            return unpacked(content) if path.endswith(".avro") else content
        except FileNotFoundError:
            return None  # an epoch that is under way moved on
        except (ValueError, EOFError, OSError) as error:
            self.left.append(Left(path, f"it cannot be searched: {error}"))
            return None

    def _is_explained(self, value: str, path: str, tables: Iterable[Metadata]) -> bool:
        """Whether a row that stays has the value, in a log whose file this is."""
        ours = [table for table in tables if file_key(path).startswith(f"{file_key(table.location)}/")]
        return any(self._holds(table, value) for table in ours)

    def _holds(self, table: Metadata, value: str) -> bool:
        """Whether some column of some row of a log has the value in it."""
        from pyspark.sql import functions as F

        from firnline.engine.frames import deltas, table_name

        if table.current is None:
            return False
        rows = deltas(self.session, table_name(table.pipeline, table.name), table.current, head_of(table).description.upper)
        is_there = F.lit(False)
        for name in table.types:
            is_there = is_there | F.coalesce(F.col(quoted(name)).cast("string").contains(value[:_BOUND]), F.lit(False))
        return bool(rows.where(is_there).limit(1).count())


def _is_in(value: str, content: bytes, *, is_packed: bool) -> bool:
    """Whether a value is in a file: as text, as JSON writes it, or as Iceberg keeps a number."""
    if value.isdigit():
        number = int(value)
        binary = [number.to_bytes(8, "little")] if is_packed and number < 1 << 63 else []
        if is_packed and 1 << 16 <= number < 1 << 31:
            binary.append(number.to_bytes(4, "little"))
        return bool(re.search(rb"(?<!\d)" + value.encode() + rb"(?!\d)", content)) or any(each in content for each in binary)
    start = value[:_BOUND]
    return start.encode() in content or json.dumps(start)[1:-1].encode() in content
