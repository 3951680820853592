"""Tables that name another table's data files: the logs of a branch.

A fork begins with the layers of its source that end at or before a point, and with one exchange that takes out the files of all
that comes after it. No row is written, and no manifest of which all files stay. From then on both go their own ways. Whoever
removes files asks every table that may name them, so that a file stays as long as one of them does; whoever begins to name one
looks afterwards whether the source still did: then nobody can have decided before that it may go.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from firnline.errors import FirnlineError
from firnline.model.description import Description, Verdict
from firnline.model.names import EPOCH
from firnline.model.stored_file import StoredFile
from firnline.tables.catalog import Catalog, stored_file
from firnline.tables.commit import until_known
from firnline.tables.layers import KIND, REPAIR, description_of, layers, line, newest_exchange, newest_rescale, range_of
from firnline.tables.log import ATTEMPT, FINGERPRINT, PLAN, START, Entry, Log, cut_into, entries_of, head_of, summary_of
from firnline.tables.metadata import SHARES, SIDECAR, Metadata, Snapshot
from firnline.tables.port import Exchange
from firnline.tables.sidecar import Repair
from firnline.tables.trash import Trash, file_key
from firnline.world import world

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata


def fork(catalog: Catalog, source: Log, into: Log, at: int) -> bool:
    """Let a log begin with what another holds before a point, unless it is there; whether there was anything."""

    def attempt_once() -> bool:
        table = source.load()
        if into.load() is not None:
            return True
        if table is None:
            return False
        kept = [each for each in layers(table) if range_of(table, each).upper <= at]
        catalog.register(into.pipeline, into.collection, _forked(catalog, table, kept, into, at))
        world().reach("branch.forked")
        forked = into.load()
        assert forked is not None, "it was just registered"
        if not is_named_still(catalog, table, lambda: into.held(forked)):
            catalog.forget(forked)
            raise FirnlineError("COMMIT_CONTENDED", f"files of {source.pipeline}.{source.collection} were exchanged meanwhile")
        return True

    return until_known(f"{into.pipeline}.{into.collection}", attempt_once)


def is_named_still(catalog: Catalog, seen: Metadata, files: Callable[[], Iterable[StoredFile]]) -> bool:
    """Whether a table that was looked at still names some of its files."""
    table = catalog.table(seen.pipeline, seen.name)
    if table is None:
        return False
    before, now = newest_exchange(seen), newest_exchange(table)
    if (None if before is None else before.id) == (None if now is None else now.id):
        return True
    named = Trash(catalog).named(table)
    theirs = file_key(seen.location)
    return all(key in named for each in files() if (key := file_key(each.path)).startswith(theirs))


def take(catalog: Catalog, source: Log, into: Log, entry: Entry) -> Verdict:
    """Publish a layer of one log in another, by its files, exactly once, whoever else tries.

    The publish has the attempt of the one that it is taken from: that tells that no row was computed for it.
    """
    sidecar = source.sidecar(entry)

    def attempt_once() -> Verdict:
        table, theirs = into.load(), source.load()
        if table is None or theirs is None or _shape(table) != _shape(theirs):
            return Verdict.MOVED
        if any(snapshot.summary.get(ATTEMPT) == entry.attempt for snapshot in line(table)):
            return Verdict.FREE
        there = _layer_of(theirs, entry.lower, entry.description.upper)
        if there is None or there.attempt != entry.attempt:
            return Verdict.MOVED  # a rewind took it out, or a merge took it in
        head = head_of(table)
        verdict = head.description.judge(head.description.generation, entry.lower, entry.description.upper)
        if verdict is not Verdict.FREE:
            return verdict
        coming = {file.file_path: file for file in _of_range(catalog, theirs, entry.lower, entry.description.upper)}
        files = tuple(stored_file(each, table.columns[EPOCH]) for each in coming.values())
        path = f"{table.location}/firnline/{entry.attempt}-{world().new_id()[:8]}.json"  # of two who take it, each its own
        made = replace(sidecar, files=files, left=(), generation=head.description.generation)
        catalog.write(path, made.as_json())
        world().reach("branch.taking")
        summary = {**head.description.advanced(entry.description.upper).as_properties(), **summary_of(sidecar, path)}
        catalog.append(table, summary, list(coming.values()))
        world().reach("branch.taken")
        if not is_named_still(catalog, theirs, lambda: files):
            raise FirnlineError("LOG_UNREADABLE", f"{source.pipeline}.{source.collection} let go of files meanwhile")
        return Verdict.FREE

    return until_known(f"{into.pipeline}.{into.collection}", attempt_once)


def _shape(table: Metadata) -> tuple[object, ...]:
    """What two logs have to have in common for the files of one to be the other's."""
    return cut_into(table), table.columns, table.types


