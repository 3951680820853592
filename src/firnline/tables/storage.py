"""The warehouse's storage when it does not take, or give, what is asked of it: full, read-only, not allowed, gone astray."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import fsspec

from firnline.errors import FirnlineError
from firnline.model.names import DRAFT
from firnline.model.stored_file import StoredFile


@contextmanager
def answering(warehouse: str) -> Iterator[None]:
    """Turn a refusal of the storage into a coded error; that a file is not there is an answer."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise FirnlineError("STORAGE_UNAVAILABLE", f"the warehouse {warehouse}: {error}") from error


def located(path: str) -> tuple[Any, str]:
    """The filesystem of a path, and the path as that writes it. It remembers no listing: what others wrote since is there."""
    filesystem, inner = fsspec.url_to_fs(path, use_listings_cache=False)
    return filesystem, str(inner)


def contents(filesystem: Any, paths: Iterable[str]) -> dict[str, bytes]:
    """What small files hold, by path; one that is gone, or is a draft, is left out. No letter of a path means anything else."""
    wanted = [path for path in paths if not path.endswith(DRAFT)]
    found = dict(zip(wanted, filesystem.cat_ranges(wanted, None, None, on_error="return"), strict=True))
    for content in found.values():
        if isinstance(content, Exception) and not isinstance(content, FileNotFoundError):
            raise content
    return {path: content for path, content in found.items() if isinstance(content, bytes)}


def is_there(file: StoredFile) -> bool:
    """Whether a data file is there, of the right size."""
    filesystem, inner = located(file.path)
    return bool(filesystem.exists(inner) and filesystem.size(inner) == file.bytes)
