"""Aggregates whose answer depends on the order of rows, as expressions whose answer does not.

Moments (variances, covariances, ...) are computed over the sorted values, in two passes: the means, then the sums of products of
distances from them. Of several rows with the same extreme, ``max_by`` and ``min_by`` take the one with the largest, or smallest,
value. A set has its values in order, and so has a list those that a comparison takes for equal. The same over a window, where
what sees the order of rows goes by their places.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql.connect.proto import Expression

from firnline.incremental import functions
from firnline.incremental.expressions import function, rewritten
from firnline.incremental.relation import alias, call, cast, double, small_integer


def settled(expression: Expression) -> Expression:
    """The same answer, as far as it was one; the expression itself if its answer never depended on the order."""
    name = function(expression) or ""
    arguments = list(expression.unresolved_function.arguments)
    if name in ("max_by", "min_by"):
        return _extreme(name, *arguments)
    if name == "product":
        return _product(*arguments)
    if name == "collect_set":
        return call("sort_array", expression)
    if name == "array_sort" and len(arguments) > 1 and function(arguments[0]) in functions.LISTS:
        return call(name, call("sort_array", arguments[0]), *arguments[1:])  # what a comparison takes for equal stays in order
    is_distinct = expression.unresolved_function.is_distinct
    if name in _OF_ONE:
        return _of_one(arguments[0], _OF_ONE[name], is_distinct=is_distinct)
    if name in _OF_TWO:
        return _of_two(arguments[0], arguments[1], _OF_TWO[name], is_distinct=is_distinct)
    return expression


def settled_once(expression: Expression) -> Expression:
    """The same of a sum or an average of distinct floating numbers."""
    name, value = function(expression), expression.unresolved_function.arguments[0]
    return _of_one(value, lambda of: of.of(1, of.total if name in ("sum", "try_sum") else of.mean("x")), is_distinct=True)


def settled_over(window: Expression) -> Expression:
    """The same of a window function: every aggregate that it is made of is over that window."""
    inside = window.window.window_function
    found = settled(inside)
    return window if found is inside else _over(window, found)


def placed_over(window: Expression, place: Expression) -> Expression:
    """A window function that sees the order of rows, by the places that they have in an order without ties."""
    inside = window.window.window_function
    name, (value, *more) = function(inside) or "", inside.unresolved_function.arguments
    is_there = call("isNotNull", value)
    if name in functions.FIRST | functions.LAST:
        by = call("when", is_there, place) if skips_nulls(inside) else place
        return _over(window, call("min_by" if name in functions.FIRST else "max_by", value, by))
    pair = call("struct", alias(place, "place"), alias(value, "value"))
    is_present = name in functions.LISTS or skips_nulls(inside)
    pairs = call("sort_array", call("collect_list", call("when", is_there, pair) if is_present else pair))
    chosen = pairs if name in functions.LISTS else call("get", pairs, call("-", more[0], small_integer(1)))
    return _over(window, _field(chosen, "value"))


def skips_nulls(expression: Expression) -> bool:
    """Whether a call of first_value() and its like says so in its last argument."""
    return any(each.literal.boolean for each in expression.unresolved_function.arguments[1:])


def _over(window: Expression, found: Expression) -> Expression:
    """An expression whose aggregates are over the window."""

    def over(each: Expression) -> Expression:
        if function(each) not in functions.AGGREGATES:
            return each
        copy = Expression()
        copy.CopyFrom(window)
        copy.window.window_function.CopyFrom(each)
        return copy

    return rewritten(found, over)


def _extreme(name: str, value: Expression, by: Expression) -> Expression:
    pair = call("struct", alias(by, "by"), alias(value, "value"))
    there = call("when", call("isNotNull", by), pair)
    return _field(call("max" if name == "max_by" else "min", there), "value")


def _product(value: Expression) -> Expression:
    values = call("sort_array", call("collect_list", cast(value, "double")))
    product = _folded(double(1.0), call("*", _variable("total"), _variable("value")))
    return _let("values", values, call("when", call(">=", call("size", _variable("values")), small_integer(1)), product))


Answer = Callable[["_Moments"], Expression]
"""What is computed of moments."""


@dataclass(frozen=True)
class _Moments:
    """The variable "values", pairs (x, y) or single values (x), and the variables of their means."""

    is_pair: bool

    @property
    def count(self) -> Expression:
        return cast(call("size", _variable("values")), "double")

    @property
    def total(self) -> Expression:
        return self._summed(self._value("x"))

    def mean(self, of: str) -> Expression:
        return _variable(f"mean_{of}")

    def around(self, *names: str) -> Expression:
        """The sum of products of distances from the means: of x alone, or x and y."""
        first, *others = (call("-", self._value(of), self.mean(of)) for of in names)
        for each in others:
            first = call("*", first, each)
        return self._summed(first)

    def of(self, least: int, answer: Expression) -> Expression:
        """An answer that needs some values."""
        return call("when", call(">=", call("size", _variable("values")), small_integer(least)), answer)

    def over(self, values: Expression, answer: Expression) -> Expression:
        """The answer over sorted values; what it needs often is computed once."""
        for of in ("x", "y") if self.is_pair else ("x",):
            answer = _let(f"mean_{of}", call("try_divide", self._summed(self._value(of)), self.count), answer)
        return _let("values", call("sort_array", values), answer)

    def _value(self, of: str) -> Expression:
        return _field(_variable("value"), of) if self.is_pair else _variable("value")

    def _summed(self, term: Expression) -> Expression:
        return _folded(double(0.0), call("+", _variable("total"), term))


def _of_one(value: Expression, answer: Answer, *, is_distinct: bool) -> Expression:
    found = _Moments(is_pair=False)
    return found.over(call(_collected(is_distinct=is_distinct), cast(value, "double")), answer(found))


def _of_two(one: Expression, other: Expression, answer: Answer, *, is_distinct: bool) -> Expression:
    """Pairs of which neither is null. The first is x, also where Spark's documentation calls it y."""
    is_there = call("and", call("isNotNull", one), call("isNotNull", other))
    pair = call("struct", alias(cast(one, "double"), "x"), alias(cast(other, "double"), "y"))
    found = _Moments(is_pair=True)
    return found.over(call(_collected(is_distinct=is_distinct), call("when", is_there, pair)), answer(found))


