"""How stages are computed, as this machine knows it without Spark: kept whenever a stage's plan was made here.

One file for each stage, for its code as it is today. ``firnline explain`` tells more, from a plan that it makes.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from firnline.model.graph import Graph
from firnline.runtime.cache import keep, recall
from firnline.settings import Settings

_FOLDER = "explained"


@dataclass(frozen=True, slots=True)
class Operator:
    """A node of a plan, so many levels below the stage's last one, and how its change is computed."""

    depth: int
    what: str
    change: str


@dataclass(frozen=True, slots=True)
class Explained:
    """A stage's plan in words; without steps it is computed in full, and ``refusal`` says why."""

    kind: str
    why: str
    steps: tuple[tuple[str, tuple[Operator, ...]], ...]
    """What it keeps from epoch to epoch, by name, and the stage itself."""
    lineage: dict[str, tuple[str, ...]]
    """The columns of collections that each column's values come from."""
    refusal: str | None
    apart: str | None
    """Why neighbouring epochs are never computed at once; None if they are where they change few rows."""

    @classmethod
    def of_json(cls, data: dict[str, Any]) -> Explained:
        """Read what ``asdict`` made, as JSON has it."""
        steps = tuple((name, tuple(Operator(**each) for each in operators)) for name, operators in data["steps"])
        return cls(**{**data, "steps": steps, "lineage": {name: tuple(of) for name, of in data["lineage"].items()}})


def recalled(settings: Settings, graph: Graph, stage: str) -> Explained | None:
    """How a stage is computed, if that is known for its code."""
    try:
        document = recall(settings.work / _FOLDER, f"{graph.name}.{stage}", graph.fingerprints[stage])
        return None if document is None else Explained.of_json(document)
    except (ValueError, TypeError, KeyError):  # another version of Firnline wrote it
        return None


def remember(settings: Settings, graph: Graph, stage: str, explained: Explained) -> None:
    """Keep how a stage is computed by its code."""
    if recalled(settings, graph, stage) != explained:
        keep(settings.work / _FOLDER, f"{graph.name}.{stage}", graph.fingerprints[stage], asdict(explained))
