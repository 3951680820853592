"""The control table ``_frontier`` of a pipeline: small, one commit per decision that readers must see at once.

The head's summary holds the whole present state; a commit replaces it only if nobody else did meanwhile.
"""

from __future__ import annotations

import json
import logging

from pyiceberg.exceptions import NoSuchTableError, TableAlreadyExistsError
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import NestedField, StringType

from firnline.plan.frontier import Frontier, is_progress
from firnline.tables.catalog import Catalog, reachable
from firnline.tables.commit import commit_once, until_known

TABLE = "_frontier"
FRONTIER = "firnline.frontier"
_logger = logging.getLogger(__name__)


class Control:
    """The control table of one pipeline."""

    def __init__(self, catalog: Catalog, pipeline: str) -> None:
        self._catalog = catalog
        self.pipeline = pipeline

    def frontier(self) -> Frontier | None:
        """The present frontier; None before the first complete epoch."""
        with reachable():
            try:
                return _read(self._catalog.sql.load_table((self.pipeline, TABLE)))
            except NoSuchTableError:
                return None

    def advance(self, frontier: Frontier) -> Frontier:
        """Move the frontier, unless it is already there or beyond; what it is afterwards."""

        def attempt_once() -> Frontier | None:
            table = self._table()
            present = _read(table)
            if present is not None and not is_progress(present, frontier):
                return present
            try:
                document = {"upper": frontier.upper, "generations": dict(frontier.generations)}
                commit_once(table, [], [], {FRONTIER: json.dumps(document)})
            except Exception as error:
                _logger.info("the frontier of %s is uncertain, looking again: %s", self.pipeline, error)
                return None
            return frontier

        return until_known(f"the frontier of {self.pipeline}", attempt_once)

    def _table(self) -> Table:
        self._catalog.ensure_namespace(self.pipeline)
        identifier = (self.pipeline, TABLE)
        with reachable():
            try:
                return self._catalog.sql.load_table(identifier)
            except NoSuchTableError:
                schema = Schema(NestedField(1, "entry", StringType()))
                try:
                    return self._catalog.sql.create_table(identifier, schema, properties={"gc.enabled": "false"})
                except TableAlreadyExistsError:
                    return self._catalog.sql.load_table(identifier)


def _read(table: Table) -> Frontier | None:
    snapshot = table.current_snapshot()
    if snapshot is None or snapshot.summary is None:
        return None
    data = json.loads(snapshot.summary.additional_properties[FRONTIER])
    return Frontier(data["upper"], data["generations"])
