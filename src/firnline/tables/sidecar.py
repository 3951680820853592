"""Sidecars: one JSON file beside each snapshot with what is too long for its summary.

It holds the digest of every (epoch, part), the lineage of the snapshot and the data files it brought. The summary names its path.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from firnline.model.digest import Digest
from firnline.model.fingerprint import Fingerprint
from firnline.model.outline import Outline
from firnline.model.stored_file import StoredFile

VERSION = 5
_VERSION_1: Mapping[str, Any] = MappingProxyType({"rows": 0, "parts": "all"})
"""What version 1 did not say of an input."""


@dataclass(frozen=True, slots=True)
class Input:
    """A collection as a stage read it: complete up to ``upper`` in ``generation``, through ``snapshot``."""

    generation: int
    upper: int
    snapshot: int
    rows: int
    """How many changed rows of [lower, upper) it gave."""
    parts: Literal["same", "all"]
    """Whether part p of the output needs part p of it only, or all of its parts."""


@dataclass(frozen=True, slots=True)
class Sidecar:
    """What one attempt published, or merged: where it came from and what it holds."""

    collection: str
    lower: int
    upper: int
    attempt: str
    fingerprint: Fingerprint
    inputs: Mapping[str, Input]
    digests: Mapping[tuple[int, int], Digest]
    """By (epoch, part); parts without a change are left out."""
    seconds: float
    determinants: Mapping[str, Any] = field(default_factory=dict)
    """What was taken from the outside, by name."""
    files: tuple[StoredFile, ...] | None = None
    """The data files of the snapshot; None in versions before 3, which did not tell."""
    merged: tuple[str, ...] = ()
    """Of a merge: the attempts whose layers it stands for, the newest first."""
    out: tuple[str, ...] = ()
    """Of a merge: the data files that are not named any more."""
    left: tuple[str, ...] = ()
    """The manifest lists of the staging that it took over: nobody names them any more."""
    parts: int | None = None
    """How many parts its rows were placed into; None if that is not known."""
    generation: int = 0
    """The log's, that it was published in; versions before 5 did not tell."""

    def total(self) -> Digest:
        """The digest of the whole snapshot."""
        return sum(self.digests.values(), Digest())

    def as_json(self) -> bytes:
        """The file's content; an attempt writes its sidecar to a path of its own, and never changes it afterwards."""
        digests = [{"epoch": epoch, "part": part, **asdict(digest)} for (epoch, part), digest in self.digests.items()]
        inputs = {name: asdict(entry) for name, entry in self.inputs.items()}
        document = {
            "version": VERSION,
            "collection": self.collection,
            "lower": self.lower,
            "upper": self.upper,
            "attempt": self.attempt,
            "fingerprint": self.fingerprint.code,
            "plan": self.fingerprint.plan,
            **({"outline": outline.as_json()} if (outline := self.fingerprint.outline) else {}),
            "inputs": inputs,
            "digests": digests,
            "seconds": round(self.seconds, 3),
            "determinants": dict(self.determinants),
            "files": None if self.files is None else [asdict(file) for file in self.files],
            **({"merged": self.merged, "out": self.out} if self.merged else {}),
            "left": self.left,
            "parts": self.parts,
            "generation": self.generation,
        }
        return json.dumps(document).encode()

    @classmethod
    def of_json(cls, content: bytes) -> Sidecar:
        """Read ``as_json`` back."""
        data: dict[str, Any] = json.loads(content)
        digests = {
            (entry["epoch"], entry["part"]): Digest(entry["rows"], entry["weight"], entry["first"], entry["second"])
            for entry in data["digests"]
        }
        outline = data.get("outline")
        inputs = {name: Input(**{**_VERSION_1, **entry}) for name, entry in data["inputs"].items()}
        return cls(
            data["collection"],
            data["lower"],
            data["upper"],
            data["attempt"],
            Fingerprint(data["fingerprint"], data.get("plan"), Outline.of_json(outline) if outline else None),
            inputs,
            digests,
            data["seconds"],
            data.get("determinants", {}),
            _files(data.get("files")),
            tuple(data.get("merged", ())),
            tuple(data.get("out", ())),
            tuple(data.get("left", ())),
            data.get("parts"),
            data.get("generation", 0),
        )


@dataclass(frozen=True, slots=True)
class Repair:
    """What a repair, or a rescale, did to a log, written beside its snapshot."""

    collection: str
    attempt: str
    cells: tuple[tuple[int, int], ...]
    """The (epoch, part) whose rows were made anew."""
    out: tuple[str, ...]
    """The data files that are not named any more."""
    files: tuple[StoredFile, ...]
    """Those that are named instead, and those whose manifest was lost."""
    rows_lost: int
    rows_recomputed: int
    seconds: float
    gap: str = ""
    """The gap that it opened, if it took rows out and put none in their place."""
    left: tuple[str, ...] = ()
    """The manifest lists of the staging that it took over: nobody names them any more."""
    parts: int | None = None
    """Of a rescale: how many parts there are from then on."""
    recut: tuple[str, ...] = ()
    """Of a rescale: where it is written down anew what the layers brought."""

    def as_json(self) -> bytes:
        """The file's content."""
        return json.dumps({"version": VERSION, "kind": "repair" if self.parts is None else "rescale", **asdict(self)}).encode()

    @classmethod
    def of_json(cls, content: bytes) -> Repair:
        """Read ``as_json`` back."""
        data: dict[str, Any] = json.loads(content)
        return cls(
            data["collection"],
            data["attempt"],
            tuple((epoch, part) for epoch, part in data["cells"]),
            tuple(data["out"]),
            _files(data["files"]) or (),
            data["rows_lost"],
            data["rows_recomputed"],
            data["seconds"],
            data.get("gap", ""),
            tuple(data.get("left", ())),
            data.get("parts"),
            tuple(data.get("recut", ())),
        )


def _files(listed: list[dict[str, Any]] | None) -> tuple[StoredFile, ...] | None:
    return None if listed is None else tuple(StoredFile(**entry) for entry in listed)
