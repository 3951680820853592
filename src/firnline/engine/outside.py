"""What one attempt at an epoch of a source takes from the outside: logged before it is used, and taken as logged if it was.

A value stands for good. A listing of files is forgotten by an attempt that fails with an error, since people then mend files. An
attempt that dies forgets nothing: its retry reads the very same files.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from firnline.engine.listing import Listing, check, listed, paths_of
from firnline.errors import FirnlineError

_FILES = "files:"
_NOTHING = object()
_logger = logging.getLogger(__name__)


class Determinants(Protocol):
    """Where values are logged."""

    def find(self, name: str, default: Any = None) -> Any:
        """The value of a name, or the default if none was logged."""

    def log(self, name: str, value: Any) -> Any:
        """Keep a value unless one of that name is there; returns the one that stands."""

    def forget(self, name: str) -> None:
        """Let the next attempt log a value of its own."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a published epoch took, for a replay: it logs nothing and forgets nothing."""

    values: Mapping[str, Any]

    def find(self, name: str, default: Any = None) -> Any:
        """The value of a name, or the default if none was taken."""
        return self.values.get(name, default)

    def log(self, name: str, value: Any) -> Any:
        """The value itself."""
        return value

    def forget(self, name: str) -> None:
        """Nothing: it stands."""


@dataclass(slots=True)
class Outside:
    """The outside as one attempt sees it."""

    _determinants: Determinants
    _root: Path
    used: dict[str, Any] = field(default_factory=dict)
    """All that was taken so far, by name."""

    def value(self, name: str, fn: Callable[[], Any]) -> Any:
        """The value of a function, which is called only if none was logged."""
        if name.startswith(_FILES):
            raise FirnlineError("BAD_OPTION", f"logged({name!r}): names that begin with {_FILES!r} are those of listings")
        if name not in self.used:
            found = self._determinants.find(name, _NOTHING)
            self.used[name] = self._determinants.log(name, _json(name, fn())) if found is _NOTHING else found
        return deepcopy(self.used[name])

    def files(self, pattern: str, matching: Callable[[], Iterable[Path]], *, is_optional: bool) -> list[Path]:
        """The files of a pattern; ``matching`` looks for them only if no listing was logged."""
        name = f"{_FILES}{pattern}"
        if name not in self.used:
            self.used[name] = self._listing(name, matching, is_optional=is_optional)
        paths = paths_of(self.used[name], self._root)
        if not paths and not is_optional:
            raise FirnlineError("MISSING_FILE", f"no file matches {pattern!r}")
        return paths

    def failed(self, error: BaseException) -> None:
        """Forget the listings after an error. Where a file changed they stay, and the file stays refused."""
        if isinstance(error, FirnlineError) and error.code == "FILE_CHANGED":
            return
        for name in self.used:
            if name.startswith(_FILES):
                try:
                    self._determinants.forget(name)
                except (FirnlineError, OSError) as reason:
                    _logger.warning("the listing of %s was not forgotten: %s", name.removeprefix(_FILES), reason)

    def _listing(self, name: str, matching: Callable[[], Iterable[Path]], *, is_optional: bool) -> Listing:
        found: Any = self._determinants.find(name, _NOTHING)
        taken: Listing | None = None
        if found is _NOTHING:
            taken = listed(matching(), self._root)
            found = self._determinants.log(name, taken) if taken or is_optional else taken
        listing: Listing = found
        if listing != taken:
            check(listing, self._root)
        return listing


def _json(name: str, value: Any) -> Any:
    """The value, if JSON keeps it as it is."""
    try:
        kept = json.loads(json.dumps(value, allow_nan=False))
        if kept != value:
            raise ValueError(f"it comes back as {kept!r:.100}")
    except (TypeError, ValueError) as error:
        raise FirnlineError("BAD_OPTION", f"logged({name!r}) takes JSON values only, not {value!r:.100}: {error}") from error
    return kept
