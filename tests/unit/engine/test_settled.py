"""Plans that give the same rows whenever they run, and others."""

from __future__ import annotations

import pytest
from pyspark.sql.connect.proto import Relation

from firnline.engine.frames import is_settled
from firnline.incremental.relation import alias, column, filtered, integer, named, project, union

LISTED = {"/landing/1.json", "/landing/2.json"}


def made() -> Relation:
    relation = Relation()
    relation.local_relation.schema = "k bigint"
    return relation


def read(*paths: str) -> Relation:
    relation = Relation()
    relation.read.data_source.format = "json"
    relation.read.data_source.options["multiLine"] = "false"
    relation.read.data_source.paths.extend(paths)
    return relation


def queried(text: str) -> Relation:
    relation = Relation()
    relation.sql.query = text
    return relation


def ranged() -> Relation:
    relation = Relation()
    relation.range.end, relation.range.step = 9, 1
    return relation


def above(relation: Relation) -> Relation:
    return project(filtered(relation, column("ok")), [column("k"), alias(integer(1), "_diff")])


SETTLED = {
    "made": made(),
    "numbers": ranged(),
    "listed": read("/landing/1.json"),
    "both": union(above(read(*LISTED)), above(made())),
}
OPEN = {
    "another file": read("/landing/1.json", "/tmp/now.json"),
    "a database": read(),
    "a view": named("staged"),
    "a query": queried("SELECT * FROM staged"),
    "one of two": union(above(made()), above(named("lake.web.visits"))),
    "nothing": Relation(),
}


@pytest.mark.parametrize("name", SETTLED)
def test_rows_of_the_plan_and_of_listed_files_are_settled(name: str) -> None:
    assert is_settled(above(SETTLED[name]), LISTED)


@pytest.mark.parametrize("name", OPEN)
def test_what_a_name_or_another_file_may_hold_later_is_not(name: str) -> None:
    assert not is_settled(above(OPEN[name]), LISTED)
