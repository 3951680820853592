"""Pages about results, as Great Expectations renders them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from firnline.quality.judging import document_of, result_of, with_samples
from firnline.quality.suite import suite_of


def document(expectation: dict[str, Any], value: str) -> dict[str, Any]:
    """What is kept of a suite with one expectation about ``s`` that a value did not meet."""
    suite = suite_of({"expectations": [expectation]}, Path("sane.json"))
    found = {"element_count": 1, "unexpected_count": 1, "unexpected_percent": 100.0}
    result = with_samples(result_of(suite.expectations[0], False, found), "s", [{"s": value}])
    run = {"run_name": "shop.orders@0", "run_time": "2026-01-01T00:00:00+00:00"}
    return document_of("sane", [result], {"run_id": run, "batch": "shop.orders.delta"})


def test_values_of_the_data_are_text_on_a_page_and_nothing_else(tmp_path: Path) -> None:
    from firnline.quality import gx

    kwargs = {"column": "s", "value_set": ["<i>a</i>"]}
    expectation = {"type": "expect_column_values_to_be_in_set", "kwargs": kwargs, "severity": "warning"}
    first = gx.render([document(expectation, "<script>alert(1)</script>")], tmp_path / "pages")
    assert first.is_file()
    pages = "".join(page.read_text() for page in (tmp_path / "pages").rglob("*.html"))
    assert "<script>alert" not in pages
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in pages
    assert "<i>a</i>" not in pages
