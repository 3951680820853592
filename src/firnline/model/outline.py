"""The outline of a stage's plan: hashes that tell what kind of change leads from one plan to another.

    rows          which rows there are, and per column what it holds in them: equal where nothing changed
    loose         the same without filters, without what Python functions do and without the types of what is read

So two plans whose loose hashes are equal differ in filters, functions or types only. It is small enough to be in every sidecar.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

Kind = Literal["column", "filter", "udf", "schema", "logic", "engine", "code"]
"""What kind of change: new columns only, filters, Python functions, names or types or keys, anything else that the plan says,
the version or settings of Spark; or the code of something that has no plan."""


@dataclass(frozen=True, slots=True)
class Outline:
    """What a plan is made of."""

    plan: str
    """The plan's fingerprint."""
    rows: str
    columns: Mapping[str, str]
    loose_rows: str
    loose_columns: Mapping[str, str]
    filters: str
    functions: str
    types: Mapping[str, str]
    """Of the columns that are read, by ``collection.column``."""
    shape: str
    """Keys and ``partition_by``."""
    engine: str
    """Spark's version and the pinned settings."""

    def under(self, names: Mapping[str, str]) -> Outline:
        """The same plan with other names for its columns."""
        columns, loose = ({names.get(name, name): of for name, of in each.items()} for each in (self.columns, self.loose_columns))
        return replace(self, columns=columns, loose_columns=loose)

    def as_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)

    @classmethod
    def of_json(cls, data: dict[str, Any]) -> Outline:
        """Read ``as_json`` back."""
        return cls(**data)


@dataclass(frozen=True, slots=True)
class Difference:
    """What leads from one plan to another."""

    kinds: tuple[Kind, ...]
    added: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    """Columns that hold what others held: the old name and the new one."""
    changed: tuple[str, ...] = ()
    """Columns of the same name that are made otherwise."""
    retyped: tuple[str, ...] = ()
    """Columns that are read and are of another type now."""


def difference(old: Outline | None, new: Outline | None) -> Difference:
    """What leads from an old plan to a new one; where one is not known, only that the code is another.

    >>> def outline(rows="r", filters="f", functions="u", **columns):
    ...     return Outline("p", rows + filters + functions, columns, rows, columns, filters, functions, {}, "s", "e")
    >>> old = outline(id="1", name="2")
    >>> [difference(old, new).kinds for new in (outline(id="1", name="2", more="3"), outline(filters="g", id="1", name="2"))]
    [('column',), ('filter',)]
    >>> difference(old, outline(id="1", title="2"))
    Difference(kinds=('schema',), added=(), dropped=(), renamed=(('name', 'title'),), changed=(), retyped=())
    """
    if old is None or new is None:
        return Difference(("code",))
    are_rows_same = old.rows == new.rows
    before, after = (old.columns, new.columns) if are_rows_same else (old.loose_columns, new.loose_columns)
    renamed = _renamed(before, after)
    gone, came = {name for name, _ in renamed}, {name for _, name in renamed}
    added = tuple(name for name in after if name not in before and name not in came)
    dropped = tuple(name for name in before if name not in after and name not in gone)
    common = [name for name in before if name in after]
    changed = tuple(name for name in common if before[name] != after[name])
    kinds: list[Kind] = ["column"] if added else []
    if dropped or renamed or old.shape != new.shape:
        kinds.append("schema")
    if changed or not are_rows_same:
        kinds += [kind for kind in _touched(old, new, common) if kind not in kinds]
    if old.engine != new.engine:
        kinds.append("engine")
    return Difference(tuple(kinds), added, dropped, renamed, changed, _retyped(old, new))


def _renamed(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    came = {name: of for name, of in after.items() if name not in before}
    found = []
    for name, of in before.items():
        new = None if name in after else next((each for each, held in came.items() if held == of), None)
        if new is not None:
            del came[new]
            found.append((name, new))
    return tuple(found)


def _retyped(old: Outline, new: Outline) -> tuple[str, ...]:
    return tuple(name for name, kind in old.types.items() if new.types.get(name, kind) != kind)


def _touched(old: Outline, new: Outline, common: list[str]) -> list[Kind]:
    """What changed in rows, or in columns that there were before."""
    if old.loose_rows != new.loose_rows or any(old.loose_columns[name] != new.loose_columns[name] for name in common):
        return ["logic"]
    parts: list[tuple[Kind, bool]] = [
        ("filter", old.filters != new.filters),
        ("udf", old.functions != new.functions),
        ("schema", bool(_retyped(old, new))),
    ]
    return [kind for kind, is_other in parts if is_other] or ["logic"]
