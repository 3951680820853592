"""What commands print: tables and sentences for people, one JSON document for programs."""

from __future__ import annotations

import json
import logging
import math
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from firnline.errors import FirnlineError

if TYPE_CHECKING:
    from firnline.model.epoch import Schedule

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
Cold = Annotated[bool, typer.Option("--cold", help="Start a Spark driver for each task instead of one engine for all.")]

_WIDE = 400
"""How many columns there are where nobody looks: a line in a pipe or a file is not folded."""


def _console(*, stderr: bool = False) -> Console:
    made = Console(stderr=stderr, highlight=False)
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = _WIDE
    return made


console = _console()
errors = _console(stderr=True)


def print_json(document: Any) -> None:
    """Print a JSON document: times become ISO text, decimals plain text, bytes hexadecimal, NaN and infinities their names."""
    json.dump(_plain(document), sys.stdout, default=str, ensure_ascii=False, allow_nan=False, indent=2)
    sys.stdout.write("\n")


def nothing_due(schedule: Schedule) -> str:
    """Why there is nothing to run."""
    if schedule.timed:
        return "Nothing: the log holds every epoch that is due."
    return "Nothing: integer epochs are due when asked for, with --to."


def _plain(value: Any) -> Any:
    match value:
        case float() if not math.isfinite(value):
            return str(value)
        case bytes():
            return value.hex()
        case Decimal():
            return f"{value:f}"
        case date() | datetime():
            return value.isoformat()
        case dict():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
    return value


def size_text(count: int | None) -> str:
    """A number of bytes as people read it."""
    size = float(count or 0)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print rows under a title; null is shown as an empty cell."""
    table = Table(title=title, title_justify="left", header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*("" if value is None else str(value) for value in row))
    console.print(table)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Refuse a file that cannot be written."""
    try:
        yield
    except OSError as error:
        what = f"{path} cannot be written: {error.strerror or error}"
        raise FirnlineError("BAD_OPTION", what, todo="Name a file in a folder that is there and takes files.") from error


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the JVM's chatter off the terminal, in a file without a name, where who starts it finds why it does not start.

    Errors come back as exceptions anyway, and our own warnings are shown.
    """
    logging.getLogger("DataFrameQueryContextLogger").setLevel(logging.CRITICAL)
    sys.stderr.flush()
    kept = os.dup(2)
    with TemporaryFile() as aside, os.fdopen(kept, "w") as terminal:
        os.dup2(aside.fileno(), 2)
        warnings = logging.StreamHandler(terminal)
        warnings.setLevel(logging.WARNING)
        logging.getLogger("firnline").addHandler(warnings)
        try:
            yield
        finally:
            logging.getLogger("firnline").removeHandler(warnings)
            os.dup2(kept, 2)
