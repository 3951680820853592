"""The places of a pipeline, and the records of what they hold.

A record is a small file in the log's folder, ``firnline/replicas/PLACE/ATTEMPT.json``, written once all files of a batch were
read back from the place; the place has a copy of it, written before. A mark at the place says whose copies it holds: a folder
without it, where copies were made, is a disk that is not mounted or another one, and nothing is written there.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from firnline.errors import FirnlineError
from firnline.model.durability import place_id
from firnline.model.graph import Graph
from firnline.model.replica import Copy, Kept, Record
from firnline.runtime.project import Project
from firnline.world import world

if TYPE_CHECKING:
    from firnline.replicas import Place

METADATA = "metadata"
"""The record of a table's newest metadata file, which is replaced when there is a newer one."""
_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Replicas:
    """The places of one pipeline."""

    project: Project
    graph: Graph
    out: dict[str, FirnlineError] = field(default_factory=dict)
    """Those that do not answer, and why."""
    doubtful: set[Copy] = field(default_factory=set)
    """Copies that are not used any more, and not proven to be bad."""

    @cached_property
    def places(self) -> dict[str, Place]:
        """All of them by URL, whether they answer or not."""
        from firnline.replicas import Place

        return {url: Place(url) for url in self.graph.replicas}

    def answering(self, *, is_writing: bool) -> list[str]:
        """The places that answer and are ours; of the others it is noted since when they do not."""
        for url in self.graph.replicas:
            if url in self.out:
                continue
            try:
                self._check_ours(url, is_writing)
            except FirnlineError as error:
                self.failed(url, error)
            else:
                self.project.catalog.remove(self._outage(url))
        return [url for url in self.graph.replicas if url not in self.out]

    def failed(self, url: str, error: FirnlineError) -> None:
        """Do without a place from now on; what it is not to blame for is raised again."""
        if error.code != "REPLICA_UNAVAILABLE":
            raise error
        self.out[url] = error
        note = {"since": world().now().isoformat(timespec="seconds"), "what": error.what}
        self.project.catalog.write_once(self._outage(url), json.dumps(note).encode())

    def outages(self) -> dict[str, str]:
        """The places that did not answer when they were last asked, and since when."""
        found = {}
        for url in self.graph.replicas:
            try:
                found[url] = str(json.loads(self.project.catalog.read(self._outage(url)))["since"])
            except (FileNotFoundError, ValueError, KeyError):
                continue
        return found

    def recorded(self, name: str, url: str) -> set[str]:
        """The attempts whose batches a place holds, by the log's own records."""
        found = self.project.catalog.paths(self._folder(name, url))
        return {each.rsplit("/", 1)[-1].removesuffix(".json") for each in found if each.endswith(".json")} - {METADATA}

    def records(self, name: str, url: str) -> dict[str, Record]:
        """The log's own records of what a place holds of it, by attempt; those that cannot be read count as none."""
        return _read(self.project.catalog.read_all(self._folder(name, url)).items())

    def record(self, name: str, url: str, attempt: str) -> Record | None:
        """One of them."""
        try:
            return Record.of_json(self.project.catalog.read(f"{self._folder(name, url)}/{attempt}.json"))
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    def keep(self, name: str, record: Record, *, is_once: bool = True) -> None:
        """Write a record down, at the place and then where it counts."""
        path, content = f"{self._below(name, record.place)}/{record.attempt}.json", record.as_json()
        self.places[record.place].write(path, content)
        write = self.project.catalog.write_once if is_once else self.project.catalog.write
        write(f"{self._warehouse}/{path}", content)

    def withdraw(self, name: str, url: str, paths: Collection[str]) -> list[Record]:
        """Let no record speak of copies that are damaged; which ones did. A place that is out meanwhile loses none."""
        self._check_ours(url, is_writing=False)
        found = [each for each in self.known(name, url).values() if any(file.path in paths for file in each.files)]
        for record in found:
            self.drop(name, record)
        return found

    def drop(self, name: str, record: Record) -> None:
        """Remove a record, here and then at the place."""
        path = f"{self._below(name, record.place)}/{record.attempt}.json"
        self.project.catalog.remove(f"{self._warehouse}/{path}")
        self.places[record.place].remove(path)

    def known(self, name: str, url: str) -> dict[str, Record]:
        """All records about a place that answers: the log's own, and those at the place that the log has lost."""
        return {**_read(self.places[url].read_all(self._below(name, url)).items()), **self.records(name, url)}

    def copies(self, name: str, paths: Iterable[str]) -> dict[str, Copy]:
        """Where copies of some of a log's files are, as far as places answer and the copies have the right size."""
        wanted, found = set(paths), dict[str, Copy]()
        if not wanted or not self.graph.replicas:
            return found
        for url in self.answering(is_writing=False):
            try:
                kept = {file.path: file for record in self.known(name, url).values() for file in record.files}
                for path in wanted & kept.keys() - found.keys():
                    copy = Copy(url, kept[path])
                    if copy not in self.doubtful and self.places[url].size(path) == kept[path].bytes:
                        found[path] = copy
            except FirnlineError as error:
                self.failed(url, error)
        return found

    def fetch(self, name: str, copy: Copy, target: str) -> bool:
        """Bring a file back, if its copy is what it was; if not, no record speaks of it any more."""
        try:
            if self.places[copy.place].fetch(copy.file, target):
                return True
            _logger.warning("%s: the copy of %s is damaged, and is not used", copy.place, copy.file.path)
            self.withdraw(name, copy.place, {copy.file.path})
        except FirnlineError as error:
            self.failed(copy.place, error)
        return False

    def renew(self, url: str) -> None:
        """Forget all that was copied to a place, which is empty or another one now."""
        if url not in self.graph.replicas:
            raise FirnlineError("BAD_OPTION", f"{url} is no replica of {self.graph.name!r}: {', '.join(self.graph.replicas)}")
        catalog = self.project.catalog
        for name in catalog.names(self.graph.name):
            for path in catalog.paths(self._folder(name, url)):
                catalog.remove(path)
        catalog.remove(f"{self._warehouse}/{self._mark(url)}")
        self.places[url].remove(self._mark(url))

    @property
    def _warehouse(self) -> str:
        return self.project.catalog.warehouse

    def _below(self, name: str, url: str) -> str:
        return f"{self.graph.name}/{name}/firnline/replicas/{place_id(url)}"

    def _folder(self, name: str, url: str) -> str:
        return f"{self._warehouse}/{self._below(name, url)}"

    def _mark(self, url: str) -> str:
        return f"{self.graph.name}/_replicas/{place_id(url)}/place.json"

    def _outage(self, url: str) -> str:
        return f"{self._warehouse}/{self.graph.name}/_replicas/{place_id(url)}/outage.json"

    def _check_ours(self, url: str, is_writing: bool) -> None:
        """Refuse a place that is not the one that copies were made to; a new one is marked when it is written to."""
        mark, catalog = self._mark(url), self.project.catalog
        there = self.places[url].read(mark)
        try:
            known: bytes | None = catalog.read(f"{self._warehouse}/{mark}")
        except FileNotFoundError:
            known = None
        if there is None and known is not None:
            what = f"{url}: nothing is there of what was copied: it is not mounted, or another one"
            todo = f"Mount it. If its content is gone for good: firnline replicate {self.graph.name} --renew {url}."
            raise FirnlineError("REPLICA_UNAVAILABLE", what, todo=todo)
        if there is None and is_writing:
            there = json.dumps({"warehouse": self._warehouse, "id": world().new_id()}).encode()
            self.places[url].write(mark, there)
        if there is None or there == known:
            return
        if known is not None or json.loads(there).get("warehouse") != self._warehouse:
            raise FirnlineError("REPLICA_UNAVAILABLE", f"{url} holds the copies of another warehouse")
        catalog.write_once(f"{self._warehouse}/{mark}", there)


def total(files: Iterable[Kept]) -> int:
    """The bytes of files."""
    return sum(file.bytes for file in files)


def _read(files: Iterable[tuple[str, bytes]]) -> dict[str, Record]:
    found = {}
    for path, content in files:
        try:
            record = Record.of_json(content)
        except (ValueError, KeyError, TypeError):
            _logger.warning("the record %s of a replica cannot be read", path)
            continue
        found[record.attempt] = record
    return found
