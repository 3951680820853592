"""``firnline verify --replicas``: copies compared with their records.

Without a JVM. What is not what it was is told and not counted as a copy any more: its records are withdrawn, so that the batch is
copied again, and no repair uses it. A place that does not answer loses nothing by that.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from firnline.errors import FirnlineError
from firnline.model.replica import Kept
from firnline.runtime.project import Project
from firnline.runtime.replicas import Replicas
from firnline.runtime.verify import targets_of


@dataclass(frozen=True, slots=True)
class BadCopy:
    """A copy that is not what its record says."""

    pipeline: str
    collection: str
    place: str
    file: str
    """Its path at the place."""
    what: str


@dataclass(frozen=True, slots=True)
class VerifiedReplicas:
    """What was looked at, and what was found."""

    files: int
    bytes: int
    seconds: float
    problems: tuple[BadCopy, ...]
    withdrawn: int
    """Records that are not there any more."""
    out: Mapping[str, FirnlineError]
    """Places that do not answer."""
    broken: Mapping[str, FirnlineError]
    """Pipelines that do not load, of which nobody knows the places."""


def verify_replicas(project: Project, asked: str | None = None, *, is_deep: bool = False) -> VerifiedReplicas:
    """Look at all copies.

    Args:
        project: The project.
        asked: ``PIPELINE`` or ``PIPELINE.COLLECTION``; everything by default.
        is_deep: Whether to read all bytes and compare their checksums, too.
    """
    began = time.monotonic()
    files: dict[tuple[str, str], Kept] = {}
    problems: list[BadCopy] = []
    withdrawn, out = 0, dict[str, FirnlineError]()
    targets = targets_of(project, asked)
    found, broken = dict[str, Replicas](), dict[str, FirnlineError]()
    for pipeline in dict.fromkeys(pipeline for pipeline, _ in targets):
        try:
            found[pipeline] = Replicas(project, project.graph(pipeline))
        except FirnlineError as error:
            broken[pipeline] = error
    for pipeline, name in ((pipeline, name) for pipeline, name in targets if pipeline in found):
        replicas = found[pipeline]
        for url in replicas.answering(is_writing=False):
            kept = {file.path: file for record in replicas.records(name, url).values() for file in record.files}
            files |= {(url, path): file for path, file in kept.items()}
            try:
                bad = {file.path: what for file, what in _bad(replicas, url, kept, is_deep)}
                withdrawn += len(replicas.withdraw(name, url, bad)) if bad else 0
            except FirnlineError as error:
                replicas.failed(url, error)
                continue
            problems += [BadCopy(pipeline, name, url, path, what) for path, what in bad.items()]
        out |= replicas.out
    total = sum(file.bytes for file in files.values())
    return VerifiedReplicas(len(files), total, time.monotonic() - began, tuple(problems), withdrawn, out, broken)


def _bad(replicas: Replicas, url: str, kept: Mapping[str, Kept], is_deep: bool) -> Iterator[tuple[Kept, str]]:
    place = replicas.places[url]
    for path, file in kept.items():
        size = place.size(path)
        if size is None:
            yield file, "the copy is not there"
        elif size != file.bytes:
            yield file, f"{size} bytes are there instead of {file.bytes}"
        elif is_deep and place.checksum(path) != file.sha256:
            yield file, "its content is not what was copied"
