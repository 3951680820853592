"""``firnline bench`` where it cannot run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]


def refused(source: Path, *words: str) -> dict[str, Any]:
    command = [sys.executable, "-c", "from firnline.cli import main; main()", "bench", "incremental", *words, "--json"]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(source)}, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    error: dict[str, Any] = json.loads(done.stdout)["error"]
    return error


def test_outside_of_a_checkout_it_says_so(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src" / "firnline", tmp_path / "lib" / "site" / "firnline")
    assert refused(tmp_path / "lib" / "site")["code"] == "NO_CHECKOUT"


@pytest.mark.parametrize("words", [("--suite", "tpcds"), ("--scale", "0"), ("--suite", "tpch", "--change", "-0.1")])
def test_what_it_cannot_measure_is_refused_at_once(words: tuple[str, ...]) -> None:
    assert refused(ROOT / "src", *words)["code"] == "BAD_OPTION"
