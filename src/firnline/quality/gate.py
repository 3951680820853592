"""Gates: suites that are understood before rows are made, and asked of the rows when they are there.

All expectations of all suites that numbers answer share one pass over the rows. Great Expectations is imported only if one of
them needs it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firnline.quality.judging import Result, result_of
from firnline.quality.planning import Planned, planned
from firnline.quality.suite import Suite, is_about_columns, path_of, read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Gate:
    """A suite, and how each of its expectations is answered: by numbers, or (None) by Great Expectations."""

    suite: Suite
    plan: tuple[Planned | None, ...]

    @classmethod
    def of(cls, suite: Suite, types: Mapping[str, str]) -> Gate:
        """The gate for rows of these columns; refuses what cannot be asked of them."""
        suite.check_columns(types)
        gate = cls(suite, tuple(planned(config, types) for config in suite.expectations))
        if gate.left:
            from firnline.quality import gx

            gx.check_expectations(suite, gate.left)
        return gate

    @property
    def numbers(self) -> list[Planned]:
        """The expectations that numbers answer."""
        return [each for each in self.plan if each is not None]

    @property
    def left(self) -> list[Mapping[str, Any]]:
        """The expectations that are left to Great Expectations."""
        return [config for config, each in zip(self.suite.expectations, self.plan, strict=True) if each is None]


def suite_at(folder: Path, name: str) -> Suite:
    """A suite of a folder, be it JSON or Python."""
    path = path_of(folder, name)
    if path.suffix == ".json":
        return read(path)
    from firnline.quality import gx

    return gx.loaded(path)


def asked(gates: Sequence[Gate], frame: DataFrame) -> tuple[int, list[list[Result]]]:
    """How many rows there are, and the results of every suite in its own order."""
    from firnline.quality import one_pass

    rows, found = one_pass.answered(frame, [each for gate in gates for each in gate.numbers])
    numbers = iter(found)
    return rows, [_merged(gate, [next(numbers) for _ in gate.numbers], _left(gate, frame, rows)) for gate in gates]


def _merged(gate: Gate, numbers: Sequence[Result], left: Sequence[Result]) -> list[Result]:
    first, second = iter(numbers), iter(left)
    return [next(second) if each is None else next(first) for each in gate.plan]


def _left(gate: Gate, frame: DataFrame, rows: int) -> list[Result]:
    """What Great Expectations answers; without rows only what is not about columns."""
    ask = [config for config in gate.left if rows or not is_about_columns(config)]
    if not ask:
        return [result_of(config, True, {}) for config in gate.left]
    from firnline.quality import gx

    answers = iter(gx.answered(frame, gate.suite, ask))
    return [next(answers) if config in ask else result_of(config, True, {}) for config in gate.left]
