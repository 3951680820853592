"""Places beside the warehouse that hold copies of its files, through fsspec."""

from firnline.replicas.place import Place

__all__ = ["Place"]
