"""A table whose metadata file is lost, from the one before it and the sidecars of what was published after that.

Older metadata files stay where they are, and a sidecar is written before the commit that names it. So what a lost file said is
what the one before it said, and then the publishes of its generation whose sidecars follow its end: what an older generation
published there, a rewind took out. An attempt that lost its race may have left a
sidecar too: its rows are the same, since only deterministic code is replayed, so that either will do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from uuid import uuid4

from pyiceberg.io import FileIO
from pyiceberg.io.fsspec import FsspecFileIO
from pyiceberg.manifest import ManifestFile
from pyiceberg.serializers import FromInputFile, ToOutputFile
from pyiceberg.table import Table, Transaction
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update.snapshot import ExpireSnapshots, _FastAppendFiles

from firnline.errors import FirnlineError
from firnline.model.description import Description
from firnline.tables.appending import OfSeveralSpecs
from firnline.tables.catalog import Catalog
from firnline.tables.exchanging import named_again
from firnline.tables.layers import KIND, LAYER, MERGE
from firnline.tables.log import head_of, is_cut_as, staged_by, summary_of
from firnline.tables.metadata import Metadata
from firnline.tables.sidecar import Sidecar
from firnline.tables.storage import is_there, located
from firnline.tables.trash import file_key

Choose = Callable[[list[Sidecar]], Sidecar]
"""Which of several sidecars of the same epoch was published."""
Reached = Callable[[int], None]
"""Told the generation that a log will be of, before the catalog names it; it may refuse."""


def rebuild_metadata(
    catalog: Catalog, pipeline: str, name: str, lost: str, choose: Choose, reached: Reached = lambda _: None
) -> bool:
    """Let the catalog name a metadata file that can be read, with everything in it that the lost one held.

    Nothing is done, and that is told, if the catalog names another one by now: what was committed since is not to be undone.
    """
    if catalog.version(pipeline, name) != lost:
        return False
    older = next(_readable(catalog, pipeline, name, lost), None)
    if older is None:
        raise FirnlineError("NOT_REPAIRABLE", f"{pipeline}.{name} has no metadata file that can be read")
    io = FsspecFileIO({})
    metadata = FromInputFile.table_metadata(io.new_input(older.version))
    transaction = Transaction(Table((pipeline, name), metadata, older.version, io, catalog.opened))
    followers = list(_followers(catalog, older, choose)) if _is_log(older) else []
    if _is_log(older):
        reached(head_of(older).description.generation)
    description = head_of(older).description if followers else None
    for sidecar, path in followers:
        assert description is not None
        description = description.advanced(sidecar.upper)
        description = description.merged(sidecar.upper) if sidecar.merged else description
        _append(transaction, io, older, description, sidecar, path)
    number = _number(lost) + 1
    version = f"{older.location}/metadata/{number:05d}-{uuid4()}.metadata.json"
    ToOutputFile.table_metadata(transaction.table_metadata, io.new_output(version))
    return catalog.point(pipeline, name, lost, version)


def _is_log(table: Metadata) -> bool:
    return "firnline.start" in table.properties


def _readable(catalog: Catalog, pipeline: str, name: str, lost: str) -> Iterator[Metadata]:
    """Metadata files that can be read: the one before, then others that the table had, the newest first.

    What an attempt that lost its race left is taken only if nothing else is there.
    """
    before = catalog.pointers.previous(pipeline, name)
    yield from _read(catalog, pipeline, name, [before] if before is not None else [])
    folder = lost.rsplit("/", 1)[0]
    filesystem, inner = located(folder)
    protocol = folder.partition("://")[0]
    files = [path for path in filesystem.ls(inner, detail=False) if path.endswith(".metadata.json")]
    newest = sorted(files, key=lambda path: path.rsplit("/", 1)[-1], reverse=True)
    versions = [f"{protocol}://{path}" if "://" in folder else path for path in newest]
    found = list(_read(catalog, pipeline, name, [version for version in versions if version != lost]))
    had = {file_key(version) for each in found for version in each.older}
    numbers = Counter(map(_number, versions))

    def is_in_doubt(table: Metadata) -> bool:
        """Whether it may be one that lost its race: another has its number, and no later one says that it was before it."""
        number = _number(table.version)
        return file_key(table.version) not in had and (numbers[number] > 1 or number >= _number(lost))

    yield from sorted(found, key=is_in_doubt)


def _number(version: str) -> int:
    return int(version.rsplit("/", 1)[-1].partition("-")[0])


def _read(catalog: Catalog, pipeline: str, name: str, versions: Iterable[str]) -> Iterator[Metadata]:
    for version in versions:
        try:
            yield catalog.at(pipeline, name, version)
        except (OSError, ValueError, KeyError, TypeError):
            continue


def _followers(catalog: Catalog, table: Metadata, choose: Choose) -> Iterator[tuple[Sidecar, str]]:
    """The sidecars that follow the end of a log, one after the other, whose data files are all there."""
    found: list[tuple[Sidecar, str]] = []
    for path, content in catalog.read_all(f"{table.location}/firnline").items():
        folder, _, name = path.rpartition("/")
        try:
            sidecar = Sidecar.of_json(content)
        except (ValueError, KeyError, TypeError):
            continue  # a repair's, or damaged itself
        # What a rescale wrote down anew lies in a folder of its own; and what came after one does not fit what is before it.
        if folder.endswith("/firnline") and is_cut_as(table, sidecar.parts):
            found.append((sidecar, f"{table.location}/firnline/{name}"))
    description = head_of(table).description
    generation, upper = description.generation, description.upper
    if any(each.generation > generation for each, _ in found):
        what = f"what can be read of it is of generation {generation}, and there are epochs of a later one"
        raise FirnlineError("NOT_REPAIRABLE", f"{table.pipeline}.{table.name}: {what}")
    published_here = [(each, path) for each, path in found if each.generation == generation]
    while True:
        next_ones = [(each, path) for each, path in published_here if each.lower == upper and _is_there(each)]
        if not next_ones:
            return
        # What a merge stands for is there as long as its files are; afterwards only the merge is.
        published = [each for each, _ in next_ones if not each.merged]
        chosen = choose(published or [max((each for each, _ in next_ones), key=lambda each: each.upper)])
        yield next((each, path) for each, path in next_ones if each is chosen)
        upper = chosen.upper


def _is_there(sidecar: Sidecar) -> bool:
    """Whether every data file of a snapshot is there, of the right size."""
    return sidecar.files is not None and all(map(is_there, sidecar.files))


class _Appending(OfSeveralSpecs, _FastAppendFiles):
    def _existing_manifests(self) -> list[ManifestFile]:
        """Those of the head, if its list can be read; if not, verifying tells what is not named, and repairing names it again."""
        try:
            return super()._existing_manifests()
        except (OSError, ValueError):
            return []


def _append(transaction: Transaction, io: FileIO, table: Metadata, description: Description, sidecar: Sidecar, path: str) -> None:
    """Publish once more, in the transaction: what was staged for it is dropped, as it was then."""
    merged = {KIND: MERGE, LAYER: str(sidecar.upper)} if sidecar.merged else {}
    summary = {**description.as_properties(), **summary_of(sidecar, path), **merged}
    with _Appending(Operation.APPEND, transaction, io, snapshot_properties=summary) as append:
        for file in sidecar.files or ():
            append.append_data_file(named_again(io, transaction.table_metadata, file))
    ours = staged_by(table, sidecar.attempt)
    if ours:
        ExpireSnapshots(transaction).by_ids(ours).commit()
