"""Which pipelines a command is about."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from firnline.cli.output import errors

if TYPE_CHECKING:
    from firnline.model.graph import Graph
    from firnline.runtime.project import Project


@contextmanager
def asked(project: Project, pipeline: str | None) -> Iterator[list[Graph]]:
    """The pipeline that was asked for, or all that load: others are told on standard error, and make the command fail after all.

    Where none loads, nothing is done.
    """
    if pipeline is not None:
        yield [project.graph(pipeline)]
        return
    graphs, broken = project.graphs()
    if len(broken) == 1 and not graphs:
        raise next(iter(broken.values()))
    for name, problem in broken.items():
        errors.print(f"{name}: {problem}", style="red", markup=False, soft_wrap=True)
    if graphs or not broken:
        yield graphs
    if broken:
        raise typer.Exit(1)
