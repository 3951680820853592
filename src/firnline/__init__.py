"""Ordinary PySpark in; incremental, rewindable, self-healing Iceberg tables out."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from firnline.errors import FirnlineError
from firnline.model.check import check
from firnline.model.declaration import Pipeline, collection
from firnline.model.loss import Loss

if TYPE_CHECKING:
    from firnline.runtime.changes import Changes, changes
    from firnline.runtime.gaps import completeness
    from firnline.runtime.iterate import iterate
    from firnline.runtime.logical_time import epoch_time
    from firnline.runtime.read import read
    from firnline.runtime.reader import Reader, reader
    from firnline.runtime.scan import Scan, scan
    from firnline.runtime.targets import to_files, to_postgres

__all__ = [
    "Changes",
    "FirnlineError",
    "Loss",
    "Pipeline",
    "Reader",
    "Scan",
    "changes",
    "check",
    "collection",
    "completeness",
    "epoch_time",
    "iterate",
    "read",
    "reader",
    "scan",
    "to_files",
    "to_postgres",
]

_LATE = {
    "Changes": "changes",
    "Reader": "reader",
    "Scan": "scan",
    "changes": "changes",
    "completeness": "gaps",
    "epoch_time": "logical_time",
    "iterate": "iterate",
    "read": "read",
    "reader": "reader",
    "scan": "scan",
    "to_files": "targets",
    "to_postgres": "targets",
}
"""Names and their modules in ``runtime``, imported when first used: a DAG file that only names a pipeline is parsed without."""


def __getattr__(name: str) -> Any:
    if name in _LATE:
        return getattr(import_module(f"firnline.runtime.{_LATE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
