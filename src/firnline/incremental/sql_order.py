"""ORDER BY and HAVING over a select list: which of their parts are columns of the output, and which must be made beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from firnline.incremental.sql_grouping import bare, columns, is_aggregate, is_star, name_of, ordinal, position
from firnline.incremental.sql_scope import only, shown
from firnline.incremental.sql_syntax import opaque

HIDDEN = "_firnline_sql_"


def reference(name: str) -> exp.Column:
    """A column by its exact name."""
    return exp.Column(this=exp.to_identifier(name, quoted=True))


def names(items: Sequence[exp.Expression]) -> Counter[str]:
    """How often each name, in lower case, is given to a column of the select list."""
    return Counter(name.lower() for name in map(name_of, items) if name is not None)


def aliases(items: Sequence[exp.Expression]) -> frozenset[str]:
    """The names, in lower case, that the select list gives to something else than a column of that name."""
    given = {item.alias.lower(): bare(item) for item in items if isinstance(item, exp.Alias)}
    return frozenset(name for name, of in given.items() if not (isinstance(of, exp.Column) and of.name.lower() == name))


def items_of(query: exp.Expression) -> list[exp.Expression]:
    """The select list that names a query's columns; nothing where there is none."""
    while not isinstance(query, exp.Select):
        if not isinstance(query, exp.Subquery | exp.SetOperation):
            return []
        query = query.this
    return list(query.expressions)


@dataclass(frozen=True, slots=True)
class Term:
    """One term of ORDER BY.

    Attributes:
        node: What to sort by.
        order: Its direction.
        of_input: Whether its names are certainly those of the input, as it was an item of the select list.
    """

    node: exp.Expression
    order: exp.Ordered
    of_input: bool = False


def terms(query: exp.Expression) -> list[Term]:
    """ORDER BY with numbers and ALL written out."""
    clause = query.args.get("order")
    if clause is None:
        return []
    only(clause, "expressions")
    items, found = items_of(query), []
    for ordered in clause.expressions:
        only(ordered, "this", "desc", "nulls_first")
        if isinstance(ordered.this, exp.Var) or (isinstance(ordered.this, exp.Column) and ordered.this.name.upper() == "ALL"):
            if not items or any(is_star(item) for item in items):
                raise opaque("ORDER BY ALL of columns that are not written out")
            found += [_selected(item, items, ordered, query) for item in items]
        else:
            item = ordinal(ordered.this, items)
            found.append(Term(ordered.this, ordered) if item is None else _selected(item, items, ordered, query))
    return found


def _selected(item: exp.Expression, items: Sequence[exp.Expression], ordered: exp.Ordered, query: exp.Expression) -> Term:
    name = name_of(item)
    if name is not None and names(items)[name.lower()] == 1:
        return Term(reference(name), ordered)
    if not isinstance(query, exp.Select):
        raise opaque(f"ORDER BY a column without a name: {shown(item)}")
    return Term(bare(item), ordered, of_input=True)


def beyond(term: Term, items: Sequence[exp.Expression]) -> exp.Expression | None:
    """What must be computed beside the select list to sort by the term; None if its columns are there."""
    if term.of_input:
        return term.node
    if any(is_star(item) for item in items):
        return None
    if all(_is_output(each, items) for each in columns(term.node)):
        return None
    given = {item.alias.lower(): item.this for item in items if isinstance(item, exp.Alias)}

    def behind_alias(node: exp.Expression) -> exp.Expression:
        if isinstance(node, exp.Column) and len(node.parts) == 1 and node.name.lower() in given:
            return exp.Paren(this=given[node.name.lower()].copy())
        return node.copy() if isinstance(node, exp.Query) else node

    return term.node.transform(behind_alias)


def _is_output(column: exp.Column, items: Sequence[exp.Expression]) -> bool:
    first = column.parts[0].name.lower()
    return first in names(items) or position(column, [item for item in items if isinstance(item, exp.Column)]) is not None


@dataclass(slots=True)
class Lift:
    """Expressions over groups, written over columns of the aggregation instead.

    Attributes:
        keys: What is grouped by.
        columns: The column of each key.
        aggregates: What is aggregated besides the select list, by the hidden name of its column.
    """

    keys: Sequence[exp.Expression]
    columns: Sequence[str]
    aggregates: dict[str, exp.Expression] = field(default_factory=dict)

    def lifted(self, node: exp.Expression, aliases: Collection[str] = ()) -> exp.Expression:
        """The expression, in which aliases of the select list go before keys."""

        def lift(each: exp.Expression) -> exp.Expression:
            if isinstance(each, exp.Query):
                return each.copy()
            if is_aggregate(each):
                return reference(self._made(each))
            if any(len(column.parts) == 1 and column.name.lower() in aliases for column in columns(each)):
                return each
            key = position(each, self.keys)
            return each if key is None else reference(self.columns[key])

        return node.transform(lift)

    def over_keys(self, item: exp.Expression) -> exp.Expression:
        """A select item with its keys, but not those that are aggregated, written as their columns."""

        def lift(each: exp.Expression) -> exp.Expression:
            key = position(each, self.keys)
            if key is not None:
                return reference(self.columns[key])
            of_groups = isinstance(each, exp.Anonymous) and each.name.lower() in ("grouping", "grouping_id")
            return each.copy() if isinstance(each, exp.Query) or (is_aggregate(each) and not of_groups) else each

        lifted: exp.Expression = bare(item).transform(lift)
        if lifted == bare(item):
            return item
        name = name_of(item)
        if name is None:
            raise opaque(f"an expression over grouping sets without a name: {shown(item)}")
        return exp.Alias(this=lifted, alias=exp.to_identifier(name, quoted=True))

    def _made(self, aggregate: exp.Expression) -> str:
        known = position(aggregate, list(self.aggregates.values()))
        if known is not None:
            return list(self.aggregates)[known]
        name = f"{HIDDEN}{len(self.aggregates)}"
        self.aggregates[name] = aggregate.copy()
        return name
