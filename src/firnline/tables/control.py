"""The control table ``_frontier`` of a pipeline: small, one commit per decision that readers must see at once.

The head's summary holds the whole present state, the frontier and the gap ledger; a commit replaces one of them only if nobody
else did meanwhile, and carries the other over.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from firnline.model.gap import Gaps
from firnline.plan.frontier import Frontier, is_progress
from firnline.tables.commit import until_known
from firnline.tables.expiry import METADATA, outdated, unset
from firnline.tables.layers import KIND, REPAIR
from firnline.tables.metadata import Metadata
from firnline.tables.port import Exchange, Tables
from firnline.tables.trash import Trash
from firnline.world import world

TABLE = "_frontier"
FRONTIER = "firnline.frontier"
GAPS = "firnline.gaps"


class Control:
    """The control table of one pipeline."""

    def __init__(self, catalog: Tables, pipeline: str) -> None:
        self._catalog = catalog
        self.pipeline = pipeline

    def frontier(self) -> Frontier | None:
        """The present frontier; None before the first complete epoch."""
        table = self._catalog.table(self.pipeline, TABLE)
        return None if table is None else _read(table)

    def gaps(self) -> Gaps:
        """The present gap ledger."""
        table = self._catalog.table(self.pipeline, TABLE)
        return Gaps() if table is None else _gaps(table)

    def advance(self, frontier: Frontier) -> Frontier:
        """Move the frontier, unless it is already there or beyond; what it is afterwards."""

        def attempt_once() -> Frontier:
            table = self._table()
            present = _read(table)
            if present is not None and not is_progress(present, frontier):
                return present
            gaps = _gaps(table).without_closed(frontier.upper)
            world().reach("frontier.judged")
            self._catalog.commit(table, _summary(frontier, gaps))
            world().reach("frontier.committed")
            return frontier

        return until_known(f"the frontier of {self.pipeline}", attempt_once)

    def change(self, change: Callable[[Gaps], Gaps]) -> Gaps:
        """Change the gap ledger, unless it says so already; what it is afterwards. ``change`` may be asked several times."""

        def attempt_once() -> Gaps:
            table = self._table()
            present, frontier = _gaps(table), _read(table)
            changed = change(present).without_closed(frontier.upper if frontier else None)
            if changed != present:
                world().reach("repair.gaps_judged")
                self._catalog.commit(table, _summary(frontier, changed))
                world().reach("repair.gaps_committed")
            return changed

        return until_known(f"the gap ledger of {self.pipeline}", attempt_once)

    def exchange(self, change: Exchange) -> None:
        """Put the same state onto the head with a manifest list that can be read."""

        def attempt_once() -> None:
            table = self._table()
            assert table.head is not None, "a list that is lost was once a snapshot's"
            self._catalog.exchange(table, {KIND: REPAIR, **_summary(_read(table), _gaps(table))}, change)
            world().reach("repair.committed")

        until_known(f"the frontier of {self.pipeline}", attempt_once)

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


def _summary(frontier: Frontier | None, gaps: Gaps) -> dict[str, str]:
    """The whole state."""
    summary = {}
    if frontier is not None:
        summary[FRONTIER] = json.dumps({"upper": frontier.upper, "generations": dict(frontier.generations)})
    if gaps != Gaps():
        summary[GAPS] = json.dumps(gaps.as_json())
    return summary


def _read(table: Metadata) -> Frontier | None:
    if table.head is None or FRONTIER not in table.head.summary:
        return None
    data = json.loads(table.head.summary[FRONTIER])
    return Frontier(data["upper"], data["generations"])


def _gaps(table: Metadata) -> Gaps:
    if table.head is None or GAPS not in table.head.summary:
        return Gaps()
    return Gaps.of_json(json.loads(table.head.summary[GAPS]))
