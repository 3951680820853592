"""UDFs, columns and schemas are known by what they say."""

from __future__ import annotations

import pytest

from tests.fingerprinting import Project


def test_a_udf_is_known_by_its_body_and_return_type(project: Project) -> None:
    pytest.importorskip("pyspark")
    source = """
    from pyspark.sql.functions import udf
    from pyspark.sql.types import LongType, StringType
    UNRELATED = 1
    def deep(x): return x + 1
    @udf(returnType=LongType())
    def score(x): return deep(x)
    called = udf(lambda x: deep(x), LongType())
    def stage(rows): return rows.select(score("a"), called("a"))
    """
    before = project.of(source)
    assert project.of(source) == before
    assert project.of(source.replace("UNRELATED = 1", "UNRELATED = 2")) == before
    assert project.of(source.replace("x + 1", "x + 2")) != before
    assert project.of(source.replace("return deep(x)", "return deep(-x)")) != before
    assert project.of(source.replace("lambda x: deep(x)", "lambda x: deep(-x)")) != before
    assert project.of(source.replace("returnType=LongType()", "returnType=StringType()")) != before
    assert project.of(source.replace("deep(x), LongType()", "deep(x), StringType()")) != before


def test_columns_and_schemas_are_known_by_what_they_say(project: Project) -> None:
    pytest.importorskip("pyspark")
    source = """
    from pyspark.sql.connect import functions as F
    from pyspark.sql.types import LongType, StructType
    UNRELATED = 1
    def deep(x): return x + 1
    score = F.udf(lambda x: deep(x), LongType())
    CONDITION = (F.col("a") > 1) & score("a").isNull()
    SCHEMA = StructType().add("a", LongType())
    def stage(rows): return rows.where(CONDITION).to(SCHEMA)
    """
    before = project.of(source)
    located = source.replace(
        "    CONDITION", "    from pyspark.errors.utils import set_current_origin as o\n    o('>', 'f:3')\n    CONDITION"
    )
    assert project.of(located.replace("    SCHEMA", "    o(None, None)\n    SCHEMA", 1)) == before
    assert project.of(source.replace("UNRELATED = 1", "UNRELATED = 2")) == before
    assert project.of(source.replace("> 1", "> 2")) != before
    assert project.of(source.replace("x + 1", "x + 2")) != before
    assert project.of(source.replace('add("a"', 'add("b"')) != before


def test_a_udf_made_inside_the_stage_counts(project: Project) -> None:
    source = """
    def stage(rows):
        from pyspark.sql.functions import udf
        f = udf(lambda x: x + 1, 'long')
        return f(rows)
    """
    assert project.of(source) == project.of(source.replace("f =", "g =").replace("f(rows)", "g(rows)"))
    assert project.of(source) != project.of(source.replace("x + 1", "x + 2"))
    assert project.of(source) != project.of(source.replace("'long'", "'int'"))
