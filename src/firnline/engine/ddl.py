"""The type that DDL says, without Spark."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import sqlglot
from pyspark.sql import types
from sqlglot import exp

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


class UnknownTypeError(Exception):
    """It takes Spark to know."""


def of_ddl(text: str) -> types.DataType:
    """The type that DDL says, of a value or, as a struct, of a row."""
    if "char" in text.lower():  # which has a length
        raise UnknownTypeError(f"the type {text}")
    try:
        parsed = sqlglot.parse_one(f"CAST(x AS {text})", read="spark").args["to"]
    except sqlglot.errors.SqlglotError:
        try:
            parsed = sqlglot.parse_one(f"CAST(x AS STRUCT<{text}>)", read="spark").args["to"]
        except sqlglot.errors.SqlglotError:
            raise UnknownTypeError(f"the type {text}") from None
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
    raise UnknownTypeError(f"the type {parsed}")
