"""What is wrong with a log, given what its metadata says and what storage holds.

A log is well if every file that a published snapshot names is there, whole, and says what its referrer says of it, where rows
that only snapshots before the newest exchange name are nobody's loss; if each sidecar agrees with its summary; if the layers
follow one another without a hole or a double; and if the frontier does not lie beyond a log. Everything else is a problem, which
names the (epoch, part) that it touches. Facts in, problems out.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from firnline.model.description import Description
from firnline.model.digest import Digest
from firnline.model.fingerprint import Fingerprint
from firnline.model.gap import Cell, Gap
from firnline.model.stored_file import StoredFile
from firnline.plan.frontier import Frontier

Kind = Literal["missing", "truncated", "altered", "unreadable", "inconsistent"]
About = Literal["log", "sidecar", "data", "past"]
"""Whether all that a log holds is hard to read, only what was noted about an epoch, some of its rows, or what it once named."""


@dataclass(frozen=True, slots=True)
class File:
    """A file as it is found, beside what is known of it."""

    path: str
    size: int | None
    """Its bytes; None if it is not there."""
    expected: int | None = None
    """The bytes that whoever names it says it has."""
    fault: str = ""
    """Why its content cannot be read."""
    is_cut: bool = False
    """Whether its content ends too early."""

    def is_sound(self) -> bool:
        """Whether nothing is known against it."""
        return _fault(self) is None


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file as its manifest says, and as its footer does."""

    file: File
    first: int | None
    """Its first epoch; None where the manifest keeps no bounds."""
    last: int | None
    part: int | None
    rows: int
    found: int | None
    """The rows by its footer; None if that was not read."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest and the data files it names, as far as it can be read."""

    file: File
    data: tuple[DataFile, ...] = ()


@dataclass(frozen=True, slots=True)
class Account:
    """What a summary, or a sidecar, says of a snapshot."""

    attempt: str
    lower: int
    upper: int
    fingerprint: Fingerprint
    rows: int
    weight: int
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Revision:
    """A snapshot with all that it alone brought."""

    snapshot: int
    manifest_list: File
    manifests: tuple[Manifest, ...] | None
    """None if no list that names them can be read."""
    is_staged: bool = False
    description: Description | None = None
    """None if the summary has none."""
    summary: Account | None = None
    sidecar: File | None = None
    told: Account | None = None
    """What its sidecar says; None if that cannot be read."""
    digests: Mapping[Cell, Digest] = field(default_factory=dict)
    is_repair: bool = False
    """Whether it only exchanged files."""
    is_merge: bool = False
    """Whether it made one layer of several."""
    is_subsumed: bool = False
    """Whether a newer merge stands for it."""
    files: tuple[StoredFile, ...] | None = None
    """The data files it brought, by its sidecar; None if that does not tell."""
    out: tuple[str, ...] = ()
    """The data files that it took out."""
    at: int = 0
    """When it was committed, in milliseconds."""
    gap: str = ""
    """The gap that it opened, if it took rows out and put none in their place."""
    lost: tuple[File, ...] = ()
    """Manifests that its list names, that no list since the newest exchange does, and that cannot be read."""

    @property
    def is_exchange(self) -> bool:
        """Whether it took files out."""
        return self.is_repair or self.is_merge

    def cells(self) -> list[Cell]:
        """Where it changed something, as far as is known."""
        return sorted(cell for cell, digest in self.digests.items() if digest.rows)


