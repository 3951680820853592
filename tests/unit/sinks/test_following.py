"""What is to be written follows from the mark of a table alone."""

from __future__ import annotations

import pytest

from firnline.sinks.following import Mark

MARK = Mark("web.visits 1f k, v true", 5, 100)


@pytest.mark.parametrize(
    ("goal", "is_reached"),
    [
        (Mark("web.visits 1f k, v true", 5, 100), True),
        (Mark("web.visits 1f k, v true", 5, 110), False),
        (Mark("web.visits 1f k, v true", 4, 110), True),  # a zombie
        (Mark("web.visits 1f k, v true", 6, 90), False),
        (Mark("web.visits 1f k true", 5, 100), False),
        (Mark("web.visits 1f k true", 4, 100), True),  # a zombie with older code
        (Mark("web.pages 1f k, v true", 0, 200), False),  # another collection
        (Mark("web.visits 2e k, v true", 0, 50), False),  # its log was made anew
        (Mark("web.visits k, v true", 5, 100), False),
    ],
)
def test_nothing_is_to_be_done_only_where_the_same_log_is_followed(goal: Mark, is_reached: bool) -> None:
    assert MARK.is_reached(goal) is is_reached
