"""``firnline maintain``: keep logs small."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from firnline.cli.app import app
from firnline.cli.engine import engine
from firnline.cli.output import Json, console, print_json, print_table, size_text, writing
from firnline.cli.pipelines import asked
from firnline.errors import FirnlineError

if TYPE_CHECKING:
    from firnline.model.graph import Graph
    from firnline.runtime.maintain import Done, Planned
    from firnline.runtime.project import Project

_UNITS = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}


@app.command()
def maintain(
    pipeline: Annotated[str | None, typer.Argument(help="A pipeline; all of the project's by default.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")] = False,
    bytes_: Annotated[str | None, typer.Option("--bytes", help="Merge no more than so much, such as 10GB.")] = None,
    minutes: Annotated[float | None, typer.Option(min=0, help="Begin no step later than so many minutes from now.")] = None,
    grace: Annotated[str | None, typer.Option(help="In place of the setting trash: how long what is let go of stays.")] = None,
    undo: Annotated[
        bool, typer.Option("--undo", help="Undo the newest merge of every log, while its old files are there.")
    ] = False,
    report: Annotated[Path | None, typer.Option(help="Write charts over epochs into this HTML or PNG file.")] = None,
    json: Json = False,
) -> None:
    """Merge layers behind the safe point, drop what nothing needs, remove its files. No epoch waits for it."""
    from firnline.runtime.maintain import Budget, grace_of, maintained, planned, undone
    from firnline.runtime.project import Project

    project = Project.load()
    kept = grace_of(project, _time(grace))
    budget = Budget.of(None if bytes_ is None else _size(bytes_), None if minutes is None else 60 * minutes)
    with asked(project, pipeline) as graphs:
        if undo:
            _show_undone([step for graph in graphs for step in undone(project, graph)], json)
        elif dry_run:
            _show_plan([step for graph in graphs for step in planned(project, graph, kept)], json)
        elif report is None:
            with engine(project, "maintain", json=json) as session, _progress(json) as say:
                done = []
                for graph in graphs:
                    for each in maintained(project, graph, session, kept, budget):
                        say(_sentence(each))
                        done.append(each)
            _show(done, budget.is_spent(), json)
            if any(each.error for each in done):
                raise typer.Exit(1)
        if report is not None:
            _draw(project, graphs, report)
            if not json:
                console.print(f"The report is in {report}.", markup=False, soft_wrap=True)
            elif not (undo or dry_run):
                print_json({"report": str(report)})


def _draw(project: Project, graphs: Sequence[Graph], path: Path) -> None:
    from firnline.cli.charts import write
    from firnline.runtime.history import told
    from firnline.world import world

    samples = [told(project, graph) for graph in graphs]
    try:
        with writing(path):
            write(path, samples, world().now())
    except ModuleNotFoundError as error:
        raise FirnlineError("PREREQUISITE", f"charts need {error.name}", todo="Install matplotlib.") from error


@contextmanager
def _progress(json: bool) -> Iterator[Callable[[str], None]]:
    """A function that tells each step: a last line that moves on a terminal, a line each time elsewhere."""
    if json:
        yield lambda _: None
    elif console.is_terminal:
        with console.status("looking") as status:
            yield status.update
    else:
        yield lambda sentence: console.print(sentence, markup=False, soft_wrap=True)


def _sentence(done: Done) -> str:
    step = done.step
    if done.error is not None:
        return f"{step.name}: {step.what}: {done.error}"
    return f"{step.name}: {step.what}: {step.told()}, {done.seconds:.1f} s"


def _show_plan(steps: Sequence[Planned], json: bool) -> None:
    if json:
        print_json({"steps": [asdict(each) for each in steps]})
        return
    rows = [
        (each.name, each.what, each.told(), size_text(each.bytes), f"{each.benefit:.2f}" if each.what == "merge" else None)
        for each in steps
    ]
    if rows:
        print_table("would be done, in this order", ("log", "what", "of", "bytes", "benefit"), rows)
    else:
        console.print("Nothing to do.")


def _show(done: Sequence[Done], is_spent: bool, json: bool) -> None:
    if json:
        steps = [{**asdict(each.step), "seconds": round(each.seconds, 3)} for each in done if each.error is None]
        failed = [{**asdict(each.step), "error": each.error.as_json()} for each in done if each.error is not None]
        print_json({"done": steps, "failed": failed, "is_spent": is_spent, **_totals(done)})
        return
    rows = []
    for name, what in dict.fromkeys((each.step.name, each.step.what) for each in done if each.error is None):
        same = [each for each in done if (each.step.name, each.step.what) == (name, what) and each.error is None]
        size, seconds = sum(each.step.bytes for each in same), sum(each.seconds for each in same)
        rows.append((name, what, "; ".join(each.step.told() for each in same), size_text(size), f"{seconds:.1f}"))
    if rows:
        print_table("done", ("log", "what", "of", "bytes", "seconds"), rows)
        totals = _totals(done)
        freed = f"{totals['files_freed']} files with {size_text(totals['bytes_freed'])} freed"
        console.print(f"{size_text(totals['bytes_rewritten'])} rewritten, {freed}")
    elif not done:
        console.print("Nothing to do.")
    for each in done:
        if each.error is not None:
            console.print(f"{each.step.name}: {each.error}", style="red", markup=False)
    if is_spent:
        console.print("The budget is spent; the next run goes on.")


def _totals(done: Sequence[Done]) -> dict[str, int]:
    well = [each.step for each in done if each.error is None]
    freed = [each for each in well if each.what in ("delete", "prune")]
    return {
        "bytes_rewritten": sum(each.bytes for each in well if each.what == "merge"),
        "files_freed": sum(each.files for each in freed),
        "bytes_freed": sum(each.bytes for each in freed),
    }


def _show_undone(steps: Sequence[Planned], json: bool) -> None:
    if json:
        print_json({"undone": [asdict(each) for each in steps]})
    elif steps:
        print_table("undone", ("log", "of"), [(each.name, each.told()) for each in steps])
        console.print("Maintenance merges them again when it runs next: pause it if they should stay.")
    else:
        console.print("Nothing can be undone.")


def _time(text: str | None) -> timedelta | None:
    from firnline.model.duration import time_of

    try:
        return None if text is None else time_of(text)
    except ValueError as error:
        raise typer.BadParameter(f"{error}; write for example 1d or 0s", param_hint="--grace") from None


def _size(text: str) -> int:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*((?:[kmgt]i?)?b)?", text.strip().lower())
    if found is None:
        raise typer.BadParameter(f"{text} is no size; write for example 10GB", param_hint="--bytes")
    return int(float(found[1]) * _UNITS[found[2] or "b"])
