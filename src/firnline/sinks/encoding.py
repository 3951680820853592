"""Values as JSON, none of them rounded: numbers keep their digits; what JSON has no word for is text, as PostgreSQL has it."""

from __future__ import annotations

import json
import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any


def as_json(value: Any) -> str:
    r"""A value of an Arrow column as JSON text.

    >>> as_json({"n": Decimal("1.10"), "x": [float("nan"), None, True], "at": date(2026, 1, 1), "b": b"\x00a"})
    '{"n":1.10,"x":["NaN",null,true],"at":"2026-01-01","b":"\\\\x0061"}'
    >>> as_json([("a", 1), ("b", None)])  # a map
    '{"a":1,"b":null}'
    """
    match value:
        case Decimal():
            return f"{value:f}"
        case float() if math.isnan(value):
            return '"NaN"'
        case float() if math.isinf(value):
            return '"Infinity"' if value > 0 else '"-Infinity"'
        case bytes():
            return json.dumps("\\x" + value.hex())
        case datetime() | date():
            return f'"{value.isoformat()}"'
        case dict():
            return _object(value.items())
        case [tuple(), *_]:
            return _object((key if isinstance(key, str) else as_json(key).strip('"'), each) for key, each in value)
        case list():
            return f"[{','.join(map(as_json, value))}]"
    return json.dumps(value, ensure_ascii=False)


def _object(items: Any) -> str:
    return "{" + ",".join(f"{json.dumps(key, ensure_ascii=False)}:{as_json(each)}" for key, each in items) + "}"
