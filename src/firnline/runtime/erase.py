"""``firnline erase``: rows of a source are forgotten, and everything that came of them.

The source's log becomes one layer without the rows, compared by digests with what was published; each log that comes of it one
layer that is computed in full from inputs that were done before it. Every other file of these logs is removed at once, with all
that was noted about their epochs. What was done is seen from the logs: whoever dies in between runs it again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from firnline.errors import FirnlineError
from firnline.model.declaration import Collection
from firnline.model.description import Verdict
from firnline.model.digest import Digest
from firnline.model.epoch import Epoch
from firnline.model.feed import EVENTS, Feed
from firnline.model.graph import Graph
from firnline.model.names import DIFF, QUARANTINE, logs_of, quoted
from firnline.plan.erasure import check_complete, check_free, check_reached, cone, late
from firnline.plan.frontier import cut
from firnline.runtime.advance import OF_FILES
from firnline.runtime.forgetting import (
    beyond,
    check_places,
    drop_log,
    finish_drops,
    forget_copies,
    forget_notes,
    forget_pages,
    forget_plain_rows,
)
from firnline.runtime.gaps import close_made_good
from firnline.runtime.merge import by_part
from firnline.runtime.project import Declared, Project
from firnline.runtime.proof import Proof, prove
from firnline.runtime.renaming import check_renamed, inputs_of
from firnline.runtime.safepoint import let_go_upto, safe_point
from firnline.tables.control import TABLE
from firnline.tables.erasing import base_of, replace_all, start_of, strays
from firnline.tables.layers import layers
from firnline.tables.log import Log, cut_into, entries_of, head_of
from firnline.tables.sidecar import Sidecar
from firnline.tables.trash import ERASED, Trash
from firnline.world import world

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

    from firnline.runtime.derived import Remade
    from firnline.tables.metadata import Metadata

How = Literal["rewritten", "rebuilt", "dropped", "kept"]
Digests = Mapping[tuple[int, int], Digest]
_MOST_ROUNDS = 5
_PATIENCE_SECONDS = 120
_PAUSE_SECONDS = 2.0
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Erased:
    """What became of one log."""

    collection: str
    how: How
    rows_before: int
    """Rows that were there; of a source insertions and removals, in all of its layers."""
    rows_erased: int
    """Of a source those that met the condition; of others by how many they are fewer."""
    files_written: int = 0
    bytes_written: int = 0
    files_removed: int = 0
    bytes_removed: int = 0
    snapshots_dropped: int = 0


@dataclass(frozen=True, slots=True)
class Planned:
    """What an erasure would do."""

    pipeline: str
    source: str
    upto: str
    """From there on single epochs are kept afterwards."""
    matching: Mapping[str, int]
    """The source's rows that meet the condition, insertions and removals, by epoch."""
    logs: tuple[Erased, ...]
    quarantined: int
    """Malformed records of the source, which no condition can be asked about."""
    beyond: tuple[str, ...]
    """Collections of other pipelines that come of the source, and are not reached."""


@dataclass(frozen=True, slots=True)
class Report:
    """What an erasure did, and the proof that nothing remains."""

    pipeline: str
    source: str
    upto: str
    logs: tuple[Erased, ...]
    notes_removed: int
    copies_removed: int
    quarantined: int
    """Malformed records that are kept."""
    proof: Proof
    seconds: float


def planned(project: Project, session: SparkSession, graph: Graph, source: str, condition: str, *, quarantine: bool) -> Planned:
    """What ``erase`` would do now; refused as it would be."""
    return _Erasing(project, session, graph, source, condition, quarantine).planned()


def erase(project: Project, session: SparkSession, graph: Graph, source: str, condition: str, *, quarantine: bool) -> Report:
    """Remove the rows of a source that meet a condition, and all that came of them, for good.

    Args:
        project: The project.
        session: Spark.
        graph: The pipeline.
        source: The source.
        condition: A Spark SQL expression over the source's columns.
        quarantine: Whether to drop all malformed records of the source, too.
    """
    return _Erasing(project, session, graph, source, condition, quarantine).done()


