"""The DAG that maintains: it is parsed without an engine, and its task starts nothing where nothing is to be done."""

from __future__ import annotations

from pathlib import Path

from tests.airflow.housekeeping import execute
from tests.web_logs import copies


def test_the_task_does_what_is_to_be_done(environment: dict[str, str], tmp_path: Path) -> None:
    web = copies(tmp_path / "project")()
    with web.catalog.iceberg("web", "seen").transaction() as transaction:
        transaction.remove_properties("write.metadata.previous-versions-max")
    assert execute(web, "maintenance", 2, environment, tmp_path / "home") == ["maintained", "tidy"]
