"""What must be true of the simulated pipeline, told from what stands in its tables alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from firnline.model.graph import Graph
from firnline.plan.frontier import Frontier
from firnline.runtime.cut import consistent
from firnline.runtime.project import Project
from firnline.runtime.read import readable
from firnline.tables.determinants import FOLDER
from firnline.tables.layers import is_merge
from firnline.tables.log import ATTEMPT, entries_of
from firnline.tables.metadata import SIDECAR, Metadata
from firnline.tables.sidecar import Sidecar
from tests.simulation.memory import MemoryTables
from tests.simulation.pipeline import EPOCHS, GRAPH, MemoryLedger, State, delivered, digests, evaluate

NAMES = tuple(each.name for each in GRAPH.collections)


@dataclass(frozen=True)
class Seen:
    """A collection's rows before a point, and the code that made them so."""

    code: str
    """Nothing if the log does not reach that far."""
    rows: State


@dataclass
class Judge:
    """Looks at a pipeline, between storms and as a reader in the middle of one."""

    project: Project
    tables: MemoryTables
    cuts: list[Frontier] = field(default_factory=list)
    """The frontiers that readers saw, in order."""
    let_gone: list[int] = field(default_factory=list)
    """The points that were let go of, in order."""

    def read(self) -> None:
        """What a reader sees is one consistent cut: every collection as it was right after one and the same epoch."""
        frontier = self.project.control(GRAPH.name).frontier()
        if frontier is None:
            return
        self.cuts.append(frontier)
        views = consistent(self.project, [f"{GRAPH.name}.{name}" for name in NAMES], None, self._view)
        (upper,) = {upto for upto, _ in views}
        self._check_cut(upper, dict(zip(NAMES, (seen for _, seen in views), strict=True)))

    def check(self) -> None:
        """What must be true at any moment."""
        found: dict[str, dict[int, Seen]] = {name: {0: Seen("0", {})} for name in NAMES}
        for name in NAMES:
            table = self.project.log(GRAPH.name, name).load()
            if table is not None:
                found[name] |= self._checked(table)
        agreement = self.project.control(GRAPH.name).agreement()
        rewind = agreement.open_rewind()
        for upper in range(EPOCHS + 1):
            if rewind is None or upper <= rewind.to:
                self._check_cut(upper, {name: of[upper] for name, of in found.items() if upper in of})
        if agreement.frontier is not None:
            assert all(max(of) >= agreement.frontier.upper for of in found.values()), "the frontier is ahead of a log"
            assert agreement.kept_since(0) <= agreement.frontier.upper, "what readers see is let go of"
        for before, after in pairwise(self.cuts):
            behind = [name for name in NAMES if after.generations[name] < before.generations[name]]
            is_same = after.generations == before.generations
            assert not behind, "the frontier moved back to an older generation"
            assert not is_same or after.upper >= before.upper, "the frontier moved back"
        assert self.let_gone == sorted(self.let_gone), "what is let go of came back"
        assert all(each.at >= agreement.kept_since(0) for each in agreement.holds), f"a hold was passed by: {agreement}"

    def check_ledger(self) -> None:
        """The ledger's newest generations are what the logs hold."""
        logs = [self.project.log(GRAPH.name, name) for name in NAMES]
        held = {(log.collection, entry.lower): entry.attempt for log in logs for entry in log.entries()}
        ledger = self.project.ledger
        assert isinstance(ledger, MemoryLedger)
        newest = {name: max((each[1] for each in ledger.entries if each[0] == name), default=0) for name in NAMES}
        entered = {key[::2]: entry.attempt for key, entry in ledger.entries.items() if key[1] == newest[key[0]]}
        assert entered.items() <= held.items(), "the ledger has something that no log holds"

    def left_behind(self) -> Iterator[str]:
        """The attempts whose staging is there, now that every epoch is."""
        for name in NAMES:
            log = self.project.log(GRAPH.name, name)
            head, table = log.head(), log.load()
            assert head is not None
            assert table is not None
            assert head.description.upper == EPOCHS, f"{name} ends at {head.description.upper}"
            for snapshot in table.snapshots.values():
                if SIDECAR not in snapshot.summary and not is_merge(snapshot):  # whoever staged a merge may still be at it
                    yield snapshot.summary[ATTEMPT]

    def _view(self, graph: Graph, name: str, upto: int) -> tuple[int, Seen]:
        table, snapshot = readable(self.project, graph, name, upto)
        made_by = [entry.fingerprint.code for entry in entries_of(table) if entry.description.upper == upto]
        return upto, Seen(made_by[0] if made_by else "", self.tables.state(table, snapshot, upto))

    def _checked(self, table: Metadata) -> dict[int, Seen]:
        """The states after each layer of a log: none is missing or there twice, and each is what was written down."""
        found, reach = {}, 0
        for entry in reversed(list(entries_of(table))):
            assert entry.lower == reach, f"{table.name}: a hole or a double at {reach}: {entry}"
            reach = entry.description.upper
            sidecar = Sidecar.of_json(self.tables.files[entry.sidecar])
            assert sidecar.attempt == entry.attempt
            assert sidecar.digests == digests(self.tables.rows[entry.snapshot]), f"{table.name}: the digest is not of the rows"
            state, again = (self.tables.state(table, each, reach) for each in (entry.snapshot, entry.through[0]))
            assert state == again, f"{table.name} at {reach}: an exchange changed rows"
            found[reach] = Seen(entry.fingerprint.code, state)
        return found

    def _check_cut(self, upper: int, seen: Mapping[str, Seen]) -> None:
        """Nothing depends on anything outside: all is what a source delivered, or what a stage makes of the others."""
        folder = f"{self.tables.warehouse}/{GRAPH.name}/{FOLDER}"
        logged = {
            (collection, int(lower)): json.loads(content)["value"]
            for path, content in self.tables.once.items()
            if path.startswith(folder)
            for collection, lower, _ in [path.removeprefix(f"{folder}/").split("/")]
        }
        for name, of in seen.items():
            assert of.code or not upper, f"{name} does not hold what is before {upper}"
            inputs = GRAPH.collection(name).inputs
            if not inputs:
                assert of.rows == delivered(name, upper, logged), f"{name} at {upper}: {of}"
            elif upper and set(inputs) <= seen.keys():
                expected = evaluate(name, of.code, {each: seen[each].rows for each in inputs})
                assert of.rows == expected, f"{name} at {upper}: {of} instead of {expected}"
