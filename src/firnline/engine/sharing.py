"""What a plan uses more than once is computed once, and kept by Spark while the plan runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pyspark.sql.connect.proto import Relation
from pyspark.sql.connect.session import SparkSession

from firnline.engine.frames import frame_of


@contextmanager
def shared(session: SparkSession, relations: Sequence[tuple[str, Relation]]) -> Iterator[None]:
    """Relations under their names, in order: a later one may use an earlier one."""
    for name, relation in relations:
        frame_of(session, relation).createOrReplaceTempView(name)
        session.table(name).persist()
    try:
        yield
    finally:
        for name, _ in reversed(relations):
            session.table(name).unpersist()
            session.catalog.dropTempView(name)
