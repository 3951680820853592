"""Few rows of logs, found without Spark: what an epoch changes, and the rows of a state with some keys.

Spark reads all of a log to find some rows of it, since files are left out by bounds, and keys that are spread hit every file. So
where few rows change, and the project's settings ask for it, they are found through the concordance of the data files, and handed
to Spark with the plan.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
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
from firnline.tables.metadata import Metadata

_logger = logging.getLogger(__name__)
LEAST_ROWS = 50_000
"""Fewer rows are as soon read by Spark."""
_MOST_FOUND = 4 * FEW
"""More rows make no plan."""


@dataclass(frozen=True)
class Finding:
    """The logs that a plan reads, around an epoch."""

    project: Project
    pipeline: str
    epoch: Epoch
    leaves: Mapping[str, Leaf]

    def at_hand(self) -> frozenset[tuple[str, str]]:
        """What can be looked up: (log, moment) or (log, "change")."""
        is_kept = self.project.settings.concordance and self.project.concordance is not None
        if not is_kept or sum(leaf.changes for leaf in self.leaves.values()) > FEW:
            return frozenset()
        if not any(leaf.size >= LEAST_ROWS for leaf in self.leaves.values()):
            return frozenset()
        found = set[tuple[str, str]]()
        for name, leaf in self.leaves.items():
            if leaf.parts is not None or leaf.chunk is not None:
                continue
            is_exact = {
                "old": leaf.old is not None and leaf.old_ends == self.epoch.lower,
                "new": leaf.new is not None and leaf.new_ends == self.epoch.upper,
            }
            found |= {(name, moment) for moment, is_there in is_exact.items() if is_there and leaf.size >= LEAST_ROWS}
            found |= {(name, "change")} if all(is_exact.values()) else set()
        return frozenset(found)

    def found(self, lookup: Lookup, keys: pa.Table | None) -> pa.Table | None:
        """The rows of a lookup, and perhaps others; None if Spark has to find them."""
        try:
            return self._found(lookup, keys)
        except (OSError, ValueError) as error:  # a lost file, a full disk: Spark says what is wrong, if something is
            _logger.info("rows of %s are read by Spark: %s", lookup.collection, error)
            return None

    def _found(self, lookup: Lookup, keys: pa.Table | None) -> pa.Table | None:
        leaf = self.leaves[lookup.collection]
        table = self.project.log(self.pipeline, lookup.collection).load()
        assert table is not None, "it has a snapshot"
        columns = _fields(table, [name for name, _ in lookup.columns])
        if columns is None:
            return None
        if keys is None:
            files = self._brought(table, leaf)
            found = None if files is None else self._rows(files, columns)
        else:
            snapshot = leaf.old if lookup.moment == "old" else leaf.new
            assert snapshot is not None, "what is at hand has snapshots"
            found = self._with_keys(self._held(table, snapshot), lookup, keys, table, columns)
        return None if found is None else found.rename_columns([name for _, name in lookup.columns])

    def _rows(self, files: Sequence[StoredFile], columns: Sequence[Field]) -> pa.Table:
        return pa.concat_tables([_empty(columns), *(self._concordance.rows(file.path, columns) for file in files)])

    @property
    def _concordance(self) -> Concordance:
        assert self.project.concordance is not None, "something is at hand"
        return Concordance(self.project.concordance)

    def _with_keys(
        self, files: Sequence[StoredFile], lookup: Lookup, keys: pa.Table, table: Metadata, columns: Sequence[Field]
    ) -> pa.Table | None:
        by = _fields(table, [name for name, _ in lookup.on])
        values = [keys[name].combine_chunks() for _, name in lookup.on]
        if by is None or keys.num_rows > FEW or not all(map(_is_same, by, values)):
            return None
        wanted = np.unique(hashed([large(each) for each in values]))
        found, rows = [_empty(columns)], 0
        for file in files:
            found.append(self._concordance.found(file.path, file.rows, by, wanted, columns))
            rows += found[-1].num_rows
            if rows > _MOST_FOUND:
                return None
        return pa.concat_tables(found)

    def _held(self, table: Metadata, snapshot: int) -> list[StoredFile]:
        """The data files of a state."""
        catalog = self.project.catalog
        manifests = catalog.manifests(table.snapshots[snapshot].manifest_list)
        return [file for manifest in manifests for file in catalog.listed(table, manifest)]

    def _brought(self, table: Metadata, leaf: Leaf) -> list[StoredFile] | None:
        """The data files that the epoch brought; None if others went with it."""
        assert leaf.old is not None
        assert leaf.new is not None
        catalog = self.project.catalog
        before, after = (set(catalog.manifests(table.snapshots[of].manifest_list)) for of in (leaf.old, leaf.new))
        gone, come = (
            {file.path: file for manifest in manifests for file in catalog.listed(table, manifest)}
            for manifests in (before - after, after - before)
        )
        return None if gone.keys() - come.keys() else [file for path, file in come.items() if path not in gone]


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
