"""The command line on a real log whose code changes: plan, approve, apply, branches of git refs, promotions, retire.

Commands run in this process and on the session that all tests share, which saves starting a Spark for each.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.connect.session import SparkSession

from firnline.runtime.project import Project
from firnline.runtime.verify import verify
from tests.project import command, compiled
from tests.spark.running import rows

Make = Callable[..., Project]
TILLS = """
import firnline as fl
from pyspark.sql import functions as F

tills = fl.Pipeline("tills", schedule=1, start=0)

@tills.source(keys=["id"])
def sales(epoch):
    return epoch.spark.createDataFrame([(10 * epoch.lower + n, n % 2, n) for n in range(5)], "id int, till int, n int")

@tills.stage(keys=["id"])
def large(sales):
    return sales.where("n >= {least}")
"""
TOTALS = """
@tills.stage(keys=["till"])
def totals(large):
    return large.groupBy("till").agg(F.sum("n").alias("n"))
"""


def expected(*least: int) -> list[tuple[int, int]]:
    """The totals, each epoch's rows by what was large then."""
    found = [(n % 2, n) for bound in least for n in range(5) if n >= bound]
    return [(till, sum(n for of, n in found if of == till)) for till in (0, 1)]


def test_code_changes_on_a_real_log_by_commands(project: Make, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.project.environment", lambda: dict(os.environ))  # by which PySpark knows Connect
    monkeypatch.setattr("firnline.engine.session.opened", lambda *_: nullcontext(spark))
    monkeypatch.setattr("firnline.engine.warm.at_hand", lambda *_: nullcontext((spark, "the tests' Spark")))

    def code(least: int, more: str = TOTALS) -> Project:
        return compiled(project(tills=TILLS.format(least=least) + more), "tills")

    def tagged(name: str) -> None:
        for words in (["add", "include"], ["commit", "-qm", name], ["tag", name]):
            subprocess.run(["git", "-c", "user.name=ana", "-c", "user.email=ana@example.org", *words], cwd=root, check=True)

    def told(*words: str, refused: int = 0) -> Any:
        return command(root, *words, "--json", code=refused)

    def totals(as_of: int | None = None) -> list[Any]:
        return rows(made, made.graph("tills"), "totals", None if as_of is None else str(as_of))

    made = code(0)
    root: Path = made.settings.root
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    assert {each["how"] for each in told("run", "tills", "--to", "1")} == {"computed"}

    # What changed waits until it is approved; applied, past epochs are replayed.
    made = code(1)
    assert "large waits for approval: firnline approve tills" in command(root, "plan", "tills")
    assert told("run", "tills", "--to", "2", refused=1)["error"]["code"] == "CHANGE_NOT_APPROVED"
    assert [each["collection"] for each in told("approve", "tills")] == ["large"]
    assert "What changed may make the next epochs." in command(root, "plan", "tills")
    (plan,) = told("plan", "tills", "--apply", "--from", "1")
    assert [(each["collection"], each["since"], each["is_waiting"]) for each in plan["changes"]] == [("large", "0", False)]
    assert [each["how"] for each in plan["applied"] if each["epoch"] == "1"] == ["kept", "computed", "computed"]
    assert [totals(0), totals(1)] == [expected(0), expected(1, 1)]
    assert "There is nothing to compute again." in command(root, "plan", "tills", "--apply")

    # A branch with the code of a git ref; main moves on; the promotion is refused until the code is there, and rebased.
    code(2)
    tagged("stricter")
    made = code(1)
    told("branch", "create", "strict", "--from", "2", "--code", "stricter")
    told("run", "tills", "--to", "2")
    assert told("promote", "strict", refused=1)["error"]["code"] == "PROMOTE_BEHIND"
    ran = told("branch", "run", "strict")
    assert {each["collection"]: each["how"] for each in ran} == {"sales": "taken", "large": "computed", "totals": "computed"}
    assert told("promote", "strict", refused=1)["error"]["code"] == "PROMOTE_CODE_DIFFERS"
    assert told("diff", "main", "strict")["first"] == "large"
    told("run", "tills", "--to", "3")
    made = code(2)
    promoted = told("promote", "strict", "--rebase")
    assert (promoted["epoch"], promoted["changed"]) == ("4", ["large", "totals"])
    assert [totals(2), totals(3), totals(4)] == [expected(1, 1, 1), expected(1, 1, 1, 1), expected(2, 2, 2, 2, 2)]
    assert told("promote", "strict")["epoch"] is None, "there is nothing left of it"
    told("branch", "drop", "strict")

    # One more, after it.
    code(0)
    tagged("all")
    made = code(2)
    told("branch", "create", "lax", "--from", "5", "--code", "all")
    assert "has computed nothing yet" in told("promote", "lax", refused=1)["error"]["what"]
    told("run", "tills", "--to", "5")
    assert totals() == expected(2, 2, 2, 2, 2, 2)
    made = code(0)
    assert told("promote", "lax", "--rebase")["epoch"] == "6"
    assert totals() == expected(0, 0, 0, 0, 0, 0, 0)
    told("run", "tills", "--to", "7")
    assert totals() == expected(0, 0, 0, 0, 0, 0, 0, 0)
    told("branch", "drop", "lax")

    made = code(0, "")
    assert "totals is not in the code any more; its log stays, with 2 rows up to 8." in command(root, "plan", "tills")
    retired = told("plan", "tills", "--retire", "totals")["retired"]
    assert "tills.totals" in retired
    assert [name for name in made.catalog.names("tills") if name.startswith("totals")] == []
    assert "totals" not in command(root, "plan", "tills")
    assert verify(made, "tills", spark).problems == ()
