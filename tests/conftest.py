"""Hypothesis for a shared machine, and one Spark per process for all tests that need one.

Each test on Spark has a project of its own, which the session's catalog is pointed at.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.postgresql import postgres_port, postgres_server, postgres_uri
from tests.project import copy_amplab, make_project
from tests.rest_catalog import rest_uri

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

    from firnline.runtime.project import Project

settings.register_profile("firnline", deadline=None, suppress_health_check=[HealthCheck.too_slow])  # no clock decides
settings.register_profile("nightly", settings.get_profile("firnline"), max_examples=2000)
settings.load_profile("firnline")

__all__ = ["postgres_port", "postgres_server", "postgres_uri", "rest_uri"]

ON_SPARK = ("spark", "faults", "cluster")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if any(here / folder in item.path.parents for folder in ON_SPARK):
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, SparkSession]:
    """The session of ``firnline.testing``; its catalog and warehouse are in a folder that every test's project shares."""
    from firnline.testing.lake import lake

    shared = lake(make_project(tmp_path_factory.mktemp("lake")).settings.root)
    return shared.work, shared.session


@pytest.fixture(scope="session")
def spark(lake: tuple[Path, SparkSession]) -> SparkSession:
    return lake[1]


@pytest.fixture
def project(lake: tuple[Path, SparkSession], tmp_path: Path) -> Callable[..., Project]:
    """Make a project on the shared catalog; give every pipeline a name of its own."""
    return lambda settings="", **pipelines: make_project(tmp_path, f'work = "{lake[0]}"\n' + settings, **pipelines)


@pytest.fixture
def amplab(lake: tuple[Path, SparkSession], tmp_path: Path) -> Project:
    copy_amplab(tmp_path)
    return make_project(tmp_path, f'work = "{lake[0]}"\n')


@pytest.fixture
def far_away(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whoever asks lives in another time zone."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "America/New_York")
        time.tzset()
        yield
    time.tzset()
