"""A pipeline whose right answer at every epoch is known without the runtime, and an engine that computes it from the logs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

import firnline as fl
from firnline.errors import FirnlineError
from firnline.ledger.entry import Publication
from firnline.model.declaration import Collection
from firnline.model.description import Verdict
from firnline.model.digest import Digest, digest
from firnline.model.epoch import Epoch
from firnline.model.fingerprint import Fingerprint
from firnline.model.graph import Graph, check
from firnline.runtime.attempt import Published, staged
from firnline.runtime.project import Project
from firnline.runtime.reuse import reused
from firnline.runtime.stash import Line
from firnline.settings import Settings
from firnline.tables.layers import LOWER
from firnline.tables.log import ATTEMPT, Head, head_of
from firnline.tables.sidecar import Input, Sidecar
from tests.simulation.memory import MemoryTables, Row, Weighted

EPOCHS = 4
State = dict[Row, int]


def _declared() -> Graph:
    made = fl.Pipeline("sim", schedule=1, start=0, keep="1 epoch")
    keys = ["k"]
    for name in ("orders", "people"):
        made.source(keys=keys)(_named(name))
    made.stage(keys=keys)(_named("totals", "orders"))
    made.stage(keys=keys)(_named("joined", "totals", "people"))
    made.stage(keys=keys)(_named("top", "joined"))
    return check(made, dict.fromkeys(("orders", "people", "totals", "joined", "top"), "0"))


def _named(name: str, *inputs: str) -> object:
    scope: dict[str, object] = {}
    exec(f"def {name}({', '.join(inputs) or 'epoch'}): ...", scope)
    return scope[name]


def delta(name: str, epoch: int, found: int) -> list[tuple[Row, int]]:
    """What a source delivers of what it found outside: rows that stay, one that goes again, now and then nothing."""
    if (epoch + len(name)) % 4 == 3:
        return []
    rows: list[tuple[Row, int]] = [((epoch % 3, found), 1), ((epoch % 3, -1 - epoch), 1)]
    before = epoch - 1
    if before >= 0 and (before + len(name)) % 4 != 3 and epoch % 2:
        rows.append(((before % 3, -1 - before), -1))
    return rows


def evaluate(name: str, code: str, inputs: Mapping[str, State]) -> State:
    """A stage's rows from its inputs' rows; every code says something else."""
    return {(*row[:-1], row[-1] + 1000 * int(code)): weight for row, weight in _evaluated(name, inputs).items()}


def _evaluated(name: str, inputs: Mapping[str, State]) -> State:
    if name == "totals":
        found = Counter({row[0]: 0 for row in inputs["orders"]})
        for row, weight in inputs["orders"].items():
            found[row[0]] += weight
        return dict.fromkeys(found.items(), 1)
    if name == "joined":
        people = Counter(row[0] for row in inputs["people"])
        return {(key, count, people[key]): weight for (key, count), weight in inputs["totals"].items() if people[key]}
    best = sorted(inputs["joined"], reverse=True)[:1]
    return dict.fromkeys(best, 1)


GRAPH = _declared()


def deployed(code: str) -> Graph:
    """The pipeline with other code in its stages."""
    stages = {each.name: code for each in GRAPH.collections if each.kind == "stage"}
    return replace(GRAPH, fingerprints={**GRAPH.fingerprints, **stages})


def delivered(name: str, upper: int, found: Mapping[tuple[str, int], int]) -> State:
    """The rows of a source before a point, from what it found outside alone."""
    state: Counter[Row] = Counter()
    for epoch in range(upper):
        for row, weight in delta(name, epoch, found[name, epoch]):
            state[row] += weight
    return {row: weight for row, weight in state.items() if weight}


def project(tables: MemoryTables, step: Callable[[str], None]) -> Project:
    """A project over tables, stash and ledger in memory."""
    made = Project(Settings.model_construct(root=Path("nowhere")))  # no module declares it: it is the only one
    made.__dict__.update(catalog=tables, ledger=MemoryLedger(step), stash=MemoryStash(step), flusher=Unasked())
    made.__dict__.update(graph=lambda name: GRAPH)
    return made


class MemoryStash:
    """The stash of one machine."""

    def __init__(self, step: Callable[[str], None]) -> None:
        self._step = step
        self.lines: dict[str, Line] = {}

    def put(self, line: Line) -> None:
        self._step("stash")
        self.lines[line.publication.attempt] = line
        self._step("stashed")

    def batch(self) -> dict[str, Line]:
        self._step("read stash")
        return dict(list(self.lines.items())[:3])

    def remove(self, files: Iterable[str]) -> None:
        for file in list(files):
            self._step("remove line")
            self.lines.pop(file, None)


class MemoryLedger:
    """The ledger's publications."""

    def __init__(self, step: Callable[[str], None]) -> None:
        self._step = step
        self.entries: dict[tuple[str, int, int], Publication] = {}

    def record(self, publications: Sequence[Publication], inputs: object, parts: object) -> None:
        self._step("record")
        for each in publications:
            key = (each.collection, each.generation)
            inside = [lower for *of, lower in self.entries if tuple(of) == key and each.lower <= lower < each.upper]
            for lower in inside:
                del self.entries[(*key, lower)]
            self.entries[(*key, each.lower)] = each
        self._step("recorded")

    def forget(self, pipeline: str) -> None:
        self._step("forget entries")
        self.entries.clear()

    def every(self, pipeline: str, collection: str) -> list[Publication]:
        self._step("ask ledger")
        return [entry for key, entry in self.entries.items() if key[0] == collection]

    def drop(self, publications: Sequence[Publication]) -> None:
        self._step("drop entries")
        for each in publications:
            same = [key for key in self.entries if key[:2] == (each.collection, each.generation)]
            for key in same:
                if each.lower <= key[2] < each.upper:
                    del self.entries[key]

    def known(self, pipeline: str, collections: Iterable[str]) -> set[tuple[str, int, int]]:
        self._step("ask ledger")
        return {key for key in self.entries if key[0] in set(collections)}


