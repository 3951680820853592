"""What a user's function makes of a moment without a zone is the same on every machine, whoever else runs beside it."""

from __future__ import annotations

import threading
from datetime import datetime

import pytest

from firnline.engine.zone import in_utc

NOON = datetime(2026, 1, 1, 12)


@pytest.mark.usefixtures("far_away")
def test_it_is_utc_until_the_last_one_is_outside():
    began, ended = threading.Event(), threading.Event()
    found = []

    def other() -> None:
        with in_utc():
            began.set()
            ended.wait(10)
            found.append(NOON.timestamp())

    here = NOON.timestamp()
    thread = threading.Thread(target=other)
    with in_utc():
        thread.start()
        assert began.wait(10)
        assert NOON.timestamp() == here - 5 * 3600
    ended.set()
    thread.join(10)
    assert found == [here - 5 * 3600]
    assert NOON.timestamp() == here
