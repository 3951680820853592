"""What a plan uses more than once is computed once, and kept by Spark while the plan runs.

Spark keeps a view's rows, but spells out its plan wherever it is named: views of views of views would grow beyond all bounds. So
where they are nested deeply the rows are kept without the plan that made them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from google.protobuf.message import Message
from pyspark.sql.connect.proto import Read, Relation
from pyspark.sql.connect.session import SparkSession

from firnline.engine.frames import frame_of

_DEEPEST = 2


@contextmanager
def shared(session: SparkSession, relations: Sequence[tuple[str, Relation]]) -> Iterator[None]:
    """Relations under their names, in order: a later one may use an earlier one."""
    depths: dict[str, int] = {}
    frames = []  # Spark lets go of rows when nobody holds their DataFrame
    for name, relation in relations:
        depths[name] = 1 + max((depths.get(each, 0) for each in _tables(relation)), default=0)
        frame = frame_of(session, relation)
        if depths[name] > _DEEPEST:
            frame, depths[name] = frame.localCheckpoint(), 0
            frames.append(frame)
        frame.createOrReplaceTempView(name)
        if depths[name]:
            session.table(name).persist()
    try:
        yield
    finally:
        for name, depth in reversed(depths.items()):
            if depth:
                session.table(name).unpersist()
            session.catalog.dropTempView(name)


def _tables(message: Message) -> Iterator[str]:
    """The names of the tables and views that a message reads."""
    if isinstance(message, Read):
        yield message.named_table.unparsed_identifier
    for field, value in message.ListFields():
        if field.message_type is not None:
            for each in value if field.is_repeated else [value]:
                if isinstance(each, Message):
                    yield from _tables(each)
