"""Airflow says when; the log says what is already done. A DAG file needs one function of this package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from firnline.airflow.assets import collection_asset
    from firnline.airflow.dag import branch_dag, maintenance_dag, pipeline_dag, repair_dag, replicate_dag

__all__ = ["branch_dag", "collection_asset", "maintenance_dag", "pipeline_dag", "repair_dag", "replicate_dag"]


def __getattr__(name: str) -> Any:
    if name in __all__:  # importing Airflow takes seconds, and the server and its client do without
        from firnline.airflow import assets, dag

        return getattr(assets if name == "collection_asset" else dag, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
