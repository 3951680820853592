"""``firnline erase`` refuses before it starts Spark: nobody erases by accident, or from what is computed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.project import firnline, make_project

PIPELINE = """
    import firnline as fl

    web = fl.Pipeline("web", schedule=1, start=0)

    @web.source(keys=["k"])
    def visits(epoch): ...

    @web.stage(keys=["k"])
    def seen(visits): ...
"""


@pytest.mark.parametrize(("name", "code"), [("visits", "NOT_CONFIRMED"), ("web.seen", "NOT_A_SOURCE")])
def test_it_asks_first_and_takes_sources_only(name: str, code: str, tmp_path: Path) -> None:
    make_project(tmp_path, web=PIPELINE)
    refused = firnline(tmp_path, "erase", name, "--where", "k = 'a'", "--json", code=1)
    assert refused["error"]["code"] == code
