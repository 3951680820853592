"""What status tells of checks; without a JVM."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from firnline.runtime.project import EXPECTATIONS
from firnline.runtime.status import status
from firnline.tables.check_results import CheckResult
from tests.project import compiled, make_project

PIPELINE = """
    import firnline as fl

    web = fl.Pipeline("web", schedule=1, start=0)

    @web.source(keys=["k"], checks=[fl.check("sane", blocking=False), "whole"])
    def visits(epoch): ...
"""
FAILED = CheckResult("visits", 7, 8, "a", "sane", "delta", False, False, 1, ("no",), 1, 0.1, "2026-01-01T00:00:00+00:00")


def test_only_checks_that_the_code_has_warn_and_only_of_their_newest_epoch(tmp_path: Path) -> None:
    made = make_project(tmp_path, web=PIPELINE)
    (tmp_path / EXPECTATIONS).mkdir(parents=True)
    for suite in ("sane", "whole"):
        (tmp_path / EXPECTATIONS / f"{suite}.json").write_text('{"expectations": []}')
    project = compiled(made, "web")
    results = project.check_results("web")
    for kept in (FAILED, replace(FAILED, suite="gone"), replace(FAILED, on="state"), replace(FAILED, suite="whole")):
        results.keep(kept, {})

    def warned() -> tuple[str, ...]:
        return status(project, project.graph("web")).collections[0].warned

    assert warned() == ("7: 'sane' on the delta: no",)
    results.keep(replace(FAILED, lower=3, upper=4, success=True), {}, is_again=True)
    assert warned() == ("7: 'sane' on the delta: no",), "rows of an older epoch were made again"
    results.keep(replace(FAILED, success=True), {}, is_again=True)
    assert warned() == ()
    results.keep(replace(FAILED, lower=3, upper=4), {})
    assert warned() == ("3: 'sane' on the delta: no",), "after a rewind an older epoch is the last one"
