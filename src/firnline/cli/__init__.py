"""The command line. Exit codes: 0 done, 1 it says no, 2 wrong usage."""

from firnline.cli.app import main

__all__ = ["main"]
