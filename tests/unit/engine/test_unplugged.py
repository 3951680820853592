"""A session without a server: what it answers, and that it asks nobody."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from pyspark.sql import functions as F
from pyspark.sql.connect.session import SparkSession

from firnline.engine.ddl import UnknownTypeError, of_ddl
from firnline.engine.frames import frame_of, relation_of
from firnline.engine.unplugged import UnpluggedError, known, unplugged
from firnline.incremental.relation import named


@pytest.fixture
def session() -> Iterator[SparkSession]:
    with unplugged({"spark.sql.shuffle.partitions": "7"}, lambda frame: ["asked"]) as session:
        yield session


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("int", "int"),
        ("long", "bigint"),
        ("decimal(10, 2)", "decimal(10,2)"),
        ("decimal", "decimal(10,0)"),
        ("timestamp", "timestamp"),
        ("timestamp_ntz", "timestamp_ntz"),
        ("map<string, array<double>>", "map<string,array<double>>"),
        ("a int, `b c` string", "struct<a:int,b c:string>"),
        ("a: struct<b: date>", "struct<a:struct<b:date>>"),
    ],
)
def test_types_in_ddl(text: str, said: str) -> None:
    assert of_ddl(text).simpleString() == said


@pytest.mark.parametrize("text", ["varchar(3)", "a int not null", "interval day", "nothing such"])
def test_types_that_only_spark_knows(text: str) -> None:
    with pytest.raises(UnknownTypeError):
        of_ddl(text)


def test_plans_are_made_and_nothing_runs(session: SparkSession) -> None:
    rows = known(frame_of(session, named("orders")), of_ddl("id int, who string"))  # type: ignore[arg-type]
    made = rows.where(rows.id > 1).select("who", F.udf(len, "int")("who").alias("n"))
    assert relation_of(made).project.input.WhichOneof("rel_type") == "filter"
    assert rows.columns == ["id", "who"]
    assert made.columns == ["asked"]
    for ask in (made.collect, made.count, lambda: made.schema, lambda: session.sql("SELECT 1"), lambda: session.conf.getAll):
        with pytest.raises(UnpluggedError):
            ask()


def test_settings_that_are_known(session: SparkSession) -> None:
    assert session.conf.get("spark.sql.shuffle.partitions") == "7"
    assert session.conf.get("spark.sql.session.timeZone") == "UTC"
    assert session.conf.get("spark.some.thing", "else") == "else"
    with pytest.raises(UnpluggedError):
        session.conf.get("spark.some.thing")


def test_nothing_is_left_behind() -> None:
    with unplugged({}, lambda frame: []):
        assert "SPARK_CONNECT_MODE_ENABLED" in os.environ
    assert "SPARK_CONNECT_MODE_ENABLED" not in os.environ
    assert SparkSession.getActiveSession() is None
