"""``firnline promote``: the pipeline becomes what a branch says, in its next epoch."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from firnline.cli.app import app
from firnline.cli.branch import Name, Of, only
from firnline.cli.engine import engine
from firnline.cli.output import Json, console, print_json, print_table


@app.command()
def promote(
    name: Name,
    rebase: Annotated[bool, typer.Option("--rebase", help="First bring the branch to where the pipeline is.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")] = False,
    pipeline: Of = None,
    json: Json = False,
) -> None:
    """Append what leads from the pipeline's rows to the branch's, as its next epoch. Readers see insertions and removals."""
    from firnline.runtime.project import Project
    from firnline.runtime.promote import planned, preview
    from firnline.runtime.promote import promote as promoted

    project = Project.load()
    graph = only(project, pipeline)
    with engine(project, f"promote {name}", json=json) as session:
        plan = planned(project, graph, name, session, is_rebased=rebase and not dry_run)
        epoch = None if plan is None else graph.schedule.label(plan.epoch.lower)
        document: dict[str, Any] = {"branch": name, "epoch": epoch, "changed": () if plan is None else plan.changed}
        if plan is not None and dry_run:
            found = preview(project, graph, plan, 0)
            document["collections"] = [asdict(each) for each in found]
            lines: list[tuple[Any, ...]] = [(each.collection, each.added, each.removed, each.changed) for each in found]
        elif plan is not None:
            outcomes = list(promoted(project, graph, plan, session))
            document["outcomes"] = [{**asdict(each), "epoch": graph.schedule.label(each.epoch.lower)} for each in outcomes]
            lines = [(each.collection, each.how, each.rows) for each in outcomes]
    if json:
        print_json(document)
    elif plan is None:
        console.print(f"Nothing to promote: {graph.name!r} says what {name!r} says.")
    elif dry_run:
        print_table(f"{graph.name}: what epoch {epoch} would change", ("collection", "added", "removed", "changed"), lines)
    else:
        print_table(f"{graph.name}: {name} is promoted in {epoch}", ("collection", "", "rows changed"), lines)
