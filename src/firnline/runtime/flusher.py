"""The flusher carries stashed lines to the ledger in the background, in batches. Nobody waits for it.

It begins with the first line and ends when the stash is empty. While the ledger does not answer it tries again, with growing
pauses. What it has not carried when the process ends stays stashed for the next process on the machine.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from firnline.errors import FirnlineError
from firnline.model.names import QUARANTINE
from firnline.runtime.index import lacking, line_of, published, record
from firnline.world import world

if TYPE_CHECKING:
    from firnline.model.epoch import Epoch
    from firnline.runtime.project import Project
    from firnline.runtime.stash import Line

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 60.0
_logger = logging.getLogger(__name__)


def hand_over(project: Project, pipeline: str, collection: str, epoch: Epoch, attempt: str) -> None:
    """Stash what an attempt published of an epoch, and have it carried.

    The epoch is there already: whatever goes wrong here costs only an entry in an index, and a later flush brings it.
    """
    try:
        for name, made_by in ((collection, attempt), (collection + QUARANTINE, f"{attempt}q")):
            line = published(project, pipeline, name, epoch.lower, made_by)
            if line is not None:
                project.stash.put(line)
                world().reach("stash.written")
        project.flusher.start()
    except Exception as error:
        _logger.warning("the ledger will hear of %s.%s later: %s", pipeline, collection, error)


def hand_over_again(project: Project, pipeline: str, collection: str) -> None:
    """Stash all that a log holds, after it was written down anew, and have it carried."""
    try:
        log = project.log(pipeline, collection)
        for entry in log.entries():
            project.stash.put(line_of(log, entry))
        project.flusher.start()
    except Exception as error:
        _logger.warning("the ledger has old parts of %s.%s until it is rebuilt: %s", pipeline, collection, error)


def flush(project: Project) -> int:
    """Carry one batch to the ledger, with whatever of these collections and their inputs the ledger lacks; how many lines."""
    batch = project.stash.batch()
    if batch:
        record(project, batch.values())
        for pipeline in {line.publication.pipeline for line in batch.values()}:
            collections = {line.publication.collection for line in batch.values() if line.publication.pipeline == pipeline}
            record(project, _forwarded(project, pipeline, collections))
        world().reach("ledger.recorded")
        project.stash.remove(batch)
    return len(batch)


class Flusher:
    """The thread that flushes one project's stash, while there is something in it."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._changing = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_asked = threading.Event()

    def start(self) -> None:
        """Begin to flush, or go on at once."""
        with self._changing:
            self._is_asked.set()
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="firnline-flusher", daemon=True)
                self._thread.start()

    def drain(self, seconds: float) -> bool:
        """Wait until all is flushed, at most so long; whether it is."""
        until = time.monotonic() + seconds
        if self._project.stash.files():
            self.start()
        thread = self._thread
        if thread is not None:
            thread.join(max(0.0, until - time.monotonic()))
        return not self._project.stash.files()

    def _run(self) -> None:
        pause = _FIRST_PAUSE
        while True:
            self._is_asked.clear()
            try:
                while flush(self._project):
                    pause = _FIRST_PAUSE
            except Exception as error:
                level = logging.WARNING if pause == _FIRST_PAUSE else logging.INFO
                _logger.log(level, "the ledger does not answer and will catch up later: %s", error)
                self._is_asked.wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
                continue
            with self._changing:
                if not self._is_asked.is_set():
                    self._thread = None
                    return


def _forwarded(project: Project, pipeline: str, collections: set[str]) -> list[Line]:
    """What the ledger lacks of some collections and their inputs; nothing if a log cannot be read: that must hold up no line."""
    try:
        return lacking(project, pipeline, collections)
    except FirnlineError as error:
        if error.code == "LEDGER_UNAVAILABLE":
            raise
        _logger.warning("the ledger may lack some of %s: %s", pipeline, error)
        return []
