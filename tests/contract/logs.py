"""Attempts at a log."""

from __future__ import annotations

from firnline.model.digest import Digest
from firnline.model.fingerprint import Fingerprint
from firnline.tables.log import Log
from firnline.tables.sidecar import Input, Sidecar


def attempt(lower: int, upper: int, name: str) -> Sidecar:
    inputs = {"pages": Input(0, upper, 7, 3, "all")}
    return Sidecar(
        "visits", lower, upper, name, Fingerprint("f" * 32, "p" * 32), inputs, {(lower, 0): Digest(2, 0, 3, 2**64 - 1)}, 1.5
    )


def uppers(log: Log) -> list[int]:
    return [entry.description.upper for entry in log.entries()]
