"""The first epoch of a collection that begins as a table which is there: by its files as they are, or by a copy of its rows.

Files are named, not copied, where the log can say of them what its own files say themselves (``tables.adopting``). What is read
through them then has to be what the table says; if not, rows are copied. Which snapshot it was is logged as for ``epoch.table``,
so that a function which goes on with ``epoch.table`` of the same name goes on where the adoption ended.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.connect.proto import Relation
from pyspark.sql.types import StructType

from firnline.engine.frames import relation_of
from firnline.model.description import Verdict
from firnline.model.names import DIFF
from firnline.runtime.attempt import Staged
from firnline.runtime.evaluation import checked, framed, in_order
from firnline.runtime.intake.taking import Taking
from firnline.runtime.writing import Destination, Placement
from firnline.tables import adopting
from firnline.tables.adopting import Adoptable

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class AdoptIntake(Taking):
    """The rows of a table that is not ours."""

    later: Taking
    """The intake of the epochs after."""
    outcome: dict[str, Any] = field(default_factory=dict)

    def taken(self) -> DataFrame:
        """The table's rows."""
        collection = self.run.collection
        return checked(framed(self.given.table(self._name), collection), collection, (DIFF,))

    def looked_up(self, columns: StructType) -> tuple[str, ...]:
        """As in later epochs."""
        return self.later.looked_up(columns)

    def into(self, columns: StructType) -> Destination:
        """The log, created for the table's files if these can be named."""
        run, collection = self.run, self.run.collection
        found = self._found()
        if isinstance(found, Adoptable):
            cut = Placement(collection.keys, collection.partition_by, collection.parts, looked_up=self.looked_up(columns))
            log, start = run.project.log(run.declared.graph.name, collection.name), run.declared.graph.schedule.start
            adopting.create(run.project.catalog, log, found, collection.keys, start, cut.as_properties())
        return super().into(columns)

    def delta(self, taken: DataFrame, destination: Destination) -> Relation:
        """The rows themselves."""
        return relation_of(in_order(taken, [*destination.names, DIFF]))

    def staged(self, delta: Relation, destination: Destination, generation: int) -> Staged | Verdict:
        """The table's files, named beside the main line; or its rows, written there."""
        found = self._found()
        made = found if isinstance(found, str) else self._named(found, delta, destination, generation)
        if not isinstance(made, str):
            return made
        _logger.warning("%s is copied into %s: %s", self._name, self.run.collection.name, made)
        self.outcome.update(copied=made)
        return super().staged(delta, destination, generation)

    def _named(self, found: Adoptable, delta: Relation, destination: Destination, generation: int) -> Staged | Verdict | str:
        """What is staged then; or why the files do not do."""
        run, log = self.run, destination.log
        catalog = run.project.catalog
        if not adopting.is_ready(catalog, log, found):
            return "the log was there before"
        adopting.keep(found, self._snapshot, f"firnline_{log.pipeline}_{log.collection}")
        made = destination.stage_named(
            lambda: adopting.stage(catalog, log, found, run.attempt, run.epoch.lower), run.epoch, generation, run.attempt
        )
        if isinstance(made, Verdict) or made.digests == destination.digests(delta, run.epoch):
            self.outcome.update(files=len(found.files))
            return made
        log.discard(run.attempt)
        return "its files alone do not say what its rows are"

    @property
    def determinants(self) -> Mapping[str, Any]:
        """What was taken from the outside, and how."""
        return {**self.given.determinants, f"adopt {self._name}": self.outcome}

    def _found(self) -> Adoptable | str:
        run = self.run
        return adopting.adoptable(run.project.catalog, self._name, self._snapshot, run.collection.parts)

    @property
    def _snapshot(self) -> Any:
        return self.given.determinants[f"table {self._name}"]["upto"]

    @property
    def _name(self) -> str:
        name = self.run.collection.adopt
        assert name is not None
        return name
