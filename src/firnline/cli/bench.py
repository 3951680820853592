"""``firnline bench``: the benchmarks of Firnline's own repository."""

from __future__ import annotations

import importlib
import os
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from firnline.cli.app import app
from firnline.cli.output import Json, console, print_json, print_table, quiet
from firnline.errors import FirnlineError

Work = Annotated[Path | None, typer.Option(help="An empty folder to work in; a temporary one by default.")]
Runs = Annotated[int, typer.Option(min=1, help="Counted rounds; there is one more to warm up.")]

bench = typer.Typer(help="Benchmarks, in a checkout of Firnline's repository.", no_args_is_help=True)
app.add_typer(bench, name="bench")


@bench.callback()
def _group() -> None:
    """Make ``bench`` a group, however many commands it has."""


@bench.command()
def incremental(
    suite: Annotated[list[str] | None, typer.Option(help="tpch, tpch22, amplab or growth; all of them by default.")] = None,
    scale: Annotated[
        list[float] | None, typer.Option(help="The state's size: TPC-H's scale factor, or millions of AMPLab visits.")
    ] = None,
    change: Annotated[
        list[float] | None, typer.Option(help="How much changes: a share of all rows (0.001), or from 1 on a number of rows.")
    ] = None,
    runs: Annotated[int, typer.Option(min=1, help="Counted rounds; there are two more to warm up.")] = 5,
    plot: Annotated[Path | None, typer.Option(help="Draw a plot into this PNG file.")] = None,
    work: Annotated[Path | None, typer.Option(help="The folder for data and tables; .firnline/bench by default.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the tables of the last run instead of new ones.")] = False,
    json: Json = False,
) -> None:
    """Compare incremental stages with full recompute and MERGE in Spark and with DuckDB, on the same data."""
    measure, report = _loaded("measure"), _loaded("report")
    suites = _loaded("suites").SUITES
    for name in suite or ():
        if name not in suites:
            raise FirnlineError("BAD_OPTION", f"--suite {name} is none of {', '.join(suites)}", todo="Name one of these.")
    for value in (*(scale or ()), *(change or ())):
        if value <= 0:
            raise FirnlineError("BAD_OPTION", f"{value:g} is not above 0", todo="Give a --scale and a --change above 0.")
    root = (work or _checkout() / ".firnline" / "bench").resolve()
    cells: list[Any] = []
    with _progress(json) as say:
        for name in suite or suites:
            for size in scale or suites[name].scales:
                changes = sorted(change or suites[name].changes)
                cells += measure.measured(root, _jars(), name, size, changes, runs, say, resume=resume)
    if plot is not None:
        report.plot(cells, plot)
    if json:
        print_json(report.document(cells, _machine()))
    else:
        for title, lines in map(report.seconds, cells):
            print_table(title, report.SECONDS, lines)
        print_table("Times as long as ours: of the medians, and of single rounds", report.COLUMNS, report.lines(cells))
    _check_equal([difference for cell in cells for difference in cell.differences], json)


@bench.command()
def overhead(
    rows: Annotated[int, typer.Option(min=1, help="Changed rows per epoch.")] = 5_000_000,
    runs: Annotated[int, typer.Option(min=1, help="Counted epochs; there is one more to warm up.")] = 5,
    work: Work = None,
    json: Json = False,
) -> None:
    """Measure what digests, lineage and commits cost: epochs with and without them, and with a slow ledger or none."""
    measure = _loaded("measure", "overhead")
    with _measuring(work, json) as (root, say):
        costs = measure.measured(root, _jars(), rows, runs, say)
    if json:
        shares = [{**asdict(cost), "cost": cost.over("on", "off")} for cost in costs]
        print_json({"rows": rows, "machine": _machine(), "costs": shares})
        return
    columns = ("collection", *measure.KINDS, "on / off", "slow / on", "none / on")
    compared = (("on", "off"), ("slow ledger", "on"), ("no ledger", "on"))
    lines = [
        (cost.collection, *map(_spread, cost.seconds.values()), *(f"{cost.over(*pair):+.1%}" for pair in compared))
        for cost in costs
    ]
    title = f"Digests, lineage and commits at {rows:,} changed rows, seconds: median (least to most) of {runs}"
    print_table(title, columns, lines)


