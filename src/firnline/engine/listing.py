"""Listings: which files an epoch is made from, and what was in them, as a JSON value.

A listing holds, folder by folder, each file's name, size and checksum. Folders below the project's root are told from there, so
that the project may be moved.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from xxhash import xxh3_64

from firnline.errors import FirnlineError

Listing = dict[str, list[list[str | int]]]
Stamp = tuple[int, int]
"""Size and time of change."""
_CHUNK = 1 << 20


def listed(paths: Iterable[Path], root: Path) -> Listing:
    """The listing of files, as they are now."""
    listing: Listing = {}
    for path in sorted(set(paths)):
        try:
            listing.setdefault(_folder(path, root), []).append([path.name, *_content(path)])
        except OSError as error:
            raise FirnlineError("UNREADABLE_FILE", f"{path}: {error.strerror}") from error
    return listing


def paths_of(listing: Listing, root: Path) -> list[Path]:
    """The files of a listing."""
    return [root / folder / str(name) for folder, files in listing.items() for name, *_ in files]


def named(path: Path, root: Path) -> str:
    """A file as a listing tells it."""
    return f"{_folder(path, root)}/{path.name}"


def names_in(listing: Listing) -> Iterator[str]:
    """The files of a listing, as ``named`` tells them."""
    return (f"{folder}/{name}" for folder, files in listing.items() for name, *_ in files)


def stamp(path: Path) -> Stamp | None:
    """What tells, without reading it, that a file was written to; None if it is gone."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


def _folder(path: Path, root: Path) -> str:
    return (path.parent.relative_to(root) if path.is_relative_to(root) else path.parent).as_posix()


def check(listing: Listing, root: Path) -> None:
    """Refuse a listing of which a file is not what it was."""
    for folder, files in listing.items():
        for name, size, checksum in files:
            path = root / folder / str(name)
            if not path.is_file():
                raise FirnlineError("FILE_CHANGED", f"{path} is gone since it was listed")
            if os.path.getsize(path) != size or _content(path) != (size, checksum):
                raise FirnlineError("FILE_CHANGED", f"{path} changed since it was listed")


def _content(path: Path) -> tuple[int, str]:
    """The size and the checksum of what a file holds."""
    size, checksum = 0, xxh3_64()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            size += len(chunk)
            checksum.update(chunk)
    return size, checksum.hexdigest()
