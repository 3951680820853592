"""Which pipelines and collections commands are about: branches too, and none that does not load stops the others. No JVM."""

from __future__ import annotations

import pytest

from firnline.airflow.housekeeping import MaintenanceOperator, ReplicateOperator
from firnline.cli.collection import found, found_in_main
from firnline.cli.pipelines import asked
from firnline.errors import FirnlineError
from firnline.runtime.branch import create
from firnline.runtime.project import Project
from firnline.runtime.safepoint import safe_point
from tests.project import command
from tests.web_logs import copies


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = copies(tmp_path_factory.mktemp("asked") / "project")()
    create(project, project.graph("web"), "what_if", 1, None)
    return project


def test_rows_of_a_branch_are_shown_and_those_of_main_beside(web: Project) -> None:
    root = web.settings.root
    assert len(command(root, "show", "web.visits", "--json")) == 9
    assert len(command(root, "show", "web__what_if.visits", "--json")) == 3
    assert found(web, "web__what_if.visits")[0].name == "web__what_if"


def test_a_branch_is_neither_erased_nor_rescaled_by_itself(web: Project) -> None:
    assert found_in_main(web, "visits")[0].name == "web"
    with pytest.raises(FirnlineError, match=r"a branch's. Name web.visits; .*firnline branch drop what_if"):
        found_in_main(web, "web__what_if.visits")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("web.vists", "nearest: 'web.visits'"),
        ("sean", "nearest: 'seen'"),
        ("zzz", "there are: seen, visits"),
        ("wob.visits", "no pipeline 'wob'"),
        ("web__other.visits", "NO_SUCH_BRANCH"),
    ],
)
def test_a_wrong_name_is_told_what_there_is(web: Project, text: str, told: str) -> None:
    with pytest.raises(FirnlineError, match=told):
        found(web, text)


@pytest.fixture(scope="module")
def sick(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = copies(tmp_path_factory.mktemp("sick") / "project")()
    (project.settings.root / "include" / "pipelines" / "helpers.py").write_text("SIX = 6\n")
    return project


def test_a_module_without_a_pipeline_does_not_stop_the_others(sick: Project, capsys: pytest.CaptureFixture[str]) -> None:
    (told,) = command(sick.settings.root, "safepoint", "--json", code=1)
    assert told["pipeline"] == "web"
    with pytest.raises(Exception) as end, asked(sick, None) as graphs:  # noqa: PT011 typer's Exit
        assert [graph.name for graph in graphs] == ["web"]
    assert end.value.exit_code == 1  # type: ignore[attr-defined]
    complained = capsys.readouterr().err
    assert "helpers: NO_SUCH_PIPELINE: include/pipelines/helpers.py declares no Pipeline named 'helpers'" in complained
    assert "belongs into include/, not include/pipelines/" in complained


def test_what_cannot_be_undone_is_not_done_to_the_only_one_that_loads(sick: Project) -> None:
    assert found(sick, "visits")[0].name == "web"
    assert found_in_main(sick, "web.visits")[0].name == "web"
    with pytest.raises(FirnlineError, match="helpers does not load and may have 'visits', too"):
        found_in_main(sick, "visits")


def test_a_module_without_a_log_holds_no_safe_point(sick: Project) -> None:
    assert not [hold for hold in safe_point(sick, sick.graph("web")).holds if hold.name == "helpers"]


def test_maintenance_and_replication_of_the_others_go_on_and_say_so(sick: Project) -> None:
    for operator in (
        MaintenanceOperator(task_id="maintain", root=str(sick.settings.root), minutes=1),
        ReplicateOperator(task_id="replicate", root=str(sick.settings.root)),
    ):
        with pytest.raises(Exception, match="helpers was left out"):
            operator.execute({})
