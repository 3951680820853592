"""Answers that are dear to make and hang on a state: one JSON file each, the newest state's only."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any


def recall(folder: Path, name: str, state: str) -> Any:
    """The answer that was kept for a state; None if there is none that can be read."""
    try:
        return json.loads(_file(folder, name, state).read_text())
    except (OSError, ValueError):
        return None


def keep(folder: Path, name: str, state: str, answer: Any) -> None:
    """Keep an answer in place of those for other states, if there is room for it."""
    file = _file(folder, name, state)
    draft = file.with_suffix(f".{os.getpid()}")
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        draft.write_text(json.dumps(answer))
        draft.replace(file)
        for outdated in {*folder.glob(f"{name}-*.json")} - {file}:
            outdated.unlink(missing_ok=True)


def _file(folder: Path, name: str, state: str) -> Path:
    return folder / f"{name}-{state}.json"
