"""Sidecars: one JSON file beside each snapshot with what is too long for its summary.

It holds the digest of every (epoch, part) and the lineage of the snapshot. The summary names its path.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from firnline.model.digest import Digest
from firnline.model.fingerprint import Fingerprint

VERSION = 2
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
    """What one attempt published: where it came from and what it holds."""

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
            "inputs": inputs,
            "digests": digests,
            "seconds": round(self.seconds, 3),
            "determinants": dict(self.determinants),
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
        inputs = {name: Input(**{**_VERSION_1, **entry}) for name, entry in data["inputs"].items()}
        return cls(
            data["collection"],
            data["lower"],
            data["upper"],
            data["attempt"],
            Fingerprint(data["fingerprint"], data.get("plan")),
            inputs,
            digests,
            data["seconds"],
            data.get("determinants", {}),
        )
