"""The control table ``_frontier`` of a pipeline: small, one commit per decision that readers must see at once.

The head's summary holds the whole agreement: the frontier, the gap ledger, the holds, the point up to which epochs are let go of,
the rewinds, the approvals of changed code and the former names of collections. A commit replaces some of them only if
nobody changed any meanwhile, and carries the others over. So of a hold and of letting go one comes first: who lets go sees the
hold, or who holds is refused what is let go of.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from firnline.errors import FirnlineError
from firnline.model.description import SINCE
from firnline.model.gap import Gaps
from firnline.model.hold import Hold
from firnline.plan.agreement import Agreement
from firnline.plan.changing import Approval, approved
from firnline.plan.frontier import Frontier, is_progress
from firnline.plan.rewinding import Rewind, is_before, replayed
from firnline.plan.safepoint import Label, check_placed
from firnline.tables.commit import until_known
from firnline.tables.expiry import METADATA, outdated, unset
from firnline.tables.layers import KIND, REPAIR
from firnline.tables.metadata import Metadata, Snapshot
from firnline.tables.port import Exchange, Tables
from firnline.tables.trash import Trash
from firnline.world import world

TABLE = "_frontier"
FRONTIER = "firnline.frontier"
GAPS = "firnline.gaps"
HOLDS = "firnline.holds"
REWINDS = "firnline.rewinds"
APPROVALS = "firnline.approvals"
NAMES = "firnline.names"
SPENT = "firnline.spent-names"
_TOLD = (FRONTIER, GAPS, HOLDS, SINCE, REWINDS, APPROVALS, NAMES, SPENT)


class Control:
    """The control table of one pipeline."""

    def __init__(self, catalog: Tables, pipeline: str) -> None:
        self._catalog = catalog
        self.pipeline = pipeline

    def agreement(self) -> Agreement:
        """All that stands in it."""
        table = self._catalog.table(self.pipeline, TABLE)
        return Agreement() if table is None else _read(table.head)

    def frontier(self) -> Frontier | None:
        """The present frontier; None before the first complete epoch."""
        return self.agreement().frontier

    def frontier_at(self, moment: datetime) -> Frontier | None:
        """The frontier as it was at a moment; None also if no snapshot is kept that is as old."""
        table = self._catalog.table(self.pipeline, TABLE)
        line = () if table is None else table.main_line()
        return _read(next((each for each in line if each.timestamp_ms <= moment.timestamp() * 1000), None)).frontier

    def gaps(self) -> Gaps:
        """The present gap ledger."""
        return self.agreement().gaps

    def holds(self) -> tuple[Hold, ...]:
        """The holds that were asked for and not released, also those whose lease has ended."""
        return self.agreement().holds

    def advance(self, frontier: Frontier) -> Frontier:
        """Move the frontier, unless it is already there or beyond; what it is afterwards."""

        def change(present: Agreement) -> Agreement:
            if present.frontier is not None and not is_progress(present.frontier, frontier):
                return present
            if is_before(present, frontier):
                raise FirnlineError("GENERATION_CHANGED", f"{self.pipeline!r} was rewound meanwhile")
            world().reach("frontier.judged")
            return replayed(replace(present, frontier=frontier, gaps=present.gaps.without_closed(frontier.upper)))

        found = self._agreed("the frontier", change, lambda: world().reach("frontier.committed")).frontier
        assert found is not None, "nothing takes a frontier away"
        return found

    def change(self, change: Callable[[Gaps], Gaps]) -> Gaps:
        """Change the gap ledger, unless it says so already; what it is afterwards. ``change`` may be asked several times."""

        def change_gaps(present: Agreement) -> Agreement:
            upper = present.frontier.upper if present.frontier else None
            changed = replace(present, gaps=change(present.gaps).without_closed(upper))
            if changed != present:
                world().reach("repair.gaps_judged")
            return changed

        return self._agreed("the gap ledger", change_gaps, lambda: world().reach("repair.gaps_committed")).gaps

    def hold(self, place: Callable[[Agreement], Hold], floor: int, label: Label = str) -> Hold:
        """Place a hold, or change one, at or above what the logs still keep epoch by epoch; the hold as it stands then.

        Args:
            place: The hold, given what stands in the table; may be asked several times.
            floor: Up to where logs are consolidated, should the table not say so any more.
            label: How a point is written.
        """
        placed: Hold | None = None

        def change(present: Agreement) -> Agreement:
            nonlocal placed
            placed = place(present)
            check_placed(present, placed, floor, label)
            world().reach("safepoint.judged")
            return present.with_hold(placed)

        self._agreed("the holds", change, lambda: world().reach("safepoint.committed"))
        assert placed is not None
        return placed

    def release(self, name: str) -> Hold:
        """Let go of a hold; the hold as it was."""
        released: Hold | None = None

        def change(present: Agreement) -> Agreement:
            nonlocal released
            there = present.held(name)
            if there is None and released is None:
                raise FirnlineError("NO_SUCH_HOLD", f"{self.pipeline!r} has no reader, sink, branch or rewind {name!r}")
            released = there or released
            world().reach("safepoint.judged")
            return present.without_hold(name)

        self._agreed("the holds", change, lambda: world().reach("safepoint.committed"))
        assert released is not None
        return released

    def let_go(self, choose: Callable[[Agreement], int]) -> int:
        """Record up to where epochs are let go of, before any is; the recorded point, which never moves back.

        Args:
            choose: The safe point, given what stands in the table; may be asked several times.
        """

        def change(present: Agreement) -> Agreement:
            point = choose(present)
            if present.since is not None and point <= present.since:
                return present
            world().reach("safepoint.judged")
            return replace(present, since=point)

        found = self._agreed("the safe point", change, lambda: world().reach("safepoint.committed")).since
        assert found is not None, "it was just recorded"
        return found

    def rewind(self, name: str, decide: Callable[[Agreement], Agreement]) -> None:
        """Decide a rewind or an undo, once; ``decide`` may be asked several times."""

        def change(present: Agreement) -> Agreement:
            if any(each.name == name for each in present.rewinds):
                return present
            decided = decide(present)
            world().reach("rewind.deciding")
            return decided

        self._agreed("the rewinds", change, lambda: world().reach("rewind.decided"))

    def settle(self, settled: Callable[[Agreement], Agreement]) -> None:
        """Say that all logs of a rewind are there."""
        self._agreed("the rewinds", settled, lambda: world().reach("rewind.settled"))

    def approve(self, approvals: Sequence[Approval]) -> None:
        """Write down that changed code may make epochs."""

        def change(present: Agreement) -> Agreement:
            world().reach("safepoint.judged")
            return approved(present, approvals)

        self._agreed("the approvals", change, lambda: world().reach("safepoint.committed"))

    def name(self, change: Callable[[Agreement], Agreement]) -> None:
        """Change what collections' names stand for: another log, or none. Nothing is written if they stand for that already."""

        def named(present: Agreement) -> Agreement:
            changed = change(present)
            if changed != present:
                world().reach("rename.deciding")
            return changed

        self._agreed("the names", named, lambda: world().reach("rename.decided"))

    def exchange(self, change: Exchange) -> None:
        """Put the same state onto the head with a manifest list that can be read."""

        def attempt_once() -> None:
            table = self._table()
            assert table.head is not None, "a list that is lost was once a snapshot's"
            self._catalog.exchange(table, {KIND: REPAIR, **_summary(_read(table.head))}, change)
            world().reach("repair.committed")

        until_known(f"the frontier of {self.pipeline}", attempt_once)

    def _agreed(self, what: str, change: Callable[[Agreement], Agreement], committed: Callable[[], None]) -> Agreement:
        """Change the agreement, unless it says so already; what it is afterwards."""

        def attempt_once() -> Agreement:
            table = self._table()
            present = _read(table.head)
            changed = change(present)
            if changed != present:
                self._catalog.commit(table, _summary(changed))
                committed()
            return changed

        return until_known(f"{what} of {self.pipeline}", attempt_once)

    def expire(self) -> int:
        """Drop all snapshots but the last ones, each of which holds the whole state; how many."""

        def attempt_once() -> int:
            table = self._table()
            found, properties = outdated(table), unset(table)
            if found or properties:
                if found:
                    Trash(self._catalog).put(table, found, "expired")
                self._catalog.drop(table, found, properties)
                world().reach("expire.committed")
            return len(found)

        return until_known(f"the frontier of {self.pipeline}", attempt_once)

    def _table(self) -> Metadata:
        return self._catalog.table(self.pipeline, TABLE) or self._create()

    def _create(self) -> Metadata:
        import pyarrow as pa

        columns = pa.schema([("entry", pa.string())])
        return self._catalog.create(self.pipeline, TABLE, columns, (), {"gc.enabled": "false", **METADATA})


