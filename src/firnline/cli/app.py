"""All commands, and the one place where an error becomes a message and an exit code."""

from __future__ import annotations

import sys

import typer

from firnline.cli.output import errors, print_json
from firnline.errors import FirnlineError

app = typer.Typer(
    help="Epoch pipelines: Airflow orchestrates, Spark computes, Iceberg keeps.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def firnline() -> None:
    """Make ``firnline`` a group of commands, however many there are."""


def main() -> None:
    """Run the command line."""
    try:
        app()
    except FirnlineError as error:
        if "--json" in sys.argv:
            print_json({"error": error.as_json()})
        else:
            errors.print(str(error), style="red", markup=False)
        sys.exit(1)


# Each module registers its command on ``app``; what a command needs is imported when it is called.
from firnline.cli import (  # noqa: E402, F401
    approve,
    bench,
    branch,
    checks,
    demo,
    diff,
    doctor,
    erase,
    explain,
    init,
    ledger,
    lineage,
    maintain,
    plan,
    promote,
    repair,
    replicate,
    rescale,
    rewind,
    run,
    safepoint,
    show,
    status,
    top,
    up,
    verify,
    warm_engine,
)
