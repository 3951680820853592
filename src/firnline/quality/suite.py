"""Suites of expectations as files: Great Expectations' own JSON, or Python that makes the same.

JSON is read here, without Great Expectations, whose import takes seconds; Python needs it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firnline.errors import FirnlineError

_COLUMNS = ("column", "column_A", "column_B")


@dataclass(frozen=True, slots=True)
class Suite:
    """Expectations under a name, each as its JSON is: type, kwargs, meta, severity."""

    name: str
    expectations: tuple[Mapping[str, Any], ...]
    path: Path

    @property
    def is_python(self) -> bool:
        """Whether it is made by a module."""
        return self.path.suffix == ".py"

    def check_columns(self, columns: Iterable[str]) -> None:
        """Refuse expectations about columns that are not there."""
        there = set(columns)
        for each in self.expectations:
            for name in _asked(each):
                if name not in there and name.split(".")[0] not in there:
                    listed = ", ".join(sorted(there)) or "none"
                    what = f"the suite {self.name!r}: {each['type']} asks for the column {name!r}; the columns: {listed}"
                    raise FirnlineError("BAD_SUITE", what)


def path_of(folder: Path, name: str) -> Path:
    """The file of a suite."""
    found = [path for path in (folder / f"{name}.json", folder / f"{name}.py") if path.is_file()]
    if not found:
        raise FirnlineError("UNKNOWN_SUITE", f"there is no suite {name!r}")
    if len(found) > 1:
        raise FirnlineError("BAD_SUITE", f"the suite {name!r} is there twice: {found[0].name} and {found[1].name}")
    return found[0]


def read(path: Path) -> Suite:
    """The suite of a JSON file."""
    try:
        return suite_of(json.loads(path.read_text(encoding="utf-8")), path)
    except (OSError, ValueError) as error:
        raise FirnlineError("BAD_SUITE", f"{path.name}: {type(error).__name__}: {error}") from error


def suite_of(document: Any, path: Path) -> Suite:
    """The suite of a document, if it is one and has the name of its file."""
    name = path.stem
    if not isinstance(document, dict) or not isinstance(document.get("expectations"), list):
        raise FirnlineError("BAD_SUITE", f"{path.name} holds no suite: an object with a list 'expectations'")
    if document.get("name", name) != name:
        raise FirnlineError("BAD_SUITE", f"{path.name} holds the suite {document['name']!r}; name it like its file")
    for number, each in enumerate(document["expectations"], 1):
        if not (isinstance(each, dict) and isinstance(each.get("type"), str) and isinstance(each.get("kwargs", {}), dict)):
            raise FirnlineError("BAD_SUITE", f"{path.name}: expectation {number} has no 'type', or its 'kwargs' are no object")
    return Suite(name, tuple({"kwargs": {}, "meta": {}, **each} for each in document["expectations"]), path)


def is_about_columns(config: Mapping[str, Any]) -> bool:
    """Whether an expectation is about the values of columns."""
    return bool(_asked(config))


def _asked(config: Mapping[str, Any]) -> list[str]:
    """The columns whose values an expectation is about."""
    if config["type"] == "expect_column_to_exist":
        return []
    kwargs = config["kwargs"]
    single = [kwargs[key] for key in _COLUMNS if key in kwargs]
    return [name for name in (*single, *(kwargs.get("column_list") or ())) if isinstance(name, str)]
