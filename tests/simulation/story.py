"""One seed: tasks that are dispatched early, late, twice and backwards, die, and are tried again; then what must be true."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta

from firnline.errors import FirnlineError
from firnline.model.digest import Digest
from firnline.model.epoch import Epoch
from firnline.model.hold import Hold
from firnline.plan.frontier import Frontier
from firnline.runtime.advance import advance_by, complete
from firnline.runtime.flusher import flush
from firnline.runtime.maintain import tidied
from firnline.runtime.safepoint import hold, let_go
from firnline.tables.determinants import FOLDER
from firnline.tables.layers import KIND, LOWER, MERGE, is_merge, newest_exchange
from firnline.tables.log import ATTEMPT, Entry, Log, entries_of, head_of
from firnline.tables.metadata import SIDECAR, Metadata
from firnline.tables.port import Exchange
from firnline.tables.sidecar import Repair, Sidecar
from firnline.world import replaced
from tests.simulation.memory import MemoryTables, Row
from tests.simulation.pipeline import EPOCHS, GRAPH, Engine, State, digests, oracle, project
from tests.simulation.scheduler import CALM, Scheduler, Weather


@dataclass
class Story:
    """What happens under a seed."""

    seed: int
    cuts: list[Frontier] = field(default_factory=list)
    let_gone: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.scheduler = Scheduler(self.seed)
        self.tables = MemoryTables(self.scheduler.step)
        self.project = project(self.tables, self.scheduler.step)
        self.engine = Engine(self.project, self.tables, lambda: self.scheduler.chance.randrange(1000))

    def run(self) -> None:
        """Bad weather, then calm; afterwards every epoch is there once and right."""
        chance = random.Random(-self.seed - 1)
        with replaced(self.scheduler):
            self.scheduler.weather = Weather.of(chance)
            for _ in range(chance.randint(1, 4)):
                self._dispatch(chance)
                self.scheduler.run()
                self._check()
            self.scheduler.weather = CALM
            for epoch in range(EPOCHS):
                for collection in GRAPH.collections:
                    self._task(f"last {collection.name} {epoch}", collection.name, epoch)
                    self.scheduler.run()
                self._completing(f"last complete {epoch}", epoch)
                self.scheduler.run()
            self._check()
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
        damaged = chance.choice(GRAPH.collections).name
        for number in range(3):
            self.scheduler.start(f"reader {number}", self._read)
            self.scheduler.start(f"flusher {number}", self._flush)
            self.scheduler.start(f"maintenance {number}", self._maintain)
            self.scheduler.start(f"repair {number}", lambda: self._repair(damaged))
            self.scheduler.start(f"holder {number}", self._hold)
            self.scheduler.start(f"letting go {number}", self._let_go)
            self.scheduler.start(f"merge {number}", lambda: self._merge(damaged))

    def _task(self, worker: str, name: str, epoch: int) -> None:
        def work() -> None:
            for _ in advance_by(self.engine, self.project, GRAPH, name, Epoch(epoch, epoch + 1)):
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
        """What a reader sees is one consistent cut: every collection as it was right after one and the same epoch."""
        for _ in range(5):
            self.scheduler.sleep(1)
            try:
                frontier = self.project.control(GRAPH.name).frontier()
                if frontier is None:
                    continue
                self.cuts.append(frontier)
                for collection in GRAPH.collections:
                    table = self.project.log(GRAPH.name, collection.name).load()
                    assert table is not None
                    if frontier.upper < head_of(table).description.since:
                        break  # epochs went on, and those before are merged: a reader looks again
                    seen = self.tables.state(table, table.current, frontier.upper)
                    assert seen == self._expected(collection.name, frontier.upper), (
                        f"{collection.name} at {frontier.upper}: {seen}"
                    )
            except OSError:
                continue

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
                self._tidy()
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
                assert point <= max(0, upper - 1), f"{point} is let go of, and the frontier is at {upper}"
                self.let_gone.append(agreement.kept_since(0))
            except (OSError, FirnlineError):
                continue

    def _tidy(self, grace: timedelta = timedelta(days=1)) -> None:
        """Maintenance; here snapshots are of old, so that they go at once, and files stay for who is in the middle of reading."""
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
                rows = self.tables.rows[int(path)]
                self.tables.stage_by_spark(GRAPH.name, name, rows, {ATTEMPT: attempt, LOWER: str(epoch)})
                note = Repair(name, attempt, ((epoch, 0),), (path,), (), len(rows), len(rows), 0.0)
                change = Exchange(frozenset([path]), (log.staged(attempt),))
                log.exchange(0, None if since is None else since.id, note, change)
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
                log.exchange(0, *self._merged(log, table, chosen))
            except (OSError, FirnlineError):
                continue

    def _merged(self, log: Log, table: Metadata, entries: list[Entry]) -> tuple[int | None, Sidecar, Exchange]:
        """Layers, newest first, as one: staged, and what is to be exchanged for it."""
        attempt, since = self.scheduler.new_id(), newest_exchange(table)
        lower, upper = entries[-1].lower, entries[0].description.upper
        out = [file for file in log.held(table) if lower <= file.first < upper]
        weights: Counter[Row] = Counter()
        for file in out:
            for row, _, weight in self.tables.rows[int(file.path)]:
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

    def _expected(self, name: str, upper: int) -> State:
        """From what was logged of the outside: what nobody logged, nobody may have used."""
        folder = f"{self.tables.warehouse}/{GRAPH.name}/{FOLDER}"
        logged = {
            (collection, int(lower)): json.loads(content)["value"]
            for path, content in self.tables.once.items()
            if path.startswith(folder)
            for collection, lower, _ in [path.removeprefix(f"{folder}/").split("/")]
        }
        return oracle(name, upper, logged)

    def _check(self) -> None:
        """What must be true at any moment, from what stands in the tables alone."""
        for name in GRAPH.collections:
            log = self.project.log(GRAPH.name, name.name)
            table = log.load()
            if table is None:
                continue
            reach = 0
            for entry in reversed(list(log.entries())):
                assert entry.lower == reach, f"{name.name}: a hole or a double at {reach}: {entry}"
                reach = entry.description.upper
                sidecar = Sidecar.of_json(self.tables.files[entry.sidecar])
                assert sidecar.attempt == entry.attempt
                assert sidecar.digests == digests(self.tables.rows[entry.snapshot]), f"{name.name}: the digest is not of the rows"
                for snapshot in (entry.snapshot, entry.through[0]):
                    assert self.tables.state(table, snapshot, reach) == self._expected(name.name, reach), (
                        f"{name.name} at {reach}"
                    )
        uppers = [cut.upper for cut in self.cuts]
        assert uppers == sorted(uppers), "the frontier moved back"
        assert self.let_gone == sorted(self.let_gone), "what is let go of came back"
        agreement = self.project.control(GRAPH.name).agreement()
        assert all(each.at >= agreement.kept_since(0) for each in agreement.holds), f"a hold was passed by: {agreement}"

    def _check_end(self) -> None:
        frontier = self.project.control(GRAPH.name).frontier()
        assert frontier is not None
        assert frontier.upper == EPOCHS
        while flush(self.project):
            pass
        assert not self.project.stash.batch()
        left = set(self._left_behind()) & self.engine.succeeded
        assert not left, f"attempts that ended well left what they had staged: {left}"
        self._tidy()
        assert not list(self._left_behind()), "maintenance left staging that nobody can publish"
        logs = [self.project.log(GRAPH.name, collection.name) for collection in GRAPH.collections]
        held = {((log.collection, 0, entry.lower), entry.attempt) for log in logs for entry in log.entries()}
        entered = {key: entry.attempt for key, entry in self.project.ledger.entries.items()}  # type: ignore[attr-defined]
        assert entered.items() <= held, "the ledger has something that no log holds"
        self._tidy(timedelta())
        self._check()

    def _left_behind(self) -> Iterator[str]:
        for collection in GRAPH.collections:
            log = self.project.log(GRAPH.name, collection.name)
            head, table = log.head(), log.load()
            assert head is not None
            assert table is not None
            assert head.description.upper == EPOCHS, f"{collection.name} ends at {head.description.upper}"
            for snapshot in table.snapshots.values():
                if SIDECAR not in snapshot.summary and not is_merge(snapshot):  # whoever staged a merge may still be at it
                    yield snapshot.summary[ATTEMPT]
