"""Checks: a suite of expectations that a collection has to meet before an epoch of it is published.

A check judges rows and does not make them: it is no part of their fingerprint.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

On = Literal["delta", "state", "both"]


@dataclass(frozen=True, slots=True)
class Check:
    """A suite of the project, which rows it is asked about, and whether they are kept back if they fail it."""

    suite: str
    on: On = "delta"
    blocking: bool = True

    @property
    def subjects(self) -> tuple[Literal["delta", "state"], ...]:
        """Whose rows it is asked about, one after the other.

        >>> check("sane", on="both").subjects
        ('delta', 'state')
        """
        return ("delta", "state") if self.on == "both" else (self.on,)


def check(suite: str, *, on: On = "delta", blocking: bool = True) -> Check:
    """A check for ``checks=[...]`` of a source or stage; a name alone is the same with its defaults.

    Args:
        suite: The suite's name: that of its file in ``include/expectations``.
        on: The rows that an epoch inserts (``"delta"``), all rows after it (``"state"``), or one after the other (``"both"``).
        blocking: Whether an epoch that fails is kept back; otherwise it is published with a warning.
    """
    return Check(suite, on, blocking)


def checks_of(given: Sequence[str | Check]) -> tuple[Check, ...]:
    """The checks that a declaration names.

    >>> checks_of(["sane", check("whole", on="state")])
    (Check(suite='sane', on='delta', blocking=True), Check(suite='whole', on='state', blocking=True))
    """
    listed = (given,) if isinstance(given, str | Check) else given
    return tuple(each if isinstance(each, Check) else Check(each) for each in listed)
