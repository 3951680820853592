"""Columns that change: what of it a log takes in place, so that every epoch it holds stays readable and keeps its digests.

    added     the column is null in the rows that are there
    widened   int to bigint, float to double, a decimal to more digits before the point: the same values, the same digests
    renamed   the same column under another name, in all epochs; a stage's, if its plan shows it
    left out  the column stays and is null from then on; a stage's only
    narrower  a type that one of these widenings leads from is stored as the wider one

All else needs another name: of the column, or of the collection. Names that differ in their case only are the same to Spark, and
two to a log: such a column is refused. Types are Spark's, as ``simpleString`` has them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_WIDER = {("int", "bigint"), ("float", "double")}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")


@dataclass(frozen=True, slots=True)
class Evolution:
    """What leads from the columns of a log to those that rows have now, by name."""

    added: tuple[str, ...] = ()
    widened: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    """The old name and the new one; what else is said is said of new names."""
    left_out: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    """Columns whose types, or the case of whose names, are others, and that no rule leads to."""

    @property
    def is_any(self) -> bool:
        """Whether the log itself has to change."""
        return bool(self.added or self.widened or self.renamed or self.left_out)


def evolution(stored: Mapping[str, str], found: Mapping[str, str], renamed: Sequence[tuple[str, str]] = ()) -> Evolution:
    """What leads from the columns of a log to others, given as types by name.

    Args:
        stored: The log's columns.
        found: Those of the rows that come now.
        renamed: Columns that hold what others held, if both names are known as such.

    >>> evolution({"id": "int", "n": "int"}, {"id": "int", "n": "bigint", "m": "string"})
    Evolution(added=('m',), widened=('n',), renamed=(), left_out=(), refused=())
    >>> evolution({"id": "int", "n": "bigint"}, {"id": "string", "m": "bigint"}, [("n", "m")])
    Evolution(added=(), widened=(), renamed=(('n', 'm'),), left_out=(), refused=('id',))
    >>> evolution({"id": "int", "Sum": "int"}, {"id": "int", "sum": "int"}).refused
    ('sum',)
    """
    moved: dict[str, str] = {}
    for old, new in renamed:
        if old in stored.keys() - found.keys() and new in found.keys() - stored.keys() and new not in moved.values():
            moved.setdefault(old, new)
    before = {moved.get(name, name): kind for name, kind in stored.items()}
    common = [name for name in before if name in found and found[name] != before[name]]
    widened = tuple(name for name in common if is_wider(before[name], found[name]))
    added, left_out = ([name for name in one if name not in other] for one, other in ((found, before), (before, found)))
    both = {name.lower() for name in added} & {name.lower() for name in left_out}
    changed = [name for name in common if name not in widened and not is_wider(found[name], before[name])]
    return Evolution(
        added=tuple(name for name in added if name.lower() not in both),
        widened=widened,
        renamed=tuple(moved.items()),
        left_out=tuple(name for name in left_out if name.lower() not in both),
        refused=(*changed, *(name for name in added if name.lower() in both)),
    )


def is_wider(old: str, new: str) -> bool:
    """Whether each value of a type is one of another, and hashes alike.

    >>> [is_wider(*pair) for pair in (("int", "bigint"), ("bigint", "int"), ("decimal(9,2)", "decimal(12,2)"))]
    [True, False, True]
    >>> is_wider("decimal(9,2)", "decimal(12,3)"), is_wider("int", "double")
    (False, False)
    """
    if (old, new) in _WIDER:
        return True
    one, other = _DECIMAL.fullmatch(old), _DECIMAL.fullmatch(new)
    return bool(one and other and one[2] == other[2] and int(one[1]) < int(other[1]))
