from __future__ import annotations

from pathlib import Path

import pytest

from firnline.errors import FirnlineError
from firnline.testing.documents import cases_of

GOOD = """
# two cases
test_one:
  stage: sales.spend
  inputs: {orders: [{k: 1}]}
  outputs: []
test_two:
  stage: sales.spend
  schemas: {orders: k int}
  epochs:
    - inputs: {orders: [{k: 1}]}
    - crash: publish.committed
      changes: [{k: 1, _diff: -1}]
"""


def test_cases_are_read_with_the_lines_they_stand_on(tmp_path: Path) -> None:
    path = tmp_path / "test_a.yaml"
    path.write_text(GOOD)
    one, two = cases_of(path)
    assert (one.name, one.line, one.stage, len(one.epochs)) == ("test_one", 3, "sales.spend", 1)
    assert (two.name, two.line, two.schemas, len(two.epochs)) == ("test_two", 7, {"orders": "k int"}, 2)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("a: [", "is no YAML"),
        ("- a", "maps no names"),
        ("", "maps no names"),
        ("a: {stage: x.y, outputs: []}\na: {stage: x.y, outputs: []}", "two cases of one name"),
        ("a: {inputs: {}}", "no stage"),
        ("a: 1", "no stage"),
        ("a: {stage: x.y, inputs: {}}", "expects nothing"),
        ("a: {stage: x.y, outputs: [], output: []}", "nobody knows 'output'"),
        ("a: {stage: x.y, epochs: [{outputs: [], row: []}]}", "nobody knows 'row'"),
        ("a: {stage: x.y, outputs: [], epochs: []}", "both epochs and outputs"),
        ("a: {stage: x.y, epochs: {}}", "no list"),
    ],
)
def test_what_is_no_case_is_refused_with_its_file(tmp_path: Path, text: str, what: str) -> None:
    path = tmp_path / "test_a.yaml"
    path.write_text(text)
    with pytest.raises(FirnlineError, match=what) as caught:
        cases_of(path)
    assert caught.value.where is not None
    assert caught.value.where.file == str(path)
