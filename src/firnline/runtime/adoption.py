"""One epoch of a log as what leads from its own rows to those of a branch's."""

from __future__ import annotations

import time
from collections.abc import Mapping

from pyspark.sql.connect.proto import Relation
from pyspark.sql.connect.session import SparkSession

from firnline.engine.frames import table_name
from firnline.errors import FirnlineError
from firnline.incremental.relation import call, column, consolidated, filtered, integer, named, negated, project, union
from firnline.model.declaration import Collection
from firnline.model.description import Verdict
from firnline.model.digest import Digest
from firnline.model.epoch import Epoch
from firnline.model.names import DIFF, EPOCH
from firnline.runtime.attempt import Published
from firnline.runtime.project import Declared, Project
from firnline.runtime.stage_run import StageRun
from firnline.runtime.writing import Destination, Placement, evolved, stored_in
from firnline.tables.evolving import renamed_between
from firnline.tables.forking import layer_at
from firnline.tables.log import Head, Log
from firnline.tables.sidecar import Input


def adopt(
    here: Project,
    declared: Declared,
    session: SparkSession,
    collection: Collection,
    ours: Log,
    theirs: Log,
    at: int,
    epoch: Epoch,
    attempt: str,
) -> Published:
    """Publish an epoch of a log such that its rows are a branch's afterwards.

    Args:
        here: The project.
        declared: The pipeline that the log is of.
        session: Spark.
        collection: The collection whose log it is, or that keeps it beside its own.
        ours: The branch's log, which holds the epoch.
        theirs: The pipeline's, which ends where the epoch begins.
        at: Where the branch began.
        epoch: The epoch.
        attempt: The attempt's name.
    """
    began = time.monotonic()
    entry = layer_at(ours, epoch.lower, epoch.upper)
    if entry is None:
        raise FirnlineError("GENERATION_CHANGED", f"{ours.pipeline}.{ours.collection} does not hold the epoch by itself")
    is_own = theirs.collection == collection.name
    placement = Placement(collection.keys, collection.partition_by, collection.parts, is_keyed=True) if is_own else None
    before, after = theirs.load(), ours.load()
    assert before is not None, "it ends where the epoch begins"
    assert after is not None, "it holds the epoch"
    evolved(session, theirs, before, stored_in(session, after), renamed_between(before, after))
    destination = Destination.there(session, theirs, placement)
    run = StageRun(here, declared, session, collection, epoch, attempt)
    generation = destination.head.description.generation
    delta = _between(ours, theirs, at, epoch, destination)
    made = destination.stage(delta, epoch, generation, attempt, is_few=True)
    staged = run.approved(destination, made, generation) if is_own else made
    if isinstance(staged, Verdict):
        return Published(staged, Digest())
    sidecar = ours.sidecar(entry)
    inputs = _inputs(here, declared, run, sidecar.inputs)
    seconds = time.monotonic() - began
    verdict = destination.publish(staged, epoch, generation, sidecar.fingerprint, inputs, seconds, sidecar.determinants)
    return Published(verdict, staged.total)


def _between(ours: Log, theirs: Log, at: int, epoch: Epoch, destination: Destination) -> Relation:
    """What leads from the pipeline's rows before an epoch to the branch's after it: what both share says nothing."""
    heads = ours.head(), theirs.head()
    is_shared = all(head is not None and head.description.since <= at for head in heads)
    since = at if is_shared else None
    after = _rows(ours, heads[0], since, epoch.upper, destination)
    before = _rows(theirs, heads[1], since, epoch.lower, destination)
    return consolidated(union(after, negated(before, destination.names)), destination.names)


def _rows(log: Log, head: Head | None, since: int | None, upto: int, destination: Destination) -> Relation:
    assert head is not None
    version = {} if head.snapshot is None else {"versionAsOf": str(head.snapshot)}
    rows = filtered(named(table_name(log.pipeline, log.collection), version), call("<", column(EPOCH), integer(upto)))
    rows = rows if since is None else filtered(rows, call(">=", column(EPOCH), integer(since)))
    return project(rows, map(column, (*destination.names, DIFF)))


def _inputs(here: Project, declared: Declared, run: StageRun, inputs: Mapping[str, Input]) -> dict[str, Input]:
    """The pipeline's own inputs, in place of the branch's that the rows were computed from: they hold the same."""
    heads = {name: here.log(declared.graph.name, name).head() for name in inputs}
    return {name: run.lineage(name, head) for name, head in heads.items() if head is not None}
