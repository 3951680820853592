"""What Airflow's pages say about a pipeline and its tasks, in Markdown, from the compiled graph."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlencode

from firnline.model.declaration import Collection
from firnline.model.graph import Graph
from firnline.runtime.explained import Explained, Operator

PAGE = "/firnline/"


def described(graph: Graph) -> str:
    """What the DAG's page says about the pipeline."""
    rows = [
        f"| `{each.name}` | {each.kind} | {', '.join(f'`{name}`' for name in each.inputs)} | {_cell(each.doc)} |"
        for each in graph.collections
    ]
    rows += [
        f"| `{each.name}` | sink | {', '.join(f'`{name}`' for name in each.inputs)} | {_cell(each.doc)} |" for each in graph.sinks
    ]
    table = ["| collection | kind | inputs | what it is |", "|---|---|---|---|", *rows]
    return "\n".join([*((graph.doc, "") if graph.doc else ()), *table])


def of_collection(graph: Graph, collection: Collection, explained: Explained | None = None) -> str:
    """What a task's page says about its collection: the docstring, how it is computed and kept, where to look further."""
    facts = "\n".join(f"| {name} | {value} |" for name, value in _facts(graph, collection))
    full = f"{graph.name}.{collection.name}"
    links = f"[{full} on Firnline's page]({PAGE}?{urlencode({'dag_id': graph.name, 'collection': collection.name})})"
    further = f"{links}. How a change is computed: `firnline explain {full}`."
    how = "" if explained is None else _explained(explained)
    return "\n\n".join(filter(None, (collection.doc.strip(), f"| | |\n|---|---|\n{facts}", how, further)))


def _explained(of: Explained) -> str:
    """What ``firnline explain`` says first, and every operator with how its change is computed."""
    how = "from what changed" if of.steps else "in full, as the difference to the log"
    together = "where they change few rows" if of.apart is None else f"never: {of.apart}"
    said = [
        f"It is computed {how}, and is *{of.kind}*: {_plain(of.why)}.",
        f"Neighbouring epochs are computed at once {_plain(together)}.",
        *(() if of.refusal is None else (f"No rule: {_plain(of.refusal)}",)),
    ]
    kept = [_tree(f"`{name}`, kept from epoch to epoch:", operators) for name, operators in of.steps[:-1]]
    return "\n\n".join((" ".join(said), *kept, *(_tree("The stage:", operators) for _, operators in of.steps[-1:])))


def _tree(title: str, operators: tuple[Operator, ...]) -> str:
    lines = (f"{'  ' * each.depth}- **{_plain(each.what)}**: {_plain(each.change)}" for each in operators)
    return "\n".join((title, "", *lines))


def _plain(text: str) -> str:
    """Text on one line, without what Markdown would take for its own."""
    return re.sub(r"([\\`*_|<>\[\]])", r"\\\1", " ".join(text.split()))


def _facts(graph: Graph, collection: Collection) -> Iterator[tuple[str, str]]:
    yield "what", collection.kind if collection.query is None else "stage, in SQL"
    yield "declared in", f"`{collection.where}`"
    if collection.inputs:
        yield "reads", _names(collection.inputs)
    if readers := graph.readers(collection.name):
        yield "is read by", _names(readers)
    yield "keys", _names(collection.keys) or "none"
    yield "parts", str(collection.parts)
    if collection.kind == "stage":
        yield "refresh", collection.refresh
    if collection.checks:
        yield "checks", _names(tuple(check.suite for check in collection.checks))
    yield "on loss", collection.on_loss


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _cell(doc: str) -> str:
    return first_sentence(doc).replace("|", "\\|")


def first_sentence(doc: str) -> str:
    """The first sentence of a docstring, on one line."""
    paragraph = " ".join(doc.strip().partition("\n\n")[0].split())
    return re.split(r"(?<=[.!?]) ", paragraph)[0]
