"""Values that a stage reads move its fingerprint; nothing beside them does, nor how Python happens to order them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.fingerprinting import Project
from tests.project import ROOT

VALUES = {
    "long array": ("numpy.arange(5000)", "numpy.where(numpy.arange(5000) == 2500, 0, numpy.arange(5000))"),
    "bool": ("1", "True"),
    "bytes": ("b'a'", "'a'"),
    "negative zero": ("0.0", "-0.0"),
    "decimal": ("Decimal('1.0')", "Decimal('1.00')"),
    "datetime": ("datetime(2026, 1, 1)", "datetime(2026, 1, 1, tzinfo=UTC)"),
    "list": ("(1, 2)", "[1, 2]"),
    "dict": ("{'a': 1}", "{'a': 2}"),
    "order of a dict, which may order columns": ("{'a': 1, 'b': 2}", "{'b': 2, 'a': 1}"),
    "set": ("{1, 2}", "{1, 3}"),
    "nested": ("{'a': [(1, {2})]}", "{'a': [(1, {3})]}"),
    "regular expression": ("re.compile('a')", "re.compile('b')"),
    "enum": ("Colour.RED", "Colour.BLUE"),
    "dataclass": ("Point(1, 2)", "Point(1, 3)"),
    "named tuple": ("Pair(1, 2)", "Pair(1, 3)"),
    "object without repr": ("Plain(1)", "Plain(2)"),
    "object with a silent repr": ("Silent(1)", "Silent(2)"),
    "object with slots": ("Slotted(1)", "Slotted(2)"),
    "default dict": ("defaultdict(int, a=1)", "defaultdict(int, a=2)"),
    "subclass of str": ("Text('a')", "Text('b')"),
    "lambda": ("lambda x: 1", "lambda x: 2"),
    "one of two lambdas on a line": ("(lambda x: 1, lambda x: 2)[0]", "(lambda x: 1, lambda x: 2)[1]"),
    "iterator": ("iter([1])", "iter([2])"),
    "foreign function": ("os.path.join", "os.path.split"),
    "method of a value": ("'a'.join", "'b'.join"),
    "item getter": ("operator.itemgetter(1)", "operator.itemgetter(2)"),
    "range": ("range(3)", "range(4)"),
}
PRELUDE = """
import enum, functools, numpy, operator, os, re
from collections import defaultdict, namedtuple
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
class Colour(enum.Enum):
    RED = 1
    BLUE = 2
@dataclass
class Point:
    x: int
    y: int = 0
Pair = namedtuple("Pair", "x y")
class Plain:
    def __init__(self, x): self.x = x
class Silent(Plain):
    def __repr__(self): return "silent"
class Slotted:
    __slots__ = ("x",)
    def __init__(self, x): self.x = x
class Text(str): pass
UNRELATED = 1
"""


@pytest.mark.parametrize(("one", "two"), VALUES.values(), ids=VALUES.keys())
@pytest.mark.parametrize("reader", ["global", "closure", "default"])
def test_a_value_that_is_read_counts(project: Project, one: str, two: str, reader: str) -> None:
    readers = {
        "global": "V = {}\ndef stage(rows): return V",
        "closure": "def make(v):\n    def stage(rows): return v\n    return stage\nstage = make({})",
        "default": "def stage(rows, v={}): return v",
    }
    first, again, second = (PRELUDE + readers[reader].replace("{}", value) for value in (one, one, two))
    assert project.of(first) == project.of(again)
    assert project.of(first) != project.of(second)


@pytest.mark.parametrize("value", ["1", "[1]", "{'a': (1, {2})}"])
def test_data_in_a_class_counts(project: Project, value: str) -> None:
    source = f"class K: v = None\nK.v = {value}\ndef stage(rows): return K.v"
    assert project.of(source) == project.of(source)
    assert project.of(source) != project.of(source.replace("1", "3"))


# A named tuple has no class statement, so that its whole file counts.
@pytest.mark.parametrize("value", [name for name in VALUES if name != "named tuple"])
def test_an_unrelated_global_beside_a_value_does_not_count(project: Project, value: str) -> None:
    source = PRELUDE + f"V = {VALUES[value][0]}\ndef stage(rows): return V"
    assert project.of(source) == project.of(source.replace("UNRELATED = 1", "UNRELATED = 2"))


def test_a_global_that_is_only_augmented_counts(project: Project) -> None:
    source = "K = 1\ndef stage(rows):\n    global K\n    K += 1"
    assert project.of(source) != project.of(source.replace("K = 1", "K = 2"))


def test_a_logger_does_not_count(project: Project) -> None:
    source = "import logging\nlog = logging.getLogger(__name__)\ndef stage(rows):\n    log.info('x')\n    return rows"
    assert project.of(source) == project.of(source + "\nlog.setLevel(logging.DEBUG)")


def test_a_list_that_holds_itself_ends(project: Project) -> None:
    source = "V = [1]\nV.append(V)\ndef stage(rows): return V"
    assert project.of(source) == project.of(source)


def test_the_hash_seed_does_not_count(project: Project) -> None:
    source = PRELUDE + (
        "V = {'a', 'b', 'c', 'd'}\nW = frozenset({('x', 1), ('y', frozenset({'p', 'q', 'r'}))})\n"
        "P = Point({'a', 'b', 'c'}, Colour.RED)\n"
        "D = defaultdict(int, a={'a', 'b', 'c', 'd'})\nFS = {min, max, sorted, Point, Plain}\n"
        "def stage(rows): return rows in {'k', 'l', 'm'}, V, W, P, D, FS, [v for v in V]"
    )
    (project.root / "lazy_seeds.py").write_text(source)
    script = f"""
import sys; sys.path[:0] = [{str(ROOT / "src")!r}, {str(project.root)!r}]
import lazy_seeds; from pathlib import Path; from firnline.model.fingerprint import fingerprint
print(fingerprint(lazy_seeds.stage, Path({str(project.root)!r})))
exec({source!r})
print(fingerprint(stage, Path({str(project.root)!r})))
"""
    runs = {
        subprocess.run(
            [sys.executable, "-c", script], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(runs) == 1
