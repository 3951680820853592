"""The points where the runtime may be interrupted, and what may happen there: a table of data, switched on from outside.

``FIRNLINE_FAILPOINTS="publish.committed=kill"`` arms points for a process, several separated by commas. ``NAME=KIND@2`` lets the
first pass go by. Faults are for tests and drills: nothing is armed unless the variable says so.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Literal, get_args

from firnline.errors import FirnlineError

Kind = Literal["kill", "raise", "hang", "delay", "lost", "twice"]
VARIABLE = "FIRNLINE_FAILPOINTS"
GATE = "FIRNLINE_FAILPOINT_GATE"
"""Where ``hang`` and ``twice`` say that they have arrived: a file; ``twice`` goes on when that is gone."""
KINDS: Mapping[Kind, str] = MappingProxyType(
    {
        "kill": "the process dies at once, as by kill -9",
        "raise": "an error of the operating system",
        "hang": "the process stands still for good",
        "delay": "it takes some seconds longer",
        "lost": "what was done before the point is done, but its answer is an error",
        "twice": "it stands still until the same work was done by somebody else",
    }
)
_ANYWHERE: tuple[Kind, ...] = ("kill", "raise", "hang", "delay", "twice")
_AFTER_A_COMMIT: tuple[Kind, ...] = ("kill", "lost", "hang", "delay", "twice")
POINTS: Mapping[str, tuple[str, tuple[Kind, ...]]] = MappingProxyType(
    {
        "advance.planned": ("it is known which epochs are missing; nothing is done yet", _ANYWHERE),
        "determinant.logged": ("what a source took from the outside is written down, and not used yet", _ANYWHERE),
        "log.created": ("the table of a new log is there, without a snapshot", _ANYWHERE),
        "stage.written": ("Spark has staged a delta; nobody has looked at it", _ANYWHERE),
        "wave.staged": ("one of several waves of a delta is staged; a retry keeps it", _ANYWHERE),
        "stage.audited": ("what was staged has its digests, and its keys are right", _ANYWHERE),
        "publish.judged": ("the head is one to publish onto; nothing is written", _ANYWHERE),
        "publish.described": ("the sidecar is written; no snapshot names it", _ANYWHERE),
        "publish.committed": ("the epoch is in the log; its publisher does not know it yet", _AFTER_A_COMMIT),
        "publish.lost": ("somebody else was faster, and what this attempt had staged is dropped", _AFTER_A_COMMIT),
        "advance.published": ("the epoch is published; no index knows of it", _ANYWHERE),
        "stash.written": ("the publication waits on the local disk to be carried to the ledger", _ANYWHERE),
        "ledger.recorded": ("the ledger knows of it; it is still in the stash", ("kill", "raise", "delay")),
        "safepoint.judged": ("a hold, its release, an approval or what is let go of is about to be recorded", _ANYWHERE),
        "safepoint.committed": ("it is recorded; who did it does not know it yet", _AFTER_A_COMMIT),
        "trash.written": ("it is written down which snapshots are about to be dropped; all are still there", _ANYWHERE),
        "expire.committed": ("snapshots that nothing needs are dropped; who did it does not know it yet", _AFTER_A_COMMIT),
        "trash.removed": ("a file of the trash is gone, and others of the same record are not", _ANYWHERE),
        "trash.closed": ("all files of a record of the trash are gone, and the record with them", _ANYWHERE),
        "undo.committed": ("the layers of a merge are back; who did it does not know it yet", _AFTER_A_COMMIT),
        "prune.removed": ("a small file about an epoch that nobody asks for any more is gone", _ANYWHERE),
        "branch.noted": ("a branch holds the safe point and is written down; it has no log yet", _ANYWHERE),
        "branch.written": ("the first version of a branch's log is written; the catalog does not know it", _ANYWHERE),
        "branch.forked": ("a branch's log begins with the pipeline's; others do not yet", _AFTER_A_COMMIT),
        "branch.taking": ("the sidecar of an epoch that a branch takes over is written; no snapshot names it", _ANYWHERE),
        "branch.taken": ("a branch has taken an epoch over; who did it does not know it yet", _AFTER_A_COMMIT),
        "branch.dropping": ("one of a branch's tables is forgotten; its files are in the trash", _AFTER_A_COMMIT),
        "branch.forgotten": ("a dropped branch has no table and no note any more; it still holds the safe point", _ANYWHERE),
        "promote.published": ("a collection has a branch's rows; others of the epoch do not yet", _ANYWHERE),
        "promote.completed": ("the epoch of a promotion is complete; who did it does not know it yet", _ANYWHERE),
        "erase.judged": ("a log's rows are staged without those to be erased; nothing else is done to it", _ANYWHERE),
        "erase.committed": ("the log is one layer without them; files that hold them are still there", _AFTER_A_COMMIT),
        "erase.removed": ("a file that no log can name any more is gone, and others are not", _ANYWHERE),
        "repair.judged": ("lost rows are made anew and have the right digest; nothing is written", _ANYWHERE),
        "repair.described": ("it is written down what the repair does; no snapshot names it", _ANYWHERE),
        "repair.committed": ("the log names sound files again; who did it does not know it yet", _AFTER_A_COMMIT),
        "repair.lost": ("somebody else repaired the log, and what this attempt had staged is dropped", _AFTER_A_COMMIT),
        "repair.gaps_judged": ("the gap ledger is about to change: rows are to be left out, are out, or are back", _ANYWHERE),
        "repair.gaps_committed": ("the gap ledger says so; who wrote it does not know it yet", _AFTER_A_COMMIT),
        "merge.judged": ("a merge of layers is staged and has the right digest; nothing is written", _ANYWHERE),
        "merge.described": ("it is written down what the merge does; no snapshot names it", _ANYWHERE),
        "merge.committed": ("the log names the merged files; who merged them does not know it yet", _AFTER_A_COMMIT),
        "merge.lost": ("somebody else exchanged files, and what this attempt had staged is dropped", _AFTER_A_COMMIT),
        "rewind.deciding": ("a rewind, or its undo, is about to be decided; nothing is written", _ANYWHERE),
        "rewind.decided": ("the frontier is back and says which logs follow; none has", _AFTER_A_COMMIT),
        "rewind.judged": ("it is known what a rewind of a log, or its undo, takes out; nothing is written", _ANYWHERE),
        "rewind.described": ("it is written down what it takes out; no snapshot says so", _ANYWHERE),
        "rewind.committed": ("the log is back at the point; who did it does not know it yet", _AFTER_A_COMMIT),
        "rewind.settled": ("all logs are back, and the control table says so; who did it does not know it yet", _AFTER_A_COMMIT),
        "rename.deciding": ("a renamed collection is about to be called so; nothing is written", _ANYWHERE),
        "rename.decided": ("the control table has its new name; its logs have the old one", _AFTER_A_COMMIT),
        "rename.moved": ("one of its logs has the new name; others do not yet", _AFTER_A_COMMIT),
        "schema.judged": ("a log is about to get other columns; nothing is written", _ANYWHERE),
        "schema.described": ("a note about its columns is written; no snapshot names it", _ANYWHERE),
        "schema.committed": (
            "the log has other columns, and the same rows; who changed them does not know it yet",
            _AFTER_A_COMMIT,
        ),
        "rescale.staged": ("a layer is cut anew and staged; another attempt keeps it", _ANYWHERE),
        "rescale.judged": ("all layers are cut anew and have the right digests; nothing is written", _ANYWHERE),
        "rescale.described": ("it is written down what the rescale does; no snapshot names it", _ANYWHERE),
        "rescale.committed": ("the log has another number of parts; who rescaled it does not know it yet", _AFTER_A_COMMIT),
        "rescale.lost": ("somebody else exchanged files, and what this attempt had staged is dropped", _AFTER_A_COMMIT),
        "frontier.judged": ("all collections hold an epoch; readers do not see it yet", _ANYWHERE),
        "frontier.committed": ("readers see it; who let them does not know it yet", _AFTER_A_COMMIT),
        "table.judged": ("a plain table is behind the frontier; nothing is written", _ANYWHERE),
        "table.written": ("its new files are written; no snapshot names them", _ANYWHERE),
        "table.committed": ("it is up to the frontier; who brought it there does not know it yet", _AFTER_A_COMMIT),
        "sink.chosen": ("a sink is to deliver an epoch; nothing is delivered yet", _ANYWHERE),
        "sink.written": (
            "rows and mark are written, or a folder's files; the transaction, or the folder's name, is open",
            _ANYWHERE,
        ),
        "sink.delivered": ("it is delivered; the sink's hold does not know it yet", _AFTER_A_COMMIT),
        "replicate.copied": ("all files of a batch are at a place and were read back; no record says so", _ANYWHERE),
        "replicate.recorded": ("a record says so; whoever copied them does not know it yet", _AFTER_A_COMMIT),
    }
)
_DELAY_SECONDS = 3.0
_HANG_SECONDS = 3600.0


@dataclass(slots=True)
class Armed:
    """What will happen at points, by name; ``passes`` are let go by first."""

    kinds: dict[str, Kind] = field(default_factory=dict)
    passes: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, text: str) -> Armed:
        """Read what ``FIRNLINE_FAILPOINTS`` says; a fault that cannot happen is refused."""
        armed = cls()
        for entry in filter(None, text.replace(" ", "").split(",")):
            name, _, what = entry.partition("=")
            kind, _, number = what.partition("@")
            if name not in POINTS or kind not in get_args(Kind) or kind not in POINTS[name][1] or not (number or "1").isdigit():
                raise FirnlineError("BAD_SETTING", f"{VARIABLE}: {entry!r} is no fault; docs/guides/faults.md lists them")
            armed.kinds[name] = kind
            armed.passes[name] = int(number or 1) - 1
        return armed

    def reach(self, point: str) -> None:
        """Let happen what is armed, once."""
        if self.passes.get(point, 0):
            self.passes[point] -= 1
            return
        kind = self.kinds.pop(point, None)
        if kind is not None:
            _happen(point, kind)


def _happen(point: str, kind: Kind) -> None:
    if kind == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif kind in ("raise", "lost"):
        raise OSError(f"failpoint {point}: {KINDS[kind]}")
    elif kind == "delay":
        time.sleep(_DELAY_SECONDS)
    elif kind == "hang":
        if GATE in os.environ:
            Path(os.environ[GATE]).write_text(point)
        time.sleep(_HANG_SECONDS)
    else:
        gate = Path(os.environ[GATE])
        gate.write_text(point)
        while gate.exists():
            time.sleep(0.05)
