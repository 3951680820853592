"""Charts of maintenance over epochs: one page of HTML that needs nothing else, or a PNG."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from datetime import datetime
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firnline.cli.output import size_text
from firnline.model.epoch import to_datetime

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

    from firnline.runtime.history import Sample, Told

_MOST = 7
"""Collections that have a line of their own: those with the most bytes."""
_COLORS = ("#2f6db3", "#d9822b", "#3a9a5b", "#b0413e", "#7a5ba8", "#8a6d3b", "#3aa6a6")
_OTHERS = "#9aa5b1"
_HEIGHT, _WIDTH = 8.6, 12.0
STYLE = """
body { font: 14px/1.5 system-ui, sans-serif; color: #22303f; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2rem; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { padding: .25rem .75rem; border-bottom: 1px solid #dde3ea; text-align: right; }
th:first-child, td:first-child { text-align: left; }
th { color: #5d6d7e; font-weight: 600; }
svg { width: 100%; height: auto; }
p { color: #5d6d7e; }
"""


def write(path: Path, told: Sequence[Told], at: datetime) -> None:
    """Write the report: a picture if the name ends so, a page otherwise."""
    if path.suffix.lower() == ".png":
        path.write_bytes(_figure(told, "png"))
        return
    body = "".join(_section(each) for each in told)
    head = f"<meta charset='utf-8'><title>Firnline maintenance</title><style>{STYLE}</style>"
    made = f"<p>As of {at:%Y-%m-%d %H:%M} UTC, from the logs and from what each run of maintenance wrote down.</p>"
    page = f"<!doctype html><html lang='en'><head>{head}</head><body><h1>Maintenance</h1>{made}{body}</body></html>\n"
    path.write_text(page, encoding="utf-8")


def _section(told: Told) -> str:
    if not told.samples:
        return f"<h2>{escape(told.graph.name)}</h2><p>No log holds anything yet.</p>"
    svg = _figure([told], "svg").decode()
    picture = svg[svg.index("<svg") :]
    newest = {sample.collection: sample for sample in told.samples}
    logs = [
        (
            name,
            each.layers,
            each.files,
            size_text(each.bytes),
            f"{each.rows:,}",
            _times(each),
            told.graph.schedule.label(each.since),
        )
        for name, each in sorted(newest.items())
    ]
    runs = [
        (
            f"{run.at:%Y-%m-%d %H:%M}",
            run.merges,
            size_text(run.rewritten),
            run.snapshots,
            run.files,
            size_text(run.freed),
            f"{run.seconds:.1f}",
        )
        for run in reversed(told.runs[-20:])
    ]
    label = told.graph.schedule.label
    points = f"The frontier is at {label(told.frontier)}, the safe point at {label(told.safe)}."
    return (
        f"<h2>{escape(told.graph.name)}</h2><p>{escape(points)}</p>{picture}"
        + html_table(("collection", "layers", "files", "bytes", "stored rows", "read amplification", "since"), logs)
        + html_table(("run, UTC", "merges", "rewritten", "snapshots dropped", "files removed", "freed", "seconds"), runs)
    )


def html_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table of a page; nothing if it has no rows."""
    if not rows:
        return ""
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(value))}</td>" for value in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def _times(sample: Sample) -> str:
    return "" if sample.amplification is None else f"{sample.amplification:.2f}"


def _figure(told: Sequence[Told], form: str) -> bytes:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    settings: Any = {"svg.fonttype": "none", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    with pyplot.rc_context(settings):
        figure = pyplot.figure(figsize=(_WIDTH, _HEIGHT * max(1, len(told))), layout="constrained")
        parts = figure.subfigures(max(1, len(told)), 1, squeeze=False)[:, 0]
        for part, each in zip(parts, told, strict=False):
            _draw(part, each, is_titled=form == "png")
        buffer = io.BytesIO()
        figure.savefig(buffer, format=form, dpi=120)
        pyplot.close(figure)
    return buffer.getvalue()


def _draw(part: SubFigure, told: Told, *, is_titled: bool) -> None:
    if is_titled:
        part.suptitle(f"{told.graph.name}: maintenance over epochs", fontsize=12, fontweight="bold", x=0.01, ha="left")
    axes = part.subplots(3, 2, sharex=True)
    colors = _colored(told.samples)
    _lines(axes[0, 0], told, colors, "layers", lambda sample: sample.layers)
    _lines(axes[0, 1], told, colors, "data files", lambda sample: sample.files)
    _lines(axes[1, 0], told, colors, "bytes", lambda sample: sample.bytes)
    _lines(axes[1, 1], told, colors, "read amplification: stored rows / rows of the state", lambda sample: sample.amplification)
    axes[1, 1].axhline(1, color="#22303f", linewidth=0.8, linestyle=":")
    _points(axes[2, 0], told)
    _work(axes[2, 1], told)
    from matplotlib.ticker import EngFormatter, MaxNLocator

    axes[1, 0].yaxis.set_major_formatter(EngFormatter(unit="B"))
    axes[2, 1].yaxis.set_major_formatter(EngFormatter(unit="B"))
    if axes[0, 0].lines:
        part.legend(*axes[0, 0].get_legend_handles_labels(), fontsize=8, frameon=False, loc="outside upper right", ncols=8)
    for axis in (axes[0, 0], axes[0, 1]):
        axis.yaxis.set_major_locator(MaxNLocator(integer=True))
    for axis in axes.flat:
        axis.grid(True, axis="y", alpha=0.25)
        axis.tick_params(labelbottom=True)
        axis.margins(x=0.02)
        if told.graph.schedule.timed:
            _along(axis.xaxis, is_across=True)
        else:
            axis.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=7))
    for axis in axes[2]:
        axis.set_xlabel("epoch")


