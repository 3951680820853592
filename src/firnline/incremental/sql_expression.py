"""Spark SQL expressions as Connect protobuf: what the PySpark Connect client would send for the same meaning."""

from __future__ import annotations

from types import MappingProxyType

from pyspark.sql.connect.proto import Expression
from sqlglot import exp

from firnline.incremental import sql_function, sql_literal, sql_name, sql_predicate
from firnline.incremental.sql_scope import Rule, Scope
from firnline.incremental.sql_syntax import expression_of, not_too_deep

RULES: MappingProxyType[type[exp.Expression], Rule] = MappingProxyType(
    {**sql_literal.RULES, **sql_name.RULES, **sql_predicate.RULES, **sql_function.RULES}
)


def parsed(text: str) -> Expression:
    """The expression of a text as it stands in ``F.expr``, ``selectExpr`` or ``where``."""
    with not_too_deep(text):
        return Scope(RULES).expression(expression_of(text))
