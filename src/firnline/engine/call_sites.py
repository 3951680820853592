"""Where the user wrote what: the file and line of every operator and expression that a function makes.

Connect's plans carry call sites of column methods only, and those only while debugging is on. So while a user's function runs,
plans and expressions note the line that made them: the innermost one that is neither PySpark's nor ours.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pyspark
from pyspark.sql.connect.expressions import Expression
from pyspark.sql.connect.plan import LogicalPlan
from pyspark.sql.connect.proto import Origin, PythonOrigin

_OTHERS = (str(Path(pyspark.__file__).parent), str(Path(__file__).parent.parent))


@contextmanager
def recorded() -> Iterator[dict[int, str]]:
    """Note call sites inside; yields those of plans, file:line by plan id, as they come."""
    sites: dict[int, str] = {}
    make_plan, make_expression = LogicalPlan.__init__, Expression.__init__

    def plan(self: Any, *arguments: Any, **options: Any) -> None:
        make_plan(self, *arguments, **options)
        sites[self._plan_id] = sites[self._root_plan_id] = _site()

    def expression(self: Any) -> None:
        make_expression(self)
        self.origin = Origin(python_origin=PythonOrigin(fragment="", call_site=_site()))

    with mock.patch.object(LogicalPlan, "__init__", plan), mock.patch.object(Expression, "__init__", expression):
        yield sites


def _site() -> str:
    frame: Any = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OTHERS):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
