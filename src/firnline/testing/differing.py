"""How two multisets of rows differ, for people. Floating numbers are the same up to a relative 1e-12, all else exactly."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from firnline.model.sql_value import settled

Row = Mapping[str, Any]
CLOSE = 1e-12
SHOWN = 20
"""Rows of each side that are told."""


def difference(expected: Sequence[Row], found: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """The rows that are missing, and those that nobody expected.

    >>> difference([{"a": 1}, {"a": 0.3}], [{"a": 0.1 + 0.2}, {"a": 2}])
    ([{'a': 1}], [{'a': 2}])
    """
    missing, unexpected = _less(expected, found), _less(found, expected)
    for row in list(missing):
        twin = next((other for other in unexpected if _is_close(_form(row), _form(other))), None)
        if twin is not None:
            missing.remove(row)
            unexpected.remove(twin)
    return missing, unexpected


def told(expected: Sequence[Row], found: Sequence[Row], *, names: tuple[str, str]) -> str | None:
    """The difference as a table, ``-`` before rows of the first side only and ``+`` of the second; None if there is none."""
    missing, unexpected = difference(expected, found)
    if not missing and not unexpected:
        return None
    marked = [*(("-", row) for row in missing[:SHOWN]), *(("+", row) for row in unexpected[:SHOWN])]
    columns = list(dict.fromkeys(name for _, row in marked for name in row))
    lines = [["", *columns], *([mark, *(_cell(row, name) for name in columns)] for mark, row in marked)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(columns) + 1)]
    table = [" | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    left = len(missing) + len(unexpected) - len(marked)
    counts = f"- {len(missing)} only {names[0]}, + {len(unexpected)} only {names[1]}"
    return "\n".join([f"  {counts}:", *(f"  {line}" for line in table), *([f"  and {left} more"] if left else [])])


def _less(rows: Sequence[Row], others: Sequence[Row]) -> list[Row]:
    """The rows that others do not have as often."""
    there, left = Counter(_form(row) for row in others), list[Row]()
    for row in rows:
        form = _form(row)
        if there[form]:
            there[form] -= 1
        else:
            left.append(row)
    return left


def _form(row: Row) -> tuple[Any, ...]:
    """The one hashable form of a row, whatever the order of its columns."""
    return tuple((name, _frozen(row[name])) for name in sorted(row))


def _frozen(value: Any) -> Any:
    if isinstance(value, Mapping):
        return tuple((key, _frozen(each)) for key, each in value.items())
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else settled(value)


def _is_close(one: Any, other: Any) -> bool:
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_is_close, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return one is other or math.isclose(one, other, rel_tol=CLOSE)
    return bool(one == other) and isinstance(one, float) is isinstance(other, float)


def _cell(row: Row, name: str) -> str:
    value = row.get(name)
    return ("" if name not in row else "null") if value is None else str(value)
