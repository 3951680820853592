"""One run of an epoch in a process of its own, on a Spark that outlives it: ``child.py ROOT REMOTE PIPELINE EPOCH``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql.connect.session import SparkSession

from firnline.errors import FirnlineError
from firnline.runtime.project import Project
from tests.spark.running import run_epoch


def main(root: str, remote: str, pipeline: str, label: str) -> int:
    """Print what became of each collection, or the error."""
    session = SparkSession.builder.remote(remote).create()
    try:
        project = Project.load(Path(root))
        outcomes = run_epoch(project, session, pipeline, label)
        project.flusher.drain(20)
    except FirnlineError as error:
        print(json.dumps(error.as_json()))
        return 1
    print(json.dumps([(outcome.collection, outcome.how) for outcome in outcomes]))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