def layer_at(log: Log, lower: int, upper: int) -> Entry | None:
    """The layer of a log that holds exactly one range of epochs."""
    table = log.load()
    return None if table is None else _layer_of(table, lower, upper)


def _layer_of(table: Metadata, lower: int, upper: int) -> Entry | None:
    for entry in entries_of(table):
        if entry.lower == lower and entry.description.upper == upper:
            return entry
        if entry.description.upper <= lower:
            return None
    return None


def _forked(catalog: Catalog, source: Metadata, kept: Sequence[Snapshot], into: Log, at: int) -> str:
    """Write the first version of a fork; the path of its file."""
    from pyiceberg.table import Table

    from firnline.tables.exchanging import exchanging
    from firnline.tables.transaction import SparingTransaction

    theirs = catalog.iceberg(source.pipeline, source.name)
    if theirs.metadata_location != source.version:
        raise FirnlineError("COMMIT_CONTENDED", f"{source.pipeline}.{source.name} moved meanwhile")
    # A branch of the same name may have been dropped a moment ago, and its files wait to be removed.
    location = f"{catalog.warehouse}/{into.pipeline}/{into.collection}-{uuid4().hex[:8]}"
    rescale = newest_rescale(source)  # it tells where it is written down how older layers are cut
    ids: set[int | None] = {each.id for each in (*kept, *([] if rescale is None else [rescale]))}
    first = {**theirs.metadata.properties, SHARES: json.dumps([source.location, *source.shares])}
    draft = _with_snapshots(theirs.metadata, ids | {source.current}).model_copy(
        update={"table_uuid": uuid4(), "location": location, "properties": first, "metadata_log": []}
    )
    if not kept:
        empty = _with_snapshots(draft, set()).model_copy(update={"current_snapshot_id": None})
        return _written(empty, theirs)
    beside = Table((into.pipeline, into.collection), draft, source.version, theirs.io, catalog.opened)
    newest = max(kept, key=lambda each: range_of(source, each).upper)
    out = tuple(file.path for file in catalog.held(source) if file.last >= at)
    note = Repair(into.collection, world().new_id(), (), out, (), 0, 0, 0.0)
    path = f"{location}/firnline/{note.attempt}.json"
    catalog.write(path, note.as_json())
    transaction = SparingTransaction(beside)
    exchanging(transaction, _cut(source, newest, note, path), Exchange(out=frozenset(out)), []).commit()
    cut = transaction.table_metadata
    return _written(_with_snapshots(cut, ids | {cut.current_snapshot_id}), theirs)


def _written(made: TableMetadata, beside: Table) -> str:
    """Write a table's first version; the path of its file."""
    from pyiceberg.serializers import ToOutputFile

    version = f"{made.location}/metadata/00000-{uuid4()}.metadata.json"
    ToOutputFile.table_metadata(made, beside.io.new_output(version))
    world().reach("branch.written")
    return version


def _cut(source: Metadata, newest: Snapshot, note: Repair, path: str) -> dict[str, str]:
    """What the exchange that begins a fork says of itself: where the fork ends, and what code made its last epoch."""
    described, upper = description_of(source, newest), range_of(source, newest).upper
    since = min(max(described.since, int(source.properties[START])), upper)
    code = {name: newest.summary[name] for name in (FINGERPRINT, PLAN) if name in newest.summary}
    description = Description(head_of(source).description.generation, since, upper)
    return {**description.as_properties(), KIND: REPAIR, ATTEMPT: note.attempt, SIDECAR: path, **code}


def _with_snapshots(metadata: Any, ids: set[int | None]) -> Any:
    """A table's metadata with some of its snapshots only."""
    return metadata.model_copy(
        update={
            "snapshots": [each for each in metadata.snapshots if each.snapshot_id in ids],
            "snapshot_log": [each for each in metadata.snapshot_log if each.snapshot_id in ids],
            "refs": {name: ref for name, ref in metadata.refs.items() if ref.snapshot_id in ids},
        }
    )


def _of_range(catalog: Catalog, table: Metadata, lower: int, upper: int) -> list[DataFile]:
    """The data files of a range of epochs that a table's head names."""
    loaded: Table = catalog.iceberg(table.pipeline, table.name)
    head = None if table.current is None else loaded.snapshot_by_id(table.current)
    found = []
    for manifest in [] if head is None else head.manifests(loaded.io):
        for entry in manifest.fetch_manifest_entry(loaded.io):
            stored = stored_file(entry.data_file, table.columns[EPOCH])
            if lower <= stored.first and stored.last < upper:
                found.append(entry.data_file)
    return found
