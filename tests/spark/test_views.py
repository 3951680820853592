"""A view of a collection, read by Spark's SQL in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.project import ROOT, make_project
from tests.spark import sql_views

PIPELINE = """
    import firnline as fl

    web = fl.Pipeline("web", schedule=1, start=0)

    @web.source(keys=["id"])
    def visits(epoch): ...
"""


def test_sql_sees_whole_epochs_of_the_users_columns_at_every_epoch(tmp_path: Path) -> None:
    make_project(tmp_path, sql_views.SETTINGS, web=PIPELINE)
    command = [sys.executable, "-m", "tests.spark.sql_views", str(tmp_path)]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("FIRNLINE", "SPARK", "PYSPARK"))}
    done = subprocess.run(command, cwd=ROOT, env=inherited, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert json.dumps(found["states"]).replace("-0.0", "0.0") == json.dumps(found["expected"]).replace("-0.0", "0.0")
    assert found["merged"] == len(found["expected"][-1])
    assert found["above"] == [[1], [4]], "NaN is greater than all others"
    assert found["zero"] == [[7]], "-0.0 is 0.0"
    assert found["views"][0][:2] == ["web__views", "visits"]
    assert "id = 3" in found["plan"].replace("#", " ") or "id IS NOT NULL" in found["plan"], found["plan"]
    assert found["columns"][:3] == ["id", "odd`name", "facts"]
