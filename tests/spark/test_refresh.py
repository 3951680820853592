"""How a stage's change is computed: from what changed, in full, or refused; in PySpark or in SQL; across a change of code."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.connect.session import SparkSession

from firnline.engine import staging
from firnline.engine.frames import relation_of
from firnline.errors import FirnlineError
from firnline.runtime.advance import advance
from firnline.runtime.cost import cost
from firnline.runtime.explain import explain
from firnline.runtime.project import Project
from firnline.tables import scan
from firnline.testing import at
from tests.spark.running import rows, run_epoch

Make = Callable[..., Project]

PIPELINE = """
    import firnline as fl
    from pyspark.sql import functions as F

    {name} = fl.Pipeline("{name}", schedule=1, start=0, on_change="allow")

    @{name}.source(keys=["id"], parts=2)
    def orders(epoch):
        rows = [
            [(1, "a", 10, 1), (2, "a", 5, 1), (3, "b", 1, 1)],
            [(2, "a", 5, -1), (4, "c", 7, 1), (3, "b", 1, -1), (3, "b", 2, 1)],
            [],
            [(4, "c", 7, -1)],
        ]
        return epoch.spark.createDataFrame(rows[epoch.lower], "id int, who string, amount int, _diff int")
"""
SUMS = """
    @{name}.stage(keys=["who"], parts=2{refresh})
    def totals(orders):
        return orders.groupBy("who").agg(F.sum("amount").alias("total"), F.max("id").alias("last"){extra})
