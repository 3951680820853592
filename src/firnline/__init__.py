"""Ordinary PySpark in; incremental, rewindable, self-healing Iceberg tables out."""

from firnline.errors import FirnlineError
from firnline.model.declaration import Pipeline

__all__ = ["FirnlineError", "Pipeline"]
