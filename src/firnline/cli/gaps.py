"""Gaps, as ``verify`` and ``repair`` print them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from firnline.cli.output import console

if TYPE_CHECKING:
    from firnline.model.gap import Gap
    from firnline.runtime.project import Project


def print_gaps(project: Project, gaps: Sequence[tuple[str, Gap]]) -> None:
    """A line for each."""
    for pipeline, gap in gaps:
        told = gap_document(project, pipeline, gap)
        epochs = ", ".join(first if first == last else f"{first} to {last}" for first, last in told["epochs"])
        good = f"; made good at {told['made_good']}" if told["made_good"] else ""
        where = (
            f"{pipeline}.{gap.collection} lacks {gap.rows} rows of epochs {epochs}, parts {', '.join(map(str, told['parts']))}"
        )
        console.print(f"gap: {where}, since {gap.since} by {gap.owner}{good}: {gap.why}", style="yellow", markup=False)


def gap_document(project: Project, pipeline: str, gap: Gap) -> dict[str, Any]:
    """A gap as plain JSON values."""
    from firnline.runtime.verify import labels

    label = labels(project, [pipeline])[pipeline]
    return {
        "collection": gap.collection,
        "epochs": [(label(span.first), label(span.last)) for span in gap.spans],
        "parts": sorted(gap.parts()),
        "rows": gap.rows,
        "since": gap.since,
        "owner": gap.owner,
        "why": gap.why,
        "made_good": None if gap.made_good is None else label(gap.made_good),
    }
