"""Ordinary PySpark in; incremental, rewindable, self-healing Iceberg tables out."""

from firnline.errors import FirnlineError
from firnline.model.check import check
from firnline.model.declaration import Pipeline
from firnline.model.loss import Loss
from firnline.runtime.changes import Changes, changes
from firnline.runtime.gaps import completeness
from firnline.runtime.iterate import iterate
from firnline.runtime.logical_time import epoch_time
from firnline.runtime.read import read
from firnline.runtime.reader import Reader, reader
from firnline.runtime.scan import Scan, scan

__all__ = [
    "Changes",
    "FirnlineError",
    "Loss",
    "Pipeline",
    "Reader",
    "Scan",
    "changes",
    "check",
    "completeness",
    "epoch_time",
    "iterate",
    "read",
    "reader",
    "scan",
]
