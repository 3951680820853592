"""How ids are looked up among those that a log holds: by a filter that files can answer, or by reading the ids of all rows."""

from __future__ import annotations

FPP = 0.00002
"""How often a Bloom filter says of an id that is not there that it may be."""
LEAST_ROWS = 2_000_000
"""Fewer rows are sooner read than a filter of many values is planned."""
MOST_IDS = 10_000
"""So many values in a plan were quicker than reading the ids of all rows; ten times as many were slower."""
MOST_BROADCAST = 1_000_000
"""So many ids are handed to every task, instead of bringing the rows of a whole log to where they are."""
_MOST_FALSE = 0.1
"""The share of row groups that may be read in vain."""


def is_filtered(rows: int, ids: int, parts: int) -> bool:
    """Whether a filter leaves much of a log unread: a row group is asked about all ids that belong into its part.

    >>> is_filtered(50_000_000, 10_000, 64), is_filtered(50_000_000, 10_000, 1), is_filtered(1000, 10, 64)
    (True, False, False)
    >>> is_filtered(50_000_000, 100_000, 64)
    False
    """
    return rows >= LEAST_ROWS and ids <= MOST_IDS and FPP * ids / parts <= _MOST_FALSE
