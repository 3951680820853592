"""The DAG that copies to replicas: it is parsed without an engine, and its task copies, tells and goes on."""

from __future__ import annotations

from pathlib import Path

from firnline.runtime.replicated import replicated_upto
from tests.airflow.housekeeping import execute
from tests.web_logs import PIPELINE, copies


def test_the_task_copies_what_is_published_and_tells_of_a_place_that_is_out(environment: dict[str, str], tmp_path: Path) -> None:
    place = tmp_path / "b"
    web = copies(tmp_path / "project", PIPELINE.replace("start=0", f'start=0, replicas=["file://{place}"]'))()
    place.write_text("in the way")
    (refusal,) = execute(web, "replicate", 1, environment, tmp_path / "home")
    assert "REPLICA_UNAVAILABLE" in refusal
    place.unlink()
    assert execute(web, "replicate", 2, environment, tmp_path / "home") == [6, 0]
    assert replicated_upto(web, web.graph("web")) == {"visits": 3, "seen": 3}
