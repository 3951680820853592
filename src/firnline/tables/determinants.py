"""Determinants: what an epoch of a source took from the outside, as named JSON values beside the logs.

A value is logged before it is used, and only the first one of a name stands: whoever logs another, later or at the same moment,
is given the first. So a retry and a replay use what the first attempt used, and do not look outside.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from xxhash import xxh3_128_hexdigest

from firnline.tables.port import Tables
from firnline.world import world

FOLDER = "_determinants"
_LONGEST = 150


class Determinants:
    """The determinants of the epoch of a collection that begins at ``lower``; what stands ``behind`` it is never logged anew."""

    def __init__(self, catalog: Tables, pipeline: str, collection: str, lower: int, behind: Determinants | None = None) -> None:
        self._catalog = catalog
        self._behind = behind
        self._folder = f"{catalog.warehouse}/{pipeline}/{FOLDER}/{collection}/{lower}"

    def log(self, name: str, value: Any) -> Any:
        """Keep a value unless one of that name is there; returns the one that stands."""
        if self._behind is not None and (found := self._behind.find(name, self)) is not self:
            return found
        content = json.dumps({"name": name, "value": value}, separators=(",", ":"), allow_nan=False)
        stands = _value(self._catalog.write_once(self._path(name), content.encode()))
        world().reach("determinant.logged")
        return stands

    def find(self, name: str, default: Any = None) -> Any:
        """The value of a name, or the default if none was logged."""
        try:
            return _value(self._catalog.read(self._path(name)))
        except FileNotFoundError:
            return default if self._behind is None else self._behind.find(name, default)

    def forget(self, name: str) -> None:
        """Let the next attempt log a value of its own."""
        self._catalog.remove(self._path(name))

    def all(self) -> dict[str, Any]:
        """Every value, by name."""
        found = self._catalog.read_all(self._folder)
        logged = [json.loads(content) for path, content in found.items() if path.endswith(".json")]
        own = {entry["name"]: entry["value"] for entry in sorted(logged, key=lambda entry: str(entry["name"]))}
        return own if self._behind is None else {**own, **self._behind.all()}

    def names(self) -> set[str]:
        """The names under which this epoch, or any other of its collection, has logged a value."""
        paths = sorted(self._catalog.paths(self._folder.rpartition("/")[0]), key=lambda path: -int(path.rsplit("/", 2)[1]))
        found = {path.rsplit("/", 1)[-1]: path for path in paths}  # the oldest, which nobody forgets meanwhile
        own = {str(json.loads(self._catalog.read(path))["name"]) for path in found.values() if path.endswith(".json")}
        return own if self._behind is None else own | self._behind.names()

    def _path(self, name: str) -> str:
        """The file of a name; one too long for a file system is cut, and told from others by its hash."""
        safe = quote(name, safe="", errors="surrogatepass")
        if len(safe) > _LONGEST:
            safe = f"{safe[:_LONGEST]}~{xxh3_128_hexdigest(safe.encode())}"
        return f"{self._folder}/{safe}.json"


def _value(content: bytes) -> Any:
    return json.loads(content)["value"]