@bench.command()
def whatif(
    rows: Annotated[int, typer.Option(min=1_000, help="Orders per epoch.")] = 1_000_000,
    epochs: Annotated[int, typer.Option(min=2, help="Epochs that the pipeline has.")] = 20,
    runs: Runs = 3,
    work: Work = None,
    json: Json = False,
) -> None:
    """Compare a what-if by a branch with one by computing everything anew and joining it with what there is."""
    measure = _loaded("measure", "whatif")
    with _measuring(work, json) as (root, say):
        rounds = measure.measured(root, _jars(), rows, epochs, runs, say)
    ratio = median(each.ratio for each in rounds)
    is_equal = all(each.ours_differing == each.full_differing for each in rounds)
    if json:
        told = [{**asdict(each), "ratio": each.ratio} for each in rounds]
        print_json({"rows": rows, "epochs": epochs, "machine": _machine(), "rounds": told, "ratio": ratio, "equal": is_equal})
    else:
        lines = [
            (
                *(_steps(of) for of in (each.full, each.ours)),
                f"{each.ratio:.1f}",
                each.computed,
                sum(each.ours_differing.values()),
            )
            for each in rounds
        ]
        columns = ("everything anew", "branch", "times", "computed", "rows that differ")
        print_table(f"What if, at {epochs} epochs of {rows:,} orders, seconds", columns, lines)
        console.print(f"A what-if by everything anew takes {ratio:.1f} times as long.")
    if not is_equal:
        raise typer.Exit(1)


def _steps(seconds: dict[str, float]) -> str:
    parts = ", ".join(f"{name} {of:.1f}" for name, of in seconds.items())
    return f"{sum(seconds.values()):.1f} ({parts})"


@bench.command()
def recovery(
    visits: Annotated[int, typer.Option(min=400_000, help="Visits in a large epoch.")] = 1_000_000,
    runs: Runs = 1,
    work: Work = None,
    json: Json = False,
) -> None:
    """Measure what getting lost work back takes: repairs of deleted files, and retries of epochs ended between their waves."""
    measure, report = _loaded("measure", "recovery"), _loaded("report", "recovery")
    with _measuring(work, json) as (root, say):
        repairs, retries = measure.measured(root, _jars(), visits, runs, say)
    differences = [difference for each in (*repairs, *retries) for difference in each.differences]
    if json:
        print_json({"visits": visits, "machine": _machine(), **report.document(repairs, retries)})
    else:
        print_table(f"Repair at {visits:,} visits per epoch", report.REPAIRS, report.repair_lines(repairs))
        print_table("Retry of an epoch that was ended between its waves", report.RETRIES, report.retry_lines(retries))
    _check_equal(differences, json)


@bench.command()
def maintenance(
    rows: Annotated[
        int, typer.Option(min=1000, help="Rows of the table, of which each epoch changes one in a hundred.")
    ] = 1_000_000,
    epochs: Annotated[int, typer.Option(min=2, help="How many epochs.")] = 200,
    work: Work = None,
    json: Json = False,
) -> None:
    """Measure what many small epochs leave behind: reading, files and time, with maintenance and without."""
    measure, report = _loaded("measure", "maintenance"), _loaded("report", "maintenance")
    with _measuring(work, json) as (root, say):
        found = measure.measured(root, _jars(), rows, epochs, say)
    if json:
        print_json({"machine": _machine(), **report.document(found)})
    else:
        print_table(f"{epochs} epochs that change 1 % of {rows:,} rows each", report.COLUMNS, report.lines(found))
    _check_equal(found.differences, json)


@bench.command()
def dedup(
    seen: Annotated[int, typer.Option(min=1000, help="Ids that were seen.")] = 50_000_000,
    new: Annotated[int, typer.Option(min=100, help="Records of an epoch, of which some were seen.")] = 100_000,
    runs: Annotated[int, typer.Option(min=1, help="Counted look-ups; there is one more to warm up.")] = 3,
    work: Work = None,
    json: Json = False,
) -> None:
    """Measure what looking up ids takes among those that were seen: bytes and time, against a full anti-join."""
    measure, report = _loaded("measure", "dedup"), _loaded("report", "dedup")
    with _measuring(work, json) as (root, say):
        found = measure.measured(root, _jars(), seen, new, runs, say)
    if json:
        print_json({"machine": _machine(), **report.document(found)})
    else:
        title = f"{new:,} records among {seen:,} seen ids, {found.bytes / 1e6:,.0f} MB"
        print_table(title, report.COLUMNS, report.lines(found))
        console.print(
            f"The concordance has {found.index / 1e6:,.0f} MB; the first epoch that looked ids up, "
            f"and made most of it, took {found.indexed:.0f} s."
        )
    _check_equal(found.differences, json)


