"""One Spark for all tests of this folder; each test has a project of its own, which the session's catalog is pointed at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql.connect.session import SparkSession

from firnline.engine.session import opened
from firnline.runtime.project import Project
from tests.project import copy_amplab, make_project


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, SparkSession]]:
    """A session whose catalog and warehouse are in a folder that every test's project shares."""
    root = tmp_path_factory.mktemp("lake")
    project = make_project(root)
    quick = {"spark_master": "local[2]", "spark_shuffle_partitions": 2, "spark_java_options": "-XX:TieredStopAtLevel=1"}
    small = project.settings.model_copy(update=quick)
    with opened(small, "tests") as session:
        yield project.settings.work, session


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
