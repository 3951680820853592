"""``firnline repair``: what is lost or damaged is made again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from firnline.cli.app import app
from firnline.cli.engine import engine
from firnline.cli.gaps import gap_document, print_gaps
from firnline.cli.output import Json, console, print_json, print_table

if TYPE_CHECKING:
    from firnline.plan.repairing import Plan, Refusal, Step
    from firnline.runtime.project import Project
    from firnline.runtime.repair import Repaired

_MOST = 4


@app.command()
def repair(
    collection: Annotated[
        str | None,
        typer.Argument(help="PIPELINE, or PIPELINE.COLLECTION with all that it comes from; everything by default."),
    ] = None,
    deep: Annotated[bool, typer.Option("--deep", help="Also find altered rows, by their digests, on Spark.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")] = False,
    json: Json = False,
) -> None:
    """Make lost and damaged pieces of logs again. Spark is started only if rows are to be computed or --deep asks for it."""
    from firnline.runtime.project import Project
    from firnline.runtime.repair import planned
    from firnline.runtime.repair import repair as repaired

    project = Project.load()
    with engine(project, "repair", json=json) as session:
        if dry_run:
            plan = planned(project, collection, session() if deep else None)
            _show_plan(project, plan, json)
            raise typer.Exit(1 if plan.refusals else 0)

        def taking(step: Step) -> None:
            if not json:
                console.print(f"{step.pipeline}.{step.collection}: {_sentence(project, step)} ({step.why})", markup=False)

        found = repaired(project, session, collection, is_deep=deep, taking=taking)
    _show(project, found, json)
    raise typer.Exit(0 if found.is_whole else 1)


def _sentence(project: Project, step: Step) -> str:
    epochs, parts = _labels(project, step), [str(part) for part in step.parts()]
    where = f" of epochs {_short(epochs)}" if epochs else ""
    where += f", parts {_short(parts)}" if parts and step.what == "rows" else ""
    return f"{_what(step)}{where}" + (f", {step.rows} rows" if step.rows else "")


def _what(step: Step) -> str:
    return " ".join(filter(None, (step.how, step.what, step.source)))


def _show_plan(project: Project, plan: Plan, json: bool) -> None:
    if json:
        print_json({"steps": [_step(project, step) for step in plan.steps], "refusals": _refusals(plan.refusals)})
        return
    rows = [
        (
            f"{each.pipeline}.{each.collection}",
            _what(each),
            _short(_labels(project, each)),
            _short(list(map(str, each.parts()))),
            each.rows,
            f"{each.seconds:.1f}",
            each.why,
        )
        for each in plan.steps
    ]
    if rows:
        columns = ("collection", "what", "epochs", "parts", "rows", "about seconds", "why")
        print_table("would be done, in this order", columns, rows)
    _print_refusals(plan.refusals)
    if not rows and not plan.refusals:
        console.print("Nothing to do: all well.")


def _show(project: Project, found: Repaired, json: bool) -> None:
    if json:
        print_json(
            {
                "done": [
                    {
                        **_step(project, each.step),
                        "seconds": each.seconds,
                        "rows_lost": each.rows_lost,
                        "rows_recomputed": each.rows_recomputed,
                        "rows_left_out": each.rows_left_out,
                    }
                    for each in found.done
                ],
                "failed": [
                    {"pipeline": each.pipeline, "collection": each.collection, "error": each.error.as_json()}
                    for each in found.failed
                ],
                "refusals": _refusals(found.refusals),
                "problems": [
                    {name: getattr(each, name) for name in ("pipeline", "collection", "kind", "file", "what")}
                    for each in found.problems
                ],
                "gaps": [{"pipeline": of, **gap_document(project, of, gap)} for of, gap in found.gaps],
                "is_whole": found.is_whole,
            }
        )
        return
    rows = [
        (
            f"{each.step.pipeline}.{each.step.collection}",
            _what(each.step),
            each.rows_lost,
            each.rows_recomputed,
            each.rows_left_out,
            f"{each.seconds:.1f}",
        )
        for each in found.done
    ]
    if rows:
        print_table("done", ("collection", "what", "rows lost", "rows recomputed", "rows left out", "seconds"), rows)
    for failed in found.failed:
        console.print(f"{failed.pipeline}.{failed.collection}: {failed.error}", style="red", markup=False)
    _print_refusals(found.refusals)
    print_gaps(project, found.gaps)
    if found.is_whole:
        well = "all well but for gaps" if found.gaps else "all well"
        console.print(well if rows else f"Nothing to do: {well}.")
    else:
        console.print(f"{len(found.problems)} problems are left; 'firnline verify' lists them")


def _step(project: Project, step: Step) -> dict[str, Any]:
    names = ("pipeline", "collection", "how", "what", "source", "why", "rows", "seconds")
    return {**{name: getattr(step, name) for name in names}, "epochs": _labels(project, step), "parts": step.parts()}


def _refusals(refusals: tuple[Refusal, ...]) -> list[dict[str, str | None]]:
    names = ("pipeline", "collection", "code", "what")
    return [{name: getattr(each, name) for name in names} for each in refusals]


def _print_refusals(refusals: tuple[Refusal, ...]) -> None:
    for each in refusals:
        code = f"{each.code}: " if each.code else ""
        console.print(f"{each.pipeline}.{each.collection} stays as it is: {code}{each.what}", style="red", markup=False)


def _labels(project: Project, step: Step) -> list[str]:
    from firnline.runtime.verify import labels

    return list(map(labels(project, [step.pipeline])[step.pipeline], step.epochs()))


def _short(several: list[str]) -> str:
    return ", ".join(several[:_MOST]) + (f" and {len(several) - _MOST} more" if len(several) > _MOST else "")
