"""What names mean at a point of a plan: fields, with their qualifiers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pyspark.sql.connect.proto import Expression

from firnline.errors import FirnlineError
from firnline.incremental.algebra import Column, Node, Output


@dataclass(frozen=True, slots=True)
class Field:
    """A column that can be named here: its id, its name, and the alias of the relation it comes from."""

    id: str
    name: str
    qualifier: str | None = None

    def is_named(self, name: str) -> bool:
        """Whether that is its name; case does not matter."""
        return self.name.lower() == name.lower()


@dataclass(frozen=True)
class Bound:
    """A relation whose references are resolved.

    ``order`` is what its rows are sorted by, if they are. ``hidden`` are fields that only a reference to another relation finds:
    the keys of both sides behind those of a join by common columns.
    """

    node: Node
    fields: tuple[Field, ...]
    order: tuple[Expression, ...] = ()
    hidden: tuple[Field, ...] = ()

    @property
    def names(self) -> list[str]:
        """The names of its columns."""
        return [field.name for field in self.fields]

    def columns(self) -> tuple[Column, ...]:
        """Its columns under the names they have here."""
        return tuple(Column(field.id, field.name) for field in self.fields)

    def aliased(self, alias: str) -> Bound:
        """The same under an alias, which hides all others."""
        return replace(self, fields=tuple(replace(field, qualifier=alias) for field in self.fields))

    def find(self, name: str) -> Field | None:
        """The one field of that name."""
        return _one([field for field in self.fields if field.is_named(name)], name)


Made = tuple[Output, tuple[Field, ...]]
"""What an expression of a projection makes, and the fields it can be named by."""


def split(identifier: str) -> list[str]:
    """The parts of a dotted identifier, quotes taken off.

    >>> split("a.`b.c`.d")
    ['a', 'b.c', 'd']
    """
    parts, part, is_quoted, at = [], "", False, 0
    while at < len(identifier):
        letter = identifier[at]
        if letter == "`" and is_quoted and identifier[at + 1 : at + 2] == "`":
            part, at = part + "`", at + 1
        elif letter == "`":
            is_quoted = not is_quoted
        elif letter == "." and not is_quoted:
            parts.append(part)
            part = ""
        else:
            part += letter
        at += 1
    return [*parts, part]


def resolved(parts: Sequence[str], fields: Iterable[Field]) -> tuple[Field, list[str]] | None:
    """The field that an identifier means, and the path into it; with a qualifier if that fits, else without."""
    fields = list(fields)
    if len(parts) > 1:
        qualified = [
            field
            for field in fields
            if field.qualifier is not None and field.qualifier.lower() == parts[0].lower() and field.is_named(parts[1])
        ]
        if found := _one(qualified, ".".join(parts)):
            return found, list(parts[2:])
    found = _one([field for field in fields if field.is_named(parts[0])], parts[0])
    return (found, list(parts[1:])) if found else None


def reference(id: str, path: Sequence[str] = ()) -> Expression:
    """A bound reference, perhaps into a struct."""
    expression = Expression()
    quoted = ["`" + part.replace("`", "``") + "`" for part in (id, *path)]
    expression.unresolved_attribute.unparsed_identifier = ".".join(quoted)
    return expression


def plainly(node: Node) -> Bound:
    """A node whose columns can be named as they are."""
    return Bound(node, tuple(Field(each.id, each.name) for each in node.columns))


def _one(fields: list[Field], name: str) -> Field | None:
    if len({field.id for field in fields}) > 1:
        raise FirnlineError("AMBIGUOUS_COLUMN", f"{name!r} can mean several columns")
    return fields[0] if fields else None
