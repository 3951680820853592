"""For tests of pipelines: rows in, rows out, on real Spark and real logs, without Airflow.

All tests of a process share one Spark session. Each has tables of its own, in a folder that ends with the process, wherever the
project's settings say that its own tables are.
"""

from firnline.testing.asserting import assert_incremental, assert_repeatable
from firnline.testing.history import Crash
from firnline.testing.running import Ran, at, run, run_pipeline

__all__ = ["Crash", "Ran", "assert_incremental", "assert_repeatable", "at", "run", "run_pipeline"]