"""
STATES = [
    [("a", 15, 2), ("b", 1, 3)],
    [("a", 10, 1), ("b", 2, 3), ("c", 7, 4)],
    [("a", 10, 1), ("b", 2, 3), ("c", 7, 4)],
    [("a", 10, 1), ("b", 2, 3)],
]


def text(name: str, *stages: str, refresh: str = "", extra: str = "") -> dict[str, str]:
    parts = [textwrap.dedent(part).format(name=name, refresh=refresh, extra=extra) for part in (PIPELINE, *stages)]
    return {name: "\n".join(parts)}


@pytest.mark.parametrize("refresh", ["auto", "incremental", "full"])
def test_every_mode_gives_the_same(project: Make, spark: SparkSession, refresh: str) -> None:
    name = f"mode_{refresh}"
    made = project(**text(name, SUMS, refresh=f', refresh="{refresh}"'))
    graph = made.graph(name)
    for epoch, state in enumerate(STATES):
        run_epoch(made, spark, name, str(epoch))
        assert rows(made, graph, "totals", str(epoch)) == state


def test_an_epoch_without_a_change_starts_no_spark_job(
    project: Make, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = project(**text("still", SUMS))
    run_epoch(made, spark, "still", "1")

    def fail(*_: object) -> None:
        raise AssertionError("staged")

    declared = made.declared("still")
    epoch = declared.graph.schedule.epoch_at(2)
    list(advance(made, declared, spark, "orders", epoch))
    monkeypatch.setattr("firnline.engine.staging.stage", fail)
    assert [outcome.rows for outcome in advance(made, declared, spark, "totals", epoch)] == [0]


def test_sums_over_single_rows_of_a_log_are_not_kept(project: Make, spark: SparkSession) -> None:
    by_key = """
        @{name}.stage(keys=["id"], refresh="incremental")
        def each(orders):
            return orders.groupBy("id").agg(F.sum("amount").alias("total"), F.count("*").alias("n"))
    """
    made = project(**text("single", by_key))
    for epoch in range(3):
        run_epoch(made, spark, "single", str(epoch))
    assert rows(made, made.graph("single"), "each") == [(1, 10, 1), (3, 2, 1), (4, 7, 1)]
    assert made.catalog.names("single") == {"_frontier", "orders", "each"}


def test_what_has_no_rule_is_computed_in_full_or_refused(project: Make, spark: SparkSession) -> None:
    sampled = """
        @{name}.stage(keys=["id"]{refresh})
        def some(orders):
            return orders.withColumn("at", F.timestamp_seconds("id")).withWatermark("at", "1 hour").drop("at")
    """
    made = project(**text("norule", sampled))
    run_epoch(made, spark, "norule", "1")
    assert len(rows(made, made.graph("norule"), "some")) == 3
    refused = project(**text("refused", sampled, refresh=', refresh="incremental"'))
    with pytest.raises(FirnlineError, match=r"UNSUPPORTED_OPERATOR: stage 'some' at 0: 'with watermark' .*refused.py:20"):
        run_epoch(refused, spark, "refused", "1")


def test_what_has_no_single_answer_is_always_refused(project: Make, spark: SparkSession) -> None:
    random = """
        @{name}.stage(keys=["id"], refresh="full")
        def some(orders):
            return orders.withColumn("r", F.rand())
    """
    with pytest.raises(FirnlineError, match=r"NONDETERMINISTIC_FUNCTION: stage 'some' at 0: rand"):
        run_epoch(project(**text("random", random)), spark, "random", "0")


def test_changed_code_corrects_the_state_and_goes_on_from_there(project: Make, spark: SparkSession) -> None:
    made = project(**text("changed", SUMS))
    run_epoch(made, spark, "changed", "0")
    again = project(**text("changed", SUMS.replace('F.max("id")', 'F.min("id")').replace('"amount"', 'F.col("amount") * 2')))
    run_epoch(again, spark, "changed", "1")
    assert rows(again, again.graph("changed"), "totals") == [("a", 20, 1), ("b", 4, 3), ("c", 14, 4)]
    run_epoch(again, spark, "changed", "3")
    assert rows(again, again.graph("changed"), "totals") == [("a", 20, 1), ("b", 4, 3)]
    assert rows(again, again.graph("changed"), "totals", "0") == STATES[0]


SQL = '''
    @{name}.sql("SELECT who, sum(amount) AS total, max(id) AS last FROM orders GROUP BY who", keys=["who"]{refresh})
    def totals(orders): ...

    @{name}.sql("""
        WITH big AS (SELECT * FROM orders WHERE amount > (SELECT avg(amount) FROM orders))
        SELECT o.id, b.who FROM orders o, big b WHERE o.who = b.who AND o.id IN (SELECT id FROM big)
    """, keys=["id"]{refresh})
    def largest(orders): ...
'''


def test_sql_is_incremental_too(project: Make, spark: SparkSession) -> None:
    made = project(**text("sqls", SQL, refresh=', refresh="incremental"'))
    graph = made.graph("sqls")
    largest = [[(1, "a")], [(1, "a"), (4, "c")], [(1, "a"), (4, "c")], [(1, "a")]]
    for epoch, state in enumerate(STATES):
        run_epoch(made, spark, "sqls", str(epoch))
        assert rows(made, graph, "totals", str(epoch)) == state
        assert rows(made, graph, "largest", str(epoch)) == largest[epoch]
    explained = explain(made, made.declared("sqls"), spark, "largest")
    assert explained.kind == "repeatable"
    assert explained.lineage == {"id": ("orders.id",), "who": ("orders.who",)}
    assert explained.steps[-1].name == "largest"
    assert all(step.stored_bytes for step in explained.steps)
    costs = cost(made, graph, explained)
    assert len(costs.seen) == len(STATES)
    assert costs.shape.rows == len(rows(made, graph, "orders"))
    assert "orders" in explained.scans
    assert costs.shape.state >= costs.shape.rows
    assert costs.shape.changed > 0
    assert costs.at_size


def test_sql_that_cannot_be_translated_is_computed_in_full(project: Make, spark: SparkSession) -> None:
    opaque = """
        @{name}.sql("SELECT id, who FROM orders TABLESAMPLE (100 PERCENT)", keys=["id"]{refresh})
        def some(orders): ...
    """
    made = project(**text("opaque", opaque))
    run_epoch(made, spark, "opaque", "1")
    assert len(rows(made, made.graph("opaque"), "some")) == 3
    explained = explain(made, made.declared("opaque"), spark, "some")
    assert explained.refusal is not None
    assert explained.refusal["code"] == "OPAQUE_SQL"
    assert explained.kind == "convergent"
    refused = project(**text("opaquely", opaque, refresh=', refresh="incremental"'))
    with pytest.raises(FirnlineError, match="OPAQUE_SQL: stage 'some' at 0: "):
        run_epoch(refused, spark, "opaquely", "1")


def test_what_only_spark_can_tell_is_computed_in_full(project: Make, spark: SparkSession) -> None:
    stages = """
        @{name}.sql(
            "SELECT id, (SELECT count(*) FROM (SELECT DISTINCT * FROM orders i WHERE i.who = o.who)) AS n FROM orders o",
            keys=["id"],
        )
        def alike(orders): ...

        @{name}.stage(keys=["who"])
        def sessions(orders):
            session = F.session_window(F.timestamp_seconds("amount"), "3 seconds").alias("session")
            return orders.where("who = 'b'").groupBy("who", session).agg(F.count("*").alias("n"))
    """
    made = project(**text("only_spark", stages))
    graph = made.graph("only_spark")
    for epoch, pairs in enumerate([[(1, 2), (2, 2), (3, 1)], [(1, 1), (3, 1), (4, 1)]]):
        run_epoch(made, spark, "only_spark", str(epoch))
        assert rows(made, graph, "alike") == pairs
        ((_, session, count),) = rows(made, graph, "sessions")
        assert (session["start"].second, session["end"].second, count) == (epoch + 1, epoch + 4, 1)
    codes = [explain(made, made.declared("only_spark"), spark, stage).refusal for stage in ("alike", "sessions")]
    assert [each and each["code"] for each in codes] == ["OPAQUE_SQL", "UNSUPPORTED_EXPRESSION"]


def test_a_collection_of_one_row_needs_no_key(project: Make, spark: SparkSession) -> None:
    single = """
        @{name}.stage(keys=[])
        def all_of_it(orders):
            return orders.agg(F.count("*").alias("n"))

        @{name}.stage(keys=[], refresh="full")
        def wrong(orders):
            return orders.select("id")
    """
    made = project(**text("single", single))
    with pytest.raises(FirnlineError, match="KEY_NOT_UNIQUE: stage 'wrong'"):
        run_epoch(made, spark, "single", "0")
    declared = made.declared("single")
    list(advance(made, declared, spark, "orders", declared.graph.schedule.epoch_at(3)))
    list(advance(made, declared, spark, "all_of_it", declared.graph.schedule.epoch_at(3)))
    table = made.catalog.iceberg("single", "all_of_it")
    assert [scan.state(table, epoch + 1)["n"].to_pylist() for epoch in range(4)] == [[3], [3], [3], [2]]


def test_rows_leave_as_logical_time_passes(project: Make, spark: SparkSession) -> None:
    rolling = """
        @{name}.stage(keys=["id"], refresh="incremental")
        def recent(orders):
            return orders.where(F.col("id") >= fl.epoch_time()).select("id", (F.col("id") - fl.epoch_time()).alias("left"))

        @{name}.stage(keys=[], refresh="incremental")
        def how_many(orders):
            return orders.where(orders.id >= fl.epoch_time()).agg(F.count("*").alias("n"))
    """
    made = project(**text("rolling", rolling))
    graph = made.graph("rolling")
    states = [[(1, 0), (2, 1), (3, 2)], [(3, 1), (4, 2)], [(3, 0), (4, 1)], []]
    for epoch, state in enumerate(states):
        run_epoch(made, spark, "rolling", str(epoch))
        assert rows(made, graph, "recent", str(epoch)) == state
        assert rows(made, graph, "how_many", str(epoch)) == [(len(state),)]
    function = made.declared("rolling").functions["recent"]
    with pytest.raises(FirnlineError, match="NO_EPOCH"):
        function(spark.range(3))
    with at(2):
        assert [row.id for row in function(spark.range(5)).collect()] == [2, 3, 4]


def test_a_source_has_its_own_time_and_chance(project: Make, spark: SparkSession) -> None:
    text = """
        import firnline as fl
        from pyspark.sql import functions as F

        chance = fl.Pipeline("chance", schedule="@daily", start="2026-01-01", end="2026-01-03")

        @chance.source(keys=["id", "day"])
        def drawn(epoch):
            rows = epoch.spark.range(200).withColumn("day", F.lit(epoch.now))
            return rows.withColumn("r", epoch.random("draw", "id"))

        @chance.stage(keys=["id", "day"])
        def ordered(drawn):
            return drawn.orderBy("r")
    """
    made = project(chance=text)
    run_epoch(made, spark, "chance", "2026-01-02")
    found = rows(made, made.graph("chance"), "drawn")
    draws = {day: [r for _, other, r in found if other == day] for day in {day for _, day, _ in found}}
    assert sorted(str(day) for day in draws) == ["2026-01-02 00:00:00+00:00", "2026-01-03 00:00:00+00:00"]
    first, second = draws.values()
    assert first != second
    assert all(0 <= r < 1 for r in first)
    assert 0.4 < sum(first) / len(first) < 0.6
    declared = made.declared("chance")
    assert explain(made, declared, spark, "ordered").notes == (
        "a sort without a limit says nothing about a set of rows, and is dropped",
    )


def test_a_stage_that_asks_only_whether_there_is_any_row(project: Make, spark: SparkSession) -> None:
    asked = """
        @{name}.stage(keys=["id"], refresh="incremental")
        def some(orders):
            large = orders.groupBy("who").agg(F.max("amount").alias("most")).where("most < 10")
            return orders.join(large, F.lit(True), "left_semi")
    """
    made = project(**text("anyrow", asked))
    for epoch, count in enumerate((3, 3, 3, 2)):
        run_epoch(made, spark, "anyrow", str(epoch))
        assert len(rows(made, made.graph("anyrow"), "some", str(epoch))) == count


def test_another_name_inside_of_a_stage_goes_on(project: Make, spark: SparkSession) -> None:
    stage = """
        @{name}.stage(keys=["id"], refresh="incremental")
        def cheapest(orders):
            first = orders.orderBy("amount", "id").limit(2).select(F.col("id").alias("{extra}"))
            return orders.join(first, F.col("id") == F.col("{extra}"), "left_semi").select("id")
    """
    run_epoch(project(**text("renamed", stage, extra="cheap")), spark, "renamed", "0")
    made = project(**text("renamed", stage, extra="cheapest_id"))
    run_epoch(made, spark, "renamed", "1")
    assert rows(made, made.graph("renamed"), "cheapest") == [(3,), (4,)]


@pytest.mark.parametrize(
    ("keys", "kept", "expected"),
    [
        (["id"], "id, who", [False, True, False]),  # comes; comes and goes; comes
        (["who", "n"], "who, id % 1 n, amount * 0 zero", [False, True, False]),
    ],
)
def test_rows_are_added_up_only_where_some_may_undo_others(
    project: Make, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, keys: list[str], kept: str, expected: list[bool]
) -> None:
    name = f"added_{len(keys)}"
    made = project(
        **{
            name: textwrap.dedent(f"""
                import firnline as fl

                {name} = fl.Pipeline("{name}", schedule=1, start=0)

                @{name}.source(keys=["id"])
                def orders(epoch):
                    rows = [[(1, "a", 1, 1), (2, "b", 1, 1)], [(1, "a", 1, -1), (1, "c", 1, 1)], [(4, "d", 1, 1)]]
                    return epoch.spark.createDataFrame(rows[epoch.lower], "id int, who string, amount int, _diff int")

                @{name}.stage(keys={keys}, refresh="incremental")
                def kept(orders):
                    return orders.selectExpr(*{kept.split(", ")})
            """)
        }
    )
    added_up: list[bool] = []
    placed = staging.placed

    def watched(delta: DataFrame, *where: Any) -> DataFrame:
        added_up.append("aggregate {" in str(relation_of(delta)))
        return placed(delta, *where)

    monkeypatch.setattr(staging, "placed", watched)
    for epoch in range(3):
        run_epoch(made, spark, name, str(epoch))
    assert added_up[1::2] == expected, "every other one is the source's"
    found = rows(made, made.graph(name), "kept")
    assert [row[:2] for row in found] == ([(1, "c"), (2, "b"), (4, "d")] if keys == ["id"] else [("b", 0), ("c", 0), ("d", 0)])


def test_equal_rows_of_a_keyed_stage_are_refused_though_nobody_adds_them_up(project: Make, spark: SparkSession) -> None:
    stage = """
        @{name}.stage(keys=["who"])
        def who(orders):
            return orders.select("who")
    """
    made = project(**text("twice", stage))
    with pytest.raises(FirnlineError) as refused:
        run_epoch(made, spark, "twice", "0")
    assert refused.value.code == "KEY_NOT_UNIQUE"
