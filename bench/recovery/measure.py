"""What getting lost work back takes: repairs of deleted files, and retries of epochs that were ended between their waves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from bench.project import project_in
from bench.recovery import repairs, retries
from bench.recovery.pipeline import MODULE, NAME
from firnline.engine.session import opened

_SETTINGS = """\
spark_master = "local[2]"
spark_memory = "8g"
spark_shuffle_partitions = 4
"""


def measured(
    root: Path, jars: Path, visits: int, runs: int, say: Callable[[str], None]
) -> tuple[list[repairs.Repair], list[retries.Retry]]:
    """Run it all in a new project, with so many visits in a large epoch."""
    project = project_in(root, _SETTINGS, NAME, MODULE.format(visits=visits, copies=retries.copies(runs)), jars)
    with opened(project.settings, NAME) as session:
        repaired = repairs.measured(project, session, runs, lambda sentence: say(f"repair, {sentence}"))
        return repaired, retries.measured(project, session, runs, lambda sentence: say(f"retry: {sentence}"))
