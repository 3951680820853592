"""The warm engine: one Spark for many tasks, each in a session of its own, that outlives whatever happens to it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

from firnline.airflow.warden import family, processes
from firnline.engine.server import Engine
from firnline.engine.warm import _warm, connected
from firnline.errors import FirnlineError
from firnline.model.epoch import Epoch
from firnline.runtime import show
from firnline.runtime.advance import advance, complete
from firnline.runtime.job import warmly_advanced
from firnline.runtime.project import Project
from tests.airflow.conftest import until
from tests.project import firnline, make_project

SETTINGS = """
    spark_master = "local[2]"
    spark_memory = "1g"
    spark_shuffle_partitions = 2
    spark_java_options = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
    spark_conf = {"spark.executor.memory" = "1g", "spark.sql.ansi.enabled" = "false"}
"""
PIPELINE = """
    import firnline as fl
    from pyspark.sql import functions as F

    {name} = fl.Pipeline("{name}", schedule=1, start=0)


    @{name}.source(keys=["id"])
    def numbers(epoch):
        return epoch.spark.range(epoch.lower * 10, epoch.lower * 10 + 10)


    @{name}.stage(keys=["digit"])
    def digits(numbers):
        return numbers.groupBy((F.col("id") % {modulus}).alias("digit")).agg(F.count("*").alias("n"))
"""
TASK = """
import sys
from firnline.engine.server import Engine
from firnline.model.epoch import Epoch
from firnline.runtime.job import warmly_advanced
from firnline.runtime.project import Project
project = Project.load()
with Engine(project.settings).used() as endpoint:
    for collection in ("numbers", "digits"):
        print(warmly_advanced(project, sys.argv[1], collection, Epoch(1, 2), endpoint))
"""


PRELOADED = f"""
import sys
from firnline.airflow.preloaded import load
load()
before = {{name.partition(".")[0] for name in sys.modules}}
{TASK.replace("Epoch(1, 2)", "Epoch(2, 3)")}
print(*sorted({{name.partition(".")[0] for name in sys.modules}} - before))
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    pipelines = {name: PIPELINE.format(name=name, modulus=modulus) for name, modulus in (("threes", 3), ("sevens", 7))}
    return make_project(tmp_path_factory.mktemp("warm"), SETTINGS, **pipelines)


@pytest.fixture(scope="module")
def engine(project: Project) -> Iterator[Engine]:
    found = Engine(project.settings)
    found.start()
    yield found
    found.stop(0)
    assert found.state() is None


def server_of(engine: Engine) -> int:
    """The process of the JVM."""
    state = engine.state()
    assert state is not None
    (pid,) = [pid for pid in family(state.pid) if "SparkConnectServer" in Path(f"/proc/{pid}/cmdline").read_text()]
    return pid


def digits(project: Project, pipeline: str, epoch: Epoch) -> list[Any]:
    graph = project.graph(pipeline)
    complete(project, graph, epoch)
    return sorted(show.rows(project, graph, "digits", str(epoch.lower))[1])


def test_it_is_started_once_and_only_its_owner_reads_its_token(project: Project, engine: Engine) -> None:
    before = engine.state()
    assert before is not None
    root = project.settings.root
    told = firnline(root, "engine", "start", "--json")
    assert (told["phase"], told["process"], told["address"]) == ("ready", before.pid, f"sc://127.0.0.1:{before.port}")
    assert firnline(root, "engine", "status", "--json") == told
    assert engine.state() == before
    files = {path.name: path.stat().st_mode & 0o777 for path in engine.folder.iterdir() if before.token in path.read_text()}
    assert files == {"state.json": 0o600}
    commands = [Path(f"/proc/{pid}/cmdline").read_text() for pid in (before.pid, server_of(engine))]
    assert not any(before.token in line for line in commands)


@pytest.mark.parametrize("token", ["", "wrong"])
def test_another_token_or_none_is_refused(project: Project, engine: Engine, token: str) -> None:
    with (
        engine.used() as endpoint,
        pytest.raises(FirnlineError) as refusal,
        connected(project.settings, replace(endpoint, token=token)),
    ):
        pass
    assert refusal.value.code == "ENGINE_REFUSED"
    assert not refusal.value.retryable


def test_sessions_are_set_alike_and_share_nothing(project: Project, engine: Engine) -> None:
    with engine.used() as endpoint, connected(project.settings, endpoint) as one, connected(project.settings, endpoint) as other:
        one.range(3).createOrReplaceTempView("mine")
        one.conf.set("spark.sql.shuffle.partitions", "7")
        assert other.conf.get("spark.sql.shuffle.partitions") == "2"
        assert not other.catalog.tableExists("mine")
        assert other.conf.get("spark.sql.ansi.enabled") == "true"  # pinned, whatever the project's settings say


