"""A place that holds copies of the warehouse's files, under the same paths below its own URL.

A file is there whole or not at all: it is written under another name and renamed, except where an object appears only once all of
it is written. A copy counts after it was read back and its SHA-256 is that of what was read from the source. Whatever keeps a
place from answering is a ``REPLICA_UNAVAILABLE``; that a file is not there is an answer.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar
from uuid import uuid4

import fsspec

from firnline.errors import FirnlineError
from firnline.model.names import DRAFT
from firnline.model.replica import Kept

T = TypeVar("T")
_CHUNK = 1 << 22
_APPEAR_WHOLE = {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "oss", "oci"}
"""Object stores: nobody sees a part of an object, and renaming is a copy."""


def below(warehouse: str, path: str) -> str:
    """A path below the warehouse, however Spark, Iceberg or a user writes it.

    >>> below("file:///lake", "file:/lake/web/visits/a.parquet"), below("file:///lake/", "/lake/web/visits/a.parquet")
    ('web/visits/a.parquet', 'web/visits/a.parquet')
    """
    inner, root = _stripped(path), _stripped(warehouse)
    if not inner.startswith(f"{root}/"):
        raise FirnlineError("NOT_REPAIRABLE", f"{path} is not below the warehouse {warehouse}, and has no copies")
    return inner.removeprefix(f"{root}/")


def _stripped(url: str) -> str:
    kind = fsspec.get_filesystem_class(fsspec.utils.get_protocol(url))
    return str(kind._strip_protocol(url)).rstrip("/")


class Place:
    """A folder somewhere."""

    def __init__(self, url: str) -> None:
        self.url = url

    def put(self, warehouse: str, path: str) -> Kept:
        """Copy a file of the warehouse, and see that what arrived is what was read.

        Raises:
            FileNotFoundError: If the warehouse has no such file.
        """
        filesystem, inner = fsspec.url_to_fs(f"{warehouse}/{path}")
        if not filesystem.exists(inner):
            raise FileNotFoundError(f"{warehouse}/{path}")
        kept = self._answering(path, lambda: copied(f"{warehouse}/{path}", f"{self.url}/{path}", path))
        if self.checksum(path) != kept.sha256:
            self.remove(path)
            raise FirnlineError("REPLICA_UNAVAILABLE", f"{self.url}: what is read back of {path} is not what was written")
        return kept

    def fetch(self, file: Kept, target: str) -> bool:
        """Copy a file to a URL, if it is still what it was; whether it was. Whatever stood there is replaced."""
        if self.size(file.path) != file.bytes or self.checksum(file.path) != file.sha256:
            return False
        return self._answering(file.path, lambda: copied(f"{self.url}/{file.path}", target, file.path, file.sha256)) == file

    def size(self, path: str) -> int | None:
        """The bytes of a copy; None if it is not there."""

        def ask() -> int | None:
            filesystem, inner = self._at(path)
            try:
                return int(filesystem.info(inner)["size"])
            except FileNotFoundError:
                return None

        return self._answering(path, ask)

    def checksum(self, path: str) -> str | None:
        """The SHA-256 of a copy, read from the place; None if it is not there."""

        def ask() -> str | None:
            filesystem, inner = self._at(path)
            seen = hashlib.sha256()
            try:
                with filesystem.open(inner, "rb") as file:
                    while chunk := file.read(_CHUNK):
                        seen.update(chunk)
            except FileNotFoundError:
                return None
            return seen.hexdigest()

        return self._answering(path, ask)

    def remove(self, path: str) -> None:
        """Remove a copy, if it is there."""

        def ask() -> None:
            filesystem, inner = self._at(path)
            with suppress(FileNotFoundError):
                filesystem.rm_file(inner)

        self._answering(path, ask)

    def write(self, path: str, content: bytes) -> None:
        """Write a small file."""

        def ask() -> None:
            with _appearing(f"{self.url}/{path}") as file:
                file.write(content)

        self._answering(path, ask)

    def read(self, path: str) -> bytes | None:
        """A small file; None if it is not there."""

        def ask() -> bytes | None:
            filesystem, inner = self._at(path)
            try:
                content: bytes = filesystem.cat_file(inner)
            except FileNotFoundError:
                return None
            return content

        return self._answering(path, ask)

    def read_all(self, folder: str) -> dict[str, bytes]:
        """The small files in a folder, by name; none if it is not there."""

        def ask() -> dict[str, bytes]:
            filesystem, inner = self._at(folder)
            paths = [path for path in filesystem.find(inner, maxdepth=1) if not path.endswith(DRAFT)]
            found = dict(zip(paths, filesystem.cat_ranges(paths, None, None, on_error="return"), strict=True))
            for content in found.values():
                if isinstance(content, Exception) and not isinstance(content, FileNotFoundError):
                    raise content
            return {path.rsplit("/", 1)[-1]: content for path, content in found.items() if isinstance(content, bytes)}

        return self._answering(folder, ask)

    def paths(self, folder: str) -> list[str]:
        """The paths of all copies below a folder; none if it is not there."""

        def ask() -> list[str]:
            filesystem, inner = self._at(folder)
            return [f"{folder}/{path[len(inner) :].lstrip('/')}" for path in sorted(filesystem.find(inner))]

        return self._answering(folder, ask)

    def _at(self, path: str) -> tuple[Any, str]:
        filesystem, inner = fsspec.url_to_fs(f"{self.url}/{path}")
        filesystem.invalidate_cache()
        return filesystem, inner

    def _answering(self, path: str, ask: Callable[[], T]) -> T:
        """What the place says, or a coded error."""
        try:
            return ask()
        except FirnlineError:
            raise
        except Exception as error:  # each filesystem has errors of its own
            lines = str(error).strip().splitlines()
            what = f"{self.url}: {path}: {type(error).__name__}" + (f": {lines[0]}" if lines else "")
            raise FirnlineError("REPLICA_UNAVAILABLE", what) from error


def copied(source: str, target: str, path: str, sha256: str | None = None) -> Kept:
    """Copy a file from one URL to another; with a checksum, only if that is its."""
    seen, size = hashlib.sha256(), 0
    with fsspec.open(source, "rb") as reading, _appearing(target) as writing:
        while chunk := reading.read(_CHUNK):
            seen.update(chunk)
            size += len(chunk)
            writing.write(chunk)
        if sha256 is not None and seen.hexdigest() != sha256:
            raise FirnlineError("REPLICA_UNAVAILABLE", f"{source} changed while it was read")
    return Kept(path, size, seen.hexdigest())


@contextmanager
def _appearing(url: str) -> Iterator[Any]:
    """A new file that takes its name, and another's place, when it is whole; if something fails, it never was there."""
    filesystem, inner = fsspec.url_to_fs(url)
    filesystem.makedirs(filesystem._parent(inner), exist_ok=True)
    appears_whole = fsspec.utils.get_protocol(url) in _APPEAR_WHOLE
    draft = inner if appears_whole else f"{inner}.{uuid4().hex}{DRAFT}"
    file = filesystem.open(draft, "wb")
    try:
        yield file
        file.flush()
        with suppress(AttributeError, OSError):
            os.fsync(file.fileno())
        file.close()
        if not appears_whole:
            filesystem.mv(draft, inner)
    except BaseException:
        with suppress(Exception):
            if appears_whole:
                file.closed = True  # an object appears when it is closed
                file.discard()
            else:
                file.close()
                filesystem.rm_file(draft)
        raise
