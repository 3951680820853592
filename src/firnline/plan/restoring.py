"""Which lost or damaged files of a log a replica brings back, under their own names, byte for byte.

Whatever is not rows comes first: only then is it known which rows there should be. A data file comes back only if all that is
lost of its (epoch, part) does, since digests are those of a whole (epoch, part); otherwise the rows are computed again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import product

from firnline.model.gap import Cell
from firnline.model.replica import Copy
from firnline.plan.verification import DataFile, Holding, Problem, covers, data_of

Copies = Mapping[str, Copy]
"""Copies of files, by the paths that the log names them by."""


def lost_files(damage: Sequence[Problem]) -> list[str]:
    """The files that are lost or damaged and are not rows."""
    return list(dict.fromkeys(each.file for each in damage if each.about != "data" and each.file is not None))


def damaged_data(log: Holding, damage: Sequence[Problem]) -> list[DataFile]:
    """The data files that are lost or damaged, or may be: of altered rows only the (epoch, part) is known."""
    altered = set(_cells(each for each in damage if each.about == "data" and each.kind != "inconsistent"))
    data = [each for _, each in data_of(log)]
    return [each for each in data if _is_damaged(each) or any(covers(each, cell) for cell in altered)]


def restorable(log: Holding, damage: Sequence[Problem], copies: Copies) -> tuple[tuple[str, ...], tuple[Cell, ...]]:
    """The files to bring back next, and the (epoch, part) of their rows."""
    others = tuple(path for path in lost_files(damage) if path in copies)
    if others:
        return others, ()
    if lost_files([each for each in damage if each.about != "past"]):
        return (), ()  # what holds which rows is not known yet
    damaged = [each for each in damaged_data(log, damage) if _is_damaged(each) or each.file.path in copies]
    every, found = log.cells(), [each for each in damaged if each.file.path in copies]
    while True:
        lost = [each for each in damaged if each not in found]
        apart = [each for each in found if not _shares(each, lost, every)]
        if apart == found:
            break
        found = apart
    cells = tuple(cell for cell in every if any(covers(each, cell) for each in found))
    return tuple(each.file.path for each in found), cells


def not_as_published(log: Holding, wrong: Collection[Cell], coming: Collection[str]) -> tuple[set[str], set[str]]:
    """The files on their way back that are bad, and those that may be: of these a file that was never lost holds rows, too."""
    held = [each for _, each in data_of(log)]
    shared = {cell for cell in wrong if any(covers(each, cell) for each in held if each.file.path not in coming)}
    touched = {each.file.path: {cell for cell in wrong if covers(each, cell)} for each in held if each.file.path in coming}
    bad = {path for path, cells in touched.items() if cells - shared}
    return bad, {path for path, cells in touched.items() if cells} - bad


def left(damage: Sequence[Problem], paths: Collection[str], cells: Collection[Cell]) -> list[Problem]:
    """The problems that are left once some data files are back."""
    return [
        each
        for each in damage
        if each.about != "data"
        or not (each.file in paths or (each.epochs and set(product(each.epochs, each.parts)) <= set(cells)))
    ]


def _is_damaged(data: DataFile) -> bool:
    return not data.file.is_sound() or data.found not in (None, data.rows)


def _shares(data: DataFile, lost: Sequence[DataFile], cells: Sequence[Cell]) -> bool:
    """Whether rows of an (epoch, part) of a file are in a file that stays lost, too."""
    own = [cell for cell in cells if covers(data, cell)]
    return any(covers(each, cell) for each in lost for cell in own)


def _cells(problems: Iterator[Problem]) -> Iterator[Cell]:
    for each in problems:
        yield from product(each.epochs, each.parts)
