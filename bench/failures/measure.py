"""Workers, the driver and the master of a cluster are killed in mid-join, rows are lost, a worker is slow: what each costs.

All of it on the services of docker/compose.yaml, started without Docker: three workers with a core each. Every experiment
computes the same join under another name, so that all start from nothing, and must publish the same digests; plain Spark must
have the same rows. A kill comes half a wave after the first wave is staged.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from pyspark.sql.connect.session import SparkSession

from bench.failures.cluster import Cluster, started
from bench.failures.events import Replay, events, replay_after
from bench.failures.jobs import PLAIN, Waves, advanced, counted, plain_inputs, plain_rows, plainly_joined
from bench.failures.pipeline import CONTRACTS, EPOCH, MODULE, NAME, PARTS, SOURCES
from bench.project import project_in
from firnline.engine.frames import table_name
from firnline.engine.session import opened
from firnline.errors import FirnlineError
from firnline.model.digest import Digest
from firnline.plan.verification import covers, data_of
from firnline.runtime.project import Project
from firnline.runtime.repair import repair
from firnline.runtime.verify import taken

_SETTINGS = """\
spark_java_options = "-XX:+UseSerialGC"
spark_shuffle_partitions = 3

[profile.cluster.spark_conf]
"spark.cores.max" = "3"
"spark.executor.memory" = "1g"
"spark.eventLog.enabled" = "true"
"spark.eventLog.dir" = "file://{events}"
"spark.eventLog.compress" = "false"
"spark.eventLog.rolling.enabled" = "false"
"""
_SPECULATION = {"spark.speculation": "true", "spark.speculation.multiplier": "1.5", "spark.speculation.quantile": "0.5"}
LOST = PARTS // 3
"""As many parts as one of three workers has."""


@dataclass(frozen=True, slots=True)
class Kill:
    """A join of which something was killed."""

    what: str
    seconds: float
    without: float
    """What it takes when nothing is killed."""
    waves: int
    computed: int
    """Waves that were staged; after the death of a driver, those that the next one staged."""
    killed: float
    ended: float
    """When, in seconds since 1970."""
    replay: Replay = field(default_factory=Replay)


@dataclass(frozen=True, slots=True)
class Loss:
    """Rows of a published epoch were lost together with a worker."""

    contract: str
    seconds: float
    without: float
    """What the epoch takes."""
    rows_lost: int
    rows_recomputed: int
    rows_left_out: int
    said: str


@dataclass(frozen=True, slots=True)
class Slow:
    """A join one of whose workers was slow."""

    has_speculation: bool
    seconds: float
    without: float


@dataclass
class Found:
    """All figures."""

    kills: list[Kill] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)
    slow: list[Slow] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)


def measured(root: Path, checkout: Path, visits: int, say: Callable[[str], None]) -> Found:
    """Run it all in a new project."""
    folder = root / "events"
    folder.mkdir(parents=True)
    say("the cluster starts")
    with started(checkout) as cluster, cluster.used():
        settings = _SETTINGS.format(events=folder)
        project = project_in(root, settings, NAME, MODULE.format(visits=visits), checkout / ".firnline" / "jars")
        bench = _Bench(project, cluster, checkout, say)
        with bench.session():
            bench.prepare()
            bench.kill_workers_and_master()
            bench.lose_rows()
            bench.slow_down("slow", bench.advanced("well"), has_speculation=False)
        bench.kill_drivers()
        with bench.session(**_SPECULATION):
            bench.advanced("speculated_warm_up")
            bench.slow_down("speculated", bench.advanced("speculated_well"), has_speculation=True)
    told = events(folder)
    bench.found.kills = [
        replace(each, replay=replay_after(told, each.killed, each.ended, is_driver="driver" in each.what))
        for each in bench.found.kills
    ]
    return bench.found


class _Bench:
    """The experiments, in order."""

    def __init__(self, project: Project, cluster: Cluster, checkout: Path, say: Callable[[str], None]) -> None:
        self._project, self._cluster, self._checkout, self._say = project, cluster, checkout, say
        self._session: SparkSession
        self._without = self._plainly = 0.0
        self._waves = 1
        self._rows = (0, 0)
        """Of a run without a failure."""
        self.found = Found()

    @contextmanager
    def session(self, **conf: str) -> Iterator[None]:
        """A session on a driver of this process."""
        self._say("a driver starts")
        settings = self._project.settings
        asked = settings.model_copy(update={"spark_conf": {**settings.spark_conf, **conf}})
        with opened(asked, NAME) as self._session:
            self._cluster.await_executors()
            yield

    def prepare(self) -> None:
        """Sources, a warm-up, and everything without a failure."""
        for name in (*SOURCES, "warm_up"):
            self.advanced(name)
        waves = Waves()
        self._without = self.advanced("none", waves)
        self._waves = max(waves.staged, 1)
        plain_inputs(self._session, {name: table_name(NAME, name) for name in SOURCES})
        plainly_joined(self._session)
        self._say("plain Spark")
        self._plainly = plainly_joined(self._session)
        self._rows = counted(self._session, table_name(NAME, "none"))
        if plain_rows(self._session) != self._rows:
            self.found.differences.append("plain Spark has other rows")

    def kill_workers_and_master(self) -> None:
        """One worker, then two, then the master; and one worker below plain Spark."""
        self._killed("one of three workers", "one", lambda: self._cluster.kill_workers(1))
        self._killed("two of three workers", "two", lambda: self._cluster.kill_workers(2))
        self._killed("the master", "master", self._cluster.kill_master)
        self._cluster.await_master()
        self._killed("plain Spark: one of three workers", None, lambda: self._cluster.kill_workers(1))
        if plain_rows(self._session) != self._rows:
            self.found.differences.append("plain Spark has other rows after the death of a worker")

    def lose_rows(self) -> None:
        """A third of the parts, with a worker, under each contract."""
        for name, contract in CONTRACTS.items():
            self._cluster.await_executors()
            log = taken(self._project, NAME, name)
            lost = log.cells()[:LOST]
            for path in {data.file.path for _, data in data_of(log) if any(covers(data, cell) for cell in lost)}:
                self._project.catalog.remove(path)
            self._say(f"{len(lost)} parts and a worker are lost, on_loss={contract!r}")
            self._cluster.kill_workers(1)
            began = time.monotonic()
            done = repair(self._project, lambda: self._session, f"{NAME}.{name}")
            seconds = time.monotonic() - began
            steps = done.done
            said = done.refusals[0].what if done.refusals else "whole" if not done.gaps else "a gap"
            rows = (sum(each.rows_lost for each in steps), sum(each.rows_recomputed for each in steps))
            left_out = sum(each.rows_left_out for each in steps)
            self.found.losses.append(Loss(contract, seconds, self._without, *rows, left_out, said))
            self.found.differences += [f"on_loss={contract!r}: {each.error}" for each in done.failed]
            if contract != "fail" and counted(self._session, table_name(NAME, name))[0] + left_out != self._rows[0]:
                self.found.differences.append(f"on_loss={contract!r}: rows are neither there nor told to be left out")
            if contract == "replay" and counted(self._session, table_name(NAME, name)) != self._rows:
                self.found.differences.append(f"on_loss={contract!r}: other rows came back")

    def slow_down(self, name: str, without: float, *, has_speculation: bool) -> None:
        """One worker stands still most of the time; ``without`` is what the same session takes when none does."""
        self._cluster.await_executors()
        with self._cluster.slowed():
            seconds = self.advanced(name)
        self.found.slow.append(Slow(has_speculation, seconds, without))

    def kill_drivers(self) -> None:
        """Ours and plain Spark's, each with what it takes from the start of its process to the end."""
        began = time.monotonic()
        self._finished(self._process("cold"))
        without = time.monotonic() - began
        self._same("cold")
        log = self._project.log(NAME, "driver")
        self._driver("the driver", "driver", without, lambda: log.load() is not None and log.wave_count(EPOCH.lower) is not None)
        self._same("driver")
        began = time.monotonic()
        self._finished(self._process(PLAIN))
        without, ready = time.monotonic() - began, time.monotonic() + without - self._plainly / 2
        self._driver("plain Spark: the driver", PLAIN, without, lambda: time.monotonic() > ready)

    def advanced(self, name: str, waves: Waves | None = None) -> float:
        """Compute a collection on a whole cluster; a stage's rows are the same as ever."""
        self._say(name)
        seconds = advanced(self._project, self._session, name, waves or Waves())
        if name not in SOURCES:
            self._same(name)
        return seconds

    def _killed(self, what: str, name: str | None, kill: Callable[[], None]) -> None:
        """Kill something in mid-join; of plain Spark's when half of its time is over."""
        moments: list[float] = []

        def act() -> None:
            moments.append(time.time())
            kill()

        self._cluster.await_executors()
        if name is None:
            self._say(what)
            timer = threading.Timer(self._plainly / 2, act)
            timer.start()
            seconds, waves = plainly_joined(self._session), 1
            timer.join()
        else:
            world = Waves(self._without / self._waves / 2, act)
            seconds, waves = self.advanced(name, world), world.staged
        without = self._plainly if name is None else self._without
        if moments:
            self.found.kills.append(Kill(what, seconds, without, waves, waves, moments[0], time.time()))
        else:
            self.found.differences.append(f"{what}: it ended before the kill; use more --visits")

    def _driver(self, what: str, name: str, without: float, is_ready: Callable[[], bool]) -> None:
        """Kill a driver in mid-join, and start another."""
        self._say(what)
        began = time.monotonic()
        process = self._process(name)
        while not is_ready() and process.poll() is None:
            time.sleep(0.1)
        time.sleep(self._without / self._waves / 2 if name != PLAIN else 0.0)
        is_over = process.poll() is not None
        killed = time.time()
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if is_over:
            self.found.differences.append(f"{what}: it ended before the kill; use more --visits")
            return
        staged = self._finished(self._process(name))
        seconds = time.monotonic() - began
        waves = self._waves if name != PLAIN else 1
        self.found.kills.append(Kill(what, seconds, without, waves, staged if name != PLAIN else 1, killed, time.time()))

    def _process(self, name: str) -> subprocess.Popen[str]:
        """A driver of its own, in a process group of its own."""
        command = [sys.executable, "-m", "bench.failures.jobs", str(self._project.settings.root), name]
        environment = {**os.environ, "PYTHONPATH": str(self._checkout)}
        return subprocess.Popen(
            command,
            cwd=self._checkout,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def _finished(self, process: subprocess.Popen[str]) -> int:
        """How many waves it staged."""
        said = process.communicate()[0]
        if process.returncode:
            raise FirnlineError("STAGE_FAILED", f"a driver ended with {process.returncode}: {said[-2000:]}")
        return int(said.splitlines()[-1])

    def _same(self, name: str) -> None:
        if name not in ("warm_up", "none") and self._digests(name) != self._digests("none"):
            self.found.differences.append(f"{name} has other digests")

    def _digests(self, name: str) -> Mapping[tuple[int, int], Digest]:
        log = self._project.log(NAME, name)
        return log.sidecar(next(log.entries())).digests
