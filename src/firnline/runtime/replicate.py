"""``firnline replicate``: what is published is copied to other places, beside the epochs and never on their path.

Each batch is looked at as ``verify`` does, copied file by file, read back, compared by SHA-256, and then recorded. Whoever dies
in between leaves files that the next one writes again; of two at once both write the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING

from firnline.errors import FirnlineError
from firnline.model.graph import Graph
from firnline.model.replica import Kept, Record
from firnline.plan.replication import Batch, Copying, plan, recovery_time
from firnline.plan.verification import File, Holding, Revision
from firnline.runtime.project import Project
from firnline.runtime.replicas import METADATA, Replicas, total
from firnline.runtime.replicated import batches, batches_of, copied_logs
from firnline.runtime.status import due
from firnline.runtime.verify import taken
from firnline.tables.control import TABLE as CONTROL
from firnline.world import world

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, slots=True)
class Copied:
    """A batch that is at a place now, or would be."""

    collection: str
    lower: str
    """Its first epoch."""
    upper: str
    """Where its epochs end."""
    place: str
    files: int = 0
    bytes: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Failed:
    """A place that does not answer, or a batch that is damaged."""

    subject: str
    """The place's URL, or the collection."""
    error: FirnlineError


@dataclass(frozen=True, slots=True)
class Replicated:
    """What was copied, and what is left."""

    pipeline: str
    copied: tuple[Copied, ...]
    failed: tuple[Failed, ...]
    waiting: int
    """Batches that are not on enough places."""
    queued: int
    """Epochs that are due and not complete, which copies give way to."""
    recovery_time: float
    """The seconds that computing what waits took."""


def replicate(project: Project, graph: Graph, copying: Callable[[Copied], None] = lambda _: None) -> Replicated:
    """Copy what is due to be copied, oldest first; what cannot be copied keeps nothing else from it."""
    work = _Replicating(project, graph, Replicas(project, graph), copying)
    work.go()
    left = work.batches()
    waiting = sum(1 for batch in left if batch.lacks)
    failed = [*(Failed(url, error) for url, error in work.replicas.out.items()), *work.failed.values()]
    return Replicated(graph.name, tuple(work.copied), tuple(failed), waiting, work.queued, recovery_time(left))


def planned(project: Project, graph: Graph) -> Replicated:
    """What ``replicate`` would do now; nothing is written."""
    found = list(batches(project, graph, Replicas(project, graph)))
    queued = queue(project, graph)
    chosen = plan(found, graph.replicas, queued, graph.recovery_time)
    copies = tuple(told(graph, each) for each in chosen.copies)
    return Replicated(graph.name, copies, (), sum(1 for batch in found if batch.lacks), queued, recovery_time(found))


def forget(project: Project, graph: Graph, paths: Collection[str]) -> set[str]:
    """Remove the copies of files that the warehouse has let go of for good.

    A copy goes once all batches that now stand for the epochs of the one it belongs to are at its place, or at enough others.

    Args:
        project: The project.
        graph: The pipeline.
        paths: The files' paths, as the logs named them.

    Returns:
        The paths of which no copy is left; ask again for the others, when their places answer and are up to date.
    """
    from firnline.replicas.place import below

    asked = {below(project.catalog.warehouse, path): path for path in paths}
    replicas = Replicas(project, graph)
    answering = replicas.answering(is_writing=False)
    kept: set[str] = set()
    for name in copied_logs(project, graph) if graph.replicas else ():
        present = list(batches_of(project, graph, replicas, name))
        for url in graph.replicas:
            for record in replicas.records(name, url).values():
                ours = {file.path for file in record.files} & asked.keys()
                stand_ins = [each for each in present if each.lower < record.upper and record.lower < each.upper]
                if not ours or record.attempt == METADATA:
                    continue
                if url not in answering or any(url not in each.held and each.lacks for each in stand_ins):
                    kept |= ours
                else:
                    _forget(replicas, name, record, ours)
    for inner in _ownerless(project, graph, asked) if graph.replicas else ():
        if len(answering) < len(graph.replicas):
            kept.add(inner)
        for url in answering:
            replicas.places[url].remove(inner)
    return {path for inner, path in asked.items() if inner not in kept}


