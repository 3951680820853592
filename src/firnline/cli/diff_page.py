"""A diff as one page of HTML that needs nothing else."""

from __future__ import annotations

import io
from html import escape
from typing import TYPE_CHECKING, Any

from firnline.cli.charts import STYLE, html_table
from firnline.cli.diff import told

if TYPE_CHECKING:
    from firnline.runtime.diff import CollectionDiff, Diff

_KINDS = (("added", "#3a9a5b"), ("removed", "#b0413e"), ("changed", "#d9822b"))


def page(found: Diff) -> str:
    """The page."""
    title = f"{found.before} and {found.after}"
    head = f"<meta charset='utf-8'><title>{escape(title)}</title><style>{STYLE}</style>"
    first = next((each for each in found.collections if each.collection == found.first), None)
    sentence = "Nothing differs." if first is None else f"The first that differs is {first.collection}: {first.why}."
    rows = [(each.collection, told(each), each.added, each.removed, each.changed) for each in found.collections]
    overview = html_table(("collection", "", "added", "removed", "changed"), rows)
    chart = "" if first is None else _chart(found)
    body = "".join(_section(each) for each in found.collections if not each.is_same)
    inner = f"<h1>{escape(title)}</h1><p>{escape(sentence)}</p>{chart}{overview}{body}"
    return f"<!doctype html><html lang='en'><head>{head}</head><body>{inner}</body></html>\n"


def _section(each: CollectionDiff) -> str:
    columns = [
        (of.column, of.changed, *(f"{before} \u2192 {after}" for before, after in (of.nulls, of.mean, of.least, of.greatest)))
        for of in each.columns
    ]
    epochs = [(of.epoch, of.parts or "same") for of in each.epochs]
    rows = [(_cells(row.old), _cells(row.new)) for row in each.rows]
    return (
        f"<h2>{escape(each.collection)}</h2>"
        + html_table(("column", "changed", "nulls", "mean", "least", "greatest"), columns)
        + html_table(("epoch", "parts that differ"), epochs)
        + html_table(("before", "after"), rows)
    )


def _cells(row: Any) -> str:
    return "" if row is None else ", ".join(f"{name}={value}" for name, value in row.items())


def _chart(found: Diff) -> str:
    """How many rows of each collection differ, and in which epochs parts do."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.ticker import MaxNLocator

    names = [each.collection for each in found.collections]
    with pyplot.rc_context({"svg.fonttype": "none", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure, (counts, epochs) = pyplot.subplots(1, 2, figsize=(12, 1 + 0.4 * len(names)), layout="constrained")
        left = [0] * len(names)
        for kind, color in _KINDS:
            widths = [getattr(each, kind) for each in found.collections]
            counts.barh(names, widths, left=left, color=color, label=kind)
            left = [before + width for before, width in zip(left, widths, strict=True)]
        counts.invert_yaxis()
        counts.set_title("rows that differ", loc="left", fontsize=10)
        counts.xaxis.set_major_locator(MaxNLocator(integer=True))
        counts.legend(fontsize=8, frameon=False)
        for each in found.collections:
            if any(of.parts for of in each.epochs):
                shown = [(of.epoch, of.parts) for of in each.epochs]
                epochs.plot([x for x, _ in shown], [y for _, y in shown], marker="o", markersize=3, label=each.collection)
        epochs.set_title("parts that differ, by epoch", loc="left", fontsize=10)
        epochs.yaxis.set_major_locator(MaxNLocator(integer=True))
        epochs.xaxis.set_major_locator(MaxNLocator(nbins=7))
        if epochs.lines:
            epochs.legend(fontsize=8, frameon=False)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg")
        pyplot.close(figure)
    text = buffer.getvalue()
    return text[text.index("<svg") :]
