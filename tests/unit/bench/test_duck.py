"""How the benchmark compares answers: as multisets, decimals exactly, floats to 1e-12 relative."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from bench.incremental.duck import Duck
from bench.incremental.history import History
from bench.incremental.suites import workload

ROWS = [("a", Decimal("1.50"), 2.0), ("b", Decimal("2.25"), None), (None, Decimal("0.00"), 1e300)]
SCHEMA = pa.schema([("source_ip", pa.string()), ("revenue", pa.decimal128(38, 4)), ("page_rank", pa.float64())])


@pytest.mark.parametrize(
    ("rows", "is_equal"),
    [
        (ROWS, True),
        (ROWS[::-1], True),
        ([("a", Decimal("1.50"), 2.0 + 1e-13), *ROWS[1:]], True),
        ([("a", Decimal("1.50"), 2.0 + 1e-9), *ROWS[1:]], False),
        ([("a", Decimal("1.5001"), 2.0), *ROWS[1:]], False),
        ([ROWS[0], ("b", Decimal("2.25"), 0.0), ROWS[2]], False),
        (ROWS[:2], False),
        ([*ROWS, ROWS[0]], False),
        ([*ROWS[:2], ROWS[0]], False),
        ([*ROWS[:2], ("c", Decimal("0.00"), 1e300)], False),
    ],
)
def test_answers_are_compared_as_multisets(tmp_path: Path, rows: list[tuple[object, ...]], is_equal: bool) -> None:
    of = workload("amplab", 0.001)
    (stage,) = of.stages.values()
    answer = "create table answer_revenue_by_ip as select * from (values {}) t(a, b, c)"
    values = "('a', 1.5::decimal(18, 2), 2.0::double), ('b', 2.25, null), (null, 0, 1e300)"
    duck = Duck(tmp_path / "duck.db", of, History(tmp_path, of))
    duck._database.execute(answer.format(values))
    found = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)
    assert (duck.difference(stage, found) is None) == is_equal
    duck.close()
