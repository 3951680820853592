"""A collection under a new name: what it is known as, and what the control table says then.

A plan's fingerprint names what it reads. So that a new name changes no plan, a renamed collection is known there as what its log
began as, whatever it is called today; a later collection that takes up the old name is known as something else.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import replace
from typing import TypeVar

from firnline.model.gap import Gap, Gaps
from firnline.model.hold import Hold
from firnline.model.names import collection_of
from firnline.plan.agreement import Agreement

T = TypeVar("T")
Name = Callable[[str], str]
Former = Mapping[str, tuple[str, ...]]
"""The former names of renamed collections, the oldest first: what they are known as."""


def known_as(present: Agreement, collection: str) -> str:
    """What a collection is known as in plans, for as long as it has a log.

    >>> present = Agreement(names={"sales": ("revenue", "income")}, spent=("costs",))
    >>> [known_as(present, name) for name in ("visits", "sales", "revenue", "costs")]
    ['visits', 'revenue', 'revenue+', 'costs+']
    """
    if collection in present.names:
        return present.names[collection][0]
    found, taken = collection, {*present.spent, *(first for first, *_ in present.names.values())}
    while found in taken:
        found += "+"
    return found


def called_now(names: Former, collection: str) -> str:
    """What a collection is called today that something was made from under a name which no log has any more.

    Of several that had the name, the one that was renamed last.

    >>> [called_now({"sales": ("revenue", "income")}, name) for name in ("income", "costs")]
    ['sales', 'costs']
    """
    return next((new for new, former in reversed([*names.items()]) if collection in former), collection)


def half_renamed(names: Former, there: Container[str]) -> dict[str, str]:
    """What logs that are there were to be called, by what they are called still: it was decided, and not done.

    >>> half_renamed({"sales": ("revenue",), "costs": ("prices",)}, {"revenue", "costs"})
    {'revenue': 'sales'}
    """
    return {former[-1]: new for new, former in names.items() if new not in there and former[-1] in there}


def called(log: str, old: str, new: str) -> str:
    """What a log is called once a collection has another name.

    >>> [called(log, "revenue", "sales") for log in ("revenue", "revenue__ab12", "revenue_by_ip")]
    ['sales', 'sales__ab12', 'revenue_by_ip']
    """
    return new + log.removeprefix(old) if collection_of(log) == old else log


def renamed(present: Agreement, old: str, new: str) -> Agreement:
    """What the control table says once a collection has another name: all that it said of the old one."""

    def name(log: str) -> str:
        return called(log, old, new)

    frontier, names = present.frontier, present.names
    if new not in names:  # whoever died after it was written down writes it down again
        before = names.get(old, (known_as(present, old),))
        former = before if before == (old,) else (*before, old)
        names = {**{each: of for each, of in names.items() if each != old}, new: former}
    return replace(
        present,
        frontier=frontier and replace(frontier, generations=_keyed(frontier.generations, name)),
        gaps=Gaps(tuple(_gap(each, name) for each in present.gaps.gaps), _keyed(present.gaps.corrections, name)),
        holds=tuple(_mapped(each, lambda found: _keyed(found, name)) for each in present.holds),
        rewinds=tuple(
            replace(each, logs=_keyed(each.logs, name), stages=tuple(map(name, each.stages))) for each in present.rewinds
        ),
        approvals=tuple(replace(each, collection=name(each.collection)) for each in present.approvals),
        names=names,
    )


def forgotten(present: Agreement, collection: str) -> Agreement:
    """What the control table says once a collection has no log: what comes after it under this name is something else.

    What it was known as, nothing is again: plans that read it are not those that read another.
    """

    def others(found: Mapping[str, T]) -> dict[str, T]:
        return {name: of for name, of in found.items() if collection_of(name) != collection}

    gaps = (each for each in present.gaps.gaps if collection_of(each.collection) != collection)
    left = tuple(replace(each, before=others(each.before), after=others(each.after)) for each in gaps)
    frontier = begun_anew(present, collection).frontier
    upper = None if frontier is None else frontier.upper
    return replace(
        present,
        frontier=frontier,
        gaps=Gaps(left, others(present.gaps.corrections)).without_closed(upper),
        holds=tuple(_mapped(each, others) for each in present.holds),
        rewinds=tuple(
            replace(each, logs=others(each.logs), stages=tuple(name for name in each.stages if name != collection))
            for each in present.rewinds
        ),
        approvals=tuple(each for each in present.approvals if each.collection != collection),
        names=others(present.names),
        spent=tuple(sorted({*present.spent, known_as(present, collection)})),
    )


def begun_anew(present: Agreement, collection: str) -> Agreement:
    """What the control table says once a collection's log is another one, whose generations are counted anew.

    >>> from firnline.plan.frontier import Frontier
    >>> present = Agreement(Frontier(3, {"sales": 1, "sales__ab12": 1, "visits": 1}))
    >>> begun_anew(present, "sales").frontier
    Frontier(upper=3, generations={'visits': 1})
    """
    found = present.frontier
    if found is None:
        return present
    left = {name: of for name, of in found.generations.items() if collection_of(name) != collection}
    return replace(present, frontier=replace(found, generations=left))


def _gap(gap: Gap, name: Name) -> Gap:
    return replace(gap, collection=name(gap.collection), before=_keyed(gap.before, name), after=_keyed(gap.after, name))


def _mapped(hold: Hold, logs: Callable[[Mapping[str, int]], Mapping[str, int]]) -> Hold:
    """A hold that says of other logs what it said of some; how often its owner was taken back is kept."""
    return replace(
        hold,
        delivered=None if hold.delivered is None else logs(hold.delivered),
        seen=None if hold.seen is None else logs(hold.seen),
        back=tuple(replace(each, logs=logs(each.logs)) for each in hold.back),
    )


def _keyed(found: Mapping[str, T], name: Name) -> dict[str, T]:
    return {name(key): value for key, value in found.items()}
