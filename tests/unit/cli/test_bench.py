"""``firnline bench`` where it cannot run."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.project import ROOT, command, firnline


def test_outside_of_a_checkout_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "lib" / "site"
    shutil.copytree(ROOT / "src" / "firnline", site / "firnline")
    monkeypatch.setitem(os.environ, "PYTHONPATH", str(site))
    assert firnline(tmp_path, "bench", "incremental", "--json", code=1)["error"]["code"] == "NO_CHECKOUT"


@pytest.mark.parametrize("words", [("--suite", "tpcds"), ("--scale", "0"), ("--suite", "tpch", "--change", "-0.1")])
def test_what_it_cannot_measure_is_refused_at_once(words: tuple[str, ...]) -> None:
    assert command(ROOT, "bench", "incremental", *words, "--json", code=1)["error"]["code"] == "BAD_OPTION"
