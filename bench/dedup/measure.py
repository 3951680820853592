"""Looking up new ids among those that were seen: as the dedup intake does it, and by a full anti-join with the state.

Both are given the same records and the same log, turn by turn, in one session; their results have to be equal. Bytes are those
that all processes had read from disk, as the kernel counts them, in a look-up before which it forgot what it knew of the files.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.connect.session import SparkSession

from bench.dedup.pipeline import ANYWHERE, EVENTS, MODULE, NAME, PARTS, RECENT, RECENTLY, SEEN
from bench.project import project_in
from firnline.engine import staging
from firnline.engine.frames import deltas, frame_of, table_name
from firnline.engine.looking_up import first_of
from firnline.engine.reading import SourceEpoch
from firnline.engine.session import opened
from firnline.model.digest import Digest
from firnline.model.epoch import Epoch
from firnline.model.names import DIFF
from firnline.runtime.advance import advance, complete
from firnline.runtime.attempt import Staged
from firnline.runtime.evaluation import in_order
from firnline.runtime.intake import intake_of
from firnline.runtime.project import Project
from firnline.runtime.stage_run import StageRun
from firnline.runtime.writing import Placement
from firnline.world import world

TIME_LIMIT = 5.0
CASES = {"10% seen recently": RECENTLY, "1% seen at any time": ANYWHERE}
_SETTINGS = """\
spark_master = "local[2]"
spark_memory = "6g"
spark_shuffle_partitions = 16
concordance = true
"""


@dataclass
class Looked:
    """One way of looking up."""

    seconds: list[float] = field(default_factory=list)
    read: int = 0
    """Bytes."""


@dataclass
class Case:
    """Both ways, of one epoch's records."""

    name: str
    ours: Looked = field(default_factory=Looked)
    full: Looked = field(default_factory=Looked)

    @property
    def speedup(self) -> float:
        """How many times as long the full anti-join takes."""
        return median(self.full.seconds) / median(self.ours.seconds)


@dataclass
class Measured:
    """All cases."""

    seen: int
    new: int
    bytes: int = 0
    """Of the log."""
    index: int = 0
    """Bytes of the concordance of its ids."""
    indexed: float = 0.0
    """Seconds of the first epoch that looked ids up, and made it."""
    cases: list[Case] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)


def measured(root: Path, jars: Path, seen: int, new: int, runs: int, say: Callable[[str], None]) -> Measured:
    """Run it all in a new project."""
    project = project_in(root, _SETTINGS, NAME, MODULE.format(seen=seen, new=new), jars)
    with opened(project.settings, "firnline bench dedup") as session:
        return compared(project, session, seen, new, runs, say)


def compared(project: Project, session: SparkSession, seen: int, new: int, runs: int, say: Callable[[str], None]) -> Measured:
    """Fill the log, then look up the records of each case in it, without publishing them."""
    found = Measured(seen, new)
    declared = project.declared(NAME)
    if project.log(NAME, EVENTS).head() is None:
        say(f"writing {seen:,} ids")
        _fill(session, project, seen)
    say("writing the epoch after them")
    began = time.monotonic()
    list(advance(project, declared, session, EVENTS, Epoch(RECENT, RECENT + 1)))
    found.indexed = time.monotonic() - began
    complete(project, declared.graph, Epoch(RECENT, RECENT + 1))
    found.bytes = project.log(NAME, EVENTS).stored_bytes() or 0
    for name, number in CASES.items():
        case = Case(name)
        found.cases.append(case)
        for run in range(-1, runs + 1):
            say(f"{name}: {('warming up', 'from disk')[run + 1] if run <= 0 else f'run {run} of {runs}'}")
            seconds, answers = [], []
            for into, way in ((case.ours, _ours), (case.full, _full)):
                if run == 0:
                    _forget(project.settings.work)
                before, began = _bytes_read(), time.monotonic()
                answers.append(_looked(session, project, number, way))
                seconds.append(time.monotonic() - began)
                if run == 0:
                    into.read = _bytes_read() - before
                elif run > 0:
                    into.seconds.append(seconds[-1])
            say(f"{name}: {seconds[0]:.1f} s, in full {seconds[1]:.1f} s")
            if answers[0] != answers[1]:
                found.differences.append(f"{name}: {answers[0]} instead of {answers[1]}")
    kept = project.concordance
    found.index = sum(path.stat().st_size for path in kept.rglob("*") if path.is_file()) if kept is not None else 0
    return found


