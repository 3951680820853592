"""``firnline diff``: where two sides of a pipeline differ, and where that begins."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from firnline.cli.app import app
from firnline.cli.branch import Of, only
from firnline.cli.output import Json, console, print_json, print_table, writing
from firnline.errors import FirnlineError

if TYPE_CHECKING:
    from firnline.runtime.diff import CollectionDiff, Diff
    from firnline.runtime.project import Project


@app.command()
def diff(
    before: Annotated[str, typer.Argument(help="main or a branch, after its newest epoch or after another: main@2026-01-05.")],
    after: Annotated[str, typer.Argument(help="What it is compared with.")],
    stage: Annotated[str | None, typer.Option(help="One collection only.")] = None,
    epoch: Annotated[str | None, typer.Option(help="Both sides after this epoch.")] = None,
    rows: Annotated[int, typer.Option(min=0, help="How many rows of each kind to show.")] = 10,
    other: Annotated[
        str | None,
        typer.Option(metavar="PROFILE|FOLDER", help="The environment of B: a profile of this project, or another one."),
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page with charts into this file.")] = None,
    pipeline: Of = None,
    json: Json = False,
) -> None:
    """Compare main and a branch, two epochs or two environments: digests first, then rows of parts that differ. Needs no JVM."""
    from firnline.runtime.diff import diff as compared
    from firnline.runtime.diff import sides
    from firnline.runtime.project import Project

    project = Project.load()
    elsewhere = None if other is None else _environment(project, other)
    found = compared(*sides(project, only(project, pipeline), before, after, epoch, elsewhere), stage, rows)
    if html is not None:
        _write(html, found)
    if json:
        print_json({**asdict(found), "same": found.is_same})
    else:
        _print(found)


def _environment(project: Project, asked: str) -> Project:
    """A profile of this project, or the project in a folder."""
    from firnline.runtime.project import Project
    from firnline.settings import FILE, Settings

    folder = Path(asked).expanduser()
    if (folder / FILE).is_file():
        return Project.load(folder)
    return Project(Settings.load(project.settings.root, asked))


def _print(found: Diff) -> None:
    lines = [(each.collection, told(each), _counts(each), _parts(each)) for each in found.collections]
    print_table(f"{found.before} -> {found.after}", ("collection", "", "rows", "parts that differ"), lines)
    for each in found.collections:
        if each.columns:
            columns = [(c.column, c.changed, _pair(c.mean), _pair(c.least), _pair(c.greatest)) for c in each.columns]
            title = f"{each.collection}: columns of changed rows, before -> after"
            print_table(title, ("column", "changed", "mean", "least", "greatest"), columns)
        for row in each.rows:
            console.print(f"  {each.collection}: {_row(row.old, row.new)}", markup=False)
    if found.first is None:
        console.print("Nothing differs.")
        return
    first = next(each for each in found.collections if each.collection == found.first)
    console.print(f"The first that differs is {found.first}" + (f": {first.why}." if first.why else "."), markup=False)


def told(each: CollectionDiff) -> str:
    """What became of a collection, in words."""
    if each.verdict != "same":
        return each.verdict
    epochs = [of.epoch for of in each.epochs if of.parts]
    return f"the same now, not after {', '.join(epochs)}" if epochs else "same"


def _counts(each: CollectionDiff) -> str:
    counts = (("added", each.added), ("removed", each.removed), ("changed", each.changed))
    columns = [f"+{name}" for name in each.columns_added] + [f"-{name}" for name in each.columns_removed]
    told = [f"{number} {word}" for word, number in counts if number]
    return ", ".join([*told, *([f"columns {' '.join(columns)}"] if columns else [])])


def _parts(each: CollectionDiff) -> str:
    return f"{each.differing_parts} of {each.parts}" if each.parts and each.verdict != "same" else ""


def _pair(values: tuple[Any, Any]) -> str:
    return "" if values == (None, None) else f"{_short(values[0])} -> {_short(values[1])}"


def _short(value: Any) -> str:
    return "null" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def _row(old: Any, new: Any) -> str:
    if old is None:
        return f"+ {_values(new)}"
    if new is None:
        return f"- {_values(old)}"
    changed = {name for name in new if repr(old[name]) != repr(new[name])}
    kept = {name: value for name, value in new.items() if name not in changed}
    moved = ", ".join(f"{name} {_short(old[name])} -> {_short(new[name])}" for name in new if name in changed)
    return f"~ {_values(kept)}: {moved}"


def _values(row: dict[str, Any]) -> str:
    return ", ".join(f"{name}={_short(value)}" for name, value in row.items())


def _write(path: Path, found: Diff) -> None:
    from firnline.cli.diff_page import page

    try:
        text = page(found)
    except ModuleNotFoundError as error:
        raise FirnlineError("PREREQUISITE", f"charts need {error.name}", todo="Install matplotlib.") from error
    with writing(path):
        path.write_text(text, encoding="utf-8")
