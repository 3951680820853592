"""Few rows of logs, found without Spark: what an epoch changes, and the rows of a state with some keys.

Spark reads all of a log to find some rows of it, since files are left out by bounds, and keys that are spread hit every file; and
of a small one it takes longer to begin than to read. So where few rows change they are found here, and handed to Spark with the
plan: those of small logs by reading these, those of others through the concordance of the data files, if the settings ask for it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from firnline.engine.leaves import Leaf
from firnline.engine.staging import FEW
from firnline.incremental.derivation import Lookup
from firnline.model.epoch import Epoch
from firnline.model.stored_file import StoredFile
from firnline.runtime.project import Project
from firnline.tables.concordance import Concordance, Field, hashed, is_hashed, kind_of, large
from firnline.tables.log import Log
from firnline.tables.metadata import Metadata
from firnline.tables.port import Manifest

_logger = logging.getLogger(__name__)
FEW_ROWS = 50_000
"""So many rows of a log are sooner read here than by Spark."""
_MOST_FOUND = 4 * FEW
"""More rows make no plan."""
UNREADABLE = (OSError, ValueError, LookupError, pa.ArrowException)
"""A lost file, a full disk, columns that changed meanwhile: Spark says what is wrong, if something is."""
_LISTED: dict[str, tuple[StoredFile, ...]] = {}
_MOST_LISTED = 10_000


@dataclass(frozen=True)
class Finding:
    """The logs that a plan reads, around an epoch."""

    project: Project
    pipeline: str
    epoch: Epoch
    leaves: Mapping[str, Leaf]

    def at_hand(self) -> frozenset[tuple[str, str]]:
        """What can be looked up: (log, moment) or (log, "change")."""
        are_few = sum(leaf.changes for leaf in self.leaves.values()) <= FEW
        are_near = all(_is_near(self.project, leaf.size) for leaf in self.leaves.values())
        if self.project.concordance is None or not are_few or not are_near:
            return frozenset()
        found = set[tuple[str, str]]()
        for name, leaf in self.leaves.items():
            if leaf.parts is not None or leaf.chunk is not None:
                continue
            is_exact = {
                "old": leaf.old is not None and leaf.old_ends == self.epoch.lower,
                "new": leaf.new is not None and leaf.new_ends == self.epoch.upper,
            }
            found |= {(name, moment) for moment, is_there in is_exact.items() if is_there}
            found |= {(name, "change")} if all(is_exact.values()) else set()
        return frozenset(found)

    def found(self, lookup: Lookup, keys: pa.Table | None) -> pa.Table | None:
        """The rows of a lookup, and perhaps others; None if Spark has to find them."""
        try:
            return self._found(lookup, keys)
        except UNREADABLE as error:
            _logger.info("rows of %s are read by Spark: %s", lookup.collection, error)
            return None

    def _found(self, lookup: Lookup, keys: pa.Table | None) -> pa.Table | None:
        leaf = self.leaves[lookup.collection]
        table = self.project.log(self.pipeline, lookup.collection).load()
        assert table is not None, "it has a snapshot"
        names = [name for name, _ in lookup.columns]
        if keys is not None:
            snapshot = leaf.old if lookup.moment == "old" else leaf.new
            assert snapshot is not None, "what is at hand has snapshots"
            values = keys.select([name for _, name in lookup.on]).rename_columns([name for name, _ in lookup.on])
            held = _held(self.project, table, snapshot)
            found = _with_keys(self.project, table, held, values, names) if _are_near(self.project, held) else None
        else:
            files, columns = self._brought(table, leaf), _fields(table, names)
            found = None if files is None or columns is None else self._rows(files, columns)
        return None if found is None else found.rename_columns([name for _, name in lookup.columns])

    def _rows(self, files: Sequence[StoredFile], columns: Sequence[Field]) -> pa.Table:
        concordance = _concordance(self.project)
        return pa.concat_tables([_empty(columns), *(concordance.rows(file.path, columns) for file in files)])

    def _brought(self, table: Metadata, leaf: Leaf) -> list[StoredFile] | None:
        """The data files that the epoch brought; None if others went with it."""
        assert leaf.old is not None
        assert leaf.new is not None
        catalog = self.project.catalog
        before, after = (set(catalog.manifests(table.snapshots[of].manifest_list)) for of in (leaf.old, leaf.new))
        gone, come = (
            {file.path: file for manifest in manifests for file in _listed(self.project, table, manifest)}
            for manifests in (before - after, after - before)
        )
        return None if gone.keys() - come.keys() else [file for path, file in come.items() if path not in gone]


def held(project: Project, log: Log, snapshot: int, keys: Callable[[], pa.Table], columns: Sequence[str]) -> pa.Table | None:
    """The rows of a log that have some keys, and perhaps others; None if Spark has to find them."""
    table = log.load()
    assert table is not None, "it has a snapshot"
    try:
        files = _held(project, table, snapshot)
        return _with_keys(project, table, files, keys(), columns) if _are_near(project, files) else None
    except UNREADABLE as error:
        _logger.info("rows of %s are read by Spark: %s", log.collection, error)
        return None


def _with_keys(
    project: Project, table: Metadata, files: Sequence[StoredFile], keys: pa.Table, columns: Sequence[str]
) -> pa.Table | None:
    """The rows of files that have some keys."""
    by, of = _fields(table, keys.column_names), _fields(table, columns)
    values = [each.combine_chunks() for each in keys.columns]
    if by is None or of is None or keys.num_rows > FEW or not all(map(_is_same, by, values)):
        return None
    wanted, concordance = np.unique(hashed([large(each) for each in values])), _concordance(project)
    found, rows = [_empty(of)], 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for some in pool.map(lambda file: concordance.found(file.path, file.rows, by, wanted, of), files):
            found.append(some)
            rows += some.num_rows
            if rows > _MOST_FOUND:
                pool.shutdown(wait=False, cancel_futures=True)
                return None
    return pa.concat_tables(found)


def _held(project: Project, table: Metadata, snapshot: int) -> list[StoredFile]:
    """The data files of a state; refused if columns have other names by now than it knows them under."""
    schema = table.snapshots[snapshot].schema
    if schema is not None and table.schemas[schema] != table.columns:
        raise ValueError(f"{table.pipeline}.{table.name} has other columns by now")
    manifests = project.catalog.manifests(table.snapshots[snapshot].manifest_list)
    return [file for manifest in manifests for file in _listed(project, table, manifest)]


def _listed(project: Project, table: Metadata, manifest: Manifest) -> tuple[StoredFile, ...]:
    """The data files that a manifest names. No manifest changes: one that was read need not be read again."""
    found = _LISTED.get(manifest.path)
    if found is None:
        if len(_LISTED) >= _MOST_LISTED:
            _LISTED.clear()
        found = _LISTED[manifest.path] = project.catalog.listed(table, manifest)
    return found


def _is_near(project: Project, rows: int) -> bool:
    """Whether rows of a log that has so many are found here."""
    return project.settings.concordance or rows <= FEW_ROWS


def _are_near(project: Project, files: Sequence[StoredFile]) -> bool:
    return _is_near(project, sum(file.rows for file in files))


def _concordance(project: Project) -> Concordance:
    assert project.concordance is not None, "something is at hand"
    return Concordance(project.concordance)


def _fields(table: Metadata, names: Sequence[str]) -> list[Field] | None:
    """Columns of a log; None if the values of one are not kept."""
    found = [(table.columns[name], name, kind_of(table.types[name])) for name in names]
    return None if any(kind is None for *_, kind in found) else [Field(*each) for each in found]


def _empty(columns: Sequence[Field]) -> pa.Table:
    return pa.schema([(each.name, each.kind) for each in columns]).empty_table()


def _is_same(of: Field, values: pa.Array) -> bool:
    """Whether values are of a column's type, and equal only if they are the same."""
    are_integers = kinds.is_integer(of.kind) and kinds.is_integer(values.type)
    return is_hashed(of.kind) and (are_integers or values.type == of.kind)
