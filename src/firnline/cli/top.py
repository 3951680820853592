"""``firnline top``: pipelines at a glance in a terminal, again and again."""

from __future__ import annotations

import time
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from firnline.cli.app import app
from firnline.cli.output import Json, console, print_json, size_text
from firnline.errors import FirnlineError

if TYPE_CHECKING:
    from firnline.runtime.overview import Line, Overview
    from firnline.runtime.project import Project

SIGNS = {
    "computed": ("■", "green"),
    "repaired": ("↻", "blue"),
    "merged": ("≡", "bright_black"),
    "stale": ("~", "yellow"),
    "gap": ("▨", "magenta"),
    "failed": ("!", "bold red"),
    "missing": ("·", "bright_black"),
}
"""How the state of an epoch is drawn."""
_COLORS = {"whole": "green", "changed": "yellow", "behind": "yellow", "gap": "magenta", "failed": "red"}

Found = dict[str, "Overview | FirnlineError"]


@app.command()
def top(
    pipeline: Annotated[str | None, typer.Argument(help="A pipeline; all of the project's by default.")] = None,
    once: Annotated[bool, typer.Option("--once", help="Show it once, and end.")] = False,
    every: Annotated[float, typer.Option(help="How many seconds to wait before looking again.", min=0.2)] = 2.0,
    epochs: Annotated[int, typer.Option(help="How many epochs are shown.", min=1, max=200)] = 30,
    json: Json = False,
) -> None:
    """Watch pipelines: epochs, frontier, safe point, holds and storage, until Ctrl-C. With --json, once. Needs no JVM."""
    from firnline.runtime.project import Project

    project = Project.load()
    names = [pipeline] if pipeline else list(project.pipelines())
    found = _found(project, names, epochs)
    broken = [each for each in found.values() if isinstance(each, FirnlineError)]
    if pipeline and broken:
        raise broken[0]
    if json:
        print_json([_document(name, each) for name, each in found.items()])
    elif once or not names:
        console.print(_drawn(found))
    else:
        _watch(project, names, epochs, every)
    if broken:
        raise typer.Exit(1)


def _watch(project: Project, names: list[str], epochs: int, every: float) -> None:
    from rich.live import Live

    try:
        with Live(_drawn(_found(project, names, epochs)), console=console, screen=True, auto_refresh=False) as live:
            while True:
                time.sleep(every)
                live.update(_drawn(_found(project, names, epochs)), refresh=True)
    except KeyboardInterrupt:
        return


def _found(project: Project, names: list[str], epochs: int) -> Found:
    from firnline.runtime.overview import overview

    found: Found = {}
    for name in names:
        try:
            found[name] = overview(project, project.graph(name), count=epochs)
        except FirnlineError as error:
            found[name] = error  # one pipeline that does not load must not hide the others
    return found


def _document(name: str, found: Overview | FirnlineError) -> dict[str, object]:
    return {"pipeline": name, "error": found.as_json()} if isinstance(found, FirnlineError) else asdict(found)


def _drawn(found: Found) -> Group:
    """What a terminal shows."""
    if not found:
        return Group("This project has no pipelines: put one into include/pipelines/NAME.py.")
    panels = [
        _framed(Text(str(each), style="red"), name, "red") if isinstance(each, FirnlineError) else _panel(each)
        for name, each in found.items()
    ]
    return Group(*panels, _legend())


def _panel(found: Overview) -> Panel:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("collection", "state", _span(found), "upper", "rows", "layers", "bytes", "reads"):
        table.add_column(name, no_wrap=True)
    for line in found.collections:
        table.add_row(*_row(line))
    frontier = f"complete up to {found.status.frontier}" if found.status.frontier else "no epoch is complete yet"
    due = f", {found.lag} due" if found.lag else ""
    due += f", [red]late by {timedelta(seconds=round(found.status.late_by))}[/red]" if found.status.late_by else ""
    title = f"[bold]{found.pipeline}[/bold]  {frontier}{due}, safe point {found.safety.safe_point}, since {found.safety.since}"
    worst = max((line.condition for line in found.collections), key=list(_COLORS).index, default="whole")
    return _framed(Group(table, *_said(found)), title, _COLORS[worst])


def _framed(what: Group | Text, title: str, color: str) -> Panel:
    return Panel(what, title=title, title_align="left", border_style=color, expand=console.is_terminal)


def _span(found: Overview) -> str:
    return f"{found.epochs[0][0]} … {found.epochs[-1][0]}" if found.epochs else "epochs"


def _row(line: Line) -> tuple[Text | str, ...]:
    strip = Text()
    for cell in line.cells:
        strip.append(*SIGNS[cell.state])
    condition = Text(line.condition, style=_COLORS[line.condition])
    if line.stored is None:
        return (line.name, condition, strip, line.status.upper)
    reads = "" if line.stored.amplification is None else f"{line.stored.amplification:.2f}x"
    stored = (f"{line.stored.weight:,}", str(len(line.stored.layers)), size_text(line.stored.bytes), reads)
    return (line.name, condition, strip, line.status.upper, *stored)


def _said(found: Overview) -> list[Text]:
    """Holds, failures, what is missing and what checks warn of, in sentences."""
    holds = [each for each in found.safety.holds if each.kind != "frontier"]
    said = [
        (f"hold: {each.kind} {each.name} at {each.at} {f'of {each.owner}' if each.owner else ''}".rstrip(), "dim")
        for each in holds
    ]
    for line in found.collections:
        said += [(f"failed: {line.name} at {each}", "red") for each in line.status.failed]
        said += [(f"gap: {line.name} is {line.status.completeness}: {each}", "magenta") for each in line.status.lacking]
        said += [(f"warned: {line.name} at {each}", "yellow") for each in line.status.warned]
    return [Text(text, style=style, overflow="ellipsis", no_wrap=True) for text, style in said]


def _legend() -> Text:
    legend = Text(" ")
    for state, (sign, style) in SIGNS.items():
        legend.append(sign, style).append(f" {state}   ", "dim")
    return legend
