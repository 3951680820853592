"""The job inside ``spark-submit``: advance one collection through one epoch and report what became of it."""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from firnline.errors import FirnlineError
from firnline.model.epoch import Epoch
from firnline.runtime.advance import Outcome, advance
from firnline.runtime.chatter import hush
from firnline.runtime.project import Project


def main(arguments: Sequence[str]) -> int:
    """Run; 0 when the log holds the epoch afterwards, 1 when it does not."""
    parser = argparse.ArgumentParser(prog="advance", description=__doc__)
    parser.add_argument("pipeline")
    parser.add_argument("collection")
    parser.add_argument("--lower", required=True, help="where the epoch begins, ISO text in UTC or an integer")
    parser.add_argument("--upper", required=True, help="where it ends")
    parser.add_argument("--report", type=Path, help="a file for the outcome, as JSON")
    given = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="firnline: %(message)s")
    hush()
    try:
        message, how = _run(given.pipeline, given.collection, given.lower, given.upper)
        report: dict[str, object] = {"outcome": how, "message": message, "error": None}
    except FirnlineError as error:
        report = {"outcome": "error", "message": str(error), "error": error.as_json()}
    if given.report:
        given.report.write_text(json.dumps(report))  # who asked for it tells it
    else:
        print(f"firnline: {report['message']}", flush=True)
    return 1 if report["outcome"] == "error" else 0


def _run(pipeline: str, collection: str, lower: str, upper: str) -> tuple[str, str]:
    from firnline.engine.session import opened

    project = Project.load()
    declared = project.declared(pipeline)
    schedule = declared.graph.schedule
    target = Epoch(schedule.point(lower), schedule.point(upper))
    with opened(project.settings, f"{pipeline}.{collection} {schedule.label(target.lower)}") as session:
        outcomes = list(advance(project, declared, session, collection, target))
    told = "; ".join(_sentence(outcome, schedule.label(outcome.epoch.lower)) for outcome in outcomes)
    return told, "computed" if any(outcome.how == "computed" for outcome in outcomes) else "kept"


def _sentence(outcome: Outcome, label: str) -> str:
    if outcome.how == "kept":
        return f"kept {outcome.collection} at {label}"
    aside = f", {outcome.malformed} malformed records set aside" if outcome.malformed else ""
    return f"computed {outcome.collection} at {label}: {outcome.rows} rows changed{aside} in {outcome.seconds:.1f} s"
