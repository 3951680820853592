"""What names mean around an SQL expression, and the way from a tree to its translation.

A rule translates one class of nodes; ``Scope.expression`` finds it. What no rule reads is refused with OPAQUE_SQL, never guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql.connect.proto import Expression
from sqlglot import exp

from firnline.incremental.sql_syntax import Verbatim, opaque


def _no_subquery(query: exp.Query) -> int:
    raise opaque("a subquery inside an expression")


@dataclass(frozen=True, slots=True)
class Scope:
    """What an expression stands in.

    Attributes:
        rules: The translations by class of node.
        subquery: Registers a query with the relation that is being built and returns its plan id.
        windows: The named windows of the SELECT, by their names in lower case.
        views: The columns of LATERAL VIEWs by the view's name in lower case: in our plans they carry no qualifier.
        variables: The variables of the lambda functions around, in lower case.
    """

    rules: Mapping[type[exp.Expression], Rule]
    subquery: Callable[[exp.Query], int] = _no_subquery
    windows: Mapping[str, exp.Window] = field(default_factory=dict)
    views: Mapping[str, Sequence[str]] = field(default_factory=dict)
    variables: frozenset[str] = frozenset()

    def expression(self, node: exp.Expression) -> Expression:
        """The translation of a tree."""
        rule = self.rules.get(type(node))
        if rule is None:
            raise opaque(f"{type(node).__name__}: {shown(node)}")
        return rule(node, self)

    def expressions(self, nodes: Iterable[exp.Expression]) -> list[Expression]:
        """The translations of several."""
        return [self.expression(node) for node in nodes]


Rule = Callable[[exp.Expression, Scope], Expression]


def shown(node: exp.Expr) -> str:
    """A tree as text, for messages."""
    text = node.sql(dialect=Verbatim)
    return text if len(text) <= 60 else text[:57] + "..."


def only(node: exp.Expression, *known: str) -> None:
    """Refuse a node that says more than its rule reads."""
    for name, value in node.args.items():
        if value and name not in known:
            raise opaque(f"{type(node).__name__} with {name.strip('_')}: {shown(node)}")
