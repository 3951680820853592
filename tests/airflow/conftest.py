"""One Airflow for all tests, on a copy of the project. The first test that needs it starts it; it must leave nothing behind."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from firnline.airflow.following import Step, follow
from firnline.airflow.home import USER, Home
from firnline.airflow.server import Server
from firnline.engine.server import Engine
from firnline.model.epoch import Epoch
from firnline.runtime.project import Project
from firnline.settings import FILE
from tests.project import ROOT, copy_amplab, make_project

RACE = '''
    """Run by a backfill that starts its runs at once, the last epoch first."""

    from pyspark.sql import functions as F

    import firnline as fl

    race = fl.Pipeline("race", schedule="@daily", start="2026-01-01", end="2026-01-04")


    @race.source(keys=["page_url"])
    def rankings(epoch):
        schema = "change string, page_url string, page_rank int, avg_duration int"
        changes = epoch.files("include/landing/amplab/{epoch:%Y-%m-%d}/rankings.csv", format="csv", schema=schema)
        return changes.withColumn("_diff", F.when(F.col("change") == "-", -1).otherwise(1)).drop("change")


    @race.stage(keys=["page_rank"])
    def pages_by_rank(rankings):
        return rankings.groupBy("page_rank").agg(F.count("*").alias("pages"))
'''
BROKEN = """
    import firnline as fl

    broken = fl.Pipeline("broken", schedule="@daily", start="2026-01-01", end="2026-01-02")


    @broken.source(keys=["id"])
    def readings(epoch):
        raise ValueError("the thermometer is broken")
"""
SLOW = """
    import time

    import firnline as fl

    slow = fl.Pipeline("slow", schedule="@daily", start="2026-01-01", end="2026-01-02", freshness="3s")


    @slow.source(keys=["id"])
    def readings(epoch):
        time.sleep(600)
"""
STUCK = """
    import time
    from pathlib import Path

    import firnline as fl

    stuck = fl.Pipeline("stuck", schedule="@daily", start="2026-01-01", end="2026-01-02")


    @stuck.source(keys=["id"])
    def readings(epoch):
        beat = Path(__file__).with_suffix(".beat")

        def busy(frames):
            while True:
                beat.write_text(str(time.time()))
                time.sleep(0.1)
                yield from ()

        return epoch.spark.range(1).mapInPandas(busy, "id bigint")
"""
WHOLE = """
    import firnline as fl
    from pyspark.sql import functions as F

    whole = fl.Pipeline("whole", schedule="@daily", start="2026-01-01", end="2026-01-03", tasks="per-epoch")


    @whole.source(keys=["id"])
    def numbers(epoch):
        day = f"{epoch:%Y-%m-%d}"
        return epoch.spark.range(10).select(F.concat(F.lit(day), F.col("id").cast("string")).alias("id"), F.lit(day).alias("at"))


    @whole.stage(keys=["at"])
    def totals(numbers):
        return numbers.groupBy("at").agg(F.count("*").alias("n"))
"""
FORKED = """
    import firnline as fl

    forked = fl.Pipeline("forked", schedule="@daily", start="2026-01-01", end="2026-01-05")


    @forked.source(keys=["k"])
    def visits(epoch):
        raise AssertionError("a test publishes its rows")
"""
CHANGING = """
    import firnline as fl
    from pyspark.sql import functions as F

    changing = fl.Pipeline("changing", schedule="@daily", start="2026-01-01", end="2026-01-04", tasks="per-epoch")


    @changing.source(keys=["day"])
    def days(epoch):
        return epoch.spark.createDataFrame([(f"{epoch:%Y-%m-%d}", epoch.lower.day)], "day string, n int")


    @changing.stage(keys=["day"])
    def scaled(days):
        return days.select("day", (F.col("n") * 2).alias("n"))


    @changing.stage(keys=[])
    def total(scaled):
        return scaled.agg(F.sum("n").alias("n"))
"""
FALLEN = """
    import firnline as fl

    fallen = fl.Pipeline("fallen", schedule="@daily", start="2026-01-01", end="2026-01-02", tasks="per-epoch")


    @fallen.source(keys=["id"])
    def numbers(epoch):
        return epoch.spark.range(3)
"""
RELAY = """
    import random
    import time

    import firnline as fl
    from pyspark.sql import functions as F

    relay = fl.Pipeline("relay", schedule="@daily", start="2026-01-01", end="2026-01-05")


    def dawdle():
        time.sleep(random.uniform(0, 4))


    @relay.source(keys=["id"])
    def numbers(epoch):
        dawdle()
        day = epoch.lower.day
        return epoch.spark.range(10 * day, 10 * day + 10)


    @relay.stage(keys=["id"])
    def odd(numbers):
        dawdle()
        return numbers.where(F.col("id") % 2 == 1)


    @relay.stage(keys=["digit"])
    def digits(odd):
        dawdle()
        return odd.groupBy((F.col("id") % 10).alias("digit")).agg(F.count("*").alias("n"), F.max("id").alias("last"))
"""
AFTER = """\
from airflow.sdk import DAG, task

from firnline.airflow import collection_asset

TOP = collection_asset("amplab.top_sources")

