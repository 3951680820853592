"""``firnline safepoint``: up to where history may be let go of, and what holds it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from firnline.cli.app import app
from firnline.cli.output import Json, console, print_json, print_table
from firnline.cli.pipelines import asked
from firnline.errors import FirnlineError

if TYPE_CHECKING:
    from firnline.runtime.project import Project
    from firnline.runtime.safepoint import HoldLine, Safety


@app.command()
def safepoint(
    pipeline: Annotated[str | None, typer.Argument(help="A pipeline; all of the project's by default.")] = None,
    release: Annotated[str | None, typer.Option(metavar="NAME", help="Release the hold of a reader, sink or rewind.")] = None,
    json: Json = False,
) -> None:
    """Show the safe point, what holds it, and what the present state would cost to compute again. Needs no JVM."""
    from firnline.runtime.project import Project
    from firnline.runtime.safepoint import safety

    project = Project.load()
    if release:
        names = [project.graph(pipeline).name] if pipeline else list(project.pipelines())
        pipeline = _release(project, names, release, json)
    with asked(project, pipeline) as graphs:
        found = [safety(project, graph) for graph in graphs]
        if json:
            print_json([asdict(each) for each in found])
            return
        for each in found:
            _print(each)
        if not found:
            console.print("This project has no pipelines: put one into include/pipelines/NAME.py.")


def _release(project: Project, names: list[str], hold: str, json: bool) -> str:
    """Release a hold; the pipeline that had it."""
    from firnline.runtime.safepoint import release as release_hold

    having = [name for name in names if any(each.name == hold for each in project.control(name).holds())]
    if not having:
        raise FirnlineError("NO_SUCH_HOLD", f"no reader, sink, branch or rewind of {', '.join(names)} is named {hold!r}")
    if len(having) > 1:
        raise FirnlineError("NO_SUCH_HOLD", f"{hold!r} is a hold of {' and of '.join(having)}: say of which")
    released = release_hold(project, having[0], hold)
    if not json:
        console.print(f"{having[0]}: released {released} of {released.owner}", markup=False)
    return having[0]


def _print(found: Safety) -> None:
    frontier = f"complete up to {found.frontier}" if found.frontier else "no epoch is complete yet"
    print_table(
        f"{found.pipeline}: safe point {found.safe_point}, {frontier}",
        ("collection", "upper", "since", "replicated", "epochs after", "to recompute"),
        [
            (each.collection, each.upper, each.since, each.replicated or "-", each.epochs, _time(each.seconds))
            for each in found.collections
        ],
    )
    print_table(
        "holds",
        ("at", "hold", "owner", "since", "until"),
        [(each.at, _name(each), each.owner, _minute(each.since), _until(each)) for each in found.holds],
    )
    for each in found.holds:
        console.print(f"To release {_name(each)}: {each.release}", style="dim", markup=False, soft_wrap=True)
    why = found.why[0].upper() + found.why[1:]
    console.print(f"Why has it not moved? {why}", style="bold", markup=False, soft_wrap=True)
    cost = _time(found.seconds)
    console.print(f"If all after the safe point were lost, computing it again would take about {cost}.", soft_wrap=True)


def _name(hold: HoldLine) -> str:
    return f"{hold.kind} {hold.name}".strip()


def _until(hold: HoldLine) -> str:
    return f"{_minute(hold.until)} expired" if hold.is_expired else _minute(hold.until)


def _minute(moment: str | None) -> str:
    from firnline.model.hold import minute

    return "-" if moment is None else minute(moment)


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
