"""Questions to the tree of a SELECT: what its columns are called, what it groups by, and where its aggregates are.

Nothing is known of the inputs' columns here. Where Spark would look at them (is ``k`` in GROUP BY a column or an alias?), the
answer is the only one with which the statement can be valid.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sqlglot import exp

from firnline.incremental.functions import AGGREGATES
from firnline.incremental.sql_scope import only, shown
from firnline.incremental.sql_syntax import opaque

AROUND_AGGREGATES = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)


def bare(item: exp.Expression) -> exp.Expression:
    """A select item without its alias and parentheses."""
    while isinstance(item, exp.Alias | exp.Paren):
        item = item.this
    return item


def name_of(item: exp.Expression) -> str | None:
    """What a select item is called, where the text says so."""
    if isinstance(item, exp.Alias):
        return item.alias
    if isinstance(item, exp.Column | exp.Dot) and not is_star(item):
        return item.name
    return None


def is_star(item: exp.Expression) -> bool:
    """Whether an item stands for several columns."""
    return isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star))


def walk(node: exp.Expression) -> Iterator[exp.Expression]:
    """A tree without the queries inside it."""
    if not isinstance(node, exp.Query):
        yield node
        for child in node.iter_expressions():
            yield from walk(child)


def columns(node: exp.Expression) -> list[exp.Column]:
    """The columns an expression refers to."""
    return [each for each in walk(node) if isinstance(each, exp.Column) and not is_star(each)]


def is_aggregate(node: exp.Expression) -> bool:
    """Whether a node is the call of an aggregate function, which is not the function of a window."""
    function = node
    while isinstance(function, AROUND_AGGREGATES):
        function = function.this
    while isinstance(node.parent, AROUND_AGGREGATES) and node.arg_key == "this":
        node = node.parent
    windowed = isinstance(node.parent, exp.Window) and node.arg_key == "this"
    return isinstance(function, exp.Anonymous) and function.name.lower() in AGGREGATES and not windowed


def aggregates(node: exp.Expression) -> Iterator[exp.Expression]:
    """The outermost aggregates of a tree."""
    if is_aggregate(node):
        yield node
    elif not isinstance(node, exp.Query):
        for child in node.iter_expressions():
            yield from aggregates(child)


def shape(node: exp.Expression, *, qualified: bool) -> exp.Expression:
    """A tree in a form in which equal expressions are equal, however they are written."""

    def plain(each: exp.Expression) -> exp.Expression:
        if isinstance(each, exp.Paren):
            inner: exp.Expression = each.this.transform(plain)
            return inner
        if isinstance(each, exp.Column) and not qualified:
            return exp.Column(this=exp.to_identifier(each.name.lower()))
        if isinstance(each, exp.Identifier):
            return exp.to_identifier(each.name.lower(), quoted=False)
        if isinstance(each, exp.Anonymous):
            each.set("this", each.name.lower())
        return each

    return node.copy().transform(plain)


def position(node: exp.Expression, among: Sequence[exp.Expression]) -> int | None:
    """Where an expression is in a list; a missing qualifier is no difference if there is no better match."""
    for qualified in (True, False):
        wanted = shape(node, qualified=qualified)
        for index, each in enumerate(among):
            if shape(each, qualified=qualified) == wanted and all(map(_may_be_same, columns(node), columns(each))):
                return index
    return None


def _may_be_same(one: exp.Column, other: exp.Column) -> bool:
    parts = [[part.name.lower() for part in reversed(column.parts)] for column in (one, other)]
    return all(left == right for left, right in zip(*parts, strict=False))


def ordinal(node: exp.Expression, items: Sequence[exp.Expression]) -> exp.Expression | None:
    """The select item that a bare number stands for."""
    if not isinstance(node, exp.Literal) or node.is_string or not str(node.this).isdigit():
        return None
    number = int(node.this)
    if not 1 <= number <= len(items) or any(is_star(item) for item in items[:number]):
        raise opaque(f"the column number {number}, which is not written out")
    return items[number - 1]


@dataclass(frozen=True, slots=True)
class Grouping:
    """What a SELECT groups by.

    Attributes:
        keys: The expressions.
        kind: "groupby", "rollup", "cube" or "grouping_sets".
        sets: The keys of each grouping set.
    """

    keys: tuple[exp.Expression, ...] = ()
    kind: str = "groupby"
    sets: tuple[tuple[exp.Expression, ...], ...] = ()


def grouping(select: exp.Select) -> Grouping:
    """The groups of a SELECT; none without GROUP BY."""
    group, items = select.args.get("group"), select.expressions
    if group is None:
        return Grouping()
    inputs = frozenset(_relations(select))
    only(group, "expressions", "all", "rollup", "cube", "grouping_sets")
    if group.args.get("all"):
        if any(is_star(item) for item in items):
            raise opaque("GROUP BY ALL of columns that are not written out")
        return Grouping(tuple(bare(item) for item in items if not any(aggregates(item))))
    terms: list[exp.Expression] = list(group.expressions)
    for kind, node in (("rollup", exp.Rollup), ("cube", exp.Cube), ("grouping_sets", exp.GroupingSets)):
        for special in (*(group.args.get(kind) or []), *(term for term in terms if isinstance(term, node))):
            inside = special is not None and special in terms
            if inside and len(terms) > 1:
                raise opaque(f"GROUP BY with more beside {shown(special)}")
            return _special(kind, list(special.expressions) or terms, [] if inside else terms, items, inputs)
    return Grouping(tuple(_key(term, terms, items, inputs) for term in terms))


def _relations(node: exp.Expression) -> Iterator[str]:
    """The names, in lower case, of the relations that a SELECT, or a table in parentheses, reads."""
    clause = node.args.get("from_")
    below = [clause.this] if clause is not None else []
    below += [join.this for join in node.args.get("joins") or []]
    if isinstance(node, exp.Subquery) and not node.alias and not isinstance(node.this, exp.Query):
        below.append(node.this)
    for table in below:
        yield table.alias_or_name.lower()
        yield from _relations(table)
    yield from (view.alias.lower() for view in node.args.get("laterals") or [])


def _special(
    kind: str,
    inner: list[exp.Expression],
    given: list[exp.Expression],
    items: Sequence[exp.Expression],
    inputs: Collection[str],
) -> Grouping:
    if kind != "grouping_sets":
        if any(isinstance(term, exp.Tuple) for term in inner):
            raise opaque(f"{kind.upper()} of several columns at once")
        return Grouping(tuple(_key(term, inner, items, inputs) for term in inner), kind)
    sets = [list(term.expressions) if isinstance(term, exp.Tuple) else [term] for term in inner]
    flat = [term for each in sets for term in each]
    resolved = tuple(tuple(_key(bare(term), flat, items, inputs) for term in each) for each in sets)
    keys: list[exp.Expression] = [_key(term, given, items, inputs) for term in given]
    for term in (term for each in resolved for term in each):
        if position(term, keys) is None:
            keys.append(term)
    return Grouping(tuple(keys), kind, resolved)


def _key(
    term: exp.Expression, terms: Sequence[exp.Expression], items: Sequence[exp.Expression], inputs: Collection[str]
) -> exp.Expression:
    """What a term of GROUP BY means: the item of a number, the expression of an alias, or itself.

    To Spark a column goes before an alias. If there were such a column, the item behind the alias could only refer to what is
    grouped by; so if it refers to anything else, the alias is meant. If it does not, only the input's columns could tell.
    """
    item = ordinal(term, items)
    if item is not None:
        return bare(item)
    behind = _behind(term, items)
    if behind is None or any(aggregates(behind)):
        return term
    if any(_name(column, inputs) == term.name.lower() for column in columns(behind)):
        return term
    others = [each for each in terms if each is not term]
    grouped = [*others, *(found for each in others if (found := ordinal(each, items) or _behind(each, items)) is not None)]
    if not _refers_beyond(behind, [bare(each) for each in grouped]):
        raise opaque(f"GROUP BY {term.name}, which may be a column or {shown(behind)}: write that instead of {term.name}")
    return behind


def _name(column: exp.Column, inputs: Collection[str]) -> str:
    """The name of a column itself, in lower case, between that of its relation and the fields inside it."""
    parts = [part.name.lower() for part in column.parts]
    return next((name for relation, name in pairwise(parts) if relation in inputs), parts[0])


def _behind(term: exp.Expression, items: Sequence[exp.Expression]) -> exp.Expression | None:
    """The expression to which the select list gives the term as its alias."""
    if not isinstance(term, exp.Column) or len(term.parts) > 1:
        return None
    named = [item for item in items if isinstance(item, exp.Alias) and item.alias.lower() == term.name.lower()]
    return bare(named[0]) if named else None


def _refers_beyond(node: exp.Expression, keys: Sequence[exp.Expression]) -> bool:
    if position(node, keys) is not None or isinstance(node, exp.Query):
        return False
    return isinstance(node, exp.Column) or any(_refers_beyond(child, keys) for child in node.iter_expressions())
