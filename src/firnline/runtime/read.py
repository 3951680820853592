"""``firnline.read``: a collection as a DataFrame, whole epochs only."""

from __future__ import annotations

import atexit
from contextlib import ExitStack
from functools import cache
from typing import TYPE_CHECKING

from firnline.errors import FirnlineError
from firnline.model.names import BOOKKEEPING
from firnline.runtime.project import Project
from firnline.runtime.show import visible_upto

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession


def read(
    name: str, *, as_of: str | None = None, session: SparkSession | None = None, project: Project | None = None
) -> DataFrame:
    """The rows of a collection after an epoch.

    Args:
        name: ``pipeline.collection``.
        as_of: The epoch; the newest that is complete in all of the pipeline's collections by default.
        session: A Connect session that knows the project's catalog; by default one of our own, which ends with the process.
        project: The project; the one around the current folder by default.
    """
    from firnline.engine.frames import state, table_name

    pipeline, _, collection = name.partition(".")
    found = project or Project.load()
    graph = found.graph(pipeline)
    graph.collection(collection)
    upto = visible_upto(found, graph, as_of)
    head = found.log(pipeline, collection).head()
    if head is None or head.snapshot is None:
        raise FirnlineError("NO_SUCH_COLLECTION", f"{name} has no log yet")
    if upto < head.description.since:
        since = graph.schedule.label(head.description.since)
        raise FirnlineError("EPOCH_COMPACTED", f"{name} keeps single epochs only since {since}")
    session = session or _shared(found)
    table = table_name(pipeline, collection)
    columns = [column for column in session.table(table).columns if column not in BOOKKEEPING]
    return state(session, table, head.snapshot, upto, columns)


@cache
def _shared(project: Project) -> SparkSession:
    from firnline.engine.session import opened

    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(opened(project.settings, "firnline.read"))
