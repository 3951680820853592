"""The values of sets in order, which Spark leaves open: what is taken as it stands then has one answer, too."""

from __future__ import annotations

from contextlib import suppress

from pyspark.sql import DataFrame
from pyspark.sql.connect.proto import Expression, Relation
from pyspark.sql.connect.session import SparkSession

from firnline.engine.frames import frame_of, relation_of
from firnline.errors import FirnlineError
from firnline.incremental.expressions import function, inner, rewritten, walk
from firnline.incremental.relation import call
from firnline.incremental.sql_expression import parsed

_SET, _SORTED = "collect_set", "sort_array"


def with_sets_in_order(session: SparkSession, frame: DataFrame) -> DataFrame:
    """The same rows, with the values of every set in order."""
    relation = Relation()
    relation.CopyFrom(relation_of(frame))
    having = [each for each in inner(relation) if any(map(_is_set, walk(each)))]
    if not having:
        return frame
    for each in having:
        each.CopyFrom(rewritten(each, _in_order))
    return frame_of(session, relation).toDF(*frame.columns)


def _is_set(expression: Expression) -> bool:
    return function(expression) == _SET or _SET in expression.expression_string.expression.lower()


def _in_order(expression: Expression) -> Expression:
    if function(expression) == _SET:
        return call(_SORTED, expression)
    if _is_set(expression):
        with suppress(FirnlineError):  # a text that only Spark can read stays what it is
            return rewritten(parsed(expression.expression_string.expression), _in_order)
    window = expression.window
    if expression.WhichOneof("expr_type") != "window" or function(window.window_function) != _SORTED:
        return expression
    (values,) = window.window_function.unresolved_function.arguments
    window.window_function.CopyFrom(values)
    return call(_SORTED, expression)
