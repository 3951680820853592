"""Quality gates: suites of Great Expectations, asked of rows on Spark, in one pass where numbers are all they need."""
