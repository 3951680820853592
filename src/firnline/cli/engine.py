"""Spark for commands that may not need it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from firnline.cli.output import console, quiet

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

    from firnline.runtime.project import Project


@contextmanager
def engine(project: Project, command: str, *, json: bool) -> Iterator[Callable[[], SparkSession]]:
    """A session that begins when it is first asked for; it is told, unless the command writes JSON."""
    with ExitStack() as stack:
        opened: list[SparkSession] = []

        def session() -> SparkSession:
            if not opened:
                from firnline.engine.session import opened as opening

                if not json:
                    console.print("starting Spark")
                stack.enter_context(quiet())
                opened.append(stack.enter_context(opening(project.settings, f"firnline {command}")))
            return opened[0]

        yield session
