"""What a function says moves its fingerprint; how it says it, and what it calls its variables, does not."""

from __future__ import annotations

import functools
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firnline.model.fingerprint import fingerprint
from tests.fingerprinting import Project

BASE = """
RATE = 3
UNRELATED = 1
def stage(visits, rankings):
    total = visits.amount * RATE
    return visits.select(total).where(total > 1)
"""

SAME = {
    "moved to another line": "\n\n\n" + BASE,
    "renamed": (BASE.replace("def stage", "def revenue") + "\nstage = revenue"),
    "reformatted": BASE.replace("visits.amount * RATE", "(\n        visits.amount\n        * RATE\n    )"),
    "commented": BASE.replace("    total =", "    # a total\n    total ="),
    "given a docstring": BASE.replace("    total =", "    '''The total.'''\n    total ="),
    "given annotations": BASE.replace("(visits, rankings)", "(visits: object, rankings: 'Unknown') -> object"),
    "given an annotated local": BASE.replace("    total =", "    total: object ="),
    "given a renamed local": BASE.replace("total", "sum_of_all"),
    "beside a changed unrelated global": BASE.replace("UNRELATED = 1", "UNRELATED = object()"),
    "beside a new function": BASE + "\ndef other(visits): return 7\n",
    "reading a constant computed otherwise": BASE.replace("RATE = 3", "RATE = 1 + 2"),
    "given an idle pass": BASE.replace("    total =", "    pass\n    total ="),
}

OTHER = {
    "constant": BASE.replace("> 1", "> 2"),
    "type of a constant": BASE.replace("> 1", "> 1.0"),
    "global constant": BASE.replace("RATE = 3", "RATE = 4"),
    "parameter name": BASE.replace("rankings", "ratings"),
    "parameter order": BASE.replace("visits, rankings", "rankings, visits"),
    "parameter kind": BASE.replace("visits, rankings", "visits, *, rankings"),
    "default argument": BASE.replace("rankings)", "rankings=None)"),
    "which local is read": BASE.replace("total > 1", "visits > 1"),
    "async": BASE.replace("def stage", "async def stage"),
}


@pytest.mark.parametrize("source", SAME.values(), ids=SAME.keys())
def test_a_stage_keeps_its_fingerprint_when(project: Project, source: str) -> None:
    assert project.of(source) == project.of(BASE)


@pytest.mark.parametrize("source", OTHER.values(), ids=OTHER.keys())
def test_a_stage_changes_its_fingerprint_with_its(project: Project, source: str) -> None:
    assert project.of(source) != project.of(BASE)


def test_a_fingerprint_is_32_hexadecimal_digits(project: Project) -> None:
    found = project.of(BASE)
    assert len(found) == 32
    int(found, 16)


def test_a_stage_moved_to_another_file_or_folder_keeps_its_fingerprint(project: Project) -> None:
    moved = project.module(BASE, folder="deep/er").stage
    assert fingerprint(moved, project.root) == project.of(BASE)


def test_pinned_settings_count_and_their_order_does_not(project: Project) -> None:
    assert project.of(BASE, ansi="true", zone="UTC") == project.of(BASE, zone="UTC", ansi="true")
    assert len({project.of(BASE), project.of(BASE, zone="UTC"), project.of(BASE, zone="CET")}) == 3


# Bodies of a stage with the parameters rows and others, in pairs of equal meaning, then of another.
ALPHA = {
    "comprehension": ("return [x + rows for x in others]", "return [y + rows for y in others]"),
    "loop": ("for x in rows: others = x\nreturn others", "for y in rows: others = y\nreturn others"),
    "with": ("with rows as x: return x", "with rows as y: return y"),
    "walrus": ("return (x := rows) + x", "return (y := rows) + y"),
    "walrus in a comprehension": ("z = [x := r for r in rows]\nreturn x", "k = [y := s for s in rows]\nreturn y"),
    "except": ("try: rows()\nexcept OSError as e: return e", "try: rows()\nexcept OSError as f: return f"),
    "match": ("match rows:\n    case [a, *b]: return a + b", "match rows:\n    case [c, *d]: return c + d"),
    "closure": ("k = 1\ndef f(x): return x + k\nreturn f", "n = 1\ndef f(x): return x + n\nreturn f"),
    "nonlocal": ("k = 1\ndef f():\n    nonlocal k\n    k += 1", "n = 1\ndef f():\n    nonlocal n\n    n += 1"),
    "key of a sort": ("return sorted(rows, key=lambda r: r.a)", "return sorted(rows, key=lambda s: s.a)"),
    "only parameter of a lambda": ("f = lambda a: a\nreturn f(rows)", "f = lambda b: b\nreturn f(rows)"),
    "local import": ("import json as j\nreturn j.loads(rows)", "import json as k\nreturn k.loads(rows)"),
}

