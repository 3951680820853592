"""One seed: tasks that are dispatched early, late, twice and backwards, die, and are tried again; then what must be true."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from firnline.errors import FirnlineError
from firnline.model.digest import Digest
from firnline.model.epoch import Epoch
from firnline.model.hold import Hold
from firnline.runtime.advance import advance_by, complete
from firnline.runtime.flusher import flush
from firnline.runtime.maintain import tidied
from firnline.runtime.rewind import rewind, undo
from firnline.runtime.safepoint import hold, let_go
from firnline.tables.layers import KIND, LOWER, MERGE, newest_exchange
from firnline.tables.log import ATTEMPT, Entry, Log, entries_of, head_of
from firnline.tables.metadata import Metadata
from firnline.tables.port import Exchange
from firnline.tables.sidecar import Repair, Sidecar
from firnline.world import replaced
from tests.simulation.judging import NAMES, Judge
from tests.simulation.memory import MemoryTables, Row
from tests.simulation.pipeline import EPOCHS, GRAPH, Engine, deployed, digests, project
from tests.simulation.scheduler import CALM, Scheduler, Weather


@dataclass
class Story:
    """What happens under a seed."""

    seed: int
    succeeded: set[str] = field(default_factory=set)
    """The attempts that published, or found that somebody else had."""

    def __post_init__(self) -> None:
        self.scheduler = Scheduler(self.seed)
        self.tables = MemoryTables(self.scheduler.step)
        self.project = project(self.tables, self.scheduler.step)
        self.judge = Judge(self.project, self.tables)

    def run(self) -> None:
        """Bad weather, then calm; afterwards every epoch is there once and right."""
        chance = random.Random(-self.seed - 1)
        self.grace = timedelta(days=chance.choice((1, 36500)))
        with replaced(self.scheduler):
            self.scheduler.weather = Weather.of(chance)
            for _ in range(chance.randint(1, 4)):
                self._dispatch(chance)
                self.scheduler.run()
                self.judge.check()
            self.scheduler.weather = CALM
            for epoch in range(EPOCHS):
                for collection in GRAPH.collections:
                    self._task(f"last {collection.name} {epoch}", collection.name, epoch)
                    self.scheduler.run()
                self._completing(f"last complete {epoch}", epoch)
                self.scheduler.run()
            self._check_end()

    def _dispatch(self, chance: random.Random) -> None:
        tasks = [(collection.name, epoch) for epoch in range(EPOCHS) for collection in GRAPH.collections]
        tasks += [("", epoch) for epoch in range(EPOCHS)]
        doubled = [task for task in tasks if chance.random() < 0.3]
        missing = {task for task in tasks if chance.random() < 0.2}
        queue = [task for task in tasks + doubled if task not in missing]
        if chance.random() < 0.5:
            chance.shuffle(queue)
        for number, (name, epoch) in enumerate(queue):
            worker = f"{number} {name or 'complete'} {epoch}"
            if name:
                self._task(worker, name, epoch)
            else:
                self._completing(worker, epoch)
        damaged, is_let_go = chance.choice(GRAPH.collections).name, chance.random() < 0.7
        for number in range(3):
            self.scheduler.start(f"reader {number}", self._read)
            self.scheduler.start(f"flusher {number}", self._flush)
            self.scheduler.start(f"maintenance {number}", self._maintain)
            self.scheduler.start(f"repair {number}", lambda: self._repair(damaged))
            self.scheduler.start(f"holder {number}", self._hold)
            if is_let_go:
                self.scheduler.start(f"letting go {number}", self._let_go)
                self.scheduler.start(f"merge {number}", lambda: self._merge(damaged))
        for number in range(chance.randrange(3)):
            self.scheduler.start(f"rewind {number}", self._rewind)

    def _task(self, worker: str, name: str, epoch: int) -> None:
        graph = deployed(self.scheduler.chance.choice("0012") if self.scheduler.weather != CALM else "2")
        engine = Engine(self.project, self.tables, graph, lambda: self.scheduler.chance.randrange(1000), self.succeeded)

        def work() -> None:
            for _ in advance_by(engine, self.project, graph, name, Epoch(epoch, epoch + 1)):
                pass

        self.scheduler.start(worker, lambda: self._retried(work))

    def _completing(self, worker: str, epoch: int) -> None:
        def work() -> None:
            complete(self.project, GRAPH, Epoch(epoch, epoch + 1))

        self.scheduler.start(worker, lambda: self._retried(work))

    def _retried(self, work: Callable[[], None]) -> None:
        """As Airflow does: an attempt that fails is made again, some times."""
        for _ in range(6):
            try:
                work()
                return
            except FirnlineError as error:
                if not error.retryable:
                    raise
            except OSError:
                pass
            self.scheduler.sleep(1)

    def _read(self) -> None:
        for _ in range(5):
            self.scheduler.sleep(1)
            try:
                self.judge.read()
            except OSError:
                continue
            except FirnlineError as error:
                if error.code not in ("EPOCH_COMPACTED", "EPOCH_NOT_COMPLETE"):  # then a reader looks again
                    raise AssertionError("a reader was refused") from error

    def _flush(self) -> None:
        """What a background thread does, and another one beside it."""
        for _ in range(5):
            self.scheduler.sleep(1)
            try:
                flush(self.project)
            except (OSError, FirnlineError):
                continue

    def _maintain(self) -> None:
        for _ in range(3):
            self.scheduler.sleep(1)
            try:
                self._tidy(self.grace)
            except (OSError, FirnlineError):
                continue

    def _hold(self) -> None:
        """While a hold stands, nothing at or after its point is let go of; one that is too late is refused."""
        name, control = self.scheduler.new_id(), self.project.control(GRAPH.name)
        for _ in range(4):
            self.scheduler.sleep(1)
            try:
                at = control.agreement().kept_since(0) + self.scheduler.chance.randrange(2)
                hold(self.project, GRAPH, lambda _, since, at=at: Hold("branch", name, at, "sim"))
                for _ in range(4):
                    self.scheduler.sleep(1)
                    since = control.agreement().kept_since(0)
                    assert since <= at, f"{since} is let go of, and {name} holds {at}"
                control.release(name)
            except (OSError, FirnlineError):
                continue

    def _let_go(self) -> None:
        for _ in range(6):
            self.scheduler.sleep(1)
            try:
                point = let_go(self.project, GRAPH)
                agreement = self.project.control(GRAPH.name).agreement()
                upper = 0 if agreement.frontier is None else agreement.frontier.upper
                assert point <= upper, f"{point} is let go of, and the frontier is at {upper}"
                self.judge.let_gone.append(agreement.kept_since(0))
            except (OSError, FirnlineError):
                continue

    def _rewind(self) -> None:
        """Take a stage with all that comes of it back, or let the newest rewind not have been."""
        chance, control = self.scheduler.chance, self.project.control(GRAPH.name)
        for _ in range(5):
            for _ in range(chance.randrange(40)):
                self.scheduler.sleep(1)
            try:
                if chance.random() < 0.5:
                    undo(self.project, GRAPH, "sim")
                else:
                    present = control.agreement()
                    upper = 0 if present.frontier is None else present.frontier.upper
                    to = max(present.kept_since(0), upper - chance.randrange(3))
                    rewind(self.project, GRAPH, to, chance.choice((None, *NAMES)), "sim")
            except (OSError, FirnlineError):
                continue

    def _tidy(self, grace: timedelta) -> None:
        """Maintenance; snapshots are of old here: they go at once or never; files stay for who is in the middle of reading."""
        for done in tidied(self.project, GRAPH, grace):
            if done.error is not None:
                raise done.error

    def _repair(self, name: str) -> None:
        """Make the rows of one epoch again and exchange its file for the new one, while epochs go on."""
        log = self.project.log(GRAPH.name, name)
        for _ in range(8):
            self.scheduler.sleep(1)
            try:
                table = log.load()
                files = [] if table is None else log.held(table)
                if table is None or not files:
                    continue
                file = self.scheduler.chance.choice(files[:2])
                path, epoch = file.path, file.first
                attempt, since = self.scheduler.new_id(), newest_exchange(table)
                rows = self.tables.stored_rows(int(path))
                self.tables.stage_by_spark(GRAPH.name, name, rows, {ATTEMPT: attempt, LOWER: str(epoch)})
                note = Repair(name, attempt, ((epoch, 0),), (path,), (), len(rows), len(rows), 0.0)
                change = Exchange(frozenset([path]), (log.staged(attempt),))
                log.exchange(head_of(table).description.generation, None if since is None else since.id, note, change)
            except (OSError, FirnlineError):
                continue

    def _merge(self, name: str) -> None:
        """Merge some neighbouring layers that are let go of, while epochs and repairs go on."""
        log = self.project.log(GRAPH.name, name)
        for _ in range(8):
            self.scheduler.sleep(1)
            try:
                upto, table = let_go(self.project, GRAPH), log.load()
                if table is None:
                    continue
                entries = [entry for entry in entries_of(table) if entry.description.upper <= upto]
                if len(entries) < 2:
                    continue
                first = self.scheduler.chance.randrange(len(entries) - 1)
                chosen = entries[first : first + self.scheduler.chance.randint(2, len(entries) - first)]
                log.exchange(head_of(table).description.generation, *self._merged(log, table, chosen))
            except (OSError, FirnlineError):
                continue

    def _merged(self, log: Log, table: Metadata, entries: list[Entry]) -> tuple[int | None, Sidecar, Exchange]:
        """Layers, newest first, as one: staged, and what is to be exchanged for it."""
        attempt, since = self.scheduler.new_id(), newest_exchange(table)
        lower, upper = entries[-1].lower, entries[0].description.upper
        out = [file for file in log.held(table) if lower <= file.first < upper]
        weights: Counter[Row] = Counter()
        for file in out:
            for row, _, weight in self.tables.stored_rows(int(file.path)):
                weights[row] += weight
        rows = [(row, upper - 1, weight) for row, weight in sorted(weights.items()) if weight]
        summary = {ATTEMPT: attempt, LOWER: str(lower), KIND: MERGE}
        self.tables.stage_by_spark(GRAPH.name, log.collection, rows, summary)
        staged = log.staged(attempt)
        found, paths = digests(tuple(rows)), frozenset(file.path for file in out)
        expected = sum((log.sidecar(entry).total() for entry in entries), Digest())
        assert sum(found.values(), Digest()).is_same_state(expected), "a merge is not the sum of its layers"
        made_by, attempts = entries[0].fingerprint, tuple(entry.attempt for entry in entries)
        note = Sidecar(log.collection, lower, upper, attempt, made_by, {}, found, 0.0, merged=attempts, out=tuple(sorted(paths)))
        return None if since is None else since.id, note, Exchange(paths, (staged,))

    def _check_end(self) -> None:
        self.judge.check()
        frontier = self.project.control(GRAPH.name).frontier()
        assert frontier is not None
        assert frontier.upper == EPOCHS
        while flush(self.project):
            pass
        assert not self.project.stash.batch()
        left = set(self.judge.left_behind()) & self.succeeded
        assert not left, f"attempts that ended well left what they had staged: {left}"
        self._tidy(timedelta(days=1))
        assert not list(self.judge.left_behind()), "maintenance left staging that nobody can publish"
        self.judge.check_ledger()
        self._tidy(timedelta())
        self.judge.check()