with DAG("after_amplab", schedule=[TOP], is_paused_upon_creation=False):

    @task
    def look(triggering_asset_events):
        return triggering_asset_events[TOP][-1].extra["frontier"]

    look()
"""
DAG = 'from firnline.airflow import pipeline_dag\n\ndag = pipeline_dag("{name}")\n'
COLD = (("race", "rankings"), ("slow", "readings"))
"""Tasks whose connection Airflow does not know; all others are warm."""
UNCONNECTED = 'dag.get_task("{task}")._conn_id = "nowhere"\n'
BRANCH_DAG = 'from firnline.airflow import branch_dag\n\ndag = branch_dag("forked")\n'
PIPELINES = {
    "race": RACE,
    "broken": BROKEN,
    "slow": SLOW,
    "stuck": STUCK,
    "whole": WHOLE,
    "forked": FORKED,
    "changing": CHANGING,
    "fallen": FALLEN,
    "relay": RELAY,
}


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    root = tmp_path_factory.mktemp("project")
    copy_amplab(root)
    for name in PIPELINES:
        (root / "dags" / f"{name}.py").write_text(DAG.format(name=name))
    (root / "dags" / "forked__branch.py").write_text(BRANCH_DAG)
    (root / "dags" / "after_amplab.py").write_text(AFTER)
    for name, task in COLD:
        with (root / "dags" / f"{name}.py").open("a") as file:
            file.write(UNCONNECTED.format(task=task))
    found = make_project(root, (ROOT / FILE).read_text(), **PIPELINES)
    for name in found.pipelines():
        found.graph(name)  # compiled once, here, as `firnline up` does
    return found


ROLES = {"vera": "viewer", "uma": "user"}
"""Beside the one that there always is."""


def add_users(home: Home) -> None:
    home.prepare()
    config, passwords = home.path / "airflow.cfg", home.path / "passwords.json"
    users = [f"{USER}:admin", *(f"{name}:{role}" for name, role in ROLES.items())]
    config.write_text(config.read_text().replace(users[0], ",".join(users)))
    passwords.write_text(json.dumps({**json.loads(passwords.read_text()), **{name: name for name in ROLES}}))


OPENLINEAGE = "openlineage.jsonl"
PROVIDER = ROOT / ".firnline" / "openlineage"
"""Beside the environment: ``make openlineage``."""


def tell_openlineage(home: Home) -> None:
    """Let the provider write what it is told of the AMPLab pipeline's tasks to a file, one event to a line."""
    config = home.path / "airflow.cfg"
    transport = {"type": "file", "log_file_path": str(home.path / OPENLINEAGE), "append": True}
    only = [
        {"scope": {}, "controls": {"emit": False}},
        {"scope": {"dag_id": "amplab"}, "controls": {"emit_task_events": True}},
    ]
    said = f"[openlineage]\ntransport = {json.dumps(transport)}\nemission_policy = {json.dumps(only)}\n"
    config.write_text(config.read_text() + said)


@pytest.fixture(scope="session")
def server(project: Project) -> Iterator[Server]:
    add_users(Home(project.settings))
    tell_openlineage(Home(project.settings))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(PROVIDER), prepend=os.pathsep)
        with Server(project.settings, engine=True) as server:
            for name in project.pipelines():
                server.wait_until_parsed(name)
            server.wait_until_parsed("after_amplab")
            yield server
    Engine(project.settings).stop(0)  # one that a test started again
    assert processes_of(project.settings.airflow_home) == {}


@pytest.fixture(scope="session")
def steps(project: Project, server: Server) -> tuple[Step, ...]:
    """The AMPLab pipeline's three epochs, as the schedule runs them."""
    graph = project.graph("amplab")
    server.api.unpause("amplab")
    *_, last = follow(server, graph, epochs_of(project, "amplab"))
    return last


def epochs_of(project: Project, pipeline: str) -> list[Epoch]:
    schedule = project.graph(pipeline).schedule
    assert schedule.end is not None
    return list(schedule.epochs(schedule.start, schedule.end))


@pytest.fixture(scope="session")
def environment() -> dict[str, str]:
    """For subprocesses: this environment's commands, and the library whether installed or not."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT / "src"), "COLUMNS": "200"}


def processes_of(home: Path) -> dict[int, str]:
    """The command lines of all processes that were started with that Airflow home, and of those below them.

    Some of Airflow's write their title over their environment, so that only their parent tells.
    """
    lines: dict[int, str] = {}
    parents: dict[int, int] = {}
    found: set[int] = set()
    for folder in Path("/proc").glob("[0-9]*"):
        pid = int(folder.name)
        try:
            parents[pid] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            lines[pid] = (folder / "cmdline").read_text().replace("\0", " ")
            if f"AIRFLOW_HOME={home}\0".encode() in (folder / "environ").read_bytes():
                found.add(pid)
        except OSError:
            continue
    while below := {pid for pid, parent in parents.items() if parent in found and pid in lines} - found:
        found |= below
    return {pid: lines[pid] for pid in found}


def until(is_so: Callable[[], object], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, f"not so after {seconds} s"
        time.sleep(0.2)