def _ownerless(project: Project, graph: Graph, paths: Iterable[str]) -> list[str]:
    """Those of some paths below the warehouse that are in no log's folder: their log was retired, or was a branch's."""
    from firnline.replicas.place import below

    tables = (project.catalog.table(graph.name, name) for name in project.catalog.names(graph.name))
    folders = tuple(f"{below(project.catalog.warehouse, table.location)}/" for table in tables if table is not None)
    return [path for path in paths if not path.startswith(folders)]


def _forget(replicas: Replicas, name: str, record: Record, paths: set[str]) -> None:
    """Remove copies, and then what is recorded of them: whoever dies in between finds them again."""
    for path in paths:
        replicas.places[record.place].remove(path)
    left = record.without(paths)
    if left.files:
        replicas.keep(name, left, is_once=False)
    else:
        replicas.drop(name, record)


def queue(project: Project, graph: Graph) -> int:
    """How many epochs are due and not complete."""
    frontier = project.control(graph.name).frontier()
    complete = graph.schedule.start if frontier is None else frontier.upper
    return max(0, graph.schedule.count(complete, max(complete, due(project, graph))))


def told(graph: Graph, copying: Copying, files: Collection[Kept] = (), seconds: float = 0.0) -> Copied:
    """A copy in words that people use."""
    batch, label = copying.batch, graph.schedule.label
    where = (batch.collection, label(batch.lower), label(batch.upper), copying.place)
    return Copied(*where, len(files), total(files), seconds)


@dataclass
class _Replicating:
    """One run."""

    project: Project
    graph: Graph
    replicas: Replicas
    copying: Callable[[Copied], None]
    copied: list[Copied] = field(default_factory=list)
    failed: dict[str, Failed] = field(default_factory=dict)
    """Logs of which something could not be copied."""
    queued: int = 0

    def go(self) -> None:
        places = self.replicas.answering(is_writing=True)
        self.queued = self._queue()
        chosen = plan(self.batches(), places, self.queued, self.graph.recovery_time)
        for name, several in groupby(sorted(chosen.copies, key=_by_log), key=lambda each: each.batch.collection):
            self._copy(name, list(several))
        if not self.queued or chosen.copies:
            for name in (*copied_logs(self.project, self.graph), CONTROL):
                try:
                    self._copy_metadata(name)
                except FirnlineError as error:
                    self._fail(name, error)

    def _queue(self) -> int:
        try:
            return queue(self.project, self.graph)
        except FirnlineError as error:
            if error.code != "LOG_UNREADABLE":
                raise
            return 0  # no epoch gets anywhere before that is repaired

    def batches(self) -> list[Batch]:
        """All batches of logs that can be read."""
        found: list[Batch] = []
        for name in copied_logs(self.project, self.graph):
            try:
                found += batches_of(self.project, self.graph, self.replicas, name)
            except FirnlineError as error:
                self._fail(name, error)
        return found

    def _fail(self, name: str, error: FirnlineError) -> None:
        if error.code != "LOG_UNREADABLE":
            raise error
        self.failed[name] = Failed(f"{self.graph.name}.{name}", error)

    def _copy(self, name: str, copies: list[Copying]) -> None:
        """Copy batches of one log, which is looked at once."""
        log = taken(self.project, self.graph.name, name)
        revisions = {_attempt(each): each for each in log.published()}
        records = {url: self.replicas.records(name, url) for url in dict.fromkeys(each.place for each in copies)}
        there = {url: _files(several.values()) for url, several in records.items()}
        for each in sorted(copies, key=lambda each: each.batch.lower):
            if each.place in self.replicas.out or each.batch.attempt not in revisions:
                continue  # or else it was merged or rewound since
            try:
                files = files_of(log, revisions[each.batch.attempt])
            except FirnlineError as error:
                self._fail(name, error)
                continue
            self._copy_batch(each, [self._below(path) for path in files], there[each.place])
        for url, several in records.items():
            self._complete(log, url, [each for each in several.values() if each.attempt in revisions], there[url])

    def _complete(self, log: Holding, url: str, records: list[Record], there: dict[str, Kept]) -> None:
        """Copy what a batch was given since: the oldest snapshot that is kept has the manifests of those before it."""
        revisions = {_attempt(each): each for each in log.published()}
        for record in records:
            try:
                files = [self._below(path) for path in files_of(log, revisions[record.attempt])]
                more = [self.replicas.places[url].put(self._warehouse, path) for path in files if path not in there]
                if more:
                    self.replicas.keep(log.collection, replace(record, files=(*record.files, *more)), is_once=False)
            except FileNotFoundError:
                continue  # it was replaced meanwhile
            except FirnlineError as error:
                if error.code == "REPLICA_UNAVAILABLE":
                    self.replicas.failed(url, error)
                    return
                self._fail(log.collection, error)

    def _copy_batch(self, copying: Copying, paths: list[str], there: dict[str, Kept]) -> None:
        batch, place = copying.batch, self.replicas.places[copying.place]
        began = time.monotonic()
        try:
            kept = [there.get(path) or place.put(self._warehouse, path) for path in paths]
            world().reach("replicate.copied")
            at = world().now().isoformat(timespec="seconds")
            where = (copying.place, batch.collection, batch.attempt, batch.generation, batch.lower, batch.upper, at)
            self.replicas.keep(batch.collection, Record(*where, tuple(kept)))
            world().reach("replicate.recorded")
        except FileNotFoundError as error:
            what = f"{self.graph.name}.{batch.collection}: {error}: it was replaced, or lost, while it was copied"
            self._fail(batch.collection, FirnlineError("LOG_UNREADABLE", what))
        except OSError as error:
            self.replicas.failed(copying.place, FirnlineError("REPLICA_UNAVAILABLE", f"{copying.place}: {error}"))
        except FirnlineError as error:
            self.replicas.failed(copying.place, error)
        else:
            self.copied.append(told(self.graph, copying, kept, time.monotonic() - began))
            self.copying(self.copied[-1])

    def _copy_metadata(self, name: str) -> None:
        """Let every place have the newest metadata file of a table, and only that one."""
        table = self.project.catalog.table(self.graph.name, name)
        if table is None or table.head is None:
            return
        wanted = [table.version, *([table.head.manifest_list] if name == CONTROL else [])]
        paths = [self._below(path) for path in wanted]
        for url, place in self.replicas.places.items():
            if url in self.replicas.out:
                continue
            try:
                before = self.replicas.record(name, url, METADATA)
                old = {file.path for file in before.files} if before is not None else set()
                if old == set(paths):
                    continue
                kept = tuple(place.put(self._warehouse, path) for path in paths)
                at = world().now().isoformat(timespec="seconds")
                self.replicas.keep(name, Record(url, name, METADATA, 0, 0, 0, at, kept), is_once=False)
                for path in old.difference(paths):
                    place.remove(path)
            except FileNotFoundError as error:
                what = f"{self.graph.name}.{name}: {error}: it was replaced, or lost, while it was copied"
                raise FirnlineError("LOG_UNREADABLE", what) from error
            except FirnlineError as error:
                self.replicas.failed(url, error)

    @property
    def _warehouse(self) -> str:
        return self.project.catalog.warehouse

    def _below(self, path: str) -> str:
        from firnline.replicas.place import below

        return below(self._warehouse, path)


