"""Names that are safe as SQL identifiers, Airflow ids and folder names alike.

A name is lower-case letters, digits and single underscores. A double underscore belongs to us: ``visits__quarantine``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches

from firnline.errors import FirnlineError, Location

EPOCH = "_epoch"
DIFF = "_diff"
PART = "_part"
BOOKKEEPING = (EPOCH, DIFF, PART)
CHANGE_TYPE = "_change_type"
CHANGE_ORDINAL = "_change_ordinal"
COMMIT_SNAPSHOT = "_commit_snapshot_id"
"""The columns that tell a change, as Iceberg names them."""
INSERT = "INSERT"
DELETE = "DELETE"
UPDATE_BEFORE = "UPDATE_BEFORE"
UPDATE_AFTER = "UPDATE_AFTER"
SEEN_AT = "__SEEN_AT"
"""Beside the keys of a source that forgets which it has seen: the beginning of the epoch that brought the row."""
QUARANTINE = "__quarantine"
DRAFT = ".draft"
"""How the name of a small file ends that is being written; if its writer died it stays, and nobody reads it."""
EPOCH_TIME = "_firnline_epoch_time"
"""Logical time, as a column of a plan and as a collection of one row that changes at every epoch."""

_NO_BRANCHES = ("main", "views", "tables", "branch", "feeds", "sinks", "maintenance")
"""What ``PIPELINE__`` goes on with for other things than branches."""
_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_LONGEST = 63


def is_name(text: str) -> bool:
    """Whether a user may give this name to a pipeline or collection.

    >>> [is_name(name) for name in ("revenue_by_ip", "Revenue", "a__b", "_frontier", "x; drop table y")]
    [True, False, False, False, False]
    """
    return len(text) <= _LONGEST and _NAME.fullmatch(text) is not None


def check_name(kind: str, text: object, where: Location | None = None) -> str:
    """The name itself, or a refusal."""
    if not isinstance(text, str) or not is_name(text):
        raise FirnlineError("BAD_NAME", f"{text!r} cannot name a {kind}", where)
    return text


def place(pipeline: str, name: str) -> tuple[str, str]:
    """The pipeline and the collection that a name means, as a pipeline uses it.

    >>> place("daily", "report"), place("daily", "web.visits")
    (('daily', 'report'), ('web', 'visits'))
    """
    other, dot, collection = name.partition(".")
    return (other, collection) if dot else (pipeline, name)


def collection_of(log: str) -> str:
    """The collection that a log is of, or is kept beside.

    >>> [collection_of(log) for log in ("visits", "visits__quarantine", "visits_by_ip")]
    ['visits', 'visits', 'visits_by_ip']
    """
    return log.partition("__")[0]


def logs_beside(collection: str, there: Iterable[str]) -> list[str]:
    """The logs among those that are there that are kept beside a collection's own."""
    return sorted(log for log in there if collection_of(log) == collection != log)


def logs_of(collections: Iterable[str], there: Collection[str]) -> list[str]:
    """The logs of some collections among those that are there, each after those that are kept beside it.

    >>> logs_of(["visits", "costs"], {"visits", "visits__ab12", "visits_by_ip", "visits__quarantine"})
    ['visits__ab12', 'visits__quarantine', 'visits']
    """
    return [log for each in collections for log in (*logs_beside(each, there), each) if log in there]


def instead(name: str, known: Iterable[str]) -> str:
    """What to say of a name that is not known: which ones it may stand for, or all that there are.

    >>> instead("vists", ["pages", "visits"]), instead("x", ["pages", "visits"]), instead("x", [])
    ("; nearest: 'visits'", '; there are: pages, visits', '')
    """
    names = sorted(known)
    if near := get_close_matches(name, names):
        return f"; nearest: {', '.join(map(repr, near))}"
    return f"; there are: {', '.join(names)}" if names else ""


def branch_space(pipeline: str, branch: str) -> str:
    """The name under which a branch's collections are: as a pipeline of its own would have it.

    >>> branch_space("web", "new_rank")
    'web__new_rank'
    """
    return f"{pipeline}__{branch}"


def parted(space: str) -> tuple[str, str | None]:
    """The pipeline and, where collections are a branch's, the branch.

    >>> [parted(space) for space in ("web", "web__new_rank", "web__views")]
    [('web', None), ('web', 'new_rank'), ('web__views', None)]
    """
    pipeline, _, branch = space.partition("__")
    return (pipeline, branch) if branch and is_branch_name(branch) else (space, None)


def is_branch_name(text: str) -> bool:
    """Whether a branch may have this name."""
    return is_name(text) and text not in _NO_BRANCHES


def is_reserved(column: str) -> bool:
    """Whether a column name is kept for the log.

    >>> is_reserved("_diff"), is_reserved("_firnline_file"), is_reserved("_id")
    (True, True, False)
    """
    return column.lower() in BOOKKEEPING or column.lower().startswith("_firnline")


def quoted(*parts: str) -> str:
    """A quoted SQL identifier.

    >>> quoted("lake", "web", "odd`name")
    '`lake`.`web`.`odd``name`'
    """
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def floating(types: Mapping[str, str]) -> frozenset[str]:
    """The columns that hold floating numbers, be it deep inside.

    >>> sorted(floating({"a": "int", "b": "double", "c": "struct<x:array<float>>"}))
    ['b', 'c']
    """
    return frozenset(name for name, kind in types.items() if "float" in kind or "double" in kind)
