"""Something done to a pipeline in a process of its own, on a Spark that outlives it: ``child.py ROOT REMOTE PIPELINE ACT``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql.connect.session import SparkSession

from firnline.errors import FirnlineError
from firnline.runtime.project import Project
from tests.faults.working import ACTS


def main(root: str, remote: str, pipeline: str, act: str) -> int:
    """Do it, or print the error."""
    session = SparkSession.builder.remote(remote).create()
    try:
        project = Project.load(Path(root))
        ACTS[act](project, session, pipeline)
        project.flusher.drain(20)
    except FirnlineError as error:
        print(json.dumps(error.as_json()))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