def test_two_pipelines_at_once_compute_what_they_should(project: Project, engine: Engine) -> None:
    tasks = [
        subprocess.Popen([sys.executable, "-c", TASK, pipeline], cwd=project.settings.root, stdout=subprocess.PIPE, text=True)
        for pipeline in ("threes", "sevens")
    ]
    assert [task.communicate()[0].split() for task in tasks] == [["computed", "computed"]] * 2
    for pipeline, modulus in (("threes", 3), ("sevens", 7)):
        counts: dict[int, int] = {}
        for number in range(20):
            counts[number % modulus] = counts.get(number % modulus, 0) + 1
        assert dict(digits(project, pipeline, Epoch(1, 2))) == counts


def test_a_task_of_a_preloaded_scheduler_loads_no_further_package(project: Project, engine: Engine, tmp_path: Path) -> None:
    command, home = [sys.executable, "-c", PRELOADED, "sevens"], {"AIRFLOW_HOME": str(tmp_path)}
    done = subprocess.run(command, cwd=project.settings.root, env={**os.environ, **home}, capture_output=True, text=True)
    *outcomes, loaded = done.stdout.splitlines() or [done.stderr]
    assert [line for line in outcomes if line in ("computed", "kept")] == ["computed", "computed"]
    assert loaded == "include"


def test_a_command_works_on_an_engine_of_its_own_settings_and_says_so(project: Project, engine: Engine) -> None:
    state = engine.state()
    assert state is not None
    told = firnline(project.settings.root, "run", "sevens", "--to", "3")
    assert told.splitlines()[0] == f"Spark runs on the engine at {state.endpoint}"
    assert dict(digits(project, "sevens", Epoch(3, 4))) == {digit: 5 + (digit < 5) for digit in range(7)}
    other = project.settings.model_copy(update={"spark_memory": "3g"})
    with pytest.raises(FirnlineError, match="was started with other settings") as refusal, _warm(other):
        pass
    assert refusal.value.code == "ENGINE_UNAVAILABLE"


def test_a_session_that_ends_takes_its_queries_along(project: Project, engine: Engine, tmp_path: Path) -> None:
    beat = tmp_path / "beat"

    def busy(frames):  # type: ignore[no-untyped-def]
        while True:
            beat.write_text(str(time.time()))
            time.sleep(0.1)
            yield from ()

    def run() -> None:
        with suppress(Exception):
            session.range(1).mapInPandas(busy, "id bigint").collect()

    with engine.used() as endpoint, connected(project.settings, endpoint) as session:
        thread = threading.Thread(target=run)
        thread.start()
        until(beat.exists, 60)
    thread.join()
    until(lambda: time.time() - beat.stat().st_mtime > 2, 20)


def test_a_killed_server_is_started_again_and_a_retry_keeps_what_is_done(
    project: Project, engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    before, first = engine.state(), server_of(engine)
    with engine.used() as endpoint:
        with connected(project.settings, endpoint) as session:
            declared = project.declared("threes")
            *_, done = advance(project, declared, session, "numbers", Epoch(2, 3))
            os.kill(first, signal.SIGKILL)
            with pytest.raises(FirnlineError) as lost:
                list(advance(project, declared, session, "digits", Epoch(2, 3)))
        assert done.how == "computed"
        assert lost.value.code == "ENGINE_LOST"
    with engine.used() as endpoint:
        assert warmly_advanced(project, "threes", None, Epoch(2, 3), endpoint) == "computed"
    told = [" ".join(record.message.split()[:2]) for record in caplog.records if record.name == "firnline.runtime.job"]
    assert (told[0], {*told[1:]}) == ("kept numbers", {"computed digits"})
    assert digits(project, "threes", Epoch(2, 3)) == [(0, 10), (1, 10), (2, 10)]
    after = engine.state()
    assert before is not None
    assert after is not None
    assert (after.restarts, after.pid) == (before.restarts + 1, before.pid)
    assert after.token != before.token
    assert server_of(engine) != first


def test_it_drains_and_ends_and_its_server_does_not_outlive_it(project: Project, engine: Engine) -> None:
    with engine.used() as endpoint, connected(project.settings, endpoint) as session:
        stopping = threading.Thread(target=engine.stop, args=(60,))
        stopping.start()
        while (state := engine.state()) is None or state.phase != "draining":
            time.sleep(0.05)
        with pytest.raises(FirnlineError, match="ENGINE_UNAVAILABLE: the engine is draining"), engine.used():
            pass
        assert session.range(5).agg(F.sum("id")).collect()[0][0] == 10
    stopping.join()
    assert engine.state() is None
    with pytest.raises(FirnlineError, match="ENGINE_UNAVAILABLE: no engine of this project runs"), engine.used():
        pass
    assert firnline(project.settings.root, "engine", "status", "--json", code=1) == {"phase": "stopped"}
    state, server = engine.start(), server_of(engine)
    os.kill(state.pid, signal.SIGKILL)
    until(lambda: server not in processes(), 10)
    assert engine.state() is None


def test_a_server_that_cannot_start_is_given_up_with_its_reason(tmp_path: Path) -> None:
    project = make_project(tmp_path, 'spark_memory = "much"')
    with pytest.raises(FirnlineError, match="Invalid maximum heap size") as refusal:
        Engine(project.settings).start()
    assert refusal.value.code == "ENGINE_UNAVAILABLE"