@dataclass
class _Erasing:
    project: Project
    session: SparkSession
    graph: Graph
    source: str
    condition: str
    quarantine: bool
    erased: dict[str, Erased] = field(default_factory=dict)

    def planned(self) -> Planned:
        upto = self._checked()
        table = self._table(self.source)
        by_epoch: dict[str, int] = {}
        for (epoch, _), digest in sorted(self._matching(table).items()):
            label = self.graph.schedule.label(epoch)
            by_epoch[label] = by_epoch.get(label, 0) + digest.rows
        logs = tuple(self._before(name, "rewritten" if self._is_own(name) else "rebuilt") for name in self._logs())
        logs = tuple(
            replace(each, rows_erased=sum(by_epoch.values())) if each.collection == self.source else each for each in logs
        )
        others = tuple(beyond(self.project, self.graph, [each.name for each in self.cone]))
        logs += tuple(self._before(name, "dropped") for name in self._quarantine() if self.quarantine)
        return Planned(self.graph.name, self.source, self.graph.schedule.label(upto), by_epoch, logs, self._quarantined(), others)

    def done(self) -> Report:
        began = time.monotonic()
        check_places(self.project, self.graph)
        for name, (files, size) in finish_drops(self.project, self.graph).items():
            self.erased[name] = Erased(name, "dropped", 0, 0, files_removed=files, bytes_removed=size)
        self._checked()
        upto = self._settled()
        for name in self._quarantine() if self.quarantine else ():
            self._drop(name)
        notes = forget_notes(self.project, self.graph, [each.name for each in self.cone], upto)
        forget_pages(self.project)
        self._note_positions(upto)
        close_made_good(self.project, self.graph)
        reached = list(dict.fromkeys([*self._logs(), *self._quarantine(), *self.erased]))
        copies = forget_copies(self.project, self.graph, reached)
        self._tell()
        logs = tuple(self.erased.get(name) or self._before(name, "kept") for name in reached if self._is_told(name))
        proof = prove(self.project, self.session, self.declared, self.source, self.condition, reached)
        label = self.graph.schedule.label(upto)
        kept = self._quarantined()
        return Report(self.graph.name, self.source, label, logs, notes, copies, kept, proof, time.monotonic() - began)

    @cached_property
    def cone(self) -> tuple[Collection, ...]:
        """The source and all that comes of it."""
        return cone(self.graph, self.source)

    @cached_property
    def declared(self) -> Declared:
        """The pipeline's functions."""
        return self.project.declared(self.graph.name)

    def _checked(self) -> int:
        """Refuse what cannot be erased, before anything is touched; the common end of all logs."""
        from firnline.engine.frames import deltas, table_name
        from firnline.engine.matching import check_condition
        from firnline.runtime.stage_run import StageRun

        _ = self.cone
        check_renamed(self.project, self.graph, "ERASURE_BLOCKED")
        self._check_reached()
        seen = self._table(self.source)
        if seen.current is None:
            raise FirnlineError("NO_SUCH_COLLECTION", f"{self.graph.name}.{self.source} has no log yet")
        name = table_name(self.graph.name, self.source)
        rows, feed = deltas(self.session, name, seen.current, head_of(seen).description.upper), self.cone[0].intake
        if isinstance(feed, Feed) and feed.has_versions:  # a version without the next one would end elsewhere
            rows = rows.select(*(quoted(key) for key in feed.keys))
        check_condition(rows, self.condition)
        uppers, frontier = self._uppers()
        check_complete(self.graph, uppers, frontier)
        upto = max(uppers.values())
        for collection in self.cone[1:]:
            epoch = self._last_epoch(upto)
            StageRun(self.project, self.declared, self.session, collection, epoch, world().new_id()).check_rebuildable()
        check_places(self.project, self.graph)
        check_free(self.graph, safe_point(self.project, self.graph).holds, upto)
        return upto

    def _check_reached(self) -> None:
        """Refuse to erase while there are logs, or files of such, that no code leads to."""
        catalog = self.project.catalog
        control = catalog.table(self.graph.name, TABLE)
        records = [] if control is None else Trash(catalog).records(control)
        folders = (folder for record in records if record.why != ERASED for folder in record.folders)
        check_reached(self.graph, catalog.names(self.graph.name) - {TABLE}, folders)

    def _settled(self) -> int:
        """Rewrite logs until none holds what an erased row left; where they end then."""
        done, missing = set[str](), ""
        for _ in range(_MOST_ROUNDS):
            upto = self._upto()
            let_go_upto(self.project, self.graph, upto)
            try:
                for collection in self.cone:
                    if not self._is_settled(collection, is_alone=collection.name not in done):
                        self._rewrite(collection, upto)
                    done.add(collection.name)
                if all(self._is_settled(collection) for collection in self.cone):
                    return upto
            except FirnlineError as error:
                # What is unreadable once may have been removed by somebody who erases the same.
                if error.code != "GENERATION_CHANGED" and (error.code not in OF_FILES or error.what == missing):
                    raise
                missing = error.what
                _logger.info("looking again: %s", error.what)
        what = f"epochs of {self.graph.name!r} were published again and again while rows were erased"
        raise FirnlineError("COMMIT_CONTENDED", what, todo="Pause the pipeline's DAG, then erase again: it goes on.")

    def _is_settled(self, collection: Collection, *, is_alone: bool = False) -> bool:
        """Whether a log's oldest layer was made by an erasure, after those of its inputs; if ``is_alone``, there is only that."""
        table = self._table(collection.name)
        base = base_of(table)
        if base is None or (is_alone and not all(self._is_alone(name) for name in self._logs_of(collection))):
            return False
        if collection.kind == "source":
            tables = [self._table(name) for name in self._logs_of(collection)]
            return all(base_of(of) is not None and not self._matching(of) for of in tables)
        *_, entry = entries_of(table)
        read = inputs_of(self.project, self.graph, self.project.log(self.graph.name, collection.name).sidecar(entry))
        for name in collection.inputs:
            of = self._table(name)
            erased, through = base_of(of), of.snapshots.get(read[name].snapshot) if name in read else None
            if erased is not None and (through is None or through.sequence < erased.sequence):
                return False
        return True

    def _is_alone(self, name: str) -> bool:
        table = self._table(name)
        return base_of(table) is not None and len(layers(table)) == 1 and not strays(self.project.catalog, table)

    def _rewrite(self, collection: Collection, upto: int) -> None:
        for name in self._logs_of(collection) if collection.kind == "source" else [collection.name]:
            if self._end(name) != upto:
                raise self._moved(name)
        if collection.kind == "source":
            for name in self._logs_of(collection):
                self._rewrite_source(collection, name, upto)
        else:
            self._rebuild(collection, upto)

    def _rewrite_source(self, collection: Collection, name: str, upto: int) -> None:
        """Let a source's log, or that of its events, be without the rows that meet the condition."""
        from firnline.engine.frames import deltas, relation_of, table_name
        from firnline.engine.matching import divided
        from firnline.incremental.relation import consolidated
        from firnline.runtime.attempt import Staged
        from firnline.runtime.evaluation import told
        from firnline.runtime.writing import Rebuilding, Rewriting

        began = time.monotonic()
        log, seen = self._log(name), self._table(name)
        assert seen.current is not None
        with told(collection, "erasing", self.project.settings):
            gone = self._matching(seen)
            epoch = self._last_epoch(upto)
            destination = Rebuilding.beside(Rewriting.at(self.session, log, epoch, ()), is_written=True)
            rows = deltas(self.session, table_name(log.pipeline, log.collection), seen.current, upto)
            _, staying = divided(rows, self.condition)
            names = destination.names
            delta = consolidated(relation_of(staying.selectExpr(*map(quoted, (*names, DIFF)))), names)
            staged = destination.stage(delta, epoch, 0, world().new_id())
        assert isinstance(staged, Staged), "what is staged anew races nobody"
        try:
            self._compare(log, seen, staged.digests, gone)
        except FirnlineError:
            log.discard(staged.attempt)
            raise
        made_by, taken = next(entries_of(seen)).fingerprint, self._positions(upto)
        seconds = time.monotonic() - began
        note = Sidecar(log.collection, start_of(seen), upto, staged.attempt, made_by, {}, staged.digests, seconds, taken)
        self._replace(log, seen, note, staged.snapshot, sum(digest.rows for digest in gone.values()))

    def _positions(self, upto: int) -> dict[str, Any]:
        """Where the source stands at a point in what it reads outside: the next epoch goes on from there."""
        from firnline.runtime.stage_run import StageRun

        run = (self.project, self.declared, self.session, self.cone[0], Epoch(upto, upto + 1), world().new_id())
        return StageRun(*run).positions()

    def _note_positions(self, upto: int) -> None:
        """Write it down beside the log as well: a sidecar that is lost is made anew without it."""
        beside = self.project.determinants(self.graph.name, self.source, self._last_epoch(upto).lower)
        for name, value in self._positions(upto).items():
            beside.log(name, value)

    def _compare(self, log: Log, seen: Metadata, staged: Digests, gone: Digests) -> None:
        """Refuse rows that, with those left out, are not the sum of what was published."""
        published = by_part(*(log.sidecar(entry).digests for entry in entries_of(seen)))
        found = by_part(staged, gone)
        parts = sorted(published.keys() | found.keys())
        wrong = [part for part in parts if not published.get(part, Digest()).is_same_state(found.get(part, Digest()))]
        if wrong:
            what = f"parts {', '.join(map(str, wrong))}: the rows that stay and those that go are not those that were published"
            raise FirnlineError("MERGE_DIFFERS", f"{log.pipeline}.{log.collection}, {what}; nothing is erased")

    def _rebuild(self, collection: Collection, upto: int) -> None:
        """Compute a stage and what it keeps anew; what it does not keep any more is dropped."""
        from firnline.runtime.stage_run import StageRun

        began = time.monotonic()
        seen = {name: self._table(name) for name in self._logs_of(collection)}
        run = StageRun(self.project, self.declared, self.session, collection, self._last_epoch(upto), world().new_id())

        def take(made: Remade) -> None:
            log = self._log(made.log)
            table = seen.get(made.log) or self._table(made.log)
            seconds = time.monotonic() - began
            staged = made.staged
            note = Sidecar(
                made.log, start_of(table), upto, staged.attempt, made.fingerprint, made.inputs, staged.digests, seconds
            )
            fewer = sum(entry.weight for entry in entries_of(table)) - staged.total.weight
            self._replace(log, table, note, staged.snapshot, max(fewer, 0))

        kept = run.rebuild(take)
        for name in seen.keys() - {*kept, collection.name}:
            self._drop(name)

    def _replace(self, log: Log, seen: Metadata, note: Sidecar, staged: int | None, rows_erased: int) -> None:
        """Let a log be the new layer only, and remove every file that it cannot name any more."""
        catalog = self.project.catalog
        before = self._erased_before(log.collection, seen)
        done = replace_all(catalog, log, seen, replace(note, parts=cut_into(seen)), staged)
        if done.verdict is not Verdict.FREE:
            raise self._moved(log.collection)
        table = self._table(log.collection)
        files, size = self._remove(strays(catalog, table, done.listed))
        *_, layer = entries_of(table)
        written = log.sidecar(layer).files or ()
        self.erased[log.collection] = Erased(
            log.collection,
            "rewritten" if self._is_own(log.collection) else "rebuilt",
            before.rows_before,
            before.rows_erased + rows_erased,
            len(written),
            sum(file.bytes for file in written),
            before.files_removed + files,
            before.bytes_removed + size,
            before.snapshots_dropped + done.snapshots,
        )

    def _erased_before(self, name: str, seen: Metadata) -> Erased:
        """What rounds before this one did to a log."""
        rows = sum(entry.rows if self._is_own(name) else entry.weight for entry in entries_of(seen))
        return self.erased.get(name) or Erased(name, "kept", rows, 0)

    def _remove(self, paths: Sequence[str]) -> tuple[int, int]:
        sizes = []
        for path in paths:
            sizes.append(self.project.catalog.remove(path))
            world().reach("erase.removed")
        return sum(1 for size in sizes if size), sum(sizes)

    def _drop(self, name: str) -> None:
        """Forget a log as a whole: whoever makes it makes it anew."""
        table = self._log(name).load()
        if table is None:
            return
        before = self._before(name, "dropped")
        files, size = drop_log(self.project, self.graph, table)
        self.erased[name] = replace(before, rows_erased=before.rows_before, files_removed=files, bytes_removed=size)

    def _tell(self) -> None:
        """Let the frontier name the new generations, and plain tables and the ledger say what the logs say."""
        from firnline.runtime.index import rebuild

        heads = {each.name: self._log(each.name).head() for each in self.graph.collections}
        found = cut({name: head.description if head else None for name, head in heads.items()})
        if found is not None:
            self.project.control(self.graph.name).advance(found)
        forget_plain_rows(self.project, self.graph, [each.name for each in self.cone])
        try:
            rebuild(self.project, self.graph)
        except FirnlineError as error:
            _logger.warning("the ledger, which holds counts and digests only, was not rebuilt: %s", error)

    def _moved(self, name: str) -> FirnlineError:
        return FirnlineError("GENERATION_CHANGED", f"{self.graph.name}.{name} was published to while rows were erased")

    def _matching(self, table: Metadata) -> Digests:
        """The digests of the source's rows that meet the condition."""
        from firnline.runtime.evaluation import told
        from firnline.runtime.proof import matching

        with told(self.cone[0], "erasing", self.project.settings):
            return matching(self.session, table, self.condition)

    def _upto(self) -> int:
        """The common end of all logs; an epoch that is under way is waited for."""
        for _ in range(round(_PATIENCE_SECONDS / _PAUSE_SECONDS)):
            uppers, frontier = self._uppers()
            if not late(uppers, frontier):
                break
            world().sleep(_PAUSE_SECONDS)
        check_complete(self.graph, uppers, frontier)
        return max(uppers.values())

    def _uppers(self) -> tuple[dict[str, int], int]:
        frontier = self.project.control(self.graph.name).frontier()
        start = self.graph.schedule.start
        names = [*self._logs_of(self.cone[0]), *(each.name for each in self.cone)]
        return {name: self._end(name) for name in names}, start if frontier is None else frontier.upper

    def _end(self, name: str) -> int:
        head = self._log(name).head()
        return self.graph.schedule.start if head is None else head.description.upper

    def _last_epoch(self, upto: int) -> Epoch:
        return self.graph.schedule.epoch_at(upto - 1)

    def _logs(self) -> list[str]:
        """The logs of the cone, inputs before their readers, and what stages keep before them."""
        return [name for collection in self.cone for name in self._logs_of(collection)]

    def _is_own(self, name: str) -> bool:
        """Whether a log is the source's, or of its events."""
        return name in (self.source, self.source + EVENTS)

    def _logs_of(self, collection: Collection) -> list[str]:
        there = logs_of([collection.name], self.project.catalog.names(self.graph.name))
        return [name for name in there if not name.endswith(QUARANTINE)]

    def _quarantine(self) -> list[str]:
        """The log of the source's malformed records, if there is one."""
        return [name for name in self.project.catalog.names(self.graph.name) if name == self.source + QUARANTINE]

    def _quarantined(self) -> int:
        return sum(entry.weight for name in self._quarantine() for entry in self._log(name).entries())

    def _is_told(self, name: str) -> bool:
        """Whether a report has a line about a log: of malformed records it says only how many are kept."""
        return name in self.erased or not name.endswith(QUARANTINE)

    def _before(self, name: str, how: How) -> Erased:
        table = self._table(name)
        held = self.project.catalog.held(table) if table.head is not None else ()
        rows = sum(entry.rows if self._is_own(name) else entry.weight for entry in entries_of(table))
        removed = (0, 0, 0) if how == "kept" else (len(held), sum(file.bytes for file in held), len(table.snapshots))
        return Erased(name, how, rows, 0, 0, 0, *removed)

    def _log(self, name: str) -> Log:
        return self.project.log(self.graph.name, name)

    def _table(self, name: str) -> Metadata:
        table = self._log(name).load()
        if table is None:
            raise FirnlineError("NO_SUCH_COLLECTION", f"{self.graph.name}.{name} has no log yet")
        return table
