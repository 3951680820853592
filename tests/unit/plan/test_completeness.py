"""How complete collections are, given gaps and which parts go into which."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from firnline import Pipeline
from firnline.model.gap import Gap, Gaps, Span
from firnline.model.graph import Graph, check
from firnline.plan.completeness import touched


def graph() -> Graph:
    web = Pipeline("web", schedule=1, start=0)

    @web.source(keys=["k"], parts=8)
    def visits(epoch: Any) -> Any: ...

    @web.stage(keys=["k"], parts=8)
    def seen(visits: Any) -> Any: ...

    @web.stage(keys=["k"], parts=2)
    def spent(seen: Any) -> Any: ...

    @web.stage(keys=["k"], parts=2)
    def top(spent: Any) -> Any: ...

    return check(web, dict.fromkeys(("visits", "seen", "spent", "top"), "f"))


GAP = Gap("g", "visits", (Span(1, 1, (3,)),), 5, "2026-01-01", "web.visits", "gone", {"seen": 3}, {}, "open")


def ratios(*gaps: Gap, upto: int | None = None, upper: int = 5) -> dict[str, str]:
    web = graph()
    uppers = {each.name: upper for each in web.collections}
    found = touched(web, Gaps(gaps), uppers, upto, lambda reader, _: reader in ("seen", "top"))
    return {name: "{}/{}".format(*of.of(web.collection(name).parts)) for name, of in found.items()}


def test_without_gaps_all_parts_are_there() -> None:
    assert ratios() == {"visits": "8/8", "seen": "8/8", "spent": "2/2", "top": "2/2"}


def test_part_by_part_a_part_is_missing_and_else_an_output_is_as_complete_as_its_input() -> None:
    assert ratios(GAP) == {"visits": "7/8", "seen": "7/8", "spent": "7/8", "top": "7/8"}


def test_several_gaps_add_up() -> None:
    other = replace(GAP, id="h", spans=(Span(2, 2, (3, 5)),))
    assert ratios(GAP, other) == {"visits": "6/8", "seen": "6/8", "spent": "6/8", "top": "6/8"}
    own = replace(GAP, id="s", collection="spent", spans=(Span(1, 1, (0,)),), before={"spent": 3, "top": 3})
    assert ratios(GAP, own) == {"visits": "7/8", "seen": "7/8", "spent": "1/2", "top": "1/2"}


def test_what_was_computed_before_the_loss_is_whole() -> None:
    assert ratios(GAP, upper=3) == {"visits": "7/8", "seen": "8/8", "spent": "2/2", "top": "2/2"}
    assert ratios(GAP, upto=3) == {"visits": "7/8", "seen": "8/8", "spent": "2/2", "top": "2/2"}
    assert ratios(GAP, upto=1)["visits"] == "8/8", "the rows are of a later epoch"


def test_rows_that_are_back_are_missing_downstream_until_the_correction() -> None:
    back = replace(GAP, phase="back")
    assert ratios(back) == {"visits": "8/8", "seen": "7/8", "spent": "7/8", "top": "7/8"}
    corrected = replace(back, after={"seen": 5})
    assert ratios(corrected) == {"visits": "8/8", "seen": "8/8", "spent": "2/2", "top": "2/2"}
    assert ratios(corrected, upto=4)["top"] == "7/8"