def _moment(told: Told, point: int) -> Any:
    """A point on an axis: a moment, or an integer."""
    return to_datetime(point) if told.graph.schedule.timed else point


def _along(axis: Any, *, is_across: bool) -> None:
    """Let an axis show moments."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(minticks=3, maxticks=7)  # type: ignore[no-untyped-call]
    axis.set_major_locator(locator)
    axis.set_major_formatter(ConciseDateFormatter(locator, show_offset=is_across))  # type: ignore[no-untyped-call]


def _colored(samples: Sequence[Sample]) -> dict[str, str]:
    """A color for each of the largest collections; the others share one."""
    newest = {sample.collection: sample.bytes for sample in samples}
    largest = sorted(newest, key=lambda name: (-newest[name], name))[:_MOST]
    return dict(zip(largest, _COLORS, strict=False))


def _lines(axis: Axes, told: Told, colors: dict[str, str], title: str, value: Callable[[Sample], float | None]) -> None:
    axis.set_title(title, loc="left", fontsize=10)
    names = dict.fromkeys(sample.collection for sample in told.samples)
    rest = [name for name in names if name not in colors]
    for name in (*rest, *colors):
        found = [sample for sample in told.samples if sample.collection == name]
        shown = [(_moment(told, sample.upper), of) for sample in found if (of := value(sample)) is not None]
        if not shown:
            continue
        others = f"{len(rest)} more" if name not in colors and name == rest[0] else "_"
        axis.plot(
            [x for x, _ in shown],
            [y for _, y in shown],
            color=colors.get(name, _OTHERS),
            linewidth=1.6 if name in colors else 0.8,
            marker="o" if len(shown) < 40 else None,
            markersize=2.5,
            alpha=0.85,
            label=name if name in colors else others,
        )
    axis.set_ylim(bottom=0)


def _points(axis: Axes, told: Told) -> None:
    """How far safe point and since lag behind the frontier, as points over points."""
    axis.set_title("safe point and since, over the end of the logs", loc="left", fontsize=10)
    ends = [(max(sample.upper for sample in run.after), run.safe, run.after) for run in told.runs if run.after]
    x = [_moment(told, upper) for upper, _, _ in ends]
    x.append(_moment(told, told.frontier))
    newest = {sample.collection: sample for sample in told.samples}
    last = min((sample.since for sample in newest.values()), default=told.safe)
    series = {
        "end": ([upper for upper, _, _ in ends] + [told.frontier], "#22303f", ":"),
        "safe point": ([safe for _, safe, _ in ends] + [told.safe], "#3a9a5b", "-"),
        "least since": ([min(sample.since for sample in after) for _, _, after in ends] + [last], "#d9822b", "-"),
    }
    for name, (values, color, style) in series.items():
        axis.plot(
            x,
            [_moment(told, value) for value in values],
            color=color,
            linestyle=style,
            linewidth=1.4,
            label=name,
            drawstyle="steps-post",
        )
    if told.graph.schedule.timed:
        _along(axis.yaxis, is_across=False)
    axis.legend(fontsize=8, frameon=False, loc="upper left")


def _work(axis: Axes, told: Told) -> None:
    """What maintenance rewrote and freed, added up."""
    axis.set_title("work of maintenance, added up", loc="left", fontsize=10)
    x, rewritten, freed = [], [0], [0]
    for run in told.runs:
        if run.after:
            x.append(_moment(told, max(sample.upper for sample in run.after)))
            rewritten.append(rewritten[-1] + run.rewritten)
            freed.append(freed[-1] + run.freed)
    if not x:
        axis.text(0.5, 0.5, "no run yet", transform=axis.transAxes, ha="center", color="#5d6d7e")
        return
    axis.plot(x, rewritten[1:], color="#2f6db3", linewidth=1.6, label="bytes rewritten", drawstyle="steps-post")
    axis.plot(x, freed[1:], color="#b0413e", linewidth=1.6, label="bytes freed", drawstyle="steps-post")
    axis.set_ylim(bottom=0)
    axis.legend(fontsize=8, frameon=False, loc="upper left")
