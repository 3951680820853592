"""A Connect session without a server: DataFrames can be made of DataFrames, and whatever needs Spark raises ``UnpluggedError``.

Two questions are answered all the same, as functions that make Python functions ask them: what a type in DDL is, and whether a
setting is on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, NoReturn
from unittest import mock

import sqlglot
from pyspark.sql import types
from pyspark.sql.connect import proto
from pyspark.sql.connect.dataframe import DataFrame
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.connect.types import pyspark_types_to_proto_types
from sqlglot import exp

from firnline.engine.connect_mode import connect_mode
from firnline.engine.pinned import PINNED

# What Spark has for a setting that nobody set.
_DEFAULTS = MappingProxyType({"spark.sql.execution.pythonUDF.arrow.enabled": "false"})
_PLAIN: MappingProxyType[str, types.DataType] = MappingProxyType(
    {
        "BOOLEAN": types.BooleanType(),
        "TINYINT": types.ByteType(),
        "SMALLINT": types.ShortType(),
        "INT": types.IntegerType(),
        "BIGINT": types.LongType(),
        "FLOAT": types.FloatType(),
        "DOUBLE": types.DoubleType(),
        "TEXT": types.StringType(),
        "BINARY": types.BinaryType(),
        "DATE": types.DateType(),
        "TIMESTAMP": types.TimestampType(),
        "TIMESTAMPTZ": types.TimestampType(),
        "TIMESTAMPNTZ": types.TimestampNTZType(),
    }
)


class UnpluggedError(Exception):
    """Something needs Spark, and there is none."""


@contextmanager
def unplugged(settings: Mapping[str, str], columns: Callable[[DataFrame], list[str]] | None = None) -> Iterator[SparkSession]:
    """A session without a server, active while inside; ``columns`` says the names of a DataFrame's columns, if somebody knows."""
    session = SparkSession("sc://localhost:1")
    stub: Any = _Stub({**_DEFAULTS, **settings, **PINNED})
    session.client._stub = stub
    asked = columns or _unknown
    names = property(lambda frame: [each.name for each in frame._cached_schema] if frame._cached_schema else asked(frame))
    with connect_mode(), mock.patch.object(DataFrame, "columns", names):
        before = SparkSession._default_session, getattr(SparkSession._active_session, "session", None)
        SparkSession._default_session = SparkSession._active_session.session = session
        try:
            yield session
        finally:
            SparkSession._default_session, SparkSession._active_session.session = before
            session.client.close()


def _unknown(_: DataFrame) -> NoReturn:
    raise UnpluggedError("the columns of a DataFrame")


def known(frame: Any, schema: types.StructType) -> DataFrame:
    """The frame with a schema that Spark need not be asked for."""
    assert isinstance(frame, DataFrame)
    frame._cached_schema = schema
    return frame


class _Stub:
    """What a client speaks to."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings = settings

    def AnalyzePlan(self, request: proto.AnalyzePlanRequest, **_: object) -> proto.AnalyzePlanResponse:  # noqa: N802, gRPC's name
        if request.WhichOneof("analyze") != "ddl_parse":
            raise UnpluggedError("the schema of a DataFrame")
        response = proto.AnalyzePlanResponse(session_id=request.session_id)
        response.ddl_parse.parsed.CopyFrom(pyspark_types_to_proto_types(of_ddl(request.ddl_parse.ddl_string)))
        return response

    def Config(self, request: proto.ConfigRequest, **_: object) -> proto.ConfigResponse:  # noqa: N802, gRPC's name
        response = proto.ConfigResponse(session_id=request.session_id)
        asked = dict.fromkeys(request.operation.get.keys)
        given = {each.key: each.value for each in request.operation.get_with_default.pairs}
        for key, default in {**asked, **given}.items():
            value = self._settings.get(key, default)
            if value is None:
                raise UnpluggedError(f"the setting {key}")
            response.pairs.append(proto.KeyValue(key=key, value=value))
        if not response.pairs:
            raise UnpluggedError("the session's settings")
        return response

    def __getattr__(self, name: str) -> NoReturn:
        raise UnpluggedError(name)


def of_ddl(text: str) -> types.DataType:
    """The type that DDL says, of a value or, as a struct, of a row."""
    if "char" in text.lower():  # which has a length
        raise UnpluggedError(f"the type {text}")
    try:
        parsed = sqlglot.parse_one(f"CAST(x AS {text})", read="spark").args["to"]
    except sqlglot.errors.SqlglotError:
        try:
            parsed = sqlglot.parse_one(f"CAST(x AS STRUCT<{text}>)", read="spark").args["to"]
        except sqlglot.errors.SqlglotError:
            raise UnpluggedError(f"the type {text}") from None
    return _of(parsed)


def _of(parsed: Any) -> types.DataType:
    inner = parsed.expressions if isinstance(parsed, exp.DataType) else []
    match parsed.this.name if isinstance(parsed, exp.DataType) else "":
        case plain if plain in _PLAIN and not inner:
            return _PLAIN[plain]
        case "DECIMAL":
            return types.DecimalType(*(int(each.name) for each in inner))
        case "ARRAY" if len(inner) == 1:
            return types.ArrayType(_of(inner[0]))
        case "MAP" if len(inner) == 2:
            return types.MapType(_of(inner[0]), _of(inner[1]))
        case "STRUCT" if all(isinstance(each, exp.ColumnDef) and not each.args.get("constraints") for each in inner):
            return types.StructType([types.StructField(each.name, _of(each.args["kind"])) for each in inner])
    raise UnpluggedError(f"the type {parsed}")
