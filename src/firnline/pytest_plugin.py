"""Firnline for pytest: fixtures, and cases written in YAML as tests. Loads nothing until a test asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from firnline.errors import FirnlineError

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

    from firnline.runtime.project import Project
    from firnline.testing.documents import Case

_PROJECT = "firnline.toml"


@pytest.fixture(scope="session")
def firnline_session(pytestconfig: pytest.Config) -> SparkSession:
    """The Spark session that all tests of this process share."""
    from firnline.testing.lake import lake

    return lake(pytestconfig.rootpath).session


@pytest.fixture
def firnline_project(request: pytest.FixtureRequest, firnline_session: SparkSession) -> Project:
    """The project that holds the test's file, with its tables in the folder of this process's tests."""
    from firnline.testing.lake import lake, moved
    from firnline.testing.running import TestProject

    folder = request.path.parent
    return TestProject(moved(folder, lake(folder).work))


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """``test_*.yaml`` below the folder of a Firnline project."""
    is_ours = file_path.suffix in (".yaml", ".yml") and file_path.name.startswith("test_") and _is_in_project(file_path)
    return _File.from_parent(parent, path=file_path) if is_ours else None


def _is_in_project(path: Path) -> bool:
    return any((folder / _PROJECT).is_file() for folder in path.parents)


class _File(pytest.File):
    def collect(self) -> Iterator[pytest.Item]:
        from firnline.testing.documents import cases_of

        try:
            found = cases_of(self.path)
        except FirnlineError as error:
            raise self.CollectError(str(error)) from None
        for case in found:
            yield _Item.from_parent(self, name=case.name, case=case)


class _Item(pytest.Item):
    def __init__(self, *, case: Case, **of_pytest: object) -> None:
        super().__init__(**of_pytest)  # type: ignore[arg-type]
        self.case = case

    def runtest(self) -> None:
        self.case.check()

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None) -> str:
        if isinstance(excinfo.value, AssertionError | FirnlineError):
            return str(excinfo.value)
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self.case.line - 1, self.name
