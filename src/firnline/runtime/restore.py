"""Lost files, brought back from replicas under their own names: nothing has to be told that they are there again.

A copy is used only if its SHA-256 is that of the record. That says that it is what was copied, not that what was copied was what
was published: bytes may have turned between the two. So rows are read from beside the log first; they take their place only if
the digest of every (epoch, part) is that of its publish and the collection's checks are met. Other files need no more: what they
say is compared with what others say of it when the log is looked at again. A copy is withdrawn only if it is proven bad: what
fails for another reason is told, and a copy whose rows share an (epoch, part) with a file that was not lost is left out of this
repair only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from firnline.errors import FirnlineError
from firnline.model.digest import Digest
from firnline.model.gap import Cell
from firnline.model.replica import Copy
from firnline.model.stored_file import StoredFile
from firnline.plan.repairing import Step, epoch_of, taken_out
from firnline.plan.restoring import damaged_data, lost_files, not_as_published
from firnline.plan.verification import Holding, Problem, published_digests
from firnline.runtime.beside import is_readable, rows_beside
from firnline.runtime.exchange import files
from firnline.runtime.project import Project
from firnline.runtime.replicas import Replicas
from firnline.world import world

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession

    from firnline.tables.log import Log
    from firnline.tables.metadata import Metadata


def copies(replicas: Replicas, log: Holding, problems: Sequence[Problem]) -> dict[str, Copy]:
    """What replicas hold of a log's lost and damaged files, by the paths that the log names them by.

    A file that is, to the byte, what was copied is not the damaged one: of altered rows only the (epoch, part) is known, and of
    two files that do not agree, one is right.
    """
    damage = [each for each in problems if not each.is_staged]
    if not replicas.graph.replicas or not damage:
        return {}
    found = _held(replicas, log, [*lost_files(damage), *(each.file.path for each in damaged_data(log, damage))])
    return {path: copy for path, copy in found.items() if not _is_same(replicas, copy)}


def restore(replicas: Replicas, session: Callable[[], SparkSession], log: Holding, step: Step) -> bool:
    """Put files back; whether all copies were what they had to be. What is not is counted as a copy no more."""
    if not step.cells:
        fetched = [replicas.fetch(log.collection, copy, path) for path, copy in step.copies]
        return all(fetched)
    return _Coming(replicas, session, log, step).put_back()


def taken_out_files(replicas: Replicas, log: Holding, cells: Collection[Cell]) -> None:
    """Bring back data files of gaps; whoever names them again looks at their rows first."""
    from firnline.tables.storage import is_there

    lost = [file.path for file in taken_out(log, cells) if not is_there(file)]
    for path, copy in _held(replicas, log, lost).items():
        replicas.fetch(log.collection, copy, path)


def _held(replicas: Replicas, log: Holding, paths: Collection[str]) -> dict[str, Copy]:
    from firnline.replicas.place import below

    inner = {below(replicas.project.catalog.warehouse, path): path for path in paths}
    found = replicas.copies(log.collection, inner)
    return {inner[path]: copy for path, copy in found.items()}


def _is_same(replicas: Replicas, copy: Copy) -> bool:
    from firnline.replicas import Place

    return Place(replicas.project.catalog.warehouse).checksum(copy.file.path) == copy.file.sha256


@dataclass(frozen=True)
class _Coming:
    """Data files on their way back, beside the log."""

    replicas: Replicas
    session: Callable[[], SparkSession]
    log: Holding
    step: Step

    def put_back(self) -> bool:
        from firnline.replicas.place import copied

        folder = f"{self._project.catalog.warehouse}/{self.log.pipeline}/{self.log.collection}/firnline/coming"
        attempt = world().new_id()
        waiting = {path: f"{folder}/{attempt}-{at}.parquet" for at, (path, _) in enumerate(self.step.copies)}
        try:
            fetched = [self.replicas.fetch(self.log.collection, copy, waiting[path]) for path, copy in self.step.copies]
            if not all(fetched):
                return False
            found = self._files()
            if found is None:
                return False  # somebody else has exchanged some of them
            with rows_beside(self._project, self.session(), self._log, found, waiting) as rows:
                if not self._is_published(self._wanted(rows), waiting):
                    return False
                self._recheck(self._wanted(rows))
            for path, copy in self.step.copies:
                copied(waiting[path], path, path, copy.file.sha256)
            return True
        finally:
            for each in waiting.values():
                self._project.catalog.remove(each)

    def _files(self) -> list[StoredFile] | None:
        """All files of the (epoch, part) that are coming, also those that were never lost; None if the log has others by now."""
        covering = files(self.log, self.step.cells)
        held = [file for file in self._log.held(self._table) if file.path in covering]
        return held if {file.path for file in held} == covering else None

    def _wanted(self, rows: DataFrame) -> DataFrame:
        """Those of the (epoch, part) that are coming."""
        from pyspark.sql import functions as F

        from firnline.model.names import EPOCH, PART

        wanted = ((F.col(EPOCH) == epoch) & F.col(PART).isin(*self.step.parts(epoch)) for epoch in self.step.epochs())
        return rows.where(reduce(lambda one, other: one | other, wanted))

    def _is_published(self, rows: DataFrame, waiting: Mapping[str, str]) -> bool:
        """Whether they are the rows that were published; if not, the files were damaged before they were copied.

        That they were not read says nothing of a copy that can be.
        """
        from firnline.runtime.stored_digests import digests_read

        try:
            stored = digests_read(rows, self._table)
        except FirnlineError:
            unreadable = [path for path, place in waiting.items() if not is_readable(self._project, place)]
            if not unreadable:
                raise
            self._withdraw(unreadable)
            return False
        published = published_digests(self.log)
        wrong = {cell for cell in self.step.cells if stored.get(cell, Digest()) != published.get(cell, Digest())}
        bad, doubtful = not_as_published(self.log, wrong, waiting)
        self._withdraw(bad)
        self.replicas.doubtful.update(copy for path, copy in self.step.copies if path in doubtful)
        return not wrong

    def _withdraw(self, paths: Collection[str]) -> None:
        for path, copy in self.step.copies:
            if path in paths:
                self.replicas.withdraw(self.log.collection, copy.place, {copy.file.path})

    def _recheck(self, rows: DataFrame) -> None:
        from firnline.runtime.recheck import recheck

        graph, cells = self.replicas.graph, self.step.cells
        for lower in self.step.epochs():
            layer = self.log.layer_of(lower)
            if layer is None or not layer.is_merge:  # of a merged one the checks were asked epoch by epoch
                epoch = epoch_of(self.log, graph.schedule, lower)
                recheck(self._project, graph, self.session(), self.log.collection, epoch, (), cells, rows)

    @property
    def _log(self) -> Log:
        return self._project.log(self.log.pipeline, self.log.collection)

    @property
    def _table(self) -> Metadata:
        table = self._log.load()
        if table is None:
            raise FirnlineError("LOG_UNREADABLE", f"{self.log.pipeline}.{self.log.collection} is gone")
        return table

    @property
    def _project(self) -> Project:
        return self.replicas.project
