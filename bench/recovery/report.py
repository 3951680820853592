"""The figures of recovery as tables and as a document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

from bench.recovery.pipeline import PARTS
from bench.recovery.repairs import SLACK, Repair
from bench.recovery.retries import Retry

REPAIRS = (
    "lost",
    "parts",
    "rows lost",
    "recomputed / lost",
    "repair s",
    "epoch s",
    "fixed s",
    "repair / epoch",
    f"{SLACK} x lost + fixed",
    "within",
    "equal",
)
RETRIES = (
    "stage",
    "ended at",
    "waves kept",
    "retry s",
    "all waves s",
    "retry / all waves",
    "one wave s",
    "all waves / one wave",
    "equal",
)


def repair_lines(repairs: Sequence[Repair]) -> Iterator[tuple[str, ...]]:
    """A line for each kind of loss."""
    for each in repairs:
        yield (
            each.lost,
            f"{each.parts} of {PARTS}",
            f"{median(each.rows_lost):,.0f}",
            f"{each.amplification:.2f}",
            _seconds(each.seconds),
            _seconds(each.epoch_seconds),
            _seconds(each.fixed_seconds),
            f"{each.ratio:.2f}",
            f"{each.bound:.2f}",
            "yes" if each.ratio <= each.bound else "no",
            "no" if each.differences else "yes",
        )


def retry_lines(retries: Sequence[Retry]) -> Iterator[tuple[str, ...]]:
    """A line for each stage and share of waves."""
    for each in retries:
        yield (
            each.stage,
            f"{each.share:.0%}",
            f"{median(each.kept):.0f} of {median(each.waves):.0f}",
            _seconds(each.seconds),
            _seconds(each.whole_seconds),
            f"{each.ratio:.2f}",
            _seconds(each.single_seconds),
            f"{each.cost:.2f}",
            "no" if each.differences else "yes",
        )


def document(repairs: Sequence[Repair], retries: Sequence[Retry]) -> dict[str, Any]:
    """Every figure of every round."""
    return {
        "repairs": [
            {**asdict(each), "amplification": each.amplification, "ratio": each.ratio, "bound": each.bound} for each in repairs
        ],
        "retries": [{**asdict(each), "ratio": each.ratio, "cost": each.cost} for each in retries],
    }


def _seconds(several: Sequence[float]) -> str:
    if len(several) == 1:
        return f"{several[0]:.2f}"
    return f"{median(several):.2f} ({min(several):.2f}-{max(several):.2f})"
