"""A change feed: what a source's events mean, in the words of Spark's declarative pipelines (AUTO CDC).

Of the events of a key, the one of the largest sequence says what the row is, whenever it arrives. At one sequence truncates come
first, then deletes, then upserts, and of these the smaller rows before the larger ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

START_AT = "__START_AT"
END_AT = "__END_AT"
VERSION = (START_AT, END_AT)
"""Of a row of type 2: the sequence that it is there from, and the one that it is there up to; null while it is there."""
EVENTS = "__events"
"""What the log of a collection's events is called after the collection."""
_SQL = ("sequence_by", "apply_as_deletes", "apply_as_truncates")


@dataclass(frozen=True, slots=True)
class Feed:
    """How a source's events are played.

    Args:
        keys: The columns that identify what an event is about.
        sequence_by: An SQL expression over an event's columns that says where in the order it belongs.
        apply_as_deletes: A condition, in SQL: the event says that the row is gone. Other events upsert it.
        apply_as_truncates: A condition, in SQL: the event says that all rows are gone.
        except_column_list: Columns of events that rows do not have.
        stored_as_scd_type: 1 keeps the present rows, 2 every version of them.
        kind: What tells it from other intakes.
    """

    keys: tuple[str, ...]
    sequence_by: str
    apply_as_deletes: str | None = None
    apply_as_truncates: str | None = None
    except_column_list: tuple[str, ...] = ()
    stored_as_scd_type: int = 1
    kind: Literal["feed"] = "feed"

    @property
    def has_versions(self) -> bool:
        """Whether a key may have several rows, one after the other."""
        return self.stored_as_scd_type == 2

    @property
    def identity(self) -> tuple[str, ...]:
        """The columns that identify a row.

        >>> Feed(("id",), "at").identity, Feed(("id",), "at", stored_as_scd_type=2).identity
        (('id',), ('id', '__START_AT'))
        """
        return (*self.keys, START_AT) if self.has_versions else self.keys

    def problems(self) -> Iterator[str]:
        """What is wrong with it."""
        if self.sequence_by == "":
            yield "what events mean is said without sequence_by"
        if not self.keys:
            yield "a feed has keys"
        for name in _SQL:
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                yield f"{name}={value!r} is no SQL expression; write it as text"
        if self.stored_as_scd_type not in (1, 2):
            yield "stored_as_scd_type is neither 1 nor 2"
        if self.has_versions and self.apply_as_truncates is not None:
            yield "apply_as_truncates is for stored_as_scd_type=1 only"
        for column in self.except_column_list:
            if column in self.keys:
                yield f"except_column_list names the key {column!r}"


def feed_of(
    keys: tuple[str, ...],
    sequence_by: str | None,
    apply_as_deletes: str | None,
    apply_as_truncates: str | None,
    except_column_list: Sequence[str],
    stored_as_scd_type: int | str | None,
) -> Feed | None:
    """The feed that a source's options ask for; None if they say nothing of one."""
    said = (sequence_by, apply_as_deletes, apply_as_truncates, stored_as_scd_type)
    if all(each is None for each in said) and not except_column_list:
        return None
    number = 1 if stored_as_scd_type is None else {"1": 1, "2": 2}.get(str(stored_as_scd_type), 0)
    return Feed(keys, sequence_by or "", apply_as_deletes, apply_as_truncates, tuple(except_column_list), number)
