"""A transaction that makes its metadata once per change.

PyIceberg's makes it at every look, a dozen per commit, each time with a copy of all snapshots: most of a commit to a long log.
"""

from __future__ import annotations

from pyiceberg.table import Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import TableUpdate


class SparingTransaction(Transaction):
    """As PyIceberg's; whoever looks at its metadata must not change it."""

    _made: tuple[TableMetadata, tuple[TableUpdate, ...], TableMetadata] | None = None
    """The table's metadata, the changes to it, and what these make of it."""

    @property
    def table_metadata(self) -> TableMetadata:
        """The table's metadata with all changes so far."""
        base, updates = self._table.metadata, self._updates
        if self._made is None or self._made[0] is not base or self._made[1] is not updates:
            self._made = (base, updates, super().table_metadata)
        return self._made[2]
