"""The values that a condition asks for by themselves: those that must not be found anywhere once their rows are erased."""

from __future__ import annotations

_LEAST_LETTERS = 5
_LEAST_DIGITS = 6
"""Shorter ones are found anywhere, by chance."""


def literals(condition: str) -> tuple[str, ...]:
    """The longer texts and integers that columns are compared with for equality.

    >>> sorted(literals("email = 'ann@example.org' AND age = 30 OR id IN (1234567, 7)"))
    ['1234567', 'ann@example.org']
    """
    import sqlglot  # late: few need it, and it takes a while to load
    from sqlglot import exp

    try:
        parsed = sqlglot.parse_one(condition, read="spark")
    except sqlglot.errors.SqlglotError:
        return ()
    compared = parsed.find_all(exp.EQ, exp.NullSafeEQ, exp.In)
    asked = [side for each in compared for side in (each.this, *each.args.get("expressions", ()), each.args.get("expression"))]
    found = [side.this for side in asked if isinstance(side, exp.Literal) and _is_long(side.this, is_text=side.is_string)]
    return tuple(dict.fromkeys(found))


def _is_long(text: str, *, is_text: bool) -> bool:
    return len(text) >= _LEAST_LETTERS if is_text else text.isdigit() and len(text) >= _LEAST_DIGITS
