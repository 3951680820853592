"""The types of expressions over nodes, asked of Spark by way of plans over empty inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql.connect.proto import Expression, Relation

from firnline.incremental.algebra import ITERATION, Iterate, Node
from firnline.incremental.derivation import Derivation, Moment, Rows
from firnline.incremental.relation import alias, column, project
from firnline.incremental.rules import RULES
from firnline.model.names import DIFF, quoted

Schema = Sequence[tuple[str, str]]
"""Names and types, in DDL, of columns."""

Analyze = Callable[[Relation], Schema]
"""The columns of a relation, as Spark finds them."""

Tell = Callable[[Relation], str]
"""How Spark reads a relation, in its own words: with every cast that it puts in."""


class Typing:
    """Types over collections of known schemas; arrangements become known as they are made."""

    def __init__(self, schemas: Mapping[str, Schema], analyze: Analyze, tell: Tell) -> None:
        self.schemas = dict(schemas)
        self.analyze, self._tell = analyze, tell

    def kinds(self, node: Node, expressions: Sequence[Expression]) -> list[str]:
        """The types of expressions over a node's columns."""
        named = [alias(each, f"k{number}") for number, each in enumerate(expressions)]
        return [kind for _, kind in self.analyze(project(self._of_nothing(node), named))]

    def told(self, node: Node) -> str:
        """How Spark reads a node, in its own words."""
        return self._tell(self._of_nothing(node))

    def keep(self, name: str, node: Node, names: Sequence[str]) -> None:
        """Make an arrangement known that keeps a node's rows."""
        kinds = self.kinds(node, [column(of) for of in node.ids])
        self.schemas[name] = list(zip(names, kinds, strict=True))
        if isinstance(node, Iterate):
            self.schemas[name] = [*self.schemas[name], (ITERATION, "int")]

    def loop(self, node: Iterate) -> None:
        """Make the input of a recursion's step known."""
        kinds = self.kinds(node.seed, [column(of) for of in node.seed.ids])
        self.schemas[node.variable] = [(f"v{number}", kind) for number, kind in enumerate(kinds)]

    def _of_nothing(self, node: Node) -> Relation:
        """The rows of a node over inputs without any."""
        return Derivation(_Empty(self.schemas), RULES, is_sharing=False).state(node, "new").relation


class _Empty:
    def __init__(self, schemas: Mapping[str, Schema]) -> None:
        self._schemas = schemas

    def delta(self, collection: str, names: Sequence[str]) -> Rows | None:
        return None

    def state(self, collection: str, moment: Moment, names: Sequence[str]) -> Rows:
        relation = Relation()
        columns = [*self._schemas.get(collection, ()), (DIFF, "bigint")]
        relation.local_relation.schema = ", ".join(f"{quoted(name)} {kind}" for name, kind in columns)
        return Rows(project(relation, map(column, (*names, DIFF))))