def _fill(session: SparkSession, project: Project, seen: int) -> None:
    """Write the first epoch, of which no id is there twice, without asking whether one is; nobody will ask for its digests."""
    run, given = _run(session, project, SEEN)
    intake = intake_of(run, given)
    taken = intake.taken()
    destination = intake.into(intake.columns(taken))
    rows = in_order(taken.withColumn(DIFF, F.lit(1).cast("bigint")), [*destination.names, DIFF])
    by = destination.placement
    placed = staging.placed(rows, destination.columns, by.partition_by, by.parts, run.epoch.lower)
    staging.stage(session, placed, destination.table, run.attempt, run.epoch.lower)
    snapshot = destination.log.staged(run.attempt)
    made = Staged(snapshot, run.attempt, {(run.epoch.lower, 0): Digest(seen, seen)})
    destination.publish(made, run.epoch, 0, run.fingerprint, {}, 0.0)
    given.close()


def _run(session: SparkSession, project: Project, number: int) -> tuple[StageRun, SourceEpoch]:
    declared, epoch = project.declared(NAME), Epoch(number, number + 1)
    run = StageRun(project, declared, session, declared.graph.collection(EVENTS), epoch, world().new_id())
    determinants = project.determinants(NAME, EVENTS, number)
    return run, SourceEpoch.of(session, project.settings, declared.graph.schedule, epoch, determinants)


def _looked(session: SparkSession, project: Project, number: int, way: Callable[[StageRun, SourceEpoch], DataFrame]) -> Row:
    run, given = _run(session, project, number)
    rows = way(run, given).agg(F.count("*"), F.sum(F.xxhash64("id", "what", "amount").cast("decimal(38,0)")))
    answer = rows.collect()[0]
    given.close()
    return answer


def _ours(run: StageRun, given: SourceEpoch) -> DataFrame:
    intake = intake_of(run, given)
    taken = intake.taken()
    destination = run.destination(EVENTS, intake.columns(taken), Placement(("id",), ("id",), PARTS, is_keyed=True))
    return frame_of(run.session, intake.delta(taken, destination)).drop(DIFF)


def _full(run: StageRun, given: SourceEpoch) -> DataFrame:
    records = first_of(run.declared.functions[EVENTS](given), ["id"])
    head = run.project.log(NAME, EVENTS).head()
    assert head is not None
    assert head.snapshot is not None
    held = deltas(run.session, table_name(NAME, EVENTS), head.snapshot, run.epoch.lower)  # nothing is ever removed from it
    return records.join(held.select("id"), "id", "left_anti")


def _forget(folder: Path) -> None:
    """Let the kernel forget the content of files."""
    os.sync()
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _bytes_read() -> int:
    """From disk, by this process and all that descend from it."""
    listed = subprocess.run(["ps", "-eo", "pid,ppid"], capture_output=True, text=True, check=True).stdout
    parents = {int(pid): int(parent) for pid, parent in (line.split() for line in listed.splitlines()[1:])}

    def is_ours(pid: int) -> bool:
        while pid in parents and pid != os.getpid():
            pid = parents[pid]
        return pid == os.getpid()

    counters = (Path(f"/proc/{pid}/io") for pid in parents if is_ours(pid))
    told = (dict(line.split(": ") for line in path.read_text().splitlines()) for path in counters if path.exists())
    return sum(int(each["read_bytes"]) for each in told)
