"""Suites of expectations as files: Great Expectations' own JSON, or Python that makes the same.

JSON is read here, without Great Expectations, whose import takes seconds; Python needs it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from firnline.errors import FirnlineError

_COLUMNS = ("column", "column_A", "column_B")
_FIELDS = frozenset({"type", "kwargs", "meta", "notes", "description", "id", "severity"})
_RENDERED = frozenset({"rendered_content", "expectation_context"})
_SEVERITIES = ("critical", "warning", "info")


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
        if complaint := _complaint(each):
            raise FirnlineError("BAD_SUITE", f"{path.name}: expectation {number} {complaint}")
    return Suite(name, tuple(_config(each) for each in document["expectations"]), path)


def _config(expectation: Mapping[str, Any]) -> dict[str, Any]:
    """An expectation without what Great Expectations makes of it for show."""
    return {"kwargs": {}, "meta": {}, **{key: value for key, value in expectation.items() if key not in _RENDERED}}


def _complaint(expectation: Any) -> str | None:
    """Why something is no expectation as Great Expectations stores it; None if it is one."""
    is_object = isinstance(expectation, dict) and isinstance(expectation.get("type"), str)
    if not is_object or not isinstance(expectation.get("kwargs", {}), dict):
        return "has no 'type', or its 'kwargs' are no object"
    if unknown := expectation.keys() - _FIELDS - _RENDERED:
        return f"has the unknown field {', '.join(map(repr, sorted(unknown)))}; it may have: {', '.join(sorted(_FIELDS))}"
    if expectation.get("severity") not in (None, *_SEVERITIES):
        return f"has the severity {expectation['severity']!r}; it may be: {', '.join(_SEVERITIES)}"
    if not isinstance(expectation.get("meta"), dict | None):
        return "has a 'meta' that is no object"
    if not isinstance(expectation.get("description"), str | None):
        return "has a 'description' that is no text"
    return None if _is_id(expectation.get("id")) else f"has the id {expectation['id']!r}, which is no UUID"


def _is_id(value: Any) -> bool:
    try:
        return value is None or bool(UUID(value))
    except (ValueError, AttributeError, TypeError):
        return False


def is_about_columns(config: Mapping[str, Any]) -> bool:
    """Whether an expectation is about the values of columns."""
    return bool(_asked(config))


def _asked(config: Mapping[str, Any]) -> list[str]:
    """The columns whose values an expectation is about."""
    if config["type"] == "expect_column_to_exist" or config["type"].startswith("expect_table_"):
        return []
    kwargs = config["kwargs"]
    single = [kwargs[key] for key in _COLUMNS if key in kwargs]
    return [name for name in (*single, *(kwargs.get("column_list") or ())) if isinstance(name, str)]
