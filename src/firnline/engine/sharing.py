"""What a plan uses more than once is computed once, and kept by Spark while the plan runs.

Spark keeps a view's rows, but spells out its plan wherever it is named: views of views of views would grow beyond all bounds. So
where they are nested deeply the rows are kept without the plan that made them.

Where rows can be looked up, all that they are joined with is little, too: it is taken over from Spark, and stands in the plans
that use it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import pyarrow as pa
from google.protobuf.message import Message
from pyspark.sql.connect.proto import Relation
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from firnline.engine.frames import frame_of, local, typed_of
from firnline.engine.staging import FEW
from firnline.incremental.derivation import Lookup, Shared
from firnline.incremental.expressions import plain
from firnline.incremental.relation import in_one

_DEEPEST = 2
_MOST_TOGETHER = 32 << 20
MOST_BYTES = 16 << 20
"""So much may stand in a plan under one name; a message of Connect has 128 MB at most."""
_Rows = tuple[pa.Table, StructType | None]
"""Rows that are at hand, with Spark's types where they come from Spark."""
Find = Callable[[Lookup, pa.Table | None], pa.Table | None]
"""Finds the rows of a lookup, given its keys; None if Spark is to find them."""
Spell = Callable[[Relation], Relation]
"""Puts rows that are at hand in the place of their names."""


@contextmanager
def shared(session: SparkSession, relations: Sequence[Shared], find: Find | None = None) -> Iterator[Spell]:
    """Relations under their names, in order: a later one may use an earlier one. With ``find`` few rows are at hand."""
    held: dict[str, _Rows] = {}

    def spell(relation: Relation) -> Relation:
        return _spelt(relation, held) if held else relation

    depths: dict[str, int] = {}
    persisted = []
    frames = []  # Spark lets go of rows when nobody holds their DataFrame
    try:
        for each in relations:
            found = None if find is None else _at_hand(session, each, held, find)
            if found is not None and _are_small([*held.values(), found]):
                held[each.name] = found
                continue
            name, relation = each.name, spell(each.relation)
            depths[name] = 1 + max((depths.get(_name(of), 0) for of in _tables(relation)), default=0)
            frame = frame_of(session, relation)
            if depths[name] > _DEEPEST:
                frame, depths[name] = frame.localCheckpoint(), 0
                frames.append(frame)
            frame.createOrReplaceTempView(name)
            if depths[name] and each.lookup is None:
                session.table(name).persist()
                persisted.append(name)
        yield spell
    finally:
        for name in reversed(depths):
            if name in persisted:
                session.table(name).unpersist()
            session.catalog.dropTempView(name)


def _are_small(rows: Sequence[_Rows]) -> bool:
    sizes = [each.nbytes for each, _ in rows]
    return bool(max(sizes) <= MOST_BYTES and sum(sizes) <= _MOST_TOGETHER)


def _at_hand(session: SparkSession, each: Shared, held: Mapping[str, _Rows], find: Find) -> _Rows | None:
    """The rows of a relation, if they are few."""
    if each.lookup is None:
        found, schema = typed_of(frame_of(session, _spelt(each.relation, held)).limit(FEW + 1))
        return (found, schema) if found.num_rows <= FEW else None
    keys = each.lookup.keys
    if keys is None:
        rows = find(each.lookup, None)
    else:
        values, schema = _renamed(keys, held) or typed_of(frame_of(session, _spelt(keys, held)).limit(FEW + 1))
        rows = None if _has_collations(schema) else find(each.lookup, values)
    return None if rows is None else (rows, None)


def _has_collations(schema: StructType | None) -> bool:
    """Whether texts may be equal without being the same."""
    kinds = [] if schema is None else [field.dataType for field in schema.fields]
    return any(isinstance(kind, StringType) and not kind.isUTF8BinaryCollation() for kind in kinds)


def _renamed(relation: Relation, held: Mapping[str, _Rows]) -> _Rows | None:
    """The rows of a relation that only gives other names to columns which are at hand."""
    match relation.WhichOneof("rel_type"):
        case "read":
            return held.get(_name(relation))
        case "repartition":
            return _renamed(relation.repartition.input, held)
        case "project":
            below = _renamed(relation.project.input, held)
            outputs = [(each.alias.expr if each.alias.name else each, each.alias.name) for each in relation.project.expressions]
            names = [(plain(inside) or "", *alias) for inside, alias in outputs]
            if below is None or not {of for of, *_ in names} <= {*below[0].column_names}:
                return None
            rows, schema = below
            kinds = schema and StructType([StructField(each[-1], schema[each[0]].dataType) for each in names])
            return pa.table([rows[of] for of, *_ in names], [each[-1] for each in names]), kinds
    return None


def _spelt(relation: Relation, held: Mapping[str, _Rows]) -> Relation:
    copy = Relation()
    copy.CopyFrom(relation)
    tables = [*_tables(copy)]
    if all(_name(table) in held for table in tables):  # so little that one task groups it sooner than several
        for each in [*_of_kind(copy, "aggregate")]:
            each.aggregate.input.CopyFrom(in_one(each.aggregate.input))
        tables = [*_tables(copy)]
    for each in tables:
        if _name(each) in held:
            each.CopyFrom(local(*held[_name(each)]))
    return copy


def _tables(message: Message) -> Iterator[Relation]:
    """The tables and views that a message reads."""
    return _of_kind(message, "read")


def _of_kind(message: Message, kind: str) -> Iterator[Relation]:
    """The relations of a kind in a message, the innermost first."""
    for field, value in message.ListFields():
        if field.message_type is not None:
            for each in value if field.is_repeated else [value]:
                if isinstance(each, Message):
                    yield from _of_kind(each, kind)
    if isinstance(message, Relation) and message.WhichOneof("rel_type") == kind:
        yield message


def _name(table: Relation) -> str:
    return table.read.named_table.unparsed_identifier