@dataclass(frozen=True, slots=True)
class Holding:
    """What storage holds of a log. Revisions are in the order of their publishing; staged ones come last."""

    pipeline: str
    collection: str
    metadata: File
    is_control: bool = False
    start: int | None = None
    """Where the log begins; None if its first snapshots are not kept any more."""
    revisions: tuple[Revision, ...] = ()
    files: int = 0
    bytes: int = 0
    unreferenced: int = 0
    unreferenced_bytes: int = 0
    gaps: tuple[Gap, ...] = ()
    """What the gap ledger says that it lacks."""

    def published(self) -> list[Revision]:
        """The revisions of the main line."""
        return [revision for revision in self.revisions if not revision.is_staged]

    def unsuperseded(self) -> list[Revision]:
        """Those of the main line that somebody may still read through: the newest exchange and what came after it."""
        published = self.published()
        exchanges = [position for position, revision in enumerate(published) if revision.is_exchange]
        return published[exchanges[-1] :] if exchanges else published

    def unlisted(self) -> list[Revision]:
        """Those of the main line of which no list that can be read, with all that it names, tells what they name."""
        return [each for each in self.published() if each.lost or not each.manifest_list.is_sound()]

    def layers(self) -> list[Revision]:
        """The publishes and merges that are true and that no newer merge stands for, the oldest range first."""
        found = [revision for revision in self.published() if not revision.is_repair and not revision.is_subsumed]
        return sorted(found, key=_begins)

    def layer_of(self, epoch: int) -> Revision | None:
        """The layer that holds the rows of an epoch, as far as is known."""
        told = ((layer, layer.summary or layer.told) for layer in self.layers())
        return next((layer for layer, of in told if of is not None and of.lower <= epoch < of.upper), None)

    def exchanges(self) -> list[Revision]:
        """Those that took files out."""
        return [revision for revision in self.published() if revision.is_exchange]

    def mixed(self) -> list[Revision]:
        """Those whose manifests may name files of any layer.

        An exchange names again what it leaves of others. Once there was a merge, snapshots may not be kept any more, and the
        oldest that is has the manifests of those before it.
        """
        is_merged = any(revision.is_merge for revision in self.published())
        return [*self.exchanges(), *(self.published()[:1] if is_merged else ())]

    def cells(self) -> list[Cell]:
        """Where the layers hold something, as far as is known."""
        return sorted({cell for revision in self.layers() for cell in revision.cells()})

    def description(self) -> Description | None:
        """The head's, if it can be told."""
        published = self.published()
        return published[-1].description if published else None


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is wrong: where, what, and what it means."""

    pipeline: str
    collection: str
    kind: Kind
    what: str
    file: str | None = None
    epochs: tuple[int, ...] = ()
    """The beginnings of the epochs that it touches, as far as is known."""
    parts: tuple[int, ...] = ()
    is_staged: bool = False
    """Whether only what was never published is touched: no damage."""
    about: About = "log"


def problems_of(log: Holding) -> list[Problem]:
    """Everything that is wrong with one log by itself."""
    found = _fault(log.metadata)
    if found is not None:
        what = f"{found[1]}; without it nothing of the log can be read"
        return [Problem(log.pipeline, log.collection, found[0], what, log.metadata.path)]
    read = {revision.snapshot for revision in log.unsuperseded()}
    gone = missing(log)
    of_each = (_of_revision(log, each, each.is_staged or each.snapshot in read, gone) for each in log.revisions)
    found_in_each = dict.fromkeys(problem for several in of_each for problem in several)
    return [*found_in_each, *_of_chain(log)]


def frontier_problems(
    pipeline: str, frontier: Frontier | None, descriptions: Mapping[str, Description | None], there: Iterable[str]
) -> Iterator[Problem]:
    """Where the frontier promises more than the logs hold; ``descriptions`` are those of the logs that could be read."""
    if frontier is None:
        return
    for name in sorted(set(frontier.generations) - set(there)):
        yield Problem(pipeline, name, "missing", "the frontier names the collection, but the catalog has no log of it")
    for name in sorted(set(frontier.generations) & set(descriptions)):
        head, generation = descriptions[name], frontier.generations[name]
        if head is None or head.upper < frontier.upper:
            what = "the frontier lies beyond the end of the log: readers are promised epochs that are not there"
            lost = () if head is None else (head.upper,)
            yield Problem(pipeline, name, "inconsistent", what, epochs=lost)
        elif head.generation < generation:
            what = f"the frontier is of generation {generation}, the log still of {head.generation}"
            yield Problem(pipeline, name, "inconsistent", what)


def missing(log: Holding) -> set[Cell]:
    """What the gap ledger says that the log lacks, and what it lacks."""
    if not log.gaps:
        return set()
    lacking = {cell for revision in log.layers() for cell in uncovered(log, revision)}
    return {cell for cell in lacking if any(cell in gap for gap in log.gaps)}


def expected_digests(log: Holding) -> dict[Cell, Digest]:
    """The digests of what storage should hold: those of all that was published, without gaps."""
    gone = missing(log)
    return {cell: digest for cell, digest in published_digests(log).items() if cell not in gone}


def published_digests(log: Holding) -> dict[Cell, Digest]:
    """The digests by the sidecars of all layers, added up."""
    added: dict[Cell, Digest] = {}
    for revision in log.layers():
        for cell, digest in revision.digests.items():
            added[cell] = added.get(cell, Digest()) + digest
    return {cell: digest for cell, digest in added.items() if digest.rows}


def published_rows(log: Holding, cells: Iterable[Cell]) -> dict[Cell, int]:
    """How many rows, insertions and removals, were published of some (epoch, part), where there were any."""
    digests = published_digests(log)
    return {cell: digests[cell].rows for cell in cells if cell in digests}


def digest_problems(log: Holding, found: Mapping[Cell, Digest], unread: Mapping[Cell, str]) -> Iterator[Problem]:
    """Where rows as stored do not add up to the sidecars' digests, or cannot be read; epochs without a sidecar are left out."""
    expected = expected_digests(log)
    unknown = [each.summary for each in log.layers() if each.summary is not None and each.told is None]
    for cell in sorted({*expected, *found, *unread}):
        epoch, part = cell
        if any(each.lower <= epoch < each.upper for each in unknown):
            continue
        kind: Kind = "unreadable" if cell in unread else "altered"
        if cell in unread:
            what = f"the rows cannot be read: {unread[cell]}"
        elif found.get(cell, Digest()) == expected.get(cell, Digest()):
            continue
        else:
            had, has = expected.get(cell, Digest()), found.get(cell, Digest())
            what = f"the rows are not those that were published: {_counted(had)} then, {_counted(has)} now, with another digest"
        files = [data.file.path for _, data in data_of(log) if covers(data, cell)]
        file = files[0] if len(files) == 1 else None
        yield Problem(log.pipeline, log.collection, kind, what, file, (epoch,), (part,), about="data")


