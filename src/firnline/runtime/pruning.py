"""What is known about single epochs that the logs do not keep by themselves any more: notes beside them, entries of the ledger.

Determinants are kept: with them alone could a source be read again.
"""

from __future__ import annotations

from collections.abc import Mapping

from firnline.ledger.entry import Publication
from firnline.runtime.index import line_of, record
from firnline.runtime.project import Project
from firnline.tables import check_results, failures
from firnline.tables.pruning import prunable

_FOLDERS = (failures.FOLDER, f"{check_results.FOLDER}/results", f"{check_results.FOLDER}/failed")


def notes_to_forget(project: Project, pipeline: str, sinces: Mapping[str, int]) -> list[str]:
    """The small files about failures and checks of epochs below the since of their collection."""
    folder = f"{project.catalog.warehouse}/{pipeline}"
    return [path for each in _FOLDERS for path in prunable(project.catalog, f"{folder}/{each}", sinces)]


def entries_to_forget(project: Project, pipeline: str, collection: str) -> list[Publication]:
    """What the ledger has of a log that the log does not hold: merges stand for it, or a rewind took it back."""
    known = project.ledger.every(pipeline, collection)  # first: what is published meanwhile is no surprise to the log
    entries = project.log(pipeline, collection).entries()
    held = {(entry.description.generation, entry.lower, entry.attempt) for entry in entries}
    return [each for each in known if (each.generation, each.lower, each.attempt) not in held]


def forget_entries(project: Project, pipeline: str, collection: str) -> int:
    """Let the ledger say what the log says, and nothing else; how many entries went."""
    stale = entries_to_forget(project, pipeline, collection)
    if stale:
        log, gone = project.log(pipeline, collection), {(collection, each.generation, each.lower) for each in stale}
        known = project.ledger.known(pipeline, [collection]) - gone
        entries = (each for each in log.entries() if (collection, each.description.generation, each.lower) not in known)
        lines = [line_of(log, entry) for entry in entries]  # first: if a sidecar is lost, the ledger may be all that tells of it
        project.ledger.drop(stale)
        record(project, lines)
    return len(stale)
