"""What moves a fingerprint and what must not."""

from __future__ import annotations

import functools
import importlib.util
import itertools
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from firnline.model import fingerprint as subject
from firnline.model.fingerprint import fingerprint

COUNTER = itertools.count()
SRC = Path(subject.__file__).parents[2]


class Project:
    """A folder into which modules are written and from which they are imported, each time under a new name."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def module(self, source: str, name: str = "", folder: str = "") -> ModuleType:
        name = name or f"fingerprinted_{next(COUNTER)}"
        file = self.root / folder / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(source))
        spec = importlib.util.spec_from_file_location(name, file)
        assert spec
        assert spec.loader
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module

    def of(self, source: str, stage: str = "stage", **settings: str) -> str:
        """The fingerprint of the stage in a module with this source."""
        return fingerprint(getattr(self.module(source), stage), self.root, settings)

    def with_helpers(self, stage: str, helpers: str) -> str:
        """The fingerprint of a stage that may import the module ``helpers``."""
        self.module(helpers, name="helpers")
        return self.of(stage)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield Project(tmp_path)
    for name in set(sys.modules) - before:
        if name.startswith(("fingerprinted_", "helpers", "lazy")):
            del sys.modules[name]


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


# The ways by which a stage may reach ``helpers.rate``.
METHOD = "import helpers\nclass C:\n    def m(self, x): return helpers.rate(x)\n"
IMPORTS = {
    "module": "import helpers\ndef stage(rows): return helpers.rate(rows)",
    "name": "from helpers import rate\ndef stage(rows): return rate(rows)",
    "star": "from helpers import *\ndef stage(rows): return rate(rows)",
    "module in the function": "def stage(rows):\n    import helpers\n    return helpers.rate(rows)",
    "name in the function": "def stage(rows):\n    from helpers import rate as r\n    return r(rows)",
    "getattr": "import helpers\ndef stage(rows): return getattr(helpers, 'ra' + 'te')(rows)",
    "in a container": "import helpers\nTABLE = {'a': [helpers.rate]}\ndef stage(rows): return TABLE['a'][0](rows)",
    "partial": "import functools, helpers\nP = functools.partial(helpers.rate)\ndef stage(rows): return P(rows)",
    "cached": "import functools, helpers\nC = functools.lru_cache(helpers.rate)\ndef stage(rows): return C(rows)",
    "default": "import helpers\ndef stage(rows, rate=helpers.rate): return rate(rows)",
    "closure": "import helpers\ndef make(f):\n    def stage(rows): return f(rows)\n    return stage\nstage = make(helpers.rate)",
    "lambda": "import helpers\nf = lambda x: helpers.rate(x)\ndef stage(rows): return f(rows)",
    "method": METHOD + "def stage(rows): return C().m(rows)",
    "instance": METHOD + "c = C()\ndef stage(rows): return c.m(rows)",
    "bound method": METHOD + "m = C().m\ndef stage(rows): return m(rows)",
    "property": (
        "import helpers\nclass C:\n    @property\n    def p(self): return helpers.rate(2)\nc = C()\ndef stage(rows): return c.p"
    ),
    "base class": (
        "import helpers\nclass B:\n    def m(self): return helpers.rate(2)\nclass C(B): pass\ndef stage(rows): return C().m()"
    ),
    "decorator": "import helpers\n@helpers.rate\ndef f(x): return x\ndef stage(rows): return f(rows)",
    "dispatch": (
        "import functools, helpers\n@functools.singledispatch\ndef f(x): return x\n"
        "@f.register\ndef _(x: int): return helpers.rate(x)\ndef stage(rows): return f(rows)"
    ),
    "globals": "from helpers import rate\ndef stage(rows): return globals()['rate'](rows)",
    "nested": "import helpers\ndef stage(rows): return [(lambda y: helpers.rate(y))(x) for x in rows]",
}
HELPERS = """
DEEP = 3
OTHER = 1
def deeper(x): return x * DEEP
def rate(x): return deeper(x) if not callable(x) else x
"""


@pytest.mark.parametrize("reader", IMPORTS.values(), ids=IMPORTS.keys())
def test_a_helper_is_followed_to_any_depth_by(project: Project, reader: str) -> None:
    before = project.with_helpers(reader, HELPERS)
    assert project.with_helpers(reader, HELPERS) == before
    assert project.with_helpers(reader, HELPERS.replace("x * DEEP", "x + DEEP")) != before
    assert project.with_helpers(reader, HELPERS.replace("DEEP = 3", "DEEP = 4")) != before
    assert project.with_helpers(reader, "# more\n" + HELPERS.replace("x * DEEP", "(x  *  DEEP)  # times")) == before
    # A module that is used as a whole, or imported where it is used, counts as a whole.
    if "getattr" not in reader and "globals" not in reader and "    import" not in reader and "    from" not in reader:
        assert project.with_helpers(reader, HELPERS.replace("OTHER = 1", "OTHER = 2")) == before


def test_import_style_does_not_count(project: Project) -> None:
    kinds = ("module", "name", "star")
    assert len({project.with_helpers(IMPORTS[kind], HELPERS) for kind in kinds}) == 1


def test_helpers_that_call_each_other_end(project: Project) -> None:
    source = (
        "def even(n): return n == 0 or odd(n - 1)\n"
        "def odd(n): return n != 0 and even(n - 1)\ndef stage(rows): return even(rows), stage"
    )
    assert project.of(source) == project.of(source)
    assert project.of(source) != project.of(source.replace("n != 0", "n > 0"))


def test_a_docstring_or_local_of_a_helper_does_not_count(project: Project) -> None:
    source = "def f(x):\n    y = x\n    return y\ndef stage(rows): return f(rows)"
    assert project.of(source) == project.of(source.replace("    y = x", "    'Doc.'\n    y = x"))
    assert project.of(source) == project.of(source.replace("y", "z"))


def test_the_decorator_of_a_helper_counts_even_if_it_leaves_no_trace(project: Project) -> None:
    source = "def mark(n): return lambda f: f\n@mark(1)\ndef f(x): return x\ndef stage(rows): return f(rows)"
    assert project.of(source) != project.of(source.replace("@mark(1)", "@mark(2)"))


def test_the_declaration_of_a_stage_does_not_count(project: Project) -> None:
    source = """
    from firnline.model.declaration import Pipeline
    web = Pipeline("web", schedule="@hourly", start="2026-01-01")
    @web.stage(keys=["a"])
    def stage(rows): return rows, web
    """
    changed = source.replace('keys=["a"]', 'keys=["b"], parts=4').replace('"@hourly"', '"@daily"')
    assert project.of(source) == project.of(changed)
    assert project.of(source) == project.of(source.replace('@web.stage(keys=["a"])', ""))


@pytest.mark.parametrize("decorator", ["stage(", 'sql("SELECT * FROM rows", '])
def test_checks_judge_rows_and_do_not_make_them(project: Project, decorator: str) -> None:
    source = f"""
    import firnline as fl
    web = fl.Pipeline("web", schedule="@hourly", start="2026-01-01")

    @web.{decorator}keys=["a"])
    def stage(rows): ...
    """
    checked = source.replace('keys=["a"]', 'keys=["a"], checks=["sane", fl.check("whole", on="state")]')
    assert project.of(source) == project.of(checked)


def test_another_decorator_of_a_stage_counts(project: Project) -> None:
    source = "def mark(n): return lambda f: f\n@mark(1)\ndef stage(rows): return rows"
    assert project.of(source) != project.of(source.replace("@mark(1)", "@mark(2)"))


def test_a_wrapped_stage_is_known_by_wrapper_and_function(project: Project) -> None:
    source = """
    import functools
    def wrap(f):
        @functools.wraps(f)
        def inner(*args): return f(*args)
        return inner
    @wrap
    def stage(rows): return rows + 1
    """
    assert project.of(source) == project.of(source.replace("def stage", "def other") + "\n    stage = other")
    assert project.of(source) != project.of(source.replace("rows + 1", "rows + 2"))
    assert project.of(source) != project.of(source.replace("f(*args)", "f(*args[::-1])"))
    assert project.of(source) != project.of(source.replace("rows", "lines"))


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


def test_relative_imports_are_followed(project: Project) -> None:
    def found(number: int) -> str:
        package = f"lazy_package_{next(COUNTER)}"
        folder = project.root / package
        folder.mkdir()
        (folder / "__init__.py").write_text("")
        (folder / "deep.py").write_text(f"def f(x): return {number}\nIT = iter([{number}])")
        (folder / "api.py").write_text("from .deep import IT, f")
        (folder / "stages.py").write_text("from .api import IT\ndef stage(rows):\n    from .api import f\n    return f(rows), IT")
        importlib.invalidate_caches()
        return fingerprint(importlib.import_module(f"{package}.stages").stage, project.root)

    assert found(1) == found(1)
    assert found(1) != found(2)


def test_a_list_that_holds_itself_ends(project: Project) -> None:
    source = "V = [1]\nV.append(V)\ndef stage(rows): return V"
    assert project.of(source) == project.of(source)


@pytest.mark.parametrize("opaque", ["threading.Lock()", "(x for x in ())", "{object()}", "[{'a': threading.Lock()}]"])
def test_an_opaque_object_stands_for_the_file_that_reads_it_and_what_that_imports(project: Project, opaque: str) -> None:
    reader = "from helpers import IT\nN = 1\ndef stage(rows): return IT"
    source = f"import threading\nN = 1\nIT = {opaque}"
    before = project.with_helpers(reader, source)
    assert project.with_helpers("# more\n" + reader, "# more\n" + source) == before
    assert project.with_helpers(reader, source.replace("N = 1", "N = 2")) != before
    assert project.with_helpers(reader.replace("N = 1", "N = 2"), source) != before


def test_a_foreign_object_is_known_by_its_name(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "from os import environ\ndef stage(rows): return environ['HOME']"
    before = project.of(source)
    monkeypatch.setenv("FIRNLINE_OTHER", "1")
    assert project.of(source) == before


def test_third_party_code_is_known_by_name_and_version(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "import pytest\ndef stage(rows): return pytest.approx(rows)"
    before = project.of(source)
    assert before != project.of(source.replace("approx", "raises"))
    monkeypatch.setattr(subject, "version", lambda _: "0.0.1")
    assert before != project.of(source)
    assert project.of(BASE) == project.of(BASE)


@pytest.mark.parametrize("folder", [".venv/lib", "lib/site-packages"])
def test_code_in_the_environments_folder_is_not_followed(project: Project, folder: str) -> None:
    reader = "import helpers_installed\ndef stage(rows): return helpers_installed.f(rows)"
    project.module("def f(x): return 1", name="helpers_installed", folder=folder)
    before = project.of(reader)
    project.module("def f(x): return 2", name="helpers_installed", folder=folder)
    assert project.of(reader) == before


def test_a_module_imported_only_inside_the_function_is_followed(project: Project) -> None:
    def found(body: str) -> str:
        sys.modules.pop("lazy_one", None)
        importlib.invalidate_caches()
        (project.root / "lazy_one.py").write_text(body)
        return project.of("def stage(rows):\n    from lazy_one import f\n    return f(rows)")

    assert found("def f(x): return 1") == found("# moved\ndef f(x): return 1")
    assert found("def f(x): return 1") != found("def f(x): return 22")
    assert found("import no_such\ndef f(x): return 1") != found("import no_such\ndef f(x): return 22")


def test_third_party_modules_imported_inside_the_function_are_not_imported_for_it(project: Project) -> None:
    code = "def stage(rows):\n    import duckdb\n    from pyspark.sql import functions as F\n    return F.col(rows), duckdb"
    file = project.root / "lazy_two.py"
    file.write_text(code)
    script = f"""