DISTINCT = {
    "swapped locals": ("a = rows\nb = others\nreturn a", "a = rows\nb = others\nreturn b"),
    "shadowed comprehension variable": ("x = 1\nreturn [x for y in rows]", "x = 1\nreturn [x for x in rows]"),
    "outer iterable": ("x = rows\nreturn [x for x in x]", "x = rows\nreturn [x for x in rows]"),
    "local against nonlocal": (
        "k = 1\ndef f(): k = 2\nf()\nreturn k",
        "k = 1\ndef f():\n    nonlocal k\n    k = 2\nf()\nreturn k",
    ),
    "swapped nested parameters": (
        "def f(a, b): return a - b\nreturn f(a=1, b=2)",
        "def f(b, a): return b - a\nreturn f(a=1, b=2)",
    ),
    "swapped lambda parameters": ("f = lambda a, b: a - b\nreturn f(a=1, b=2)", "f = lambda b, a: b - a\nreturn f(a=1, b=2)"),
    "keyword at a call": ("return rows.select(a=1)", "return rows.select(b=1)"),
    "self-documenting string": ("x = rows\nreturn f'{x=}'", "y = rows\nreturn f'{y=}'"),
    "locals read by name": ("a = 1\nb = 2\nreturn locals()['a']", "b = 1\na = 2\nreturn locals()['a']"),
    "frame read by SQL": ("a = 1\nb = 2\nreturn rows.sql('from a')", "b = 1\na = 2\nreturn rows.sql('from a')"),
    "own docstring": ("'one'\nreturn stage.__doc__", "'two'\nreturn stage.__doc__"),
    "default of a nested function": ("def f(x=1): return x\nreturn f", "def f(x=2): return x\nreturn f"),
    "decorator of a nested function": ("@rows.a\ndef f(): pass\nreturn f", "@rows.b\ndef f(): pass\nreturn f"),
    "annotation of a nested pandas UDF": (
        "@rows.pandas_udf\ndef f(x: 'Series'): return x\nreturn f",
        "@rows.pandas_udf\ndef f(x: 'Iterator'): return x\nreturn f",
    ),
    "name of a nested UDF, which names a column": ("def f(x): return x\nreturn rows(f)", "def g(x): return x\nreturn rows(g)"),
    "field of a nested class": ("class C:\n    a = 1\nreturn C", "class C:\n    a = 2\nreturn C"),
    "class scope is not seen by methods": (
        "a = 1\nclass C:\n    a = 2\n    def f(self): return a\nreturn C",
        "a = 1\nclass C:\n    b = 2\n    def f(self): return b\nreturn C",
    ),
    "augmented global": ("global RATE\nRATE += 1\nreturn RATE", "global RATE\nRATE += 2\nreturn RATE"),
    "standard library": ("import math\nreturn math.floor(rows)", "import math\nreturn math.ceil(rows)"),
    "conditional import": (
        "try: import json as j\nexcept ImportError: import math as j\nreturn j",
        "try: import json as j\nexcept ImportError: import cmath as j\nreturn j",
    ),
}


def lines(text: str) -> str:
    return "def stage(rows, others):\n" + textwrap.indent(text, "    ")


@pytest.mark.parametrize(("one", "two"), ALPHA.values(), ids=ALPHA.keys())
def test_a_renamed_variable_does_not_count(project: Project, one: str, two: str) -> None:
    assert project.of(lines(one)) == project.of(lines(two))


@pytest.mark.parametrize(("one", "two"), DISTINCT.values(), ids=DISTINCT.keys())
def test_what_looks_like_a_renaming_counts(project: Project, one: str, two: str) -> None:
    assert project.of(lines(one)) != project.of(lines(two))


def executed(source: str, **names: object) -> Callable[..., Any]:
    space: dict[str, Any] = {"__name__": "__main__", **names}
    exec(textwrap.dedent(source), space)
    found: Callable[..., Any] = space["stage"]
    return found


def test_a_function_without_source_is_known_by_its_bytecode(tmp_path: Path) -> None:
    source = "K = 1\ndef f(x): return x + 1\ndef stage(rows):\n    y = rows\n    return [f(r) * K for r in y], 'text'"

    def found(text: str) -> str:
        return fingerprint(executed(text), tmp_path)

    assert found(source) == found(source)
    assert found(source) == found("\n\n# moved\n" + source.replace("y", "z"))
    for old, new in (
        ("K = 1", "K = 2"),
        ("x + 1", "x + 2"),
        ("* K", "+ K"),
        ("'text'", "'t'"),
        ("rows", "lines"),
        ("f(r)", "f(-r)"),
    ):
        assert found(source) != found(source.replace(old, new)), (old, new)


def test_a_file_edited_after_its_import_does_not_speak_for_the_function(project: Project) -> None:
    module = project.module("def stage(rows): return 1")
    assert module.__file__
    Path(module.__file__).write_text("def stage(rows): return 2\n\n")
    assert fingerprint(module.stage, project.root) != project.of("def stage(rows): return 2")


def test_a_partial_may_be_a_stage(project: Project) -> None:
    def base(rows: int, by: int) -> int:
        return rows * by

    assert fingerprint(functools.partial(base, by=2), project.root) != fingerprint(functools.partial(base, by=3), project.root)


def test_a_long_chain_of_calls_is_no_obstacle(project: Project) -> None:
    assert project.of("def stage(rows): return rows" + ".select(1)" * 900)
