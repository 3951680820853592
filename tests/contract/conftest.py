"""Catalogs to run one and the same test on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from firnline.tables.catalog import Catalog
from firnline.tables.port import Tables
from tests.simulation.memory import MemoryTables


@pytest.fixture(params=["sqlite", "postgresql", "rest"])
def iceberg(request: pytest.FixtureRequest, tmp_path: Path) -> Catalog:
    """A real catalog."""
    return _catalog(request.param, request, tmp_path)


@pytest.fixture(params=["sqlite", "postgresql", "rest", "memory"])
def tables(request: pytest.FixtureRequest, tmp_path: Path) -> Tables:
    """Every implementation of the port."""
    return MemoryTables() if request.param == "memory" else _catalog(request.param, request, tmp_path)


def _catalog(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Catalog:
    if kind == "sqlite":
        return Catalog(f"sqlite:///{tmp_path}/catalog.db", f"file://{tmp_path}/warehouse")
    new: Callable[[], str] = request.getfixturevalue({"postgresql": "postgres_uri", "rest": "rest_uri"}[kind])
    return Catalog(new(), f"file://{tmp_path}/warehouse")
