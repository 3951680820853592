"""What became of checks: small files beside the logs, which tell without Great Expectations what failed and why.

``results`` holds all of it, one file per (collection, epoch, check); ``last`` the facts of each check's last run, but for runs
about rows of older epochs that were lost; ``failed`` those of the runs that failed, until the same check of the same epoch
passes. Nothing is decided by these files.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from firnline.tables.port import Tables

FOLDER = "_checks"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a suite said about the rows of [lower, upper) of a collection."""

    collection: str
    lower: int
    upper: int
    attempt: str
    suite: str
    on: str
    """Whose rows: the ``delta``'s or the ``state``'s."""
    blocking: bool
    success: bool
    expectations: int
    failed: tuple[str, ...]
    """A sentence for each expectation that was not met."""
    rows: int
    seconds: float
    checked_at: str
    """When, in UTC, as ISO 8601 has it."""


class CheckResults:
    """The results of one pipeline's checks."""

    def __init__(self, catalog: Tables, pipeline: str) -> None:
        self._catalog = catalog
        self._folder = f"{catalog.warehouse}/{pipeline}/{FOLDER}"

    def keep(self, result: CheckResult, document: Mapping[str, Any], *, is_again: bool = False) -> None:
        """Keep a result, with the document that Great Expectations would have written of it.

        With ``is_again`` it is about an epoch that was published before.
        """
        facts = asdict(result)
        whole = json.dumps({**facts, "result": document}).encode()
        self._catalog.write(self._path("results", result, result.lower), whole)
        if not is_again or self._is_last(result):
            self._catalog.write(self._path("last", result), json.dumps(facts).encode())
        failed = self._path("failed", result, result.lower)
        if result.success:
            self._catalog.remove(failed)
        else:
            self._catalog.write(failed, json.dumps(facts).encode())

    def last(self) -> list[CheckResult]:
        """The last result of every check, in order."""
        return self._read("last")

    def failed(self) -> list[CheckResult]:
        """The results of all (epoch, check) whose last run failed, in order: of published epochs those that only warned."""
        return self._read("failed")

    def of(self, collection: str, lower: int) -> list[tuple[CheckResult, dict[str, Any]]]:
        """The last results of an epoch's checks, in order, each with its document."""
        found = self._read(f"results/{collection}/{lower}")
        return list(zip(found, self.documents(found), strict=True))

    def documents(self, of: Iterable[CheckResult]) -> list[dict[str, Any]]:
        """What Great Expectations would have written of results."""
        found = (self._catalog.read(self._path("results", result, result.lower)) for result in of)
        return [json.loads(content)["result"] for content in found]

    def _read(self, kind: str) -> list[CheckResult]:
        names = [field.name for field in fields(CheckResult)]
        found = [json.loads(content) for content in self._catalog.read_all(f"{self._folder}/{kind}").values()]
        results = [CheckResult(**{name: entry[name] for name in names} | {"failed": tuple(entry["failed"])}) for entry in found]
        return sorted(results, key=lambda result: (result.collection, result.suite, result.on, result.lower))

    def _is_last(self, result: CheckResult) -> bool:
        """Whether no later epoch was asked about."""
        try:
            return bool(json.loads(self._catalog.read(self._path("last", result)))["lower"] <= result.lower)
        except FileNotFoundError:
            return True

    def _path(self, kind: str, result: CheckResult, epoch: int | None = None) -> str:
        where = f"{self._folder}/{kind}/{result.collection}" + ("" if epoch is None else f"/{epoch}")
        return f"{where}/{result.suite}.{result.on}.json"