def _summary(agreement: Agreement) -> dict[str, str]:
    summary = {}
    if agreement.frontier is not None:
        frontier = agreement.frontier
        summary[FRONTIER] = json.dumps({"upper": frontier.upper, "generations": dict(frontier.generations)})
    if agreement.gaps != Gaps():
        summary[GAPS] = json.dumps(agreement.gaps.as_json())
    if agreement.holds:
        summary[HOLDS] = json.dumps([hold.as_json() for hold in agreement.holds])
    if agreement.since is not None:
        summary[SINCE] = str(agreement.since)
    if agreement.rewinds:
        summary[REWINDS] = json.dumps([rewind.as_json() for rewind in agreement.rewinds])
    if agreement.approvals:
        summary[APPROVALS] = json.dumps([approval.as_json() for approval in agreement.approvals])
    if agreement.names:
        summary[NAMES] = json.dumps(dict(agreement.names))
    if agreement.spent:
        summary[SPENT] = json.dumps(agreement.spent)
    return summary


def _read(snapshot: Snapshot | None) -> Agreement:
    if snapshot is None:
        return Agreement()
    told = {key: json.loads(snapshot.summary[key]) for key in _TOLD if key in snapshot.summary}
    frontier: dict[str, Any] | None = told.get(FRONTIER)
    return Agreement(
        None if frontier is None else Frontier(frontier["upper"], frontier["generations"]),
        Gaps.of_json(told[GAPS]) if GAPS in told else Gaps(),
        tuple(Hold.of_json(entry) for entry in told.get(HOLDS, ())),
        told.get(SINCE),
        tuple(Rewind.of_json(entry) for entry in told.get(REWINDS, ())),
        tuple(Approval(**entry) for entry in told.get(APPROVALS, ())),
        {name: tuple(former) for name, former in told.get(NAMES, {}).items()},
        tuple(told.get(SPENT, ())),
    )