class Unasked:
    """The simulation has workers that flush."""

    def start(self) -> None:
        pass


@dataclass(frozen=True)
class Engine:
    """Evaluates a stage in full and stages what leads from the log to the result, as ``refresh="full"`` does."""

    project: Project
    tables: MemoryTables
    graph: Graph
    look: Callable[[], int]
    """The world outside: another answer at every look."""
    succeeded: set[str] = field(default_factory=set)
    """The attempts that published, or found that somebody else had."""

    def __call__(
        self, collection: Collection, generation: int, epoch: Epoch, attempt: str, inputs: Mapping[str, Head]
    ) -> Published:
        again = reused(self.project, self.graph, collection, generation, epoch, attempt, inputs)
        if again is not None:
            self.succeeded.add(attempt)
            return again
        log = self.project.log(GRAPH.name, collection.name)
        table = log.load() or log.create(pa.schema([("k", pa.int64())]), collection.keys, 0, {})
        head = head_of(table)
        if head.snapshot is None:
            self._check_inputs(inputs)
        before = self.tables.state(table, head.snapshot, epoch.lower)
        rows = self._delta(collection, epoch, before, inputs)

        def write() -> None:
            if len(rows) % 2:
                log.stage(attempt, epoch.lower, rows)
            else:
                summary = {ATTEMPT: attempt, LOWER: str(epoch.lower)}
                self.tables.stage_by_spark(GRAPH.name, collection.name, rows, summary)

        made = staged(log, head, generation, epoch, attempt, write, lambda snapshot: digests(self.tables.rows[snapshot]))
        if isinstance(made, Verdict):
            self.succeeded.add(attempt)
            return Published(made, Digest())
        lineage = {name: Input(of.description.generation, epoch.upper, of.snapshot or 0, 0, "all") for name, of in inputs.items()}
        lower, made_by = head.description.upper, Fingerprint(self.graph.fingerprints[collection.name])
        sidecar = Sidecar(collection.name, lower, epoch.upper, attempt, made_by, lineage, made.digests, 0.0)
        verdict = log.publish(generation, sidecar, made.snapshot)
        self.succeeded.add(attempt)
        return Published(verdict, made.total)

    def _check_inputs(self, inputs: Mapping[str, Head]) -> None:
        """As ``Derived`` does."""
        for name, of in inputs.items():
            now = self.project.log(GRAPH.name, name).head()
            if now is not None and now.description.generation != of.description.generation:
                raise FirnlineError("GENERATION_CHANGED", f"{name!r} moved while it was read")

    def _delta(self, collection: Collection, epoch: Epoch, before: State, inputs: Mapping[str, Head]) -> list[Weighted]:
        if collection.kind == "source":
            logged = self.project.determinants(GRAPH.name, collection.name, epoch.lower)
            found = logged.find("outside")
            found = logged.log("outside", self.look()) if found is None else found
            return [(row, epoch.lower, weight) for row, weight in delta(collection.name, epoch.lower, found)]
        states = {}
        for name, head in inputs.items():
            table = self.project.log(GRAPH.name, name).load()
            assert table is not None
            states[name] = self.tables.state(table, head.snapshot, epoch.upper)
        after = evaluate(collection.name, self.graph.fingerprints[collection.name], states)
        rows = sorted({*before, *after})
        return [(row, epoch.lower, change) for row in rows if (change := after.get(row, 0) - before.get(row, 0))]


def digests(rows: tuple[Weighted, ...]) -> dict[tuple[int, int], Digest]:
    """By (epoch, part), of rows in one part."""
    found: dict[tuple[int, int], Digest] = {}
    for row, epoch, weight in rows:
        values = dict(enumerate(row, start=1))
        found[epoch, 0] = found.get((epoch, 0), Digest()) + digest([(values, weight)])
    return found
