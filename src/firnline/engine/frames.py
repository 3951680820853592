"""DataFrames of the log: the state of a collection before a point, and the way between DataFrames and Connect plans.

state(upto) = the rows whose weights, summed over all deltas with _epoch < upto, are positive.

Where only the newest layers remove rows, all older rows are those of the state but for the keys that the newest remove: few of
them are brought together, and the many are only looked through.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import reduce
from operator import and_

import pyarrow as pa
from google.protobuf.message import Message
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.connect.client import SparkConnectClient
from pyspark.sql.connect.dataframe import DataFrame as ConnectDataFrame
from pyspark.sql.connect.plan import LogicalPlan
from pyspark.sql.connect.proto import Relation
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from firnline.engine.conf import CATALOG
from firnline.incremental.relation import call, column, consolidated, project
from firnline.incremental.relation import exact as exactly
from firnline.model.names import DIFF, EPOCH, floating, place, quoted

_ROWS = "_firnline_rows"
_SESSIONS = "spark.sessionWindow"


class _Given(LogicalPlan):
    """A relation that is already protobuf."""

    def __init__(self, relation: Relation) -> None:
        super().__init__(None)
        self._relation = relation

    def plan(self, session: SparkConnectClient) -> Relation:
        copy = Relation()
        copy.CopyFrom(self._relation)
        copy.common.plan_id = self._plan_id
        return copy


def frame_of(session: SparkSession, relation: Relation) -> DataFrame:
    """The DataFrame of a plan."""
    return ConnectDataFrame(_Given(relation), session)


def known(frame: DataFrame, schema: StructType) -> DataFrame:
    """The same DataFrame, of whose columns Spark need not be asked."""
    assert isinstance(frame, ConnectDataFrame)
    frame._cached_schema = schema
    return frame


def relation_of(frame: DataFrame) -> Relation:
    """The plan of a DataFrame."""
    assert isinstance(frame, ConnectDataFrame)
    root: Relation = frame._plan.to_proto(frame.sparkSession.client).root
    return root


def is_literal(relation: Relation) -> bool:
    """Whether all rows stand in the plan itself: those of a small ``createDataFrame``."""
    kind = relation.WhichOneof("rel_type")
    if kind == "local_relation" or kind is None:
        return kind is not None
    made = getattr(relation, kind)
    return "input" in made.DESCRIPTOR.fields_by_name and isinstance(made.input, Relation) and is_literal(made.input)


_INSIDE = ("local_relation", "cached_local_relation", "cached_remote_relation", "range")
"""Relations whose rows stand in the plan, or were computed when it was made."""


def is_settled(relation: Relation, paths: Collection[str]) -> bool:
    """Whether a plan gives the same rows whenever it runs: they stand in it, or in files of these paths.

    What is read under a name, by a query's text or from other files may be something else by then.
    """
    return all(_is_settled(leaf, paths) for leaf in _leaves(relation))


def _is_settled(leaf: Relation, paths: Collection[str]) -> bool:
    if leaf.WhichOneof("rel_type") != "read":
        return leaf.WhichOneof("rel_type") in _INSIDE
    read = leaf.read.data_source.paths if leaf.read.HasField("data_source") else ()
    return bool(read) and set(read) <= set(paths)


def _leaves(message: Message) -> Iterator[Relation]:
    """The relations in a message that have none below them."""
    below = [leaf for each in _messages(message) for leaf in _leaves(each)]
    yield from below if below or not isinstance(message, Relation) else [message]


def _messages(message: Message) -> Iterator[Message]:
    for field, value in message.ListFields():
        if field.message_type is not None and not field.message_type.GetOptions().map_entry:
            yield from value if field.is_repeated else [value]


def local(rows: pa.Table, schema: StructType | None = None) -> Relation:
    """A plan in which the rows themselves stand; unlike ``createDataFrame``, without asking Spark how it is set.

    They stand there as one array: each of Spark's rules for plans looks at every row that stands in one by itself.
    """
    relation, sink = Relation(), pa.BufferOutputStream()
    known = schema or from_arrow_schema(rows.schema, prefer_timestamp_ntz=True)
    if not rows.num_rows:  # a stream without a batch tells Spark no schema
        relation.local_relation.schema = known.json()
        return relation
    structs = pa.StructArray.from_arrays([each.combine_chunks() for each in rows.columns], fields=list(rows.schema))
    kind = pa.list_(pa.field("element", structs.type, nullable=False))
    array = pa.ListArray.from_arrays(pa.array([0, len(structs)], pa.int32()), structs, type=kind)
    whole = pa.table([array], pa.schema([pa.field(_ROWS, kind, nullable=False)]))
    with pa.ipc.new_stream(sink, whole.schema) as writer:
        writer.write_table(whole)
    relation.local_relation.schema = StructType([StructField(_ROWS, ArrayType(known, containsNull=False), nullable=False)]).json()
    relation.local_relation.data = sink.getvalue().to_pybytes()
    return project(relation, [call("inline", column(_ROWS))])


def arrow_of(frame: DataFrame) -> pa.Table:
    """The rows of a DataFrame; unlike ``toArrow``, without having its plan analysed once more for its schema."""
    return typed_of(frame)[0]


def typed_of(frame: DataFrame) -> tuple[pa.Table, StructType | None]:
    """The same, with Spark's types: Arrow does not know of collations."""
    assert isinstance(frame, ConnectDataFrame)
    return frame._to_table()


