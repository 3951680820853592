"""How ``firnline explain --cost`` is told to people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from firnline.cli.output import console, print_table, size_text
from firnline.plan.costing import HUGE_BYTES

if TYPE_CHECKING:
    from firnline.plan.costing import Limit
    from firnline.runtime.cost import Cost

_UNITS = (("days", 86400.0), ("hours", 3600.0), ("min", 60.0))


def print_cost(cost: Cost) -> None:
    """Print what was seen, the prices, and where they lead."""
    shape, prices = cost.shape, cost.prices
    size = size_text(shape.bytes)
    console.print(
        f"Inputs: {shape.rows:,} rows, {size} in {shape.files} files and {shape.layers} layers; {shape.state:,} rows are read to "
        f"compute a change, about {shape.changed:,} change in an epoch; {shape.parts} parts."
    )
    if cost.seen:
        least, most = min(each.seconds for each in cost.seen), max(each.seconds for each in cost.seen)
        console.print(f"{len(cost.seen)} epochs are known, of {time_text(least)} to {time_text(most)}, without Spark's start.")
    else:
        console.print("No epoch is known by itself yet: all prices are figures from docs/guides/sizing.md.")
    priced = [("an epoch", prices.fixed, "fixed"), ("a million rows changed", prices.change * 1e6, "change")]
    priced.append(("a million rows of state", prices.state * 1e6, "state"))
    lines = [(what, f"{price:.3f}", "its own past" if name in prices.told else "figures") for what, price, name in priced]
    print_table("Prices, in seconds", ("of", "costs", "says"), lines)
    growth = [(f"{each.factor:,} times", *map(time_text, (each.state, each.change, each.both))) for each in cost.growth]
    print_table("An epoch takes", ("at", "the state", "the change", "both"), growth)
    if cost.at_size:
        _limits(f"What breaks first where inputs have 10 TB: {HUGE_BYTES / shape.bytes:,.0f} times what they have", cost.at_size)
    _limits("What breaks first in a project of 10,000 collections like it", cost.at_number)
    console.print(f"An epoch has {time_text(shape.interval)}. Beyond what was seen, all of this is a straight line.")


def time_text(seconds: float) -> str:
    """Seconds as people read them."""
    unit, size = next(((unit, size) for unit, size in _UNITS if seconds >= 2 * size), ("s", 1.0))
    return f"{seconds / size:,.1f} {unit}"


def _limits(title: str, limits: Sequence[Limit]) -> None:
    lines = [
        (each.what, time_text(each.seconds), "no" if each.load > 1 else "yes", each.todo if each.load > 1 else "")
        for each in limits
    ]
    print_table(title, ("what", "takes", "fits an epoch", "then set"), lines)
