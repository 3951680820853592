"""The stash: publications on their way to the ledger, one small file each in a folder of the local disk.

A file appears whole or not at all, and goes when somebody carried it to the ledger. Whatever happens to it, nothing is lost: the
logs hold the same, and carrying it twice leaves one entry.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from firnline.ledger.entry import Input, Part, Publication

_DRAFT = ".draft"
_MOST = 1000
"""Files in one batch."""
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Line:
    """A publication with its lineage, as the ledger takes it."""

    publication: Publication
    inputs: tuple[Input, ...]
    parts: tuple[Part, ...]

    def as_json(self) -> str:
        """One JSON document."""
        document = asdict(self)
        document["publication"]["published_at"] = self.publication.published_at.isoformat()
        return json.dumps(document)

    @classmethod
    def of_json(cls, text: str) -> Line:
        """Read ``as_json`` back."""
        data: dict[str, Any] = json.loads(text)
        publication = data["publication"]
        moment = datetime.fromisoformat(publication["published_at"])
        return cls(
            Publication(**{**publication, "published_at": moment}),
            tuple(Input(**each) for each in data["inputs"]),
            tuple(Part(**each) for each in data["parts"]),
        )


class Stash:
    """The stash of one machine, shared by its processes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, line: Line) -> None:
        """Keep a line until it is removed.

        Raises:
            OSError: The disk does not take it.
        """
        of = line.publication
        file = self._folder / (quote(f"{of.pipeline}.{of.collection}.{of.attempt}", safe="") + ".json")
        draft = file.with_suffix(f".{os.getpid()}{_DRAFT}")
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            draft.write_text(line.as_json())
            draft.replace(file)
        except OSError:
            draft.unlink(missing_ok=True)
            raise

    def files(self) -> list[Path]:
        """The files of all lines."""
        return sorted(self._folder.glob("*.json"))

    def batch(self) -> dict[Path, Line]:
        """Some of the lines, by their files; a file that is no line is dropped, as the logs have what it should say."""
        found = {}
        for file in self.files()[:_MOST]:
            try:
                found[file] = Line.of_json(file.read_text())
            except FileNotFoundError:
                continue  # somebody else carried it
            except (ValueError, KeyError, TypeError) as error:
                _logger.warning("%s in the stash is broken and dropped: %s", file.name, error)
                file.unlink(missing_ok=True)
        return found

    def remove(self, files: Iterable[Path]) -> None:
        """Forget lines that the ledger has."""
        for file in files:
            file.unlink(missing_ok=True)
