"""Great Expectations itself: suites made in Python, expectations that one pass cannot answer, and pages to look at.

The only module that imports it, and whoever imports this one waits seconds for it.
"""

from __future__ import annotations

import importlib.util
import shutil
import threading
import traceback
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import great_expectations as gx
from great_expectations.core.expectation_validation_result import expectationSuiteValidationResultSchema
from great_expectations.core.run_identifier import RunIdentifier
from great_expectations.data_context.data_context.ephemeral_data_context import EphemeralDataContext
from great_expectations.data_context.types.base import ProgressBarsConfig
from great_expectations.data_context.types.resource_identifiers import ExpectationSuiteIdentifier, ValidationResultIdentifier
from great_expectations.expectations.expectation_configuration import ExpectationConfiguration
from pyspark.sql import DataFrame

from firnline.errors import FirnlineError, Location
from firnline.quality.judging import SAMPLE, Result
from firnline.quality.suite import Suite, suite_of

_ONE = threading.Lock()
"""There is one context in a process, with one source of rows: epochs that are computed side by side ask one after the other."""
_KNOWN = ("type", "kwargs", "meta", "notes", "description", "id", "severity")


def loaded(path: Path) -> Suite:
    """The suite that a Python module makes, under the name of its file."""
    _context()
    with _refusing(path):
        spec = importlib.util.spec_from_file_location(f"firnline_suite_{path.stem}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    made = {id(each): each for each in vars(module).values() if isinstance(each, gx.ExpectationSuite)}
    found = [suite for suite in made.values() if suite.name == path.stem]
    if len(found) != 1:
        names = ", ".join(sorted(repr(suite.name) for suite in made.values())) or "none"
        raise FirnlineError("BAD_SUITE", f"{path.name} makes no suite named {path.stem!r}, or several; it makes: {names}")
    return suite_of(found[0].to_json_dict(), path)


def check_expectations(suite: Suite, expectations: Iterable[Mapping[str, Any]]) -> None:
    """Refuse expectations that Great Expectations does not know, or whose arguments it does not take."""
    if suite.is_python:
        loaded(suite.path)  # it may define expectations of its own
    for config in expectations:
        with _refusing(suite.path, config["type"]):
            _configured(config).to_domain_obj()


def answered(frame: DataFrame, suite: Suite, expectations: Sequence[Mapping[str, Any]]) -> list[Result]:
    """The results of expectations about rows, in their order."""
    asked = gx.ExpectationSuite(name=suite.name)
    made = [_configured(config).to_domain_obj() for config in expectations]
    for number, each in enumerate(made):
        each.id = f"00000000-0000-0000-0000-{number:012}"  # results come in another order
    asked.expectations = made
    how = {"result_format": "BASIC", "include_unexpected_rows": True, "partial_unexpected_count": SAMPLE}
    with _ONE, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = _batch(frame).validate(asked, result_format=how)
        finally:
            frame.unpersist()  # it keeps the rows of every batch
    by_number = {int(str(each.expectation_config.id)[-12:]): each.to_json_dict() for each in found.results}
    return [{**by_number[number], "expectation_config": dict(config)} for number, config in enumerate(expectations)]


def render(documents: Iterable[Mapping[str, Any]], folder: Path) -> Path:
    """Pages about results (each with its run's name and time in ``meta``) in a folder of its own; its first page."""
    context = gx.get_context(mode="ephemeral")
    assert isinstance(context, EphemeralDataContext)
    shutil.rmtree(folder, ignore_errors=True)
    store = {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(folder)}
    index = {"class_name": "DefaultSiteIndexBuilder"}
    for site in tuple(context.get_site_names()):
        context.delete_data_docs_site(site)
    context.add_data_docs_site("checks", {"class_name": "SiteBuilder", "store_backend": store, "site_index_builder": index})
    for document in documents:
        run = document["meta"]["run_id"]
        ran = RunIdentifier(run["run_name"], datetime.fromisoformat(run["run_time"]))
        suite = ExpectationSuiteIdentifier(document["suite_name"])
        key = ValidationResultIdentifier(suite, ran, document["meta"]["batch"])
        result = expectationSuiteValidationResultSchema.load({**document, "results": _escaped(document["results"])})
        result.meta["run_id"] = ran
        context.validation_results_store.set(key, result)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        context.build_data_docs(site_names=["checks"])
    return folder / "index.html"


def _escaped(value: Any) -> Any:
    """A value whose texts a page shows as they are: Great Expectations puts values from the data into its pages unchanged."""
    match value:
        case str():
            return escape(value, quote=False)
        case dict():
            return {key: _escaped(item) for key, item in value.items()}
        case list():
            return [_escaped(item) for item in value]
    return value


@cache
def _context() -> EphemeralDataContext:
    """A context in memory; suites cannot be made without one."""
    context = gx.get_context(mode="ephemeral")
    assert isinstance(context, EphemeralDataContext)
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    return context


def _batch(frame: DataFrame) -> Any:
    source = _context().data_sources.add_or_update_spark("firnline")
    asset = source.add_dataframe_asset("rows")
    return asset.add_batch_definition_whole_dataframe("all").get_batch({"dataframe": frame})


def _configured(config: Mapping[str, Any]) -> ExpectationConfiguration:
    return ExpectationConfiguration(**{key: value for key, value in config.items() if key in _KNOWN})


@contextmanager
def _refusing(path: Path, what: str = "") -> Iterator[None]:
    """Turn whatever a suite's own text leads to into a refusal of it."""
    try:
        yield
    except FirnlineError:
        raise
    except Exception as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        where = Location(str(path), lines[-1]) if lines and lines[-1] else None
        about = f"{path.name}: {what}: " if what else f"{path.name}: "
        raise FirnlineError("BAD_SUITE", f"{about}{type(error).__name__}: {error}", where) from error
