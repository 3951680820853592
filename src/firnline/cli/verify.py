"""``firnline verify``: whether storage still holds what the logs say."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from firnline.cli.app import app
from firnline.cli.gaps import gap_document, print_gaps
from firnline.cli.output import Json, console, print_json, print_table, quiet

if TYPE_CHECKING:
    from firnline.plan.verification import Problem
    from firnline.runtime.certificate import Replayed
    from firnline.runtime.project import Project
    from firnline.runtime.verify import Verified

_MOST_EPOCHS = 4


@app.command()
def verify(
    collection: Annotated[
        str | None, typer.Argument(help="PIPELINE, or PIPELINE.COLLECTION; all of the project's logs by default.")
    ] = None,
    deep: Annotated[bool, typer.Option("--deep", help="Add up the digests of all rows anew, on Spark.")] = False,
    replay: Annotated[
        bool, typer.Option("--replay", help="Compute published epochs of stages once more, and compare: are they deterministic?")
    ] = False,
    epoch: Annotated[str | None, typer.Option("--epoch", help="With --replay: one epoch only.")] = None,
    replicas: Annotated[
        bool, typer.Option("--replicas", help="Look at the copies at replicas instead; with --deep, at every byte of them.")
    ] = False,
    json: Json = False,
) -> None:
    """Compare the logs with storage: missing, truncated and altered files. Needs no JVM without --deep and --replay."""
    from firnline.runtime.project import Project

    if epoch is not None and not replay:
        raise typer.BadParameter("is of use with --replay only", param_hint="--epoch")
    if replicas and replay:
        raise typer.BadParameter("cannot be told together with --replay", param_hint="--replicas")
    project = Project.load()
    if replicas:
        _verify_replicas(project, collection, deep, json)
        return
    if replay:
        _certify(project, collection, epoch, json)
        return
    found = _verified(project, collection, deep, json)
    if json:
        print_json(_document(project, found))
    else:
        _print(project, found, deep)
    if found.problems:
        raise typer.Exit(1)


def _certify(project: Project, collection: str | None, epoch: str | None, json: bool) -> None:
    from firnline.engine.session import opened
    from firnline.runtime.certificate import certify

    def begun(what: str) -> None:
        if not json:
            console.print(f"replaying {what}", markup=False)

    with quiet(), opened(project.settings, "firnline verify --replay") as session:
        found = certify(project, session, collection, epoch, begun)
    if json:
        print_json([asdict(each) for each in found])
    else:
        rows = [
            (f"{each.pipeline}.{each.collection}", each.epoch, each.rows, f"{each.seconds:.1f}", _outcome(each)) for each in found
        ]
        print_table("replayed", ("collection", "epoch", "rows", "seconds", "outcome"), rows)
        for each in found:
            if each.difference is not None:
                where = f"{each.collection} at {each.epoch}"
                console.print(f"{each.pipeline}.{each.stage} is not deterministic: {where}", markup=False)
                for name in ("published", "replayed"):
                    for row in getattr(each.difference, name):
                        console.print(f"  only {name}: {row}", markup=False)
    if any(each.difference is not None for each in found):
        raise typer.Exit(1)


def _verify_replicas(project: Project, asked: str | None, deep: bool, json: bool) -> None:
    from firnline.runtime.verify_replicas import verify_replicas

    found = verify_replicas(project, asked, is_deep=deep)
    if json:
        errors = {"out": found.out, "broken": found.broken}
        print_json({**asdict(found), **{kind: {of: e.as_json() for of, e in each.items()} for kind, each in errors.items()}})
    else:
        rows = [(f"{each.pipeline}.{each.collection}", each.place, each.what, each.file) for each in found.problems]
        looked = f"{found.files} copies, {found.bytes} bytes in {found.seconds:.1f} s"
        if rows:
            problems = "1 problem" if len(rows) == 1 else f"{len(rows)} problems"
            print_table(f"{problems} in {looked}", ("collection", "place", "what", "file"), rows)
            console.print(f"{found.withdrawn} batches are not counted as copied any more; 'firnline replicate' copies them again")
        else:
            console.print(f"all well: {looked}" + (", every byte read" if deep else ""))
        for error in (*found.out.values(), *found.broken.values()):
            console.print(str(error), style="red", markup=False)
    if found.problems or found.out or found.broken:
        raise typer.Exit(1)


def _outcome(each: Replayed) -> str:
    if each.difference is not None:
        return f"differs in {', '.join(each.difference.columns)}"
    return f"skipped: {each.skipped}" if each.skipped else "the same"


def _verified(project: Project, collection: str | None, deep: bool, json: bool) -> Verified:
    from contextlib import ExitStack

    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from firnline.runtime.verify import verify as verified

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with ExitStack() as stack:
        progress = stack.enter_context(
            Progress(*columns, console=console, disable=json or not console.is_terminal, transient=True)
        )
        bar = progress.add_task("starting Spark" if deep else "looking", total=None)
        session = None
        if deep:
            from firnline.engine.session import opened

            stack.enter_context(quiet())
            session = stack.enter_context(opened(project.settings, "firnline verify"))
        return verified(
            project,
            collection,
            session,
            lambda name, done, total: progress.update(bar, description=name, completed=done, total=total),
        )


def _labelled(project: Project, problems: tuple[Problem, ...]) -> list[tuple[Problem, tuple[str, ...]]]:
    """Problems with their epochs as people write them."""
    from firnline.runtime.verify import labels

    label = labels(project, {problem.pipeline for problem in problems})
    return [(problem, tuple(map(label[problem.pipeline], problem.epochs))) for problem in problems]


def _document(project: Project, found: Verified) -> dict[str, Any]:
    def listed(problems: tuple[Problem, ...]) -> list[dict[str, Any]]:
        names = ("pipeline", "collection", "parts", "kind", "file", "what")
        return [
            {"epochs": epochs, **{name: getattr(problem, name) for name in names}}
            for problem, epochs in _labelled(project, problems)
        ]

    gaps = [{"pipeline": pipeline, **gap_document(project, pipeline, gap)} for pipeline, gap in found.gaps]
    return {**asdict(found), "gaps": gaps, "problems": listed(found.problems), "staged_problems": listed(found.staged_problems)}


def _print(project: Project, found: Verified, deep: bool) -> None:
    looked = f"{found.collections} collections, {found.files} files, {found.bytes} bytes in {found.seconds:.1f} s"
    if found.problems:
        inside = f"{project.catalog.warehouse}/"
        rows = [
            (
                f"{each.pipeline}.{each.collection}",
                _short(epochs),
                _short(each.parts),
                each.kind,
                each.what,
                (each.file or "").removeprefix(inside),
            )
            for each, epochs in _labelled(project, found.problems)
        ]
        problems = "1 problem" if len(rows) == 1 else f"{len(rows)} problems"
        print_table(f"{problems} in {looked}", ("collection", "epochs", "parts", "kind", "what", "file"), rows)
    else:
        console.print(f"all well: {looked}" + (", digests added up anew" if deep else ""))
    print_gaps(project, found.gaps)
    for name in found.not_added:
        console.print(f"{name}: digests were not added up: its manifests or metadata have to be mended first", markup=False)
    if found.staged:
        damaged = f", {len(found.staged_problems)} problems with these, which is no damage" if found.staged_problems else ""
        console.print(f"{found.staged} snapshots are staged and were never published{damaged}")
    if found.unreferenced:
        unnamed = f"{found.unreferenced} files ({found.unreferenced_bytes} bytes)"
        console.print(f"{unnamed} are named by no snapshot, which is no damage")


def _short(several: tuple[Any, ...]) -> str:
    shown = ", ".join(map(str, several[:_MOST_EPOCHS]))
    return shown + (f" and {len(several) - _MOST_EPOCHS} more" if len(several) > _MOST_EPOCHS else "")
