"""The Spark and the projects of ``tests/spark``, for processes that are made to fail."""

from tests.spark.conftest import lake, project, pytest_collection_modifyitems, spark

__all__ = ["lake", "project", "pytest_collection_modifyitems", "spark"]
