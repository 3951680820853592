"""Damage done to a log on purpose, and what verifying it finds."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from firnline.plan.verification import DataFile, Holding, Problem
from firnline.runtime.project import Project
from firnline.runtime.verify import Verified
from firnline.tables.inventory import inventory


def taken(project: Project, pipeline: str, collection: str) -> Holding:
    return inventory(project.catalog, pipeline, collection)


def data_file(log: Holding, epoch: int, part: int) -> DataFile:
    """The one data file of an (epoch, part)."""
    files = [data for revision in log.revisions for manifest in revision.manifests or () for data in manifest.data]
    (found,) = (data for data in files if data.first == epoch and data.part == part)
    return found


def local(path: str) -> Path:
    return Path(urlsplit(path).path)


@contextmanager
def undone(project: Project, pipeline: str, aside: Path) -> Iterator[None]:
    """What becomes of a pipeline's files, and of the catalog, inside is undone after it; ``aside`` keeps copies."""
    folder, catalog = local(project.settings.warehouse) / pipeline, project.settings.work / "catalog.db"
    kept = shutil.copytree(folder, aside / "kept")
    _copy_database(catalog, aside / "catalog.db")
    yield
    shutil.rmtree(folder)
    shutil.copytree(kept, folder)
    _copy_database(aside / "catalog.db", catalog)


def _copy_database(source: Path, target: Path) -> None:
    """By SQLite itself: whoever has the target open, as Spark has the catalog, would not notice another file's content."""
    with closing(sqlite3.connect(source)) as one, closing(sqlite3.connect(target)) as other:
        one.backup(other)


def cut(path: Path, by: int = 100) -> None:
    path.write_bytes(path.read_bytes()[:-by])
    forget_checksum(path)


def flip(path: Path, at: int | None = None) -> None:
    """Flip the bits of a byte, of that in the middle by default."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2 if at is None else at] ^= 0xFF
    path.write_bytes(content)
    forget_checksum(path)


def forget_checksum(path: Path) -> None:
    """Remove what Hadoop's local filesystem would find the damage by."""
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def told(problem: Problem) -> tuple[str, str, tuple[int, ...], tuple[int, ...]]:
    return problem.collection, problem.kind, problem.epochs, problem.parts


def all_told(found: Verified) -> list[tuple[str, str, tuple[int, ...], tuple[int, ...]]]:
    return [told(problem) for problem in found.problems]
