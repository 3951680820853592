"""What reaches the terminal while Spark runs."""

from __future__ import annotations

import logging
import os
import subprocess
import sys

import pytest

from firnline.cli.output import quiet


def test_warnings_of_ours_are_shown_and_chatter_is_not(capfd: pytest.CaptureFixture[str]) -> None:
    with quiet():
        os.write(2, b"WARN NativeCodeLoader\n")
        logging.getLogger("firnline.runtime.checks").warning("a check is not met")
        logging.getLogger("firnline.runtime.checks").info("a check is met")
    os.write(2, b"and now as before\n")
    assert capfd.readouterr().err == "a check is not met\nand now as before\n"


def test_a_line_in_a_pipe_is_not_folded() -> None:
    words = [sys.executable, "-c", "from firnline.cli.output import print_table; print_table('t', ('c',), [('x' * 300,)])"]
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    said = subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout
    assert "x" * 300 in said
