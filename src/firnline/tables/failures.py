"""Attempts that failed, for people: one small file per (collection, epoch) beside the logs, the last failure's.

Nothing is decided by them. An epoch that is published later leaves its file behind, and nobody looks at it any more.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from firnline.tables.port import Tables

FOLDER = "_failures"


@dataclass(frozen=True, slots=True)
class Failure:
    """An attempt at [lower, upper) of a collection that ended with an error."""

    collection: str
    lower: int
    upper: int
    attempt: str
    code: str
    message: str
    retryable: bool
    failed_at: str
    """When, in UTC, as ISO 8601 has it."""


class Failures:
    """The failures of one pipeline."""

    def __init__(self, catalog: Tables, pipeline: str) -> None:
        self._catalog = catalog
        self._folder = f"{catalog.warehouse}/{pipeline}/{FOLDER}"

    def note(self, failure: Failure) -> None:
        """Keep a failure in place of the one before."""
        path = f"{self._folder}/{failure.collection}/{failure.lower}.json"
        self._catalog.write(path, json.dumps(asdict(failure)).encode())

    def open(self, uppers: Mapping[str, int]) -> list[Failure]:
        """The failures of epochs that no log holds yet, in order; ``uppers`` says how far the logs reach."""
        found = [Failure(**json.loads(content)) for content in self._catalog.read_all(self._folder).values()]
        still = [each for each in found if each.collection not in uppers or each.upper > uppers[each.collection]]
        return sorted(still, key=lambda failure: (failure.collection, failure.lower))
