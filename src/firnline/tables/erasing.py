"""One layer in place of everything that a log ever held, in a new generation.

No attempt that began before can publish or exchange anything afterwards: it finds another generation. And no snapshot but the new
layer is left. So a file that was in the log's folder before the commit, and that the log does not name after it, will never be
named again: here, and only here, what is to be removed may be found by listing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from firnline.model.description import Description, Verdict
from firnline.tables.commit import until_known
from firnline.tables.layers import KIND, LAYER, MERGE, layers
from firnline.tables.log import ATTEMPT, START, Log, head_of, summary_of
from firnline.tables.metadata import SIDECAR, Metadata, Snapshot
from firnline.tables.port import Exchange, Tables
from firnline.tables.sidecar import Sidecar
from firnline.tables.trash import COPIED, Trash, file_key
from firnline.world import world

ERASED = "firnline.erased"
"""Of a merge: that nothing is left of what was there before it."""
COPIES = f"/{COPIED}/"
"""These files tell what else to remove."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """What a log's files were before it was replaced."""

    verdict: Verdict
    listed: tuple[str, ...] = ()
    snapshots: int = 0
    """How many were dropped."""


def start_of(table: Metadata) -> int:
    """Where the first layer of a log begins."""
    return int(table.properties[START])


def base_of(table: Metadata) -> Snapshot | None:
    """The oldest layer of a log, if an erasure made it."""
    found = layers(table) if table.head is not None else []
    return found[-1] if found and ERASED in found[-1].summary else None


def replace_all(tables: Tables, log: Log, seen: Metadata, sidecar: Sidecar, staged: int | None) -> Replaced:
    """Let a log be one staged layer that ends where ``sidecar`` says, unless it was changed since it was looked at.

    Args:
        tables: Where the log is.
        log: The log.
        seen: The log as it was looked at.
        sidecar: What is written down about the layer.
        staged: The snapshot that holds its rows; none if there are none.
    """
    done = Replaced(Verdict.MOVED)

    def attempt_once() -> Replaced:
        nonlocal done
        table = log.load()
        if table is None:
            return Replaced(Verdict.MOVED)
        if any(
            snapshot.summary.get(ATTEMPT) == sidecar.attempt and SIDECAR in snapshot.summary for snapshot in table.main_line()
        ):
            return replace(done, verdict=Verdict.FREE)
        if table.current != seen.current or (staged is not None and staged not in table.snapshots):
            log.discard(sidecar.attempt)
            return Replaced(Verdict.MOVED)
        world().reach("erase.judged")
        undone = tuple(each for each in table.snapshots if each != staged)
        done = Replaced(Verdict.MOVED, tuple(tables.paths(table.location)), len(undone))
        path = f"{table.location}/firnline/{sidecar.attempt}.json"
        files = tables.data_files(table, staged) if staged is not None else ()
        description = Description(head_of(table).description.generation + 1, sidecar.upper, sidecar.upper)
        tables.write(path, replace(sidecar, files=files, generation=description.generation).as_json())
        kind = {KIND: MERGE, LAYER: str(sidecar.upper), ERASED: "true"}
        change = Exchange(
            out=frozenset(file.path for file in tables.held(table)), staged=(() if staged is None else (staged,)), undone=undone
        )
        tables.exchange(table, {**description.as_properties(), **summary_of(sidecar, path), **kind}, change)
        world().reach("erase.committed")
        return replace(done, verdict=Verdict.FREE)

    return until_known(f"{log.pipeline}.{log.collection}", attempt_once)


def strays(tables: Tables, table: Metadata, listed: tuple[str, ...] | None = None) -> list[str]:
    """The files in a log's folder, of those that were listed or all, that the log does not name."""
    found = tuple(tables.paths(table.location)) if listed is None else listed
    named = Trash(tables).named(table)
    return [path for path in found if _key(path) not in named and COPIES not in path]


def _key(path: str) -> str:
    """A file's key; that of a checksum which Spark put beside one on a local disk is that file's."""
    folder, _, name = file_key(path).rpartition("/")
    is_checksum = name.startswith(".") and name.endswith(".crc")
    return f"{folder}/{name.removeprefix('.').removesuffix('.crc') if is_checksum else name}"
