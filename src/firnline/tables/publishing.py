"""Several epochs of a log, published by one commit: a snapshot and a sidecar each, as if one had followed the other.

The commit stands on a head that ends where the first begins, or it is none: all of them are there, or no one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from firnline.model.description import Verdict
from firnline.model.names import EPOCH
from firnline.tables.catalog import Catalog, stored_file
from firnline.tables.commit import until_known
from firnline.tables.layers import line
from firnline.tables.log import ATTEMPT, Log, head_of, is_cut_as, summary_of
from firnline.tables.metadata import Metadata
from firnline.tables.sidecar import Sidecar
from firnline.world import world

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.manifest import DataFile


def publish_each(catalog: Catalog, log: Log, generation: int, sidecars: Sequence[Sidecar], rows: Sequence[pa.Table]) -> Verdict:
    """Make the epochs of some sidecars exist, each with its rows, exactly once, whoever else tries.

    Returns:
        FREE when they are published; TAKEN when somebody else has published all of them. Any other verdict says that none of
        them was published here; some may be there.
    """
    written: list[list[DataFile]] = []

    def attempt_once() -> Verdict:
        table = log.load()
        if table is None:
            return Verdict.MOVED
        if any(snapshot.summary.get(ATTEMPT) == sidecars[-1].attempt for snapshot in line(table)):
            return Verdict.FREE
        head = head_of(table)
        verdict = head.description.judge(generation, sidecars[0].lower, sidecars[-1].upper)
        if verdict is Verdict.FREE and not is_cut_as(table, sidecars[0].parts):
            verdict = Verdict.MOVED
        if verdict is not Verdict.FREE:
            was_there = any(snapshot.summary.get(ATTEMPT) == sidecars[-1].attempt for snapshot in table.main_line())
            for file in () if was_there else (file for files in written for file in files):  # a rewind may be undone
                catalog.remove(file.file_path)
            return verdict
        world().reach("publish.judged")
        if not written:
            written.extend(catalog.written(table, rows))
            for sidecar, files in zip(sidecars, written, strict=True):
                stored = tuple(stored_file(file, table.columns[EPOCH]) for file in files)
                catalog.write(_path(table, sidecar), replace(sidecar, files=stored, generation=generation).as_json())
            world().reach("publish.described")
        described = [head.description.advanced(sidecar.upper).as_properties() for sidecar in sidecars]
        told = [summary_of(sidecar, _path(table, sidecar)) for sidecar in sidecars]
        summaries = [{**one, **other} for one, other in zip(described, told, strict=True)]
        catalog.append_each(table, list(zip(summaries, written, strict=True)))
        world().reach("publish.committed")
        return Verdict.FREE

    return until_known(f"{log.pipeline}.{log.collection}", attempt_once)


def _path(table: Metadata, sidecar: Sidecar) -> str:
    return f"{table.location}/firnline/{sidecar.attempt}.json"