def analyzed(frame: DataFrame) -> str:
    """The plan of a DataFrame as Spark reads it, in its own words, before anything in it is computed."""
    assert isinstance(frame, ConnectDataFrame)
    return frame._explain_string(extended=True).partition("== Optimized Logical Plan ==")[0]


def ddl(kind: DataType) -> str:
    """A type as Spark reads it again, whatever the names of its fields are."""
    match kind:
        case StructType():
            fields = (f"{_name(field.name)}:{ddl(field.dataType)}" for field in kind.fields)
            return f"struct<{','.join(fields)}>"
        case ArrayType():
            return f"array<{ddl(kind.elementType)}>"
        case MapType():
            return f"map<{ddl(kind.keyType)},{ddl(kind.valueType)}>"
    return kind.simpleString()


def _name(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else quoted(name)


def exact(frame: DataFrame) -> DataFrame:
    """The same rows, with floating numbers that filters find as Spark compares them."""
    types = dict(frame.dtypes)
    session = frame.sparkSession
    assert isinstance(session, SparkSession)
    return frame_of(session, project(relation_of(frame), exactly(types, floating(types))))


def unmarked(frame: DataFrame) -> DataFrame:
    """The same rows without the mark on a column of sessions, for which Spark merges rows wherever they are grouped by it."""
    sessions = {each.name: F.col(quoted(each.name)) for each in frame.schema.fields if _SESSIONS in (each.metadata or {})}
    return frame.withColumns({name: F.coalesce(of, of) for name, of in sessions.items()}) if sessions else frame


def aliased(frame: DataFrame, alias: str) -> DataFrame:
    """The same rows as a relation of its own, under an alias."""
    relation = Relation()
    relation.subquery_alias.input.CopyFrom(relation_of(frame))
    relation.subquery_alias.alias = alias
    session = frame.sparkSession
    assert isinstance(session, SparkSession)
    return frame_of(session, relation)


def table_name(pipeline: str, collection: str) -> str:
    """The quoted name of a log in Spark's catalog."""
    return quoted(CATALOG, *place(pipeline, collection))


def deltas(session: SparkSession, table: str, snapshot: int, upto: int) -> DataFrame:
    """The weighted rows of a snapshot with _epoch < upto, bookkeeping included."""
    return session.read.option("versionAsOf", snapshot).table(table).where(F.col(EPOCH) < upto)


def state(session: SparkSession, table: str, snapshot: int, upto: int, columns: Sequence[str]) -> DataFrame:
    """The rows themselves; keys are unique in every log, so that each weight is one."""
    rows = deltas(session, table, snapshot, upto).select(*(F.col(quoted(name)) for name in (*columns, DIFF)))
    return frame_of(session, consolidated(relation_of(rows), columns)).drop(DIFF)


def net_changes(session: SparkSession, table: str, snapshot: int, lower: int, upto: int, columns: Sequence[str]) -> DataFrame:
    """What the epochs in [lower, upto) come to: weighted rows, no two of them equal."""
    names = (F.col(quoted(name)) for name in (*columns, DIFF))
    rows = deltas(session, table, snapshot, upto).where(F.col(EPOCH) >= lower).select(*names)
    return frame_of(session, consolidated(relation_of(rows), columns))


def settled_state(
    session: SparkSession,
    table: str,
    snapshot: int,
    settled: int,
    columns: Sequence[str],
    keys: Sequence[str],
    removed: DataFrame,
    added: DataFrame,
) -> DataFrame:
    """The rows themselves, where nothing is removed before the point ``settled``, and little after it.

    Args:
        session: Of Spark.
        table: The log.
        snapshot: What is read of it.
        settled: The point.
        columns: The user's columns.
        keys: Those that identify a row, one at least.
        removed: The keys of rows that are gone after that point, or replaced.
        added: The rows that came after it.
    """
    names = [F.col(quoted(name)) for name in columns]
    before = deltas(session, table, snapshot, settled).select(*names)
    on = [F.col(quoted(key)).alias(f"_firnline_{at}") for at, key in enumerate(keys)]
    matching = [F.col(quoted(key)).eqNullSafe(F.col(f"_firnline_{at}")) for at, key in enumerate(keys)]
    left = before.join(F.broadcast(removed.select(*on)), reduce(and_, matching), "left_anti")
    return left.unionAll(added.select(*names))
