"""What OpenLineage is told of logs that were made without Spark; the idioms' test lets the provider send it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from airflow.providers.openlineage.extractors import OperatorLineage

from firnline.airflow.openlineage import Telling
from firnline.model.check import Check
from firnline.model.epoch import Epoch
from firnline.model.graph import Graph
from firnline.runtime.explained import Explained, remember
from firnline.runtime.project import Project
from firnline.tables.check_results import CheckResult
from tests.project import make_project
from tests.publishing import publish, web


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return make_project(tmp_path_factory.mktemp("openlineage"))


@pytest.fixture(scope="module")
def graph() -> Graph:
    """One whose ``seen`` is checked."""
    graph = web()
    checked = (replace(each, checks=(Check("sane"),)) if each.name == "seen" else each for each in graph.collections)
    return replace(graph, collections=tuple(checked))


def names(project: Project, lineage: OperatorLineage) -> tuple[list[str], list[str]]:
    assert {each.namespace for each in (*lineage.inputs, *lineage.outputs)} == {project.settings.warehouse}
    return [each.name for each in lineage.inputs], [each.name for each in lineage.outputs]


def test_before_there_is_anything_collections_have_names(project: Project, graph: Graph) -> None:
    told = Telling(project, graph).makes(("seen",), None)
    assert names(project, told) == (["web.visits", "web.pages"], ["web.seen"])
    assert [each.facets for each in (*told.inputs, *told.outputs)] == [{}, {}, {}]
    whole = Telling(project, graph).makes(("visits", "pages", "seen", "totals"), Epoch(0, 1))
    assert names(project, whole) == (["web.seen"], ["web.visits", "web.pages", "web.seen", "web.totals"])  # as it is checked
    assert names(project, Telling(project, graph).reads(("totals", "other.rows"))) == (["web.totals", "other.rows"], [])


def test_an_epoch_has_versions_columns_statistics_and_what_checks_said(project: Project, graph: Graph) -> None:
    file = [["a.csv", 1, "0"]]
    taken = {"files:in/*.csv": {"in": file}, "files:new /new/*": {"files": {"/new": file}, "seen": ["/old/b.csv"]}, "rate": 1.2}
    read = {name: publish(project, name, 0, determinants=taken).snapshot for name in ("visits", "pages")}
    made = publish(project, "seen", 0)
    lineage = {"k": ("pages.k", "visits.k.of.it"), "n": ("__time.time",)}
    remember(project.settings, graph, "seen", Explained("repeatable", "so", (), lineage, None, None))
    result = CheckResult("seen", 0, 1, "a", "sane", "delta", True, False, 2, ("not so",), 3, 0.1, "2026-01-01T00:00:00+00:00")
    expectations = {"expect_table_row_count_to_be_between": ({}, True), "expect_k": ({"column": "k"}, False)}
    results = [
        {"success": met, "expectation_config": {"type": name, "kwargs": kwargs}} for name, (kwargs, met) in expectations.items()
    ]
    project.check_results("web").keep(result, {"results": results})

    told = Telling(project, graph).makes(("seen",), Epoch(0, 1))
    assert names(project, told) == (["web.visits", "web.pages", "web.seen"], ["web.seen"])
    visits, pages, checked = told.inputs
    assert [each.facets["version"].datasetVersion for each in (visits, pages)] == [str(read["visits"]), str(read["pages"])]
    assert [(each.name, each.type) for each in visits.facets["schema"].fields] == [("k", "string")]
    assertions = checked.inputFacets["dataQualityAssertions"].assertions
    assert [(each.assertion, each.column, each.success, each.severity, each.name) for each in assertions] == [
        ("expect_table_row_count_to_be_between", None, True, "error", "sane on the delta"),
        ("expect_k", "k", False, "error", "sane on the delta"),
    ]
    (output,) = told.outputs
    assert output.facets["version"].datasetVersion == str(made.snapshot)
    assert output.outputFacets["outputStatistics"].rowCount == made.rows == 3
    fields = output.facets["columnLineage"].fields
    assert {name: [(each.name, each.field) for each in of.inputFields] for name, of in fields.items()} == {
        "k": [("web.pages", "k"), ("web.visits", "k.of.it")],
        "n": [],
    }
    sources = Telling(project, graph).makes(("visits", "pages"), Epoch(0, 1))
    folders = sorted(["/new", str(project.settings.root / "in")])
    assert [(each.namespace, each.name) for each in sources.inputs] == [("file", folder) for folder in folders]
    (later,) = Telling(project, graph).makes(("seen",), Epoch(1, 2)).outputs
    assert sorted(later.facets) == ["columnLineage", "schema"]
    assert later.outputFacets == {}


def test_what_another_version_wrote_down_is_not_known(project: Project, graph: Graph) -> None:
    remember(project.settings, graph, "totals", Explained("repeatable", "so", (), {"k": ("seen.k",)}, None, None))
    assert "columnLineage" in Telling(project, graph).makes(("totals",), None).outputs[0].facets
    (file,) = (project.settings.work / "explained").glob("web.totals-*.json")
    file.write_text('{"kind": "repeatable"}')
    assert "columnLineage" not in Telling(project, graph).makes(("totals",), None).outputs[0].facets
