"""The Python functions in a plan: which function each pickled one is.

Pickled bytes hold file names and line numbers, and only the names of what is imported: they change when nothing does, and do not
when something does. So while a user's function runs and its plan is made, functions are noted by the bytes that stand for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from pyspark.sql.connect.client import SparkConnectClient
from pyspark.sql.connect.expressions import PythonUDF
from pyspark.sql.connect.proto import PythonUDF as Pickled


@contextmanager
def noted() -> Iterator[dict[bytes, Callable[..., Any]]]:
    """Note the functions of plans that are made inside, by their pickled bytes, as they come."""
    functions: dict[bytes, Callable[..., Any]] = {}
    make = PythonUDF.to_plan

    def to_plan(self: PythonUDF, session: SparkConnectClient) -> Pickled:
        message = make(self, session)
        functions[message.command] = self._func
        return message

    with mock.patch.object(PythonUDF, "to_plan", to_plan):
        yield functions
