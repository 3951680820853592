"""How long a task waits before it is tried again depends on what went wrong."""

from __future__ import annotations

from datetime import timedelta

import pytest
from airflow.sdk import BaseOperator
from airflow.sdk.definitions.retry_policy import RetryAction

from firnline.airflow.retrying import FIRST, MOST, ByCode
from firnline.errors import CODES


def delay(message: str, attempt: int) -> timedelta | None:
    return ByCode().evaluate(RuntimeError(message), attempt, 5).retry_delay


def test_only_codes_that_a_retry_can_help_have_a_delay() -> None:
    assert all(CODES[code].retryable for code in FIRST)


@pytest.mark.parametrize("code", sorted(FIRST))
def test_each_further_try_waits_twice_as_long_up_to_the_most(code: str) -> None:
    delays = [delay(f"visits at 2026-01-01: {code}: something. Do something.", attempt) for attempt in range(1, 20)]
    assert delays[0] == FIRST[code]
    assert delays[1] == 2 * FIRST[code]
    assert delays[-1] == MOST


def test_the_tries_before_a_clear_do_not_count() -> None:
    context = {"task": BaseOperator(task_id="visits", retries=5)}
    for cleared in (0, 6, 60):
        decision = ByCode().evaluate(RuntimeError("MISSING_FILE: none."), cleared + 2, cleared + 5, context)
        assert decision.retry_delay == 2 * FIRST["MISSING_FILE"]
    assert delay("MISSING_FILE: none.", 5000) == MOST


def test_a_lost_race_is_tried_again_sooner_than_a_late_file() -> None:
    assert delay("COMMIT_CONTENDED: others won.", 1) < delay("MISSING_FILE: none.", 1)  # type: ignore[operator]


def test_what_has_no_code_is_left_to_airflow() -> None:
    assert ByCode().evaluate(ValueError("no code: here"), 1, 5).action is RetryAction.DEFAULT