@bench.command()
def catchup(
    epochs: Annotated[int, typer.Option(min=2, help="Epochs that are caught up with at once.")] = 20,
    rows: Annotated[int, typer.Option(min=1, help="Orders per epoch.")] = 500,
    runs: Runs = 3,
    work: Work = None,
    json: Json = False,
) -> None:
    """Measure what catching up with many small epochs costs, against one epoch, and against one after the other."""
    measure = _loaded("measure", "catchup")
    with _measuring(work, json) as (root, say):
        rounds = measure.measured(root, _jars(), epochs, rows, runs, say)
    ratio = median(each.ratio for each in rounds)
    differences = [difference for each in rounds for difference in each.differences]
    if json:
        told = [{**asdict(each), "ratio": each.ratio} for each in rounds]
        print_json({"epochs": epochs, "rows": rows, "machine": _machine(), "rounds": told, "ratio": ratio})
    else:
        lines = [
            (_spread(each.single), f"{sum(each.single):.1f}", f"{each.together:.1f}", f"{each.ratio:.1f}", each.at_once)
            for each in rounds
        ]
        columns = ("one epoch", f"{epochs} one by one", f"{epochs} at once", "times one", "epochs of a job")
        print_table(f"Catching up with {epochs} epochs of {rows:,} orders, seconds", columns, lines)
        console.print(f"{epochs} epochs cost {ratio:.1f} times as much as one; digests, lineage and rows per epoch are compared.")
    _check_equal(differences, json)


@bench.command()
def epoch(
    work: Work = None,
    json: Json = False,
) -> None:
    """Measure an empty epoch of six stages through Airflow: warm, per epoch, cold, and as plain spark-submit tasks."""
    measure, report = _loaded("measure", "epoch"), _loaded("report", "epoch")
    with _measuring(work, json) as (root, say):
        cells = measure.measured(root, _checkout(), say)
    if json:
        print_json({"machine": _machine(), **report.document(cells)})
    else:
        print_table("Seconds: median (least to most)", report.COLUMNS, report.lines(cells))


@bench.command()
def failures(
    visits: Annotated[int, typer.Option(min=400_000, help="Visits that are joined.")] = 2_000_000,
    work: Work = None,
    json: Json = False,
) -> None:
    """Measure what failures cost on a cluster: deaths of workers, driver and master in mid-join, lost rows, slow workers."""
    measure, report = _loaded("measure", "failures"), _loaded("report", "failures")
    with _measuring(work, json) as (root, say):
        found = measure.measured(root, _checkout(), visits, say)
    if json:
        print_json({"visits": visits, "machine": _machine(), **report.document(found)})
    else:
        print_table(f"Killed in the middle of a join of {visits:,} visits", report.KILLS, report.kill_lines(found))
        print_table(f"A worker dies, and {measure.LOST} parts are lost", report.LOSSES, report.loss_lines(found))
        print_table("One of three workers stands still most of the time", report.SLOW, report.slow_lines(found))
    _check_equal(found.differences, json)


def _spread(seconds: Sequence[float]) -> str:
    return f"{median(seconds):.2f} ({min(seconds):.2f}-{max(seconds):.2f})"


def _checkout() -> Path:
    """The repository that this very code is in, importable."""
    root = Path(__file__).parents[3]
    if not (root / "bench" / "incremental" / "measure.py").is_file():
        raise FirnlineError("NO_CHECKOUT", "the benchmarks are not part of the installed package")
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    return root


def _jars() -> Path:
    return _checkout() / ".firnline" / "jars"


def _loaded(name: str, benchmark: str = "incremental") -> Any:
    """A module of a benchmark; it needs packages that Firnline itself does not."""
    _checkout()
    try:
        return importlib.import_module(f"bench.{benchmark}.{name}")
    except ModuleNotFoundError as error:
        raise FirnlineError("PREREQUISITE", f"the benchmarks need {error.name}", todo="Set the checkout up: make.") from error


@contextmanager
def _measuring(work: Path | None, json: bool) -> Iterator[tuple[Path, Callable[[str], None]]]:
    """The folder to work in, and a function that tells how far things are."""
    with TemporaryDirectory() as temporary, _progress(json) as say:
        yield (work or Path(temporary)).resolve(), say


@contextmanager
def _progress(json: bool) -> Iterator[Callable[[str], None]]:
    """A function that tells how far things are: a last line that moves on a terminal, a line each time elsewhere."""
    if json:
        with quiet():
            yield lambda _: None
    elif console.is_terminal:
        with quiet(), console.status("") as status:
            yield status.update
    else:
        with quiet():
            yield lambda sentence: console.print(sentence, markup=False, soft_wrap=True)


def _check_equal(differences: Sequence[str], json: bool) -> None:
    """End as a command that says no if results differ, after saying where."""
    for difference in differences if not json else ():
        console.print(f"NOT EQUAL: {difference}", style="red", markup=False)
    if differences:
        raise typer.Exit(1)


def _machine() -> dict[str, Any]:
    from importlib.metadata import version

    packages = ("pyspark", "pyiceberg", "duckdb")
    return {"cores": os.cpu_count(), "platform": platform.platform(), **{name: version(name) for name in packages}}
