"""One attempt at one commit.

PyIceberg retries a failed commit and re-parents it blindly, so that two publishers that both looked first would both commit. Here
a commit is tried once, onto the very head that was looked at; whoever calls must reload and look again after any failure, because
everything but a definite conflict leaves the outcome unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from pyiceberg.manifest import DataFile
from pyiceberg.table import Table
from pyiceberg.table.update.snapshot import ExpireSnapshots
from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_random_exponential

from firnline.errors import FirnlineError

T = TypeVar("T")

_RETRIES = "commit.retry.num-retries"
_PATIENCE_SECONDS = 60


def until_known(what: str, attempt: Callable[[], T | None]) -> T:
    """Look and try again until an attempt knows its outcome (anything but None), for a bounded time."""
    retrying = Retrying(
        retry=retry_if_result(lambda outcome: outcome is None),
        wait=wait_random_exponential(multiplier=0.05, max=2),
        stop=stop_after_delay(_PATIENCE_SECONDS),
    )
    try:
        outcome = retrying(attempt)
    except RetryError:
        raise FirnlineError("COMMIT_CONTENDED", f"{what} could not be committed in {_PATIENCE_SECONDS} s") from None
    assert outcome is not None
    return outcome


def commit_once(table: Table, files: Sequence[DataFile], drop: Sequence[int], summary: Mapping[str, str]) -> int:
    """Append files and drop staged snapshots in one transaction; the new snapshot's id.

    The table must be freshly loaded: its current snapshot is the one the commit is bound to.
    """
    table.metadata.properties[_RETRIES] = "0"  # in memory only: the commit itself starts from the catalog's own copy
    with table.transaction() as transaction:
        with transaction.update_snapshot(snapshot_properties=dict(summary)).fast_append() as append:
            for file in files:
                append.append_data_file(file)
            snapshot = append.snapshot_id
        if drop:
            ExpireSnapshots(transaction).by_ids(list(drop)).commit()
    return snapshot


def drop_once(table: Table, drop: Sequence[int]) -> None:
    """Drop staged snapshots, leaving the main line as it is."""
    table.metadata.properties[_RETRIES] = "0"
    with table.transaction() as transaction:
        ExpireSnapshots(transaction).by_ids(list(drop)).commit()
