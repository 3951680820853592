"""Data files that a log does not name, or not where they are, named by a snapshot beside its main line.

So they are read as all of its rows are: columns by their ids, whatever they were called when a file was written, and storage as
Iceberg reaches it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from firnline.model.stored_file import StoredFile
from firnline.tables.catalog import Catalog
from firnline.tables.commit import until_known
from firnline.tables.exchanging import as_known
from firnline.tables.layers import LOWER
from firnline.tables.log import ATTEMPT, Log, staged_by


def name_beside(
    catalog: Catalog, log: Log, attempt: str, files: Sequence[StoredFile], places: Mapping[str, str]
) -> tuple[int, int]:
    """Name data files, those of ``places`` where they are now; the snapshot, and the one that it stands on."""

    def attempt_once() -> tuple[int, int]:
        table = log.load()
        assert table is not None, "it was looked at"
        for snapshot in staged_by(table, attempt):
            parent = table.snapshots[snapshot].parent
            assert parent is not None, "a log that lost something holds something"
            return snapshot, parent
        metadata = catalog.iceberg(log.pipeline, log.collection).metadata
        named = [as_known(metadata, each, places.get(each.path, each.path)) for each in files]
        lower = min(each.first for each in files)
        catalog.append_beside(table, {ATTEMPT: attempt, LOWER: str(lower)}, named)
        return attempt_once()

    return until_known(f"the staging of {log.pipeline}.{log.collection}", attempt_once)