def _counted(digest: Digest) -> str:
    return f"{digest.rows} rows of weight {digest.weight}"


def data_of(log: Holding) -> Iterator[tuple[Revision, DataFile]]:
    """The data files that the head names, as far as its manifests can be read, each with whoever brought its manifest."""
    for revision in log.published():
        for manifest in revision.manifests or ():
            for data in manifest.data:
                yield revision, data


def covers(data: DataFile, cell: Cell) -> bool:
    """Whether a file may hold rows of an (epoch, part)."""
    epoch, part = cell
    in_bounds = data.first is None or data.last is None or data.first <= epoch <= data.last
    return in_bounds and data.part in (None, part)


def _begins(revision: Revision) -> int:
    """Where a layer's range begins; what does not tell comes first."""
    return 0 if revision.description is None or revision.summary is None else revision.summary.lower


def _fault(file: File) -> tuple[Kind, str] | None:
    """What is wrong with a file by itself."""
    if file.size is None:
        return "missing", "the file is not there"
    if file.expected is not None and file.size < file.expected:
        return "truncated", f"{file.size} of {file.expected} bytes are there"
    if file.expected is not None and file.size > file.expected:
        return "altered", f"{file.size} bytes are there instead of {file.expected}"
    if file.is_cut:
        return "truncated", f"the file ends too early, after {file.size} bytes"
    if file.fault:
        return "unreadable", file.fault
    return None


