"""A change feed in plain Python: all events so far, sorted, are done to a table one after the other."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, NamedTuple

Row = tuple[Any, ...]
_ORDER = {"truncate": 0, "delete": 1, "upsert": 2}


class Event(NamedTuple):
    """What happens to the row of a key."""

    op: str
    key: Any
    sequence: Any
    value: Any = None


def in_order(events: Sequence[Event]) -> list[Event]:
    return sorted(events, key=lambda each: (each.sequence, _ORDER[each.op], each.value is not None, each.value or ""))


def present(events: Sequence[Event]) -> list[Row]:
    """Type 1: (key, value)."""
    table: dict[Any, Any] = {}
    for event in in_order(events):
        if event.op == "truncate":
            table.clear()
        elif event.op == "delete":
            table.pop(event.key, None)
        else:
            table[event.key] = event.value
    return list(table.items())


def versions(events: Sequence[Event]) -> list[Row]:
    """Type 2: (key, value, start, end)."""
    said = {(event.key, event.sequence): event for event in in_order(events)}  # the last word at a sequence
    done: list[Row] = []
    there: dict[Any, tuple[Any, Any]] = {}
    for event in in_order(list(said.values())):
        if event.op == "upsert" and event.key in there and there[event.key][0] == event.value:
            continue
        if event.key in there:
            value, start = there.pop(event.key)
            done.append((event.key, value, start, event.sequence))
        if event.op == "upsert":
            there[event.key] = (event.value, event.sequence)
    return [*done, *((key, value, start, None) for key, (value, start) in there.items())]


def history(seed: int, *, epochs: int, size: int, truncates: bool = False) -> list[list[Event]]:
    """Epochs of few keys, so that all things happen: late events, again and again, deletes of what is not there, ties."""
    draw = random.Random(seed)
    ops = ["upsert"] * 4 + ["delete"] * 2 + ["truncate"] * truncates
    found: list[list[Event]] = []
    for _ in range(epochs):
        events: list[Event] = []
        for _ in range(draw.randrange(size + 1)):
            earlier = [event for epoch in (*found, events) for event in epoch]
            if earlier and draw.random() < 0.2:
                events.append(draw.choice(earlier))
                continue
            op = draw.choice(ops)
            key = None if op == "truncate" else draw.choice([1, 2, 3, None])
            value = draw.choice(["a", "b", "雪", None]) if op == "upsert" else None
            events.append(Event(op, key, draw.randrange(10), value))
        found.append(events)
    return found
