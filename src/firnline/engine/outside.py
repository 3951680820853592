"""What one attempt at an epoch of a source takes from the outside: logged before it is used, and taken as logged if it was.

A value stands for good. A listing of files is forgotten by an attempt that fails with an error, since people then mend files. An
attempt that dies forgets nothing: its retry reads the very same files.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from firnline.engine.listing import Listing, Stamp, check, listed, named, names_in, paths_of, stamp
from firnline.errors import FirnlineError

_FILES = "files:"
_NEW = f"{_FILES}new "
_RANGES = ("jdbc ", "table ", "kafka ")
"""How the names begin under which it is logged how far an epoch has come in something outside."""
_LEAST_STEPS = 32
_FILES_A_STEP = 100
"""An epoch that looks back over more epochs than these say names all files that were ever taken: nobody looks further then."""
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


def folders_in(determinants: Mapping[str, Any], root: Path) -> list[Path]:
    """The folders of the files that an epoch took, in order."""
    taken = [value for name, value in determinants.items() if name.startswith(_FILES)]
    listings: list[Listing] = [value["files"] if isinstance(value.get("files"), dict) else value for value in taken]
    return sorted({root / folder for listing in listings for folder in listing})


def position(name: str, earlier: Iterator[Any]) -> Any:
    """What the next epoch has to know of all that earlier ones took under a name, the newest first; None if that is nothing."""
    if name.startswith(_NEW):
        seen, _ = _seen(earlier)
        return {"files": {}, "seen": sorted(seen)} if seen else None
    newest = next(earlier, None) if name.startswith(_RANGES) else None
    if not isinstance(newest, dict) or newest.keys() != {"after", "upto"}:
        return None
    return {"after": None, "upto": newest["upto"]}


def nothing_earlier(_: str) -> Iterator[Any]:
    """What earlier epochs logged, where there are none."""
    return iter(())


@dataclass(slots=True)
class Outside:
    """The outside as one attempt sees it."""

    _determinants: Determinants
    _root: Path
    _earlier: Callable[[str], Iterator[Any]] = nothing_earlier
    """What earlier epochs logged under a name, the newest first."""
    used: dict[str, Any] = field(default_factory=dict)
    """All that was taken so far, by name."""
    _stamps: dict[Path, Stamp | None] = field(default_factory=dict)
    _asked: dict[str, str] = field(default_factory=dict)
    """Of whom ranges were asked, by name."""

    def value(self, name: str, fn: Callable[[], Any]) -> Any:
        """The value of a function, which is called only if none was logged."""
        if name.startswith(_FILES):
            raise FirnlineError("BAD_OPTION", f"logged({name!r}): names that begin with {_FILES!r} are those of listings")
        if name not in self.used:
            found = self._determinants.find(name, _NOTHING)
            self.used[name] = self._determinants.log(name, _json(name, fn())) if found is _NOTHING else found
        return deepcopy(self.used[name])

    def since_last(self, name: str, reached: Callable[[Any], Any], of: str = "") -> tuple[Any, Any]:
        """What the last epoch that asked had reached, None at first, and what this one reaches, given that.

        Args:
            name: Under which it is logged. It does not say where that is, which may move from epoch to epoch.
            reached: Asks how far it has come.
            of: Where it is asked, which is one place in an epoch: two have come to different points.
        """
        if self._asked.setdefault(name, of) != of:
            todo = "Let each be a source of its own, and a stage unite them."
            raise FirnlineError(
                "BAD_OPTION", f"the source asks two places for {name!r}, which would share one position", todo=todo
            )

        def asked() -> dict[str, Any]:
            before = next((each["upto"] for each in self._earlier(name)), None)
            return {"after": before, "upto": reached(before)}

        found = self.value(name, asked)
        return found["after"], found["upto"]

    def files(self, pattern: str, matching: Callable[[], Iterable[Path]], *, is_optional: bool) -> list[Path]:
        """The files of a pattern; ``matching`` looks for them only if no listing was logged."""

        def found() -> Listing:
            listing = self._listed(matching())
            if not listing and not is_optional:
                raise FirnlineError("MISSING_FILE", f"no file matches {pattern!r}")
            return listing

        return paths_of(self._taken(f"{_FILES}{pattern}", found, lambda taken: taken), self._root)

    def new_files(self, pattern: str, matching: Callable[[], Iterable[Path]]) -> list[Path]:
        """The files of a pattern that no earlier epoch has taken under it; ``matching`` as for ``files``."""
        name = f"{_NEW}{pattern}"

        def found() -> dict[str, Any]:
            seen, steps = _seen(self._earlier(name))
            new = [path for path in matching() if named(path, self._root) not in seen]
            is_long = steps >= _LEAST_STEPS + len(seen) // _FILES_A_STEP
            return {"files": self._listed(new), "seen": sorted(seen) if is_long else []}

        return paths_of(self._taken(name, found, lambda taken: taken["files"])["files"], self._root)

    def changed(self) -> list[Path]:
        """The files that are not what they were when they were listed, by size and time."""
        return [path for path, then in self._stamps.items() if stamp(path) != then]

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

    def _taken(self, name: str, find: Callable[[], Any], listing: Callable[[Any], Listing]) -> Any:
        """What was logged, if its files are what they were then; or what is found now, logged before it is used."""
        if name not in self.used:
            logged: Any = self._determinants.find(name, _NOTHING)
            found: Any = _NOTHING
            if logged is _NOTHING:
                found = find()
                logged = self._determinants.log(name, found)
            if logged != found:
                self._watch(paths_of(listing(logged), self._root))
                check(listing(logged), self._root)
            self.used[name] = logged
        return self.used[name]

    def _listed(self, paths: Iterable[Path]) -> Listing:
        several = list(paths)
        self._watch(several)
        return listed(several, self._root)

    def _watch(self, paths: Iterable[Path]) -> None:
        self._stamps |= {path: stamp(path) for path in paths}


def _seen(several: Iterator[Any]) -> tuple[set[str], int]:
    """The files that earlier epochs took, and how many epochs one looks back for them."""
    seen, steps = set[str](), 0
    for steps, earlier in enumerate(several, 1):  # noqa: B007 - it is told how many
        seen |= {*earlier["seen"], *names_in(earlier["files"])}
        if earlier["seen"]:
            break
    return seen, steps


def _json(name: str, value: Any) -> Any:
    """The value, if JSON keeps it as it is."""
    try:
        kept = json.loads(json.dumps(value, allow_nan=False))
        if kept != value:
            raise ValueError(f"it comes back as {kept!r:.100}")
    except (TypeError, ValueError) as error:
        raise FirnlineError("BAD_OPTION", f"logged({name!r}) takes JSON values only, not {value!r:.100}: {error}") from error
    return kept
