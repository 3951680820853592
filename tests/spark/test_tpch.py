"""TPC-H, all 22 queries incrementally, over the epochs of a refresh stream: DuckDB says the same after each."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql.connect.session import SparkSession

from bench.tpch.data import TABLES, stream
from bench.tpch.queries import KEYS
from firnline.model.epoch import Epoch
from firnline.runtime.advance import advance
from firnline.runtime.project import Declared, Project
from firnline.tables import scan
from tests.oracle.tpch import comparable, expected, state
from tests.project import make_project

SCALE, FRACTION, SCALE_OF_Q11 = 0.02, 0.02, 0.1
EPOCHS, DAY = 5, 86_400_000_000
SAMPLE = ("q2", "q13", "q15", "q21")
PIPELINE = '''
    """The 22 queries of TPC-H, each a stage."""

    import pyarrow.parquet as pq
    from pyspark.sql.pandas.types import from_arrow_schema

    import firnline as fl
    from bench.tpch import data
    from bench.tpch.queries import KEYS, queries

    {name} = fl.Pipeline("{name}", schedule="@daily", start="2026-01-01")


    def source(table):
        def read(epoch):
            found = from_arrow_schema(pq.read_schema("{changes}/2026-01-01/" + table + ".parquet"))
            schema = ", ".join(field.name + " " + field.dataType.simpleString() for field in found.fields)
            return epoch.files("{changes}/{{epoch:%Y-%m-%d}}/" + table + ".parquet", format="parquet", schema=schema)

        read.__name__ = table
        {name}.source(keys=data.KEYS[table])(read)


    for table in data.TABLES:
        source(table)
    for name, query in queries({scale}).items():
        query.__name__ = name
        {name}.stage(keys=KEYS[name], refresh="incremental")(query)
'''


EVERY_NIGHT = [pytest.param(name, marks=() if name in SAMPLE else pytest.mark.nightly) for name in KEYS]


@pytest.fixture(scope="module")
def changes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stream(tmp_path_factory.mktemp("tpch"), SCALE, EPOCHS, FRACTION)


@pytest.fixture(scope="module")
def tpch(lake: tuple[Path, SparkSession], changes: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Declared]:
    """The pipeline with all epochs of its sources."""
    root = tmp_path_factory.mktemp("project")
    settings = f'work = "{lake[0]}"\nroots = ["{changes}"]\n'
    project = make_project(root, settings, tpch=PIPELINE.format(name="tpch", scale=SCALE_OF_Q11, changes=changes))
    declared = project.declared("tpch")
    for table in TABLES:
        list(advance(project, declared, lake[1], table, epochs(declared)[-1]))
    return project, declared


def epochs(declared: Declared) -> list[Epoch]:
    schedule = declared.graph.schedule
    return list(schedule.epochs(schedule.start, schedule.start + EPOCHS * DAY))


@pytest.mark.parametrize("query", EVERY_NIGHT)
def test_every_epoch_equals_duckdb(spark: SparkSession, tpch: tuple[Project, Declared], changes: Path, query: str) -> None:
    project, declared = tpch
    for number, epoch in enumerate(epochs(declared), start=1):
        outcomes = list(advance(project, declared, spark, query, epoch))
        assert [outcome.how for outcome in outcomes] == ["computed"]
        table = project.log("tpch", query).load()
        assert table is not None
        found = scan.state(table, epoch.upper)
        rows = list(zip(*(found[name].to_pylist() for name in found.column_names), strict=True))
        assert comparable(rows) == expected(state(changes, number), query, SCALE_OF_Q11), f"epoch {number}"
