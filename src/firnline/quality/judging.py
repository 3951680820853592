"""From numbers to results, in the form that Great Expectations gives them: ``ExpectationValidationResult`` as JSON.

Of no rows at all nothing can be said about columns: such expectations are met. (Great Expectations agrees where they are about
every value, and not where they are about a mean or a sum.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from firnline.quality.planning import Planned

Result = dict[str, Any]
SAMPLE = 20
"""At most this many rows are kept of those that are unexpected, as many as Great Expectations keeps."""
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Numbers:
    """What one pass found for an expectation: all rows, its column's nulls, unexpected values, the number it is about."""

    rows: int
    nulls: int = 0
    unexpected: int = 0
    value: int | float | None = None


def judged(planned: Planned, numbers: Numbers) -> Result:
    """The result of an expectation from its numbers."""
    match planned.kind:
        case "rows":
            success, found = _rows(planned, numbers)
        case "number":
            success, found = _number(planned, numbers)
        case "values":
            success, found = _values(planned, numbers)
    return result_of(planned.config, success or (numbers.rows == 0 and planned.kind != "rows"), found)


def result_of(config: Mapping[str, Any], success: bool, found: Mapping[str, Any]) -> Result:
    """A result in Great Expectations' form."""
    nothing = {"raised_exception": False, "exception_traceback": None, "exception_message": None}
    return {
        "success": success,
        "expectation_config": {**config},
        "result": {**found},
        "meta": {},
        "exception_info": nothing,
    }


def with_samples(result: Result, column: str, rows: Sequence[Mapping[str, Any]]) -> Result:
    """A result with some of the rows that are unexpected."""
    values = [row[column] for row in rows]
    return {**result, "result": {**result["result"], "partial_unexpected_list": values, "unexpected_rows": [*rows]}}


def document_of(suite: str, results: Sequence[Result], meta: Mapping[str, Any]) -> dict[str, Any]:
    """The results of a suite in Great Expectations' form: ``ExpectationSuiteValidationResult`` as JSON."""
    met = sum(result["success"] for result in results)
    return {
        "success": met == len(results),
        "results": [*results],
        "suite_name": suite,
        "suite_parameters": {},
        "statistics": {
            "evaluated_expectations": len(results),
            "successful_expectations": met,
            "unsuccessful_expectations": len(results) - met,
            "success_percent": met / len(results) * 100 if results else None,
        },
        "meta": {"great_expectations_version": version("great-expectations"), **meta},
        "id": None,
    }


def told(result: Result) -> str:
    """What was expected and what was found, in a sentence."""
    config, found = result["expectation_config"], result["result"]
    kwargs = {key: value for key, value in config["kwargs"].items() if value is not None and key != "batch_id"}
    column = kwargs.pop("column", None)
    asked = ", ".join(f"{key}={value!r}" for key, value in kwargs.items())
    about = config["type"] + (f" of {column!r}" if column else "") + (f" ({asked})" if asked else "")
    if found.get("unexpected_count") is not None:
        values = found.get("partial_unexpected_list") or ()
        such = f", such as {', '.join(map(repr, values[:_SHOWN]))}" if values else ""
        return f"{about}: {found['unexpected_count']} of {found['element_count']} rows are not so{such}"
    if "observed_value" in found:
        return f"{about}: found {found['observed_value']!r}"
    return f"{about}: {_raised(result) or 'not met'}"


def _raised(result: Result) -> str | None:
    """What an expectation raised; of several metrics that failed, the first one's message."""
    raised = result["exception_info"]
    each = [raised] if "exception_message" in raised else [entry for entry in raised.values() if isinstance(entry, dict)]
    return next((str(entry["exception_message"]) for entry in each if entry["exception_message"]), None)


def _rows(planned: Planned, numbers: Numbers) -> tuple[bool, Result]:
    if planned.measure == "equal":
        return numbers.rows == planned.kwargs["value"], {"observed_value": numbers.rows}
    return _is_between(numbers.rows, planned.kwargs), {"observed_value": numbers.rows}


def _number(planned: Planned, numbers: Numbers) -> tuple[bool, Result]:
    found = numbers.value
    return found is not None and _is_between(found, planned.kwargs), {"observed_value": found}


def _values(planned: Planned, numbers: Numbers) -> tuple[bool, Result]:
    rows, nulls, unexpected = numbers.rows, numbers.nulls, numbers.unexpected
    mostly = planned.kwargs.get("mostly")
    is_about_nulls = planned.measure in ("null", "not_null")
    considered = rows if is_about_nulls else rows - nulls
    success = considered == 0 or (considered - unexpected) / considered >= (1 if mostly is None else mostly)
    percent = unexpected / considered * 100 if considered else None
    found: Result = {"element_count": rows, "unexpected_count": unexpected, "unexpected_percent": percent}
    if not is_about_nulls:
        found["missing_count"] = nulls
        found["missing_percent"] = nulls / rows * 100 if rows else None
        found["unexpected_percent_total"] = unexpected / rows * 100 if rows else None
        found["unexpected_percent_nonmissing"] = percent
    return success, found


def _is_between(value: float, kwargs: Mapping[str, Any]) -> bool:
    least, most = kwargs.get("min_value"), kwargs.get("max_value")
    is_above = least is None or (value > least if kwargs.get("strict_min") else value >= least)
    return is_above and (most is None or (value < most if kwargs.get("strict_max") else value <= most))
