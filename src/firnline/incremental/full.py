"""The rule for every function: delta = f(A') - f(A), with f(A') evaluated from scratch and f(A) read from the log.

Right for any deterministic function, at the price of the whole state.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql.connect.proto import Relation

from firnline.incremental.relation import alias, call, column, consolidated, integer, project, union
from firnline.model.names import DIFF


def difference(new: Relation, old: Relation | None, columns: Sequence[str], *, is_keyed: bool = False) -> Relation:
    """The weighted rows that lead from ``old``, weighted rows of the log, to ``new``, plain rows.

    Args:
        new: A relation with exactly these columns.
        old: A relation with these columns and ``_diff``; None where the log is empty.
        columns: The user's columns, in order.
        is_keyed: Whether no two rows of ``new`` are equal, or are refused later if they are: then they are not brought together.
    """
    after = project(new, [*map(column, columns), alias(integer(1), DIFF)])
    if old is None:
        return after if is_keyed else consolidated(after, columns)
    before = project(old, [*map(column, columns), alias(call("negative", column(DIFF)), DIFF)])
    return consolidated(union(after, before), columns)
