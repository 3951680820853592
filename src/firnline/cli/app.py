"""All commands, and the one place where an error becomes a message and an exit code."""

from __future__ import annotations

import sys
from importlib import metadata
from typing import Annotated, NoReturn

import typer

from firnline.cli.output import console, errors, print_json
from firnline.errors import FirnlineError

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _tell_version(is_asked: bool) -> None:
    if is_asked:
        console.print(metadata.version("firnline"))
        raise typer.Exit


@app.callback()
def firnline(
    version: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Show the version, and end.")
    ] = False,
) -> None:
    """Epoch pipelines: Airflow orchestrates, Spark computes, Iceberg keeps."""


def main() -> None:
    """Run the command line."""
    try:
        app()
    except FirnlineError as error:
        _refuse(error)
    except OSError as error:
        what = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else f"{type(error).__name__}: {error}"
        _refuse(FirnlineError("PREREQUISITE", what))


def _refuse(error: FirnlineError) -> NoReturn:
    if "--json" in sys.argv:
        print_json({"error": error.as_json()})
    else:
        errors.print(str(error), style="red", markup=False, soft_wrap=True)
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
