"""Replay that reuses: an epoch that a rewind took out is taken from the log again where computing it would give the same rows.

That is so if the code is the one that made it, the collection held the same state before it, and every input holds the same state
before the epoch and the same changes in it: told by digests, from sidecars alone. Where anything of that is not known any more,
or a gap has to be corrected, the answer is to compute.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from firnline.errors import FirnlineError
from firnline.model.declaration import Collection
from firnline.model.description import Verdict
from firnline.model.epoch import Epoch
from firnline.model.gap import Gaps
from firnline.model.graph import Graph
from firnline.model.names import QUARANTINE, logs_beside
from firnline.runtime.project import Project
from firnline.runtime.renaming import inputs_of

if TYPE_CHECKING:
    from firnline.runtime.attempt import Published
    from firnline.tables.log import Head
    from firnline.tables.reusing import Taken
    from firnline.tables.sidecar import Input, Sidecar

_logger = logging.getLogger(__name__)


def reused(
    project: Project,
    graph: Graph,
    collection: Collection,
    generation: int,
    epoch: Epoch,
    attempt: str,
    inputs: Mapping[str, Head],
) -> Published | None:
    """Publish an epoch as the log held it before a rewind; None if it has to be computed."""
    found = _readable(project, graph, collection, generation, epoch)
    if not found:
        return None
    from firnline.runtime.attempt import Published
    from firnline.tables.reusing import republish

    *kept, own = found
    for number, (name, taken) in enumerate(kept):
        log = project.log(graph.name, name)
        sidecar = replace(log.sidecar(taken.entry), attempt=f"{attempt}k{number}")
        if republish(project.catalog, log, taken, sidecar) not in (Verdict.FREE, Verdict.TAKEN):
            return None
    log = project.log(graph.name, collection.name)
    before = log.sidecar(own[1].entry)
    read = {name: _again(of, inputs[name]) for name, of in inputs_of(project, graph, before).items()}
    verdict = republish(project.catalog, log, own[1], replace(before, attempt=attempt, inputs=read))
    return Published(verdict, before.total(), is_reused=True)


def reusable(project: Project, graph: Graph, collection: Collection, generation: int, epoch: Epoch) -> bool:
    """Whether an epoch need not be computed, since the log held it before a rewind."""
    return bool(_readable(project, graph, collection, generation, epoch))


def _readable(project: Project, graph: Graph, collection: Collection, generation: int, epoch: Epoch) -> list[tuple[str, Taken]]:
    """What comes back; nothing if it has to be computed, or cannot be told."""
    try:
        return _found(project, graph, collection, generation, epoch)
    except (FirnlineError, OSError, ValueError, KeyError) as error:
        _logger.info("%s.%s is computed: what was taken out is not readable: %s", graph.name, collection.name, error)
        return []


def _again(of: Input, head: Head) -> Input:
    return replace(of, generation=head.description.generation, snapshot=head.snapshot or of.snapshot)


def _found(project: Project, graph: Graph, collection: Collection, generation: int, epoch: Epoch) -> list[tuple[str, Taken]]:
    """What comes back: of the logs beside a collection, then its own; nothing if it has to be computed."""
    own = _unchanged(project, graph, collection.name, epoch)
    if own is None or own.generation != generation or own.entry.fingerprint.code != graph.fingerprints[collection.name]:
        return []
    before = project.log(graph.name, collection.name).sidecar(own.entry)
    if not _is_under_its_names(project, graph, collection.name, own, before):
        return []
    found = []
    for name in logs_beside(collection.name, project.catalog.names(graph.name)):
        head = project.log(graph.name, name).head()
        if name.endswith(QUARANTINE):
            taken = _unchanged(project, graph, name, epoch)
            if taken is None and _had(project, graph, name, epoch):
                return []
            found += [] if taken is None else [(name, taken)]
        elif collection.kind == "source":
            return []
        elif head is not None and head.description.upper == epoch.lower:
            taken = _unchanged(project, graph, name, epoch)
            if taken is None:
                return []
            found.append((name, taken))
    # Inputs last: where they were rewound since, so was what was looked at before, and its publish is refused.
    read = inputs_of(project, graph, before)
    is_same = read.keys() == set(collection.inputs) and all(is_same_input(project, graph, *each, epoch) for each in read.items())
    return [*found, (collection.name, own)] if is_same and project.control(graph.name).gaps() == Gaps() else []


def _is_under_its_names(project: Project, graph: Graph, name: str, own: Taken, before: Sidecar) -> bool:
    """Whether a log has the columns of what was taken out under the names that they had: code since may have given others."""
    from firnline.tables.evolving import names_today

    table, outline = project.log(graph.name, name).load(), before.fingerprint.outline
    if table is None or outline is None:
        return table is not None
    return all(then == now for then, now in names_today(table, own.entry.snapshot, outline.columns).items())


def _had(project: Project, graph: Graph, name: str, epoch: Epoch) -> bool:
    """Whether something of an epoch was ever taken out of a log that need not hold every epoch."""
    from firnline.tables.reusing import ends_taken_out

    table = project.log(graph.name, name).load()
    return table is not None and epoch.upper in ends_taken_out(table)


def _unchanged(project: Project, graph: Graph, name: str, epoch: Epoch) -> Taken | None:
    """What was taken out of a log, if the log holds before it what it held then."""
    from firnline.tables.reusing import diverged, sums, taken

    log = project.log(graph.name, name)
    table = log.load()
    found = None if table is None or table.head is None else taken(project.catalog, table, epoch.upper)
    if table is None or found is None:
        return None
    snapshot = table.snapshots[found.entry.snapshot]
    since = diverged(table, snapshot)
    assert since is not None, "it was taken out"
    now = sums(log, table, since, found.entry.lower)
    return found if now is not None and now == sums(log, table, since, found.entry.lower, snapshot) else None


def is_same_input(project: Project, graph: Graph, name: str, of: Input, epoch: Epoch) -> bool:
    """Whether an input holds, before an epoch and in it, what it held when it was read."""
    from firnline.tables.reusing import diverged, sums

    log = project.log(graph.name, name)
    table, head = log.load(), log.head()
    if table is None or head is None:
        return False
    if head.description.generation == of.generation:
        return True
    then = table.snapshots.get(of.snapshot)
    if then is None:
        return False
    since = diverged(table, then)
    if since is None:
        return False  # another generation, and not by a rewind
    for lower, upper in ((since, epoch.lower), (max(since, epoch.lower), epoch.upper)):
        if lower < upper:
            now = sums(log, table, lower, upper)
            if now is None or now != sums(log, table, lower, upper, then):
                return False
    return True