import sys; sys.path[:0] = [{str(SRC)!r}, {str(project.root)!r}]
import lazy_two; from pathlib import Path; from firnline.model.fingerprint import fingerprint
fingerprint(lazy_two.stage, Path({str(project.root)!r}))
print(sorted({{"duckdb", "pyspark", "pandas"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_udf_is_known_by_its_body_and_return_type(project: Project) -> None:
    pytest.importorskip("pyspark")
    source = """
    from pyspark.sql.functions import udf
    from pyspark.sql.types import LongType, StringType
    UNRELATED = 1
    def deep(x): return x + 1
    @udf(returnType=LongType())
    def score(x): return deep(x)
    called = udf(lambda x: deep(x), LongType())
    def stage(rows): return rows.select(score("a"), called("a"))
    """
    before = project.of(source)
    assert project.of(source) == before
    assert project.of(source.replace("UNRELATED = 1", "UNRELATED = 2")) == before
    assert project.of(source.replace("x + 1", "x + 2")) != before
    assert project.of(source.replace("return deep(x)", "return deep(-x)")) != before
    assert project.of(source.replace("lambda x: deep(x)", "lambda x: deep(-x)")) != before
    assert project.of(source.replace("returnType=LongType()", "returnType=StringType()")) != before
    assert project.of(source.replace("deep(x), LongType()", "deep(x), StringType()")) != before


def test_columns_and_schemas_are_known_by_what_they_say(project: Project) -> None:
    pytest.importorskip("pyspark")
    source = """
    from pyspark.sql.connect import functions as F
    from pyspark.sql.types import LongType, StructType
    UNRELATED = 1
    def deep(x): return x + 1
    score = F.udf(lambda x: deep(x), LongType())
    CONDITION = (F.col("a") > 1) & score("a").isNull()
    SCHEMA = StructType().add("a", LongType())
    def stage(rows): return rows.where(CONDITION).to(SCHEMA)
    """
    before = project.of(source)
    located = source.replace(
        "    CONDITION", "    from pyspark.errors.utils import set_current_origin as o\n    o('>', 'f:3')\n    CONDITION"
    )
    assert project.of(located.replace("    SCHEMA", "    o(None, None)\n    SCHEMA", 1)) == before
    assert project.of(source.replace("UNRELATED = 1", "UNRELATED = 2")) == before
    assert project.of(source.replace("> 1", "> 2")) != before
    assert project.of(source.replace("x + 1", "x + 2")) != before
    assert project.of(source.replace('add("a"', 'add("b"')) != before


def test_a_udf_made_inside_the_stage_counts(project: Project) -> None:
    source = lines("from pyspark.sql.functions import udf\nf = udf(lambda x: x + 1, 'long')\nreturn f(rows)")
    assert project.of(source) == project.of(source.replace("f =", "g =").replace("f(rows)", "g(rows)"))
    assert project.of(source) != project.of(source.replace("x + 1", "x + 2"))
    assert project.of(source) != project.of(source.replace("'long'", "'int'"))


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


def test_the_hash_seed_does_not_count(project: Project) -> None:
    source = PRELUDE + (
        "V = {'a', 'b', 'c', 'd'}\nW = frozenset({('x', 1), ('y', frozenset({'p', 'q', 'r'}))})\n"
        "P = Point({'a', 'b', 'c'}, Colour.RED)\n"
        "D = defaultdict(int, a={'a', 'b', 'c', 'd'})\nFS = {min, max, sorted, Point, Plain}\n"
        "def stage(rows): return rows in {'k', 'l', 'm'}, V, W, P, D, FS, [v for v in V]"
    )
    (project.root / "lazy_seeds.py").write_text(source)
    script = f"""
import sys; sys.path[:0] = [{str(SRC)!r}, {str(project.root)!r}]
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


def test_a_long_chain_of_calls_is_no_obstacle(project: Project) -> None:
    assert project.of("def stage(rows): return rows" + ".select(1)" * 900)
