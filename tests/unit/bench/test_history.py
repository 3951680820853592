"""The benchmark's histories: changes that can be applied, spread over all keys, as many as asked for, always the same."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from bench.incremental.history import History
from bench.incremental.suites import SUITES, workload
from bench.incremental.workload import Workload

SCALES = {"tpch": 0.01, "tpch22": 0.01, "amplab": 0.02, "growth": 0.01}
CHANGE, EPOCHS = 0.02, 3


@pytest.fixture(scope="module", params=SUITES)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Workload, History]:
    of = workload(request.param, SCALES[request.param])
    folder = tmp_path_factory.mktemp("bench") / request.param
    folder.mkdir()
    history = History(folder, of)
    for _ in range(EPOCHS - 1):
        history.add(CHANGE)
    return of, history


def rows(history: History, table: str, upto: int) -> str:
    return f"read_parquet({[str(history.file(epoch, table)) for epoch in range(1, upto + 1)]})"


def test_only_rows_that_are_there_are_removed_and_keys_stay_unique(made: tuple[Workload, History]) -> None:
    of, history = made
    for name, table in of.tables.items():
        keys = ", ".join(table.keys)
        for upto in range(1, EPOCHS + 1):
            state = f"select * exclude (_diff), sum(_diff) as weight from {rows(history, name, upto)} group by all"
            assert duckdb.sql(f"select count(*) from ({state}) where weight not in (0, 1)").fetchall() == [(0,)]
            twice = f"select {keys} from ({state}) where weight > 0 group by all having count(*) > 1"
            assert duckdb.sql(twice).fetchall() == []


def test_rows_are_inserted_removed_and_updated_all_over_the_range(made: tuple[Workload, History]) -> None:
    of, history = made
    name, table = max(of.tables.items(), key=lambda item: history.rows[item[0]])
    keys = ", ".join(table.keys)
    changes = f"(select {keys}, list(_diff) as diffs from '{history.file(2, name)}' group by all)"
    kinds = duckdb.sql(f"select distinct list_sort(diffs) from {changes}").fetchall()
    assert sorted(kind for (kind,) in kinds) == [[-1], [-1, 1], [1]]
    if of.is_tpch:
        (tenths,) = duckdb.sql(f"""
            select count(distinct l_orderkey * 10 // (select max(l_orderkey) + 1 from {rows(history, name, 1)})) from {changes}
        """).fetchall()[0]
        assert tenths >= 10


def test_as_many_rows_change_as_asked_for(made: tuple[Workload, History]) -> None:
    _, history = made
    assert history.add(CHANGE)[1] == pytest.approx(CHANGE * history.size, rel=0.2)
    assert history.add(500)[1] == pytest.approx(500, rel=0.3)


def test_a_settled_history_goes_on_and_an_unsettled_one_does_not(tmp_path: Path) -> None:
    of = workload("amplab", 0.001)
    first = History(tmp_path, of)
    first.add(CHANGE)
    assert not History.is_settled(tmp_path)
    first.settle()
    again = History(tmp_path, of)
    assert (again.epochs, again.used, again.rows) == (first.epochs, first.used, first.rows)
    assert again.add(CHANGE)[0] == 3
    assert not History.is_settled(tmp_path)
