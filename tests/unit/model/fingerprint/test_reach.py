"""Code of the project that a stage reaches, by whatever way, moves its fingerprint; foreign code is known by name and version."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from firnline.model import fingerprint as subject
from firnline.model.fingerprint import fingerprint
from tests.fingerprinting import COUNTER, Project
from tests.project import ROOT

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
    source, own = "import pytest\ndef stage(rows): return pytest.approx(rows)", "def stage(rows): return rows"
    before, owned = project.of(source), project.of(own)
    assert before != project.of(source.replace("approx", "raises"))
    monkeypatch.setattr(subject, "version", lambda _: "0.0.1")
    assert before != project.of(source)
    assert owned == project.of(own)


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
import sys; sys.path[:0] = [{str(ROOT / "src")!r}, {str(project.root)!r}]
import lazy_two; from pathlib import Path; from firnline.model.fingerprint import fingerprint
fingerprint(lazy_two.stage, Path({str(project.root)!r}))
print(sorted({{"duckdb", "pyspark", "pandas"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
