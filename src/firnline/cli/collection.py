"""Which collection a person means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firnline.errors import FirnlineError
from firnline.model.names import QUARANTINE

if TYPE_CHECKING:
    from firnline.model.graph import Graph
    from firnline.runtime.project import Project


def found(project: Project, text: str) -> tuple[Graph, str]:
    """The pipeline and the collection of ``PIPELINE.COLLECTION``, or of ``COLLECTION`` where one pipeline has it."""
    pipeline, _, name = text.rpartition(".")
    source = name.removesuffix(QUARANTINE)
    graphs = [project.graph(known) for known in project.pipelines()]
    having = [
        graph for graph in graphs if pipeline in ("", graph.name) and any(source == each.name for each in graph.collections)
    ]
    if len(having) != 1:
        what = "several pipelines have" if having else "no pipeline has"
        raise FirnlineError("NO_SUCH_COLLECTION", f"{what} a collection {text!r}")
    return having[0], name
