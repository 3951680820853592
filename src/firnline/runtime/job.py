"""What a task does with Spark: advance collections through one epoch. Also the job inside ``spark-submit``, which reports it."""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from firnline.errors import FirnlineError
from firnline.model.epoch import Epoch
from firnline.runtime.advance import Outcome, advance
from firnline.runtime.chatter import hush
from firnline.runtime.project import Project
from firnline.runtime.rerun import Rerun

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

    from firnline.engine.server import Endpoint

Opening = Callable[[str], "AbstractContextManager[SparkSession]"]
"""A session under a name."""

How = Literal["computed", "kept"]
_KEPT: How = "kept"

_logger = logging.getLogger(__name__)


def main(arguments: Sequence[str]) -> int:
    """Run; 0 when the log holds the epoch afterwards, 1 when it does not."""
    parser = argparse.ArgumentParser(prog="advance", description=__doc__)
    parser.add_argument("pipeline")
    parser.add_argument("collection", nargs="?", help="all of the pipeline's by default, in order")
    parser.add_argument("--lower", required=True, help="where the epoch begins, ISO text in UTC or an integer")
    parser.add_argument("--upper", required=True, help="where it ends")
    parser.add_argument("--force", metavar="NAME", help="replay the epoch under this name, whatever the log was made with")
    parser.add_argument("--report", type=Path, help="a file for the outcome, as JSON")
    given = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(message)s")
    hush()
    try:
        how = _run(given.pipeline, given.collection, given.lower, given.upper, given.force)
        report: dict[str, object] = {"outcome": how, "error": None}
    except FirnlineError as error:
        report = {"outcome": "error", "error": error.as_json()}
        if not given.report:  # else, who asked for it tells it
            print(error, flush=True)
    if given.report:
        given.report.write_text(json.dumps(report))
    return 1 if report["outcome"] == "error" else 0


def _run(pipeline: str, collection: str | None, lower: str, upper: str, force: str | None) -> How:
    from firnline.engine.session import opened

    project = Project.load()
    schedule = project.graph(pipeline).schedule
    target = Epoch(schedule.point(lower), schedule.point(upper))
    return advanced(project, pipeline, collection, target, lambda name: opened(project.settings, name), force)


def warmly_advanced(
    project: Project, pipeline: str, collection: str | None, target: Epoch, endpoint: Endpoint, force: str | None = None
) -> How:
    """``advanced`` on an engine that runs already."""
    from firnline.engine.warm import connected

    return advanced(project, pipeline, collection, target, lambda _: connected(project.settings, endpoint), force)


def advanced(
    project: Project, pipeline: str, collection: str | None, target: Epoch, opening: Opening, force: str | None = None
) -> How:
    """Advance a collection, or all of a pipeline, in one session, and tell of each epoch; whether something was computed.

    Where the log was made with something else than today's code and inputs, or ``force`` names a replay, the collection goes
    back to the target first.
    """
    from firnline.engine.progress import Progress

    declared = project.declared(pipeline)
    label = declared.graph.schedule.label
    names = [collection] if collection else [each.name for each in declared.graph.collections]
    rerun, found = Rerun(project, declared.graph, target, force), _KEPT
    with opening(f"{collection or pipeline} at {label(target.lower)}") as session:
        session.registerProgressHandler(Progress())  # type: ignore[arg-type]  # any function will do
        for name in names:
            last, fresh = rerun.target(declared, session, name)
            for outcome in advance(project, declared, session, name, last, fresh):
                _logger.info(_sentence(outcome, label(outcome.epoch.lower)))
                found = "computed" if outcome.how in ("computed", "reused") else found
    return found


def _sentence(outcome: Outcome, label: str) -> str:
    if outcome.how == "kept":
        return f"kept {outcome.collection} at {label}"
    if outcome.how == "reused":
        return f"reused {outcome.collection} at {label}: {outcome.rows} rows changed, as before the rewind"
    aside = f", {outcome.malformed} malformed records set aside" if outcome.malformed else ""
    return f"computed {outcome.collection} at {label}: {outcome.rows} rows changed{aside} in {outcome.seconds:.1f} s"
