"""Which collection a person means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firnline.errors import FirnlineError
from firnline.model.names import QUARANTINE, instead, parted

if TYPE_CHECKING:
    from firnline.model.graph import Graph
    from firnline.runtime.project import Project


def found(project: Project, text: str) -> tuple[Graph, str]:
    """The pipeline and the collection of ``PIPELINE.COLLECTION``, or of ``COLLECTION`` where one pipeline has it.

    The pipeline may be a branch: ``PIPELINE__BRANCH.COLLECTION``.
    """
    pipeline, _, name = text.rpartition(".")
    source = name.removesuffix(QUARANTINE)
    graphs, broken = ([project.graph(pipeline)], {}) if pipeline else project.graphs()
    having = [graph for graph in graphs if any(source == each.name for each in graph.collections)]
    if len(having) == 1:
        return having[0], name
    if having:
        what = f"several pipelines have a collection {text!r}: {', '.join(f'{graph.name}.{name}' for graph in having)}"
    else:
        known = {f"{graph.name}.{each.name}" if pipeline else each.name for graph in graphs for each in graph.collections}
        what = f"no pipeline has a collection {text!r}{instead(text, known)}"
    what += "".join(f"; {each} does not load" for each in broken)
    raise FirnlineError("NO_SUCH_COLLECTION", what)


def found_in_main(project: Project, text: str) -> tuple[Graph, str]:
    """The same, but in no branch; and if some pipeline does not load, which may have it too, only by its whole name."""
    graph, name = found(project, text)
    main, branch = parted(graph.name)
    broken = () if "." in text else project.graphs()[1]
    if broken:
        todo = f"Write {main}.{name} if that is meant."
        raise FirnlineError("NO_SUCH_COLLECTION", f"{', '.join(broken)} does not load and may have {text!r}, too", todo=todo)
    if branch is not None:
        todo = f"Name {main}.{name}; a branch is dropped with 'firnline branch drop {branch}', and created anew."
        raise FirnlineError("NO_SUCH_COLLECTION", f"{text} is a branch's", todo=todo)
    return graph, name
