"""The control table ``_frontier`` of a pipeline: small, one commit per decision that readers must see at once.

The head's summary holds the whole present state; a commit replaces it only if nobody else did meanwhile.
"""

from __future__ import annotations

import json

from firnline.plan.frontier import Frontier, is_progress
from firnline.tables.commit import until_known
from firnline.tables.log import KIND, REPAIR
from firnline.tables.metadata import Metadata
from firnline.tables.port import Exchange, Tables
from firnline.world import world

TABLE = "_frontier"
FRONTIER = "firnline.frontier"


class Control:
    """The control table of one pipeline."""

    def __init__(self, catalog: Tables, pipeline: str) -> None:
        self._catalog = catalog
        self.pipeline = pipeline

    def frontier(self) -> Frontier | None:
        """The present frontier; None before the first complete epoch."""
        table = self._catalog.table(self.pipeline, TABLE)
        return None if table is None else _read(table)

    def advance(self, frontier: Frontier) -> Frontier:
        """Move the frontier, unless it is already there or beyond; what it is afterwards."""

        def attempt_once() -> Frontier:
            table = self._table()
            present = _read(table)
            if present is not None and not is_progress(present, frontier):
                return present
            document = {"upper": frontier.upper, "generations": dict(frontier.generations)}
            world().reach("frontier.judged")
            self._catalog.commit(table, {FRONTIER: json.dumps(document)})
            world().reach("frontier.committed")
            return frontier

        return until_known(f"the frontier of {self.pipeline}", attempt_once)

    def exchange(self, change: Exchange) -> None:
        """Put the same frontier onto the head with a manifest list that can be read."""

        def attempt_once() -> None:
            table = self._table()
            assert table.head is not None, "a list that is lost was once a snapshot's"
            self._catalog.exchange(table, {KIND: REPAIR, FRONTIER: table.head.summary[FRONTIER]}, change)
            world().reach("repair.committed")

        until_known(f"the frontier of {self.pipeline}", attempt_once)

    def _table(self) -> Metadata:
        return self._catalog.table(self.pipeline, TABLE) or self._create()

    def _create(self) -> Metadata:
        import pyarrow as pa

        columns = pa.schema([("entry", pa.string())])
        return self._catalog.create(self.pipeline, TABLE, columns, (), {"gc.enabled": "false"})


def _read(table: Metadata) -> Frontier | None:
    if table.head is None:
        return None
    data = json.loads(table.head.summary[FRONTIER])
    return Frontier(data["upper"], data["generations"])
