from __future__ import annotations

import pickle
import re
from pathlib import Path

from firnline.errors import CODES, FirnlineError, GraphError, Location

SOURCE = Path(__file__).parents[2] / "src" / "firnline"


def test_every_code_is_used_and_every_used_code_is_known() -> None:
    used = set()
    for path in SOURCE.rglob("*.py"):
        used |= set(re.findall(r'"([A-Z]+(?:_[A-Z]+)+|CYCLE|PREREQUISITE)"', path.read_text())) & set(CODES)
        raised = set(re.findall(r'FirnlineError\(\s*"([A-Z_]+)"', path.read_text()))
        assert raised <= set(CODES), path
    quoted = {code for code in CODES if sum(f'"{code}"' in path.read_text() for path in SOURCE.rglob("*.py")) > 0}
    once = {code for code in quoted if sum(path.read_text().count(f'"{code}"') for path in SOURCE.rglob("*.py")) == 1}
    assert not once, f"declared and never used: {once}"


def test_an_error_says_what_where_and_what_to_do() -> None:
    error = FirnlineError("MISSING_FILE", "no file matches 'x'", Location("web.py", 3))
    assert str(error) == f"MISSING_FILE: no file matches 'x' (web.py:3). {CODES['MISSING_FILE'].todo}"
    assert error.as_json()["where"] == "web.py:3"
    assert error.retryable


def test_errors_survive_pickling() -> None:
    error = FirnlineError("BAD_NAME", "x", Location("f", 1), todo="do this")
    again = pickle.loads(pickle.dumps(error))
    assert (again.code, again.what, again.where, again.todo) == ("BAD_NAME", "x", Location("f", 1), "do this")


def test_a_graph_error_lists_all_problems() -> None:
    error = GraphError([FirnlineError("BAD_NAME", "one"), FirnlineError("CYCLE", "two")])
    assert str(error).count("\n") == 1
    assert [problem["code"] for problem in error.as_json()["problems"]] == ["BAD_NAME", "CYCLE"]  # type: ignore[index, union-attr]
