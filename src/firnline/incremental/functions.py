"""What is known of Spark's functions, as data."""

from __future__ import annotations

import functools

from pyspark.sql.connect.proto import Expression

from firnline.incremental.expressions import PYTHON_AGGREGATE, function, walk

NONDETERMINISTIC = frozenset(
    [
        "rand",
        "randn",
        "random",
        "randstr",
        "uniform",
        "uuid",
        "shuffle",
        "monotonically_increasing_id",
        "spark_partition_id",
        "input_file_name",
        "input_file_block_start",
        "input_file_block_length",
        "current_timestamp",
        "now",
        "current_date",
        "curdate",
        "current_time",
        "localtimestamp",
        "unix_timestamp_now",
        "reflect",
        "java_method",
        "try_reflect",
        "current_user",
        "session_user",
        "user",
        "current_catalog",
        "current_database",
        "current_schema",
    ]
)
"""Another answer at another time, or on another machine."""

NONDETERMINISTIC_OPERATORS = {
    "sample": "which rows a sample takes depends on how they are spread: filter by a hash of the key instead",
    "sample_by": "which rows sampleBy() takes depends on how they are spread: filter by a hash of the key instead",
    "freq_items": "freqItems() depends on the order in which rows come: count groups instead",
    "approx_quantile": "approxQuantile() depends on the order in which rows come: use percentile() instead",
    "summary": "summary() depends on the order in which rows come: name the aggregates instead",
    "describe": "describe() depends on the order in which rows come: name the aggregates instead",
}
"""Operators with another answer in another order of rows, and what to write instead."""

CLOCK = frozenset(["unix_timestamp", "to_unix_timestamp"])
"""The time of day when called without arguments."""

OF_STREAMS = {
    "session_window": "merges rows of groups that lie near each other: number the sessions with window functions instead",
    "window_time": "only knows windows that come from window() at once: take the end of the window instead",
}
"""Functions whose meaning hangs on more than their arguments, and what to write instead."""

ORDER_DEPENDENT = frozenset(
    [
        "first",
        "first_value",
        "last",
        "last_value",
        "any_value",
        "collect_list",
        "array_agg",
        "listagg",
        "string_agg",
        "approx_percentile",
        "percentile_approx",
        "mode",
        "histogram_numeric",
        "hll_sketch_agg",
        "hll_union_agg",
        "kll_sketch_agg_bigint",
        "kll_sketch_agg_double",
        "kll_sketch_agg_float",
        "kll_merge_agg_bigint",
        "kll_merge_agg_double",
        "kll_merge_agg_float",
        "theta_sketch_agg",
        "theta_union_agg",
        "theta_intersection_agg",
        "approx_top_k",
        "approx_top_k_accumulate",
        "approx_top_k_combine",
    ]
)
"""Aggregates whose answer depends on the order in which rows come."""

LISTS = frozenset(["collect_list", "array_agg"])

EMPTY_OF_NOTHING = LISTS | {"collect_set"}
"""Aggregates that are an empty array without any row."""

ZERO_OF_NOTHING = frozenset(["count", "count_if", "regr_count", "approx_count_distinct"])
"""Aggregates that are zero without any row."""

SORTED = frozenset(["sort_array", "array_sort"])
"""What makes the answer of ``LISTS`` independent of the order again."""

OF_PAIRS = frozenset(
    [
        "max_by",
        "min_by",
        "corr",
        "covar_pop",
        "covar_samp",
        "regr_avgx",
        "regr_avgy",
        "regr_count",
        "regr_intercept",
        "regr_r2",
        "regr_slope",
        "regr_sxx",
        "regr_sxy",
        "regr_syy",
    ]
)
"""Aggregates of two values in every row."""

AGGREGATES = (
    ORDER_DEPENDENT
    | OF_PAIRS
    | frozenset(
        [
            PYTHON_AGGREGATE,
            "sum",
            "try_sum",
            "count",
            "avg",
            "mean",
            "try_avg",
            "min",
            "max",
            "count_if",
            "bool_and",
            "every",
            "bool_or",
            "any",
            "some",
            "bit_and",
            "bit_or",
            "bit_xor",
            "variance",
            "var_samp",
            "var_pop",
            "stddev",
            "std",
            "stddev_samp",
            "stddev_pop",
            "collect_set",
            "percentile",
            "percentile_cont",
            "percentile_disc",
            "median",
            "skewness",
            "kurtosis",
            "approx_count_distinct",
            "grouping",
            "grouping_id",
            "product",
            "bitmap_and_agg",
            "bitmap_construct_agg",
            "bitmap_or_agg",
            "count_min_sketch",
            "schema_of_variant_agg",
        ]
    )
)

NAMING = frozenset(["struct", "arrays_zip"])
"""What calls the fields of its answer as its arguments are called."""

GENERATORS = frozenset(
    [
        "explode",
        "explode_outer",
        "posexplode",
        "posexplode_outer",
        "inline",
        "inline_outer",
        "stack",
        "json_tuple",
        "variant_explode",
        "variant_explode_outer",
    ]
)

GENERATOR_COLUMNS = {
    "explode": ("col",),
    "explode_outer": ("col",),
    "posexplode": ("pos", "col"),
    "posexplode_outer": ("pos", "col"),
}
"""The columns that generators make, where their names alone say so."""

BY_ROWS = frozenset(["row_number", "ntile", "lag", "lead"])
"""Window functions that know no peers, whatever the frame."""

BY_PEERS = frozenset(["rank", "dense_rank", "percent_rank", "cume_dist"])
"""Window functions that know nothing else than peers, even in a frame by rows."""

FIRST = frozenset(["first", "first_value", "any_value"])

LAST = frozenset(["last", "last_value"])

TIE_SENSITIVE = BY_ROWS | FIRST | LAST | LISTS | {"nth_value"}
"""Window functions whose answer depends on the order of rows that the given order leaves open."""

_MORE = frozenset(["and", "or", "not", "in", "if", "map", "chr", "between", "timestampadd", "timestampdiff"])
"""Functions of Spark that PySpark has no function of the same name for."""


def is_builtin(name: str) -> bool:
    """Whether a function, in lower case, is known to be Spark's own, so that its name says what it does."""
    return name in _MORE or name in _offered() or not name.isidentifier()


@functools.cache
def _offered() -> frozenset[str]:
    from pyspark.sql import functions as offered

    return frozenset(name.lower() for name in offered.__all__)


def makes_rows(expression: Expression) -> bool:
    """Whether an output makes several rows of one, or none: a generator, or a window of time, which no null has."""
    return function(expression) in GENERATORS or any(function(each) == "window" for each in walk(expression))
