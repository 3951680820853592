"""The warehouse's storage when it does not take, or give, what is asked of it: full, read-only, not allowed, gone astray."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from firnline.errors import FirnlineError


@contextmanager
def answering(warehouse: str) -> Iterator[None]:
    """Turn a refusal of the storage into a coded error; that a file is not there is an answer."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise FirnlineError("STORAGE_UNAVAILABLE", f"the warehouse {warehouse}: {error}") from error
