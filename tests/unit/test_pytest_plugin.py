"""The plugin costs nothing until it is asked, and its YAML cases are tests like others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CASES = """
test_first:
  stage: shop.spend
  inputs: {orders: [{k: 1}]}
  outputs: []
test_second:
  stage: shop.spend
  inputs: {}
  outputs: []
"""


def collected(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "-c", "/dev/null", str(folder)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_loading_it_loads_neither_spark_nor_arrow() -> None:
    heavy = ("pyspark", "pyarrow", "pandas", "pydantic", "yaml", "pyiceberg")
    code = f"import sys, firnline.pytest_plugin; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_cases_of_a_project_are_collected(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_spend.yaml").write_text(CASES)
    (tmp_path / "tests" / "spend.yaml").write_text(CASES)
    assert "no tests" in collected(tmp_path).stdout, "elsewhere such a file is somebody else's"
    (tmp_path / "firnline.toml").touch()
    said = collected(tmp_path).stdout
    assert "test_spend.yaml::test_first" in said
    assert "2 tests collected" in said


def test_a_file_that_holds_no_cases_is_told(tmp_path: Path) -> None:
    (tmp_path / "firnline.toml").touch()
    (tmp_path / "test_spend.yaml").write_text("test_first: {stage: shop.spend}")
    done = collected(tmp_path)
    assert done.returncode != 0
    assert "BAD_HISTORY: the case 'test_first': it expects nothing" in done.stdout
