"""What was measured, as rows of a table, as a JSON document and as a plot."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.incremental.measure import Cell, Series, told
from bench.incremental.suites import SUITES

RIVALS = {"full": "Spark full", "merge": "MERGE", "duckdb": "DuckDB full"}
COLUMNS = ("state", "stage", "ours", *(f"{name} / ours" for name in RIVALS.values()), "equal")
SECONDS = ("engine", "variant", "median", "least", "most", "")


def lines(cells: Sequence[Cell]) -> list[tuple[str, ...]]:
    """One line per cell; one more with the geometric means where a suite has many stages."""
    found = [_line(cell) for cell in cells]
    for group in _groups(cells):
        if len(group) > 1:
            means = [_mean(group, engine) for engine in RIVALS]
            ours = statistics.geometric_mean(_median(cell) for cell in group)
            first = group[0]
            found.append(
                (
                    _state(first),
                    f"geometric mean of {len(group)}",
                    f"{ours:.2f} s",
                    *(_times(mean) for mean in means),
                    _equal(group),
                )
            )
    return found


def seconds(cell: Cell) -> tuple[str, list[tuple[str, ...]]]:
    """A title, and one line per engine and variant."""
    found = [
        (each.engine, each.variant, *_spread(each.seconds or [min(each.warm_up)]), _role(cell, each)) for each in cell.series
    ]
    found.append(("ours", "ingestion by sources", *_spread(cell.ingestion), "not counted"))
    found.append(("ours", "moving the frontier", *_spread(cell.completion), "not counted"))
    return f"{_state(cell)}, {cell.stage}: seconds", found


def document(cells: Sequence[Cell], machine: dict[str, Any]) -> dict[str, Any]:
    """Everything: all seconds of all rounds and variants."""
    means = [
        {
            "suite": group[0].suite,
            "scale": group[0].scale,
            "change": group[0].change,
            "stages": len(group),
            **{f"{engine}_over_ours": _mean(group, engine) for engine in RIVALS},
        }
        for group in _groups(cells)
        if len(group) > 1
    ]
    return {"machine": machine, "cells": [_cell(cell) for cell in cells], "geometric_means": means}


def plot(cells: Sequence[Cell], path: Path) -> None:
    """A panel per suite: ratios over the share changed, or for a fixed change the seconds over the state's size."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    suites = list(dict.fromkeys(cell.suite for cell in cells))
    figure, axes = pyplot.subplots(1, len(suites), figsize=(6.5 * len(suites), 4.8), squeeze=False)
    for axis, suite in zip(axes[0], suites, strict=True):
        chosen = [cell for cell in cells if cell.suite == suite]
        axis.set_title(SUITES[suite].title)
        if suite == "growth":
            _plot_growth(axis, chosen)
        else:
            _plot_ratios(axis, chosen)
        axis.grid(True, axis="y", alpha=0.3)
        axis.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def _plot_ratios(axis: Any, cells: list[Cell]) -> None:
    groups = _groups(cells)
    labels = [f"{group[0].size}\n{told(group[0].change)}" for group in groups]
    width = 0.8 / len(RIVALS)
    for number, (engine, name) in enumerate(RIVALS.items()):
        ratios = [_mean(group, engine) or 0 for group in groups]
        at = [position + (number - 1) * width for position in range(len(groups))]
        spread = [_reach(group, engine, ratio) for group, ratio in zip(groups, ratios, strict=True)]
        bars = axis.bar(at, ratios, width, label=name, yerr=list(zip(*spread, strict=True)), capsize=3)
        axis.bar_label(bars, [_short(ratio) for ratio in ratios], fontsize=8)
    axis.axhline(1, color="black", linewidth=1)
    axis.set_xticks(range(len(groups)), labels)
    axis.set_ylabel("times as long as ours (median)")


def _plot_growth(axis: Any, cells: list[Cell]) -> None:
    cells = sorted(cells, key=lambda cell: cell.scale)
    scales = [cell.scale for cell in cells]
    for engine, name in {"ours": "ours", **RIVALS}.items():
        series = [cell.best(engine) for cell in cells]
        if all(each is not None and each.seconds for each in series):
            medians = [each.median for each in series if each]
            spread = [[each.median - min(each.seconds), max(each.seconds) - each.median] for each in series if each]
            axis.errorbar(scales, medians, yerr=list(zip(*spread, strict=True)), marker="o", capsize=3, label=name)
    axis.set_xlabel("state (scale factor)")
    axis.set_ylabel(f"seconds for {told(cells[0].change)} changed (median, least, most)")
    axis.set_ylim(bottom=0)


def _line(cell: Cell) -> tuple[str, ...]:
    ratios = (_times(cell.ratio(engine), cell.ratios(engine)) for engine in RIVALS)
    return (_state(cell), cell.stage, f"{_median(cell):.2f} s", *ratios, _equal([cell]))


def _state(cell: Cell) -> str:
    return f"{cell.suite} {cell.size}, {told(cell.change)} changed"


def _cell(cell: Cell) -> dict[str, Any]:
    return {
        **{key: value for key, value in vars(cell).items() if key != "series"},
        "series": [{**vars(series), "median": series.median} for series in cell.series],
        "baselines": {engine: each.variant for engine in RIVALS if (each := cell.best(engine))},
        **{f"{engine}_over_ours": cell.ratio(engine) for engine in RIVALS},
        "rounds": {f"{engine}_over_ours": cell.ratios(engine) for engine in RIVALS},
        "equal": not cell.differences,
    }


def _groups(cells: Sequence[Cell]) -> list[list[Cell]]:
    """The stages of one suite, scale and change together."""
    groups: dict[tuple[str, float, float], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.suite, cell.scale, cell.change), []).append(cell)
    return list(groups.values())


def _mean(group: Sequence[Cell], engine: str) -> float | None:
    ratios = [ratio for cell in group if (ratio := cell.ratio(engine)) is not None]
    return statistics.geometric_mean(ratios) if ratios else None


def _reach(group: Sequence[Cell], engine: str, ratio: float) -> tuple[float, float]:
    """How far single rounds are below and above a ratio; nothing for the mean of many stages."""
    rounds = group[0].ratios(engine) if len(group) == 1 else []
    return (max(0, ratio - min(rounds)), max(0, max(rounds) - ratio)) if rounds else (0, 0)


def _median(cell: Cell) -> float:
    ours = cell.best("ours")
    assert ours
    return ours.median


def _spread(seconds: Sequence[float]) -> tuple[str, ...]:
    return tuple(f"{value:.2f}" for value in (statistics.median(seconds), min(seconds), max(seconds)))


def _role(cell: Cell, series: Series) -> str:
    if series.is_dropped:
        return "slow, dropped"
    return "baseline" if series.engine in RIVALS and series is cell.best(series.engine) else ""


def _times(ratio: float | None, rounds: Sequence[float] = ()) -> str:
    """A ratio, with the least and the most of single rounds."""
    if ratio is None:
        return ""
    return _short(ratio) + (f" ({_short(min(rounds))}-{_short(max(rounds))})" if rounds else "")


def _short(ratio: float) -> str:
    return f"{ratio:.1f}" if ratio >= 1 else f"{ratio:.2g}"


def _equal(cells: Sequence[Cell]) -> str:
    return "NO" if any(cell.differences for cell in cells) else "yes"