def _of_revision(log: Holding, revision: Revision, is_read: bool, gone: Container[Cell]) -> Iterator[Problem]:
    """What is wrong with a snapshot; through its list somebody may still read, or only find what is not to be removed.

    What is known to be ``gone`` is not wrong.
    """
    cells = log.cells() if revision in log.mixed() else revision.cells()

    def problem(
        kind: Kind, what: str, file: str | None = None, *, touched: Sequence[Cell] = cells, about: About = "log"
    ) -> Problem:
        epochs = tuple(sorted({epoch for epoch, _ in touched}))
        if not epochs and revision.summary is not None:
            epochs = (revision.summary.lower,)
        parts = tuple(sorted({part for _, part in touched}))
        return Problem(log.pipeline, log.collection, kind, what, file, epochs, parts, revision.is_staged, about)

    if (found := _fault(revision.manifest_list)) is not None and is_read:
        is_head = not revision.is_staged and revision is log.published()[-1]
        lost = "nothing of the log can be read" if is_head else "the log cannot be read as of this snapshot"
        yield problem(found[0], f"{found[1]}; without this manifest list {lost}", revision.manifest_list.path)
    elif revision.manifests is None and is_read:
        yield problem("unreadable", "no readable manifest list says which data files these are")
    elif found is not None:
        what = f"{found[1]}; without this manifest list nothing of the log can be removed or undone"
        yield problem(found[0], what, revision.manifest_list.path, about="past")
    for each in revision.lost:
        if (found := _fault(each)) is not None:
            what = f"{found[1]}; without this manifest nothing of the log can be removed or undone"
            yield Problem(log.pipeline, log.collection, found[0], what, each.path, about="past")
    for manifest in revision.manifests or ():
        if (found := _fault(manifest.file)) is not None:
            what = f"{found[1]}; without this manifest nobody knows the data files of the snapshot"
            yield problem(found[0], what, manifest.file.path)
        for data in manifest.data:
            touched = [cell for cell in cells if covers(data, cell)] or _bounds(data)
            if (found := _fault(data.file)) is not None:
                what = f"{found[1]}; {data.rows} stored rows are lost"
                yield problem(found[0], what, data.file.path, touched=touched, about="data")
            elif data.found is not None and data.found != data.rows:
                what = f"the file holds {data.found} rows, its manifest says {data.rows}"
                yield problem("altered", what, data.file.path, touched=touched, about="data")
            if revision.told is not None and not any(covers(data, cell) for cell in cells):
                what = "the manifest gives the file rows that the sidecar does not count"
                yield problem("inconsistent", what, manifest.file.path, touched=touched, about="data")
    if not revision.is_staged and not revision.is_repair and not revision.is_subsumed and not log.is_control:
        for kind, what, file in _of_account(revision):
            yield problem(kind, what, file, about="sidecar")
        for cell in uncovered(log, revision):
            if cell in gone:
                continue
            yield problem("inconsistent", "the sidecar counts rows, but no data file holds them", touched=[cell], about="sidecar")


def _bounds(data: DataFile) -> list[Cell]:
    """Where a file lies by its manifest alone; its part is not known without an epoch."""
    if data.first is None or data.last is None or data.part is None:
        return []
    return sorted({(data.first, data.part), (data.last, data.part)})


def _of_account(revision: Revision) -> Iterator[tuple[Kind, str, str | None]]:
    """Where summary and sidecar are missing or disagree."""
    if revision.description is None or revision.summary is None:
        yield "inconsistent", f"the summary of snapshot {revision.snapshot} is not Firnline's", None
        return
    assert revision.sidecar is not None, "a summary of ours names one"
    if (found := _fault(revision.sidecar)) is not None:
        yield found[0], f"{found[1]}; without this sidecar digests and lineage of the snapshot are unknown", revision.sidecar.path
        return
    told, said = revision.told, revision.summary
    if told is None:
        return
    for name in ("attempt", "lower", "upper", "fingerprint", "rows", "weight"):
        if getattr(told, name) != getattr(said, name):
            what = f"{name} is {getattr(told, name)} by the sidecar and {getattr(said, name)} by the summary"
            yield "inconsistent", what, revision.sidecar.path


def uncovered(log: Holding, revision: Revision) -> list[Cell]:
    """What the digests speak of while no data file may hold it; nothing is said where manifests cannot be read."""
    holders = [revision, *log.mixed()]
    if any(each.manifests is None for each in holders):
        return []
    manifests = [manifest for each in holders for manifest in each.manifests or ()]
    if not all(manifest.file.is_sound() for manifest in manifests):
        return []
    data = [each for manifest in manifests for each in manifest.data]
    return [cell for cell in revision.cells() if not any(covers(each, cell) for each in data)]


def _of_chain(log: Holding) -> Iterator[Problem]:
    """Holes and doubles between layers."""
    if log.is_control:
        return
    told = [(each.description, each.summary) for each in log.layers()]
    known = [(description, said) for description, said in told if description is not None and said is not None]
    if known and log.start is not None and known[0][1].lower != log.start:
        what = f"the first snapshot begins at {known[0][1].lower}, the log at {log.start}"
        yield Problem(log.pipeline, log.collection, "inconsistent", what, epochs=(known[0][1].lower,))
    for (_, ended), (_, said) in pairwise(known):
        if said.lower != ended.upper:
            how = "a hole" if said.lower > ended.upper else "an overlap"
            what = f"there is {how}: one snapshot ends at {ended.upper}, the next begins at {said.lower}"
            yield Problem(log.pipeline, log.collection, "inconsistent", what, epochs=(said.lower,))
