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

from pyspark.sql import types
from pyspark.sql.connect import proto
from pyspark.sql.connect.dataframe import DataFrame
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.connect.types import pyspark_types_to_proto_types

from firnline.engine.connect_mode import connect_mode
from firnline.engine.pinned import PINNED

# What Spark has for a setting that nobody set.
_DEFAULTS = MappingProxyType({"spark.sql.execution.pythonUDF.arrow.enabled": "false"})


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
        from firnline.engine.ddl import UnknownTypeError, of_ddl  # late: sqlglot takes a while to load

        response = proto.AnalyzePlanResponse(session_id=request.session_id)
        try:
            response.ddl_parse.parsed.CopyFrom(pyspark_types_to_proto_types(of_ddl(request.ddl_parse.ddl_string)))
        except UnknownTypeError as error:
            raise UnpluggedError(str(error)) from None
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
