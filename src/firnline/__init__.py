"""Ordinary PySpark in; incremental, rewindable, self-healing Iceberg tables out."""

from firnline.errors import FirnlineError
from firnline.model.check import check
from firnline.model.declaration import Pipeline
from firnline.runtime.iterate import iterate
from firnline.runtime.logical_time import epoch_time
from firnline.runtime.read import read

__all__ = ["FirnlineError", "Pipeline", "check", "epoch_time", "iterate", "read"]
