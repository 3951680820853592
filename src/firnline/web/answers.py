"""The last answers, for those who should not wait: after a change of code a new one takes seconds, to compile the pipeline.

Of several who ask the same at once, one makes the answer. Who asks again waits a moment for a new one, and gets the last one
while that is made.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")

PATIENCE = 0.5
"""Seconds; an answer usually takes a tenth of that."""


class Answers(Generic[T]):
    """The last answer to each question; few questions, by name."""

    def __init__(self) -> None:
        self._workers = ThreadPoolExecutor(4, "firnline-page")
        self._lock = Lock()
        self._last: dict[str, T] = {}
        self._making: dict[str, Future[T]] = {}

    def ask(self, question: str, make: Callable[[], T], patience: float = PATIENCE) -> T | None:
        """The answer, the last one if a new one takes longer than a moment, or None if there is no last one either."""
        with self._lock:
            making = self._making.get(question) or self._begun(question, make)
        try:
            return making.result(patience)
        except TimeoutError as error:
            if making.done() and making.exception() is error:
                raise  # it is the answer
            return self._last.get(question)

    def forget(self, question: str) -> None:
        """Let the next who asks get an answer that is begun from now on."""
        with self._lock:
            self._making.pop(question, None)
            self._last.pop(question, None)

    def _begun(self, question: str, make: Callable[[], T]) -> Future[T]:
        """One that ends before anybody is told, so that who asks later begins a new one; once forgotten, it leaves nothing."""

        def made() -> T:
            found: dict[str, T] = {}
            try:
                found[question] = make()
                return found[question]
            finally:
                with self._lock:  # whoever began it has it until it is noted
                    if self._making.get(question) is making:
                        del self._making[question]
                        self._last.update(found)

        making = self._making[question] = self._workers.submit(made)
        return making
