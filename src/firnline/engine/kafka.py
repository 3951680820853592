"""Records of a Kafka topic, between offsets that are logged before a record is used.

Spark's own batch reader is all there is to ask: how far a partition has come is the last of its records, which are looked at from
where the last epoch ended. A range that is read is one of closed offsets, so that a replay reads the same records, as long as
Kafka keeps them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.connect.session import SparkSession

from firnline.errors import FirnlineError

Offsets = Mapping[str, int]
"""By partition: the first offset that is not read yet."""
_EARLIEST = -2
_COLUMNS = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"
_NO_READER = "Failed to find the data source: kafka"


@dataclass(frozen=True, slots=True)
class Topic:
    """The first partitions of a topic."""

    session: SparkSession
    servers: str
    name: str
    partitions: int
    options: Mapping[str, Any]

    def reached(self, before: Offsets | None) -> dict[str, int]:
        """Where each partition ends now; one without records is left out."""
        known = dict(before or {})
        starts = {str(number): known.get(str(number), _EARLIEST) for number in range(self.partitions)}
        try:
            found = self._read(starts, "latest").groupBy("partition").agg(F.max("offset").alias("last")).collect()
        except PySparkException as error:
            if _NO_READER not in str(error):
                raise
            todo = "Run 'firnline doctor --with kafka --mend', then start the session anew."
            raise FirnlineError("PREREQUISITE", "the jars of Spark's Kafka reader are not there", todo=todo) from error
        return known | {str(row["partition"]): row["last"] + 1 for row in found}

    def rows(self, after: Offsets | None, upto: Offsets) -> DataFrame:
        """The records of the partitions from one offset on and before another, as Spark's reader gives them."""
        if not upto:
            return self.session.createDataFrame([], _COLUMNS)
        return self._read({number: (after or {}).get(number, _EARLIEST) for number in upto}, self._json(upto))

    def _read(self, starts: Offsets, ends: str) -> DataFrame:
        # Of a topic that is subscribed to, Spark asserts that offsets of all partitions are named; Connect never hears of that.
        bounds = {"assign": json.dumps({self.name: sorted(map(int, starts))}), "startingOffsets": self._json(starts)}
        options = {**self.options, "kafka.bootstrap.servers": self.servers, **bounds, "endingOffsets": ends}
        return self.session.read.format("kafka").options(**options).load()

    def _json(self, offsets: Offsets) -> str:
        return json.dumps({self.name: offsets})