def _collected(*, is_distinct: bool) -> str:
    return "collect_set" if is_distinct else "collect_list"


def _variance(least: int, *, is_root: bool = False) -> Answer:
    def answer(found: _Moments) -> Expression:
        of = call("-", found.count, double(least - 1.0))
        variance = call("/", found.around("x", "x"), of)
        return found.of(least, call("sqrt", variance) if is_root else variance)

    return answer


def _unless_zero(of: Expression, answer: Expression) -> Expression:
    return call("when", call("not", call("==", of, double(0.0))), answer)


def _skewness(found: _Moments) -> Expression:
    second = found.around("x", "x")
    cubed = call("sqrt", call("*", call("*", second, second), second))
    return _unless_zero(second, call("/", call("*", call("sqrt", found.count), found.around("x", "x", "x")), cubed))


def _kurtosis(found: _Moments) -> Expression:
    second = found.around("x", "x")
    answer = call("/", call("*", found.count, found.around("x", "x", "x", "x")), call("*", second, second))
    return _unless_zero(second, call("-", answer, double(3.0)))


def _covariance(least: int) -> Answer:
    def answer(found: _Moments) -> Expression:
        return found.of(least, call("/", found.around("x", "y"), call("-", found.count, double(least - 1.0))))

    return answer


def _correlation(found: _Moments) -> Expression:
    both = call("sqrt", call("*", found.around("x", "x"), found.around("y", "y")))
    return found.of(2, _unless_zero(both, call("/", found.around("x", "y"), both)))


def _slope(found: _Moments) -> Expression:
    """Of the first by the second argument."""
    return found.of(2, _unless_zero(found.around("y", "y"), call("/", found.around("x", "y"), found.around("y", "y"))))


def _intercept(found: _Moments) -> Expression:
    return call("-", found.mean("x"), call("*", _slope(found), found.mean("y")))


def _determination(found: _Moments) -> Expression:
    one, other, both = found.around("y", "y"), found.around("x", "x"), found.around("x", "y")
    share = call("/", call("*", both, both), call("*", one, other))
    return found.of(1, _unless_zero(one, call("when", call("==", other, double(0.0)), double(1.0), share)))


_OF_ONE: dict[str, Answer] = {
    **dict.fromkeys(("variance", "var_samp"), _variance(2)),
    "var_pop": _variance(1),
    **dict.fromkeys(("stddev", "std", "stddev_samp"), _variance(2, is_root=True)),
    "stddev_pop": _variance(1, is_root=True),
    "skewness": _skewness,
    "kurtosis": _kurtosis,
}
_OF_TWO: dict[str, Answer] = {
    "covar_pop": _covariance(1),
    "covar_samp": _covariance(2),
    "corr": _correlation,
    "regr_slope": _slope,
    "regr_intercept": _intercept,
    "regr_r2": _determination,
    "regr_avgx": lambda found: found.of(1, found.mean("y")),
    "regr_avgy": lambda found: found.of(1, found.mean("x")),
    "regr_sxx": lambda found: found.of(1, found.around("y", "y")),
    "regr_syy": lambda found: found.of(1, found.around("x", "x")),
    "regr_sxy": lambda found: found.of(1, found.around("x", "y")),
}


def _field(expression: Expression, name: str) -> Expression:
    found = Expression()
    found.unresolved_extract_value.child.CopyFrom(expression)
    found.unresolved_extract_value.extraction.literal.string = name
    return found


def _folded(start: Expression, following: Expression) -> Expression:
    """The values put together one by one, in their order."""
    return call("aggregate", _variable("values"), start, _lambda(following, "total", "value"))


def _let(name: str, value: Expression, inside: Expression) -> Expression:
    """An expression in which a variable stands for a value, which is computed once."""
    return call("element_at", call("transform", call("array", value), _lambda(inside, name)), small_integer(1))


def _lambda(inside: Expression, *names: str) -> Expression:
    expression = Expression()
    expression.lambda_function.function.CopyFrom(inside)
    expression.lambda_function.arguments.extend(_variable(name).unresolved_named_lambda_variable for name in names)
    return expression


def _variable(name: str) -> Expression:
    expression = Expression()
    expression.unresolved_named_lambda_variable.name_parts.append(name)
    return expression
