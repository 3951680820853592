"""A random case, and three opinions of it: the sum of derived changes, plain Spark, and the Z-set reference, at every epoch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from random import Random

from pyspark.sql import DataFrame
from pyspark.sql.connect.session import SparkSession

from firnline.model.zset import ZSet
from tests.spark.grammar.generator import Generator
from tests.spark.grammar.stage import ROW_BY_ROW, Building, Stage, walk
from tests.spark.histories import History, Row, check

DEPTHS = (1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 4)
TRIES = 10
MOST_WORK = 4
"""Operators with a state; each asks for several Spark jobs an epoch, and what is nested deeper asks for more than its part."""


@dataclass(frozen=True)
class Case:
    stage: Stage
    histories: Mapping[str, History]

    @classmethod
    def of(cls, seed: int) -> Case:
        """The case of a seed, the same whenever it is asked for: of some tries the first that has rows and a change of them."""
        depth = Random(seed).choice(DEPTHS)
        tries = []
        for number in range(TRIES):
            generator = Generator(seed * TRIES + number)
            stage = generator.stage(depth)
            tries.append(cls(stage, generator.histories(stage)))
            if tries[-1].work <= MOST_WORK and tries[-1].is_moving:
                return tries[-1]
        return min(tries, key=lambda case: case.work)

    @property
    def work(self) -> int:
        return sum(not isinstance(each, ROW_BY_ROW) for each in walk(self.stage))

    @property
    def is_moving(self) -> bool:
        """Whether some epoch leads from rows to other rows."""
        states = [self.reference(epoch + 1) for epoch in range(self.epochs)]
        return any(one and other and one != other for one, other in pairwise(states))

    @property
    def epochs(self) -> int:
        return max(len(history.epochs) for history in self.histories.values())

    def function(self, **frames: DataFrame) -> DataFrame:
        return Building(frames).of(self.stage)

    def plain(self, **frames: DataFrame) -> DataFrame:
        return Building(frames, is_plain=True).of(self.stage)

    def reference(self, epoch: int) -> Counter[Row]:
        inputs = {name: ZSet.of(history.upto(epoch)) for name, history in self.histories.items()}
        return Counter(dict(self.stage.evaluate(inputs)))

    def check(self, session: SparkSession) -> None:
        check(session, self.function, self.histories, plain=self.plain, reference=self.reference)
