"""``python -m firnline.airflow.preloaded ...``: Airflow's command line in a process that has loaded what tasks need.

A LocalExecutor forks its workers from the scheduler, and those fork the tasks: what is loaded there, no task has to load again.
That is most of what a short warm task would do.
"""

from __future__ import annotations

import importlib
import sys

FOR_TASKS = (
    "firnline.airflow.dag",
    "firnline.engine.progress",
    "firnline.engine.unplugged",
    "firnline.engine.warm",
    "firnline.model.fingerprint",
    "firnline.runtime.job",
    "firnline.runtime.stage_run",
    "firnline.tables.views",
)


def main() -> None:
    """Load it all, then be Airflow."""
    for name in FOR_TASKS:
        importlib.import_module(name)
    from airflow.__main__ import main as airflow

    sys.argv[0] = "airflow"
    airflow()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
