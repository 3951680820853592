"""Libraries that tell of their own doings, where people look for ours."""

from __future__ import annotations

import logging

_CHATTY = ("alembic", "py4j", "pyiceberg", "pyspark")


def hush() -> None:
    """Let them say warnings and errors only."""
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)
