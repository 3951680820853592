from __future__ import annotations

from threading import Event
from time import sleep

import pytest

from firnline.web.answers import Answers


def ended(answers: Answers[str]) -> None:
    """Wait until nothing is being made, without asking for it."""
    while answers._making:
        sleep(0.001)


def test_who_asks_again_gets_the_last_answer_while_a_new_one_is_made() -> None:
    answers, slow = Answers[str](), Event()
    assert answers.ask("q", lambda: "first") == "first"
    assert answers.ask("q", lambda: "second" if slow.wait(30) else "never", 0.01) == "first"
    assert answers.ask("q", lambda: "third", 0.01) == "first"  # the second is still being made, and no third is begun
    slow.set()
    ended(answers)
    assert answers.ask("q", lambda: "third") == "third", "the second is of before"


def test_without_a_last_answer_nothing_is_told() -> None:
    answers, slow = Answers[str](), Event()
    assert answers.ask("q", lambda: "late" if slow.wait(30) else "never", 0.01) is None
    assert answers.ask("other", lambda: "now") == "now"
    slow.set()
    ended(answers)
    assert answers.ask("q", lambda: "new") == "new"


def test_an_error_is_told_and_not_kept() -> None:
    answers = Answers[str]()

    def fail() -> str:
        raise ValueError("no")

    for error in (fail, fail):
        with pytest.raises(ValueError, match="no"):
            answers.ask("q", error)
    assert answers.ask("q", lambda: "well") == "well"


def test_an_error_that_nobody_waited_for_is_not_told_later() -> None:
    answers, slow = Answers[str](), Event()

    def fail() -> str:
        slow.wait(30)
        raise ValueError("no")

    assert answers.ask("q", fail, 0.01) is None
    slow.set()
    ended(answers)
    assert answers.ask("q", lambda: "well") == "well"


def test_who_asks_after_a_change_gets_nothing_that_was_begun_before_it() -> None:
    answers, slow = Answers[str](), Event()
    assert answers.ask("q", lambda: "before") == "before"
    assert answers.ask("q", lambda: "old" if slow.wait(30) else "never", 0.01) == "before"
    answers.forget("q")
    assert answers.ask("q", lambda: "new") == "new"
    slow.set()
    answers._workers.shutdown()
    assert answers._last == {"q": "new"}


def test_a_timeout_of_the_answer_itself_is_an_error() -> None:
    def late() -> str:
        raise TimeoutError("the catalog")

    with pytest.raises(TimeoutError, match="the catalog"):
        Answers[str]().ask("q", late)
