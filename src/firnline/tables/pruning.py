"""Small files about epochs that nobody asks for any more: ``FOLDER/COLLECTION/EPOCH...``, below a collection's since."""

from __future__ import annotations

from collections.abc import Mapping

from firnline.tables.port import Tables
from firnline.tables.trash import file_key


def prunable(tables: Tables, folder: str, sinces: Mapping[str, int]) -> list[str]:
    """The files of epochs below the since of their collection."""
    start = f"{file_key(folder)}/"
    return [path for path in tables.paths(folder) if _is_below(file_key(path).removeprefix(start), sinces)]


def _is_below(inner: str, sinces: Mapping[str, int]) -> bool:
    collection, _, rest = inner.partition("/")
    epoch = rest.partition("/")[0].partition(".")[0]
    return collection in sinces and epoch.lstrip("-").isdigit() and int(epoch) < sinces[collection]
