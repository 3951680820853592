"""Airflow says when; the log says what is already done. A DAG file needs ``pipeline_dag`` and nothing else from here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from firnline.airflow.dag import pipeline_dag

__all__ = ["pipeline_dag"]


def __getattr__(name: str) -> Any:
    if name == "pipeline_dag":  # importing Airflow takes seconds, and the server and its client do without
        from firnline.airflow.dag import pipeline_dag

        return pipeline_dag
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
