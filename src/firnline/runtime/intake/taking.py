"""What every intake does: from what a source's function returned, and from logs before the epoch, to the epoch's delta.

A delta is a function of these alone, so that a replay gives the same one. Of the collection's own log, and of a log that an
intake keeps beside it, an intake reads what they held at the epoch's lower end (``Destination.before``), however far they have
come since.

An attempt goes through ``taken``, ``columns``, ``into``, ``delta``, ``staged``, ``judge``, ``publish_beside``, in this order, and
ends with ``step_back``; a replay goes through ``replayed`` alone. An intake that keeps a log beside the collection, under
``COLLECTION__...``, stages the epoch there in ``delta``, and overrides ``replayed``, which is asked for the rows of either log.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql import DataFrame
from pyspark.sql.connect.proto import Relation
from pyspark.sql.types import StructType

from firnline.engine.frames import is_literal
from firnline.engine.reading import SourceEpoch
from firnline.engine.zone import in_utc
from firnline.model.description import Verdict
from firnline.model.names import DIFF
from firnline.runtime.attempt import Staged
from firnline.runtime.writing import Destination, Rewriting

if TYPE_CHECKING:
    from firnline.runtime.stage_run import StageRun


@dataclass(frozen=True)
class Taking(ABC):
    """One epoch of a source on its way in."""

    run: StageRun
    given: SourceEpoch
    is_proven: ClassVar[bool] = False
    """Whether no delta can give a key a second row, so that the log need not be asked."""

    def returned(self) -> object:
        """What the source's function returns for the epoch."""
        with in_utc():
            return self.run.declared.functions[self.run.collection.name](self.given)

    @abstractmethod
    def taken(self) -> DataFrame:
        """What the function returned, if it can be taken; no row is looked at yet."""

    def columns(self, taken: DataFrame) -> StructType:
        """The collection's columns."""
        return StructType([field for field in taken.schema.fields if field.name != DIFF])

    def looked_up(self, columns: StructType) -> tuple[str, ...]:
        """The columns by whose values rows of the collection's log are looked up."""
        return ()

    @abstractmethod
    def delta(self, taken: DataFrame, destination: Destination) -> Relation:
        """The epoch's delta: the collection's columns in the order of its log, and ``_diff``.

        Args:
            taken: What ``taken`` gave.
            destination: The collection's log.
        """

    def into(self, columns: StructType) -> Destination:
        """The collection's log, ready for the epoch."""
        return self.run.into(columns, self.looked_up(columns))

    def staged(self, delta: Relation, destination: Destination, generation: int) -> Staged | Verdict:
        """The delta in storage; a verdict if somebody else published the epoch meanwhile."""
        run, is_few = self.run, destination.had_few() or is_literal(delta)
        return destination.stage(delta, run.epoch, generation, run.attempt, is_proven=self.is_proven, is_few=is_few)

    def judge(self, destination: Destination, staged: Staged) -> None:  # noqa: B027 - most refuse nothing
        """Refuse a delta that is staged; then nothing of it is published. Replays are not asked."""

    def publish_beside(self, seconds: float) -> Verdict:
        """Publish what ``delta`` staged in other logs, just before the delta itself is published."""
        return Verdict.FREE

    def step_back(self) -> None:  # noqa: B027 - most stage nothing
        """Drop what is staged in other logs and not published."""

    @property
    def determinants(self) -> Mapping[str, Any]:
        """What was taken from the outside."""
        return self.given.determinants

    def replayed(self, destination: Rewriting) -> Relation:
        """The delta of a published epoch once more."""
        taken = self.taken()
        destination.check(self.columns(taken))
        return self.delta(taken, destination)