def _by_log(copying: Copying) -> tuple[int, str]:
    return copying.batch.position, copying.batch.collection


def _files(records: Iterable[Record]) -> dict[str, Kept]:
    """What is at a place already: an exchange names again what it leaves as it is."""
    return {file.path: file for record in records for file in record.files}


def _attempt(revision: Revision) -> str:
    if revision.summary is not None:
        return revision.summary.attempt
    return revision.sidecar.path.rsplit("/", 1)[-1].removesuffix(".json") if revision.sidecar is not None else ""


def files_of(log: Holding, revision: Revision) -> list[str]:
    """The present files of a batch, all of them sound; a list that nobody reads through is not among them."""
    manifests = revision.manifests or ()
    read_through = {each.snapshot for each in log.unsuperseded()}
    several: list[File] = [revision.manifest_list] if revision.snapshot in read_through else []
    several += [*(each.file for each in manifests), *([revision.sidecar] if revision.sidecar is not None else [])]
    data = [data for manifest in manifests for data in manifest.data]
    several += [each.file for each in data]
    bad = [each.path for each in several if not each.is_sound()]
    bad += [each.file.path for each in data if each.found not in (None, each.rows)]
    if bad or revision.manifests is None:
        what = f"{log.pipeline}.{log.collection}: {(bad or [revision.manifest_list.path])[0]} is damaged, and is not copied"
        raise FirnlineError("LOG_UNREADABLE", what)
    return [each.path for each in several]
