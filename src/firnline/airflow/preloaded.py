"""``python -m firnline.airflow.preloaded ...``: Airflow's command line in a process that has loaded what tasks need.

A LocalExecutor forks its workers from the scheduler, and those fork the tasks: what is loaded there, no task has to load again.
That is most of what a short warm task would do.
"""

from __future__ import annotations

import importlib
import sys

FOR_TASKS = (
    "alembic.command",
    "firnline.airflow.dag",
    "firnline.engine.progress",
    "firnline.engine.unplugged",
    "firnline.engine.warm",
    "firnline.model.fingerprint",
    "firnline.runtime.job",
    "firnline.runtime.measures",
    "firnline.runtime.reuse",
    "firnline.runtime.stage_run",
    "firnline.tables.catalog",
    "firnline.tables.determinants",
    "firnline.tables.views",
    "grpc._channel",
    "pyiceberg.avro.decoder_fast",
    "pyiceberg.catalog.sql",
    "pyiceberg.io.fsspec",
    "pyiceberg.io.pyarrow",
    "pyiceberg.table",
    "pyiceberg.table.update.snapshot",
    "pyiceberg.view",
)


def load() -> None:
    """Load it all, and what a process finds out once: which package brought which module, how classes map to tables."""
    for name in FOR_TASKS:
        importlib.import_module(name)
    from sqlalchemy.orm import configure_mappers

    from firnline.model.fingerprint import distributions

    distributions()
    configure_mappers()  # with Airflow's, which are many: the first query of a task would wait for them


def main() -> None:
    """Load it all, then be Airflow."""
    load()
    from airflow.__main__ import main as airflow

    sys.argv[0] = "airflow"
    airflow()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
