"""Fingerprints: of a stage, a hash of its code and one of its plan; here the code's, a hash of what a function means.

Where the function stands, what it and its variables are called, how it is laid out and documented does not count. A change of
its syntax, of a value it reads, or of project code it reaches, at any depth, does. Where the two wishes meet the second wins:
what cannot be followed stands for the whole file that it was found in, and the files which that imports.

Functions, classes and files of the project are numbered in the order in which they are mentioned, and described once; a mention
is a number. So cycles end, and neither addresses nor hash seeds come in. Data is known by what it would be pickled from. Nothing
is imported and no stage is run.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import copyreg
import functools
import hashlib
import inspect
import operator
import sys
import sysconfig
from collections import ChainMap, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.machinery import PathFinder
from importlib.metadata import packages_distributions, version
from pathlib import Path
from types import CodeType, FunctionType, MappingProxyType, ModuleType
from typing import Any

from firnline.model.outline import Outline
from firnline.model.syntax import Import, Syntax, Term, definition, tree

DIGITS = 32
# Deep enough for the longest chain of calls that Python compiles.
DEPTH = 30_000
PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...))
CONTAINERS = (tuple, list, dict, set, frozenset, MappingProxyType)
FOREIGN_FOLDERS = {".venv", "site-packages", "dist-packages"}
STANDARD = Path(sysconfig.get_path("stdlib")).resolve()
# Objects that change nothing in a result, by package and type: they read as None. An Origin is the line a column was made on.
INERT = {("firnline", "Pipeline"), ("logging", "Logger"), ("logging", "LoggerAdapter"), ("pyspark", "Origin")}
# What counts of a UDF: the rest of its state is filled in when it is used.
UDF = ("func", "_returnType", "evalType", "deterministic")
PROTOCOL = 4


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What made an epoch: the hash of its code and, if it has a plan that says all, the hash of that.

    >>> made = Fingerprint("code", "plan")
    >>> [made.is_same(other) for other in (Fingerprint("refactored", "plan"), Fingerprint("code", "other"), Fingerprint("code"))]
    [True, False, True]
    """

    code: str
    plan: str | None = None
    outline: Outline | None = field(default=None, compare=False, repr=False)
    """What the plan is made of, where it was looked for."""

    def is_same(self, other: Fingerprint) -> bool:
        """Whether both mean the same: the plans decide, the code where there are none."""
        if self.plan is not None and other.plan is not None:
            return self.plan == other.plan
        return self.code == other.code


class _OpaqueError(Exception):
    """A value cannot be read."""


def fingerprint(function: Callable[..., Any], root: Path, settings: Mapping[str, str] = MappingProxyType({})) -> str:
    """The hash of what a stage's function means, as 32 hexadecimal digits.

    Args:
        function: The stage's function. It is not called.
        root: The folder of the project. Code below it is followed; the standard library and distributions are known by name.
        settings: The Spark settings that the result depends on.

    >>> def double(rows): return rows.select(rows.amount * 2)
    >>> def twice(rows): "Twice the amount."; return (rows.select(rows.amount * 2))
    >>> def triple(rows): return rows.select(rows.amount * 3)
    >>> [fingerprint(other, Path(".")) == fingerprint(double, Path(".")) for other in (twice, triple)]
    [True, False]
    """
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, DEPTH))
    try:
        text = repr((_Walk(root, function).terms(), sorted(settings.items())))
    finally:
        sys.setrecursionlimit(limit)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


class _Walk:
    """One traversal of all that a function reaches."""

    def __init__(self, root: Path, function: Callable[..., Any]) -> None:
        self.root = root.resolve()
        self.function = function
        self.stage = inspect.unwrap(function)
        self.origin = functools.cache(self._origin)
        self.numbers: dict[tuple[str, object], tuple[int, Any]] = {}
        self.waiting: deque[tuple[Callable[[Any], Term], Any]] = deque()

    def terms(self) -> list[Term]:
        """The descriptions of everything reached, in the order of their numbers."""
        home = getattr(self.stage, "__globals__", {}).get("__file__")
        described = [self.value(self.function, home)]
        while self.waiting:
            describe, subject = self.waiting.popleft()
            described.append(describe(subject))
        return described

    def number(self, describe: Callable[[Any], Term], subject: Any) -> Term:
        """A mention of a function, class or file, which is described when its turn comes."""
        key = (describe.__name__, subject if isinstance(subject, str) else id(subject))
        if key not in self.numbers:
            self.numbers[key] = (len(self.numbers), subject)
            self.waiting.append((describe, subject))
        return ("@", self.numbers[key][0])

    def value(self, thing: Any, home: str | None) -> Term:
        """The term of a value that code of the file ``home`` reads; of one that cannot be read, the whole file."""
        try:
            return self.term(thing, {})
        except (_OpaqueError, RecursionError):
            return ("opaque", type(thing).__qualname__, self.whole(home))

    def term(self, thing: Any, seen: dict[int, tuple[int, Any]]) -> Term:
        """The term of a value; ``seen`` are those around it."""
        kind = type(thing)
        if kind in PLAIN:
            return (kind.__name__, repr(thing))
        if isinstance(thing, ModuleType):
            return self.whole(getattr(thing, "__file__", None)) if self.is_followed(thing) else self.named(thing.__name__, "")
        if isinstance(thing, type):
            foreign = self.outside(thing.__module__)
            return self.named(thing.__module__, thing.__qualname__) if foreign else self.number(self.classed, thing)
        if isinstance(thing, FunctionType) and (
            thing is self.stage or not self.origin(thing.__code__.co_filename, _module(thing))
        ):
            return self.number(self.python, thing)
        if (kind.__module__.partition(".")[0], kind.__name__) in INERT:
            return self.term(None, seen)
        if id(thing) in seen:
            return ("again", seen[id(thing)][0])
        seen[id(thing)] = (len(seen), thing)
        if isinstance(thing, FunctionType):
            cells = [self.term(item, seen) for item in _cells(thing).values()]
            return (*self.named(_module(thing), thing.__code__.co_qualname), cells)
        if kind in CONTAINERS or isinstance(thing, set | frozenset):
            items = list(thing.items() if isinstance(thing, dict | MappingProxyType) else thing)
            ordered = sorted(items, key=_order) if isinstance(thing, set | frozenset) else items
            return (self.term(kind, seen), [self.term(item, seen) for item in ordered])
        return self.instance(thing, seen)

    def instance(self, thing: Any, seen: dict[int, tuple[int, Any]]) -> Term:
        """Any other object: the parts that it would be pickled from."""
        kind = type(thing)
        if self.outside(kind.__module__):
            for name, item in vars(sys.modules.get(kind.__module__, builtins)).items():
                if item is thing:
                    return self.named(kind.__module__, name)
            held = getattr(thing, "__dict__", {})
            if "evalType" in held:
                return ("udf", [self.term(held.get(key), seen) for key in UDF])
            if "__wrapped__" in held:
                inner = self.term(held["__wrapped__"], seen)
                if kind.__module__ == "functools":
                    return ("cached", inner)
                raise _OpaqueError
        reduce: Callable[[Any], Any] = copyreg.dispatch_table.get(kind, operator.methodcaller("__reduce_ex__", PROTOCOL))
        try:
            parts = reduce(thing)
        except Exception as error:  # an object may refuse in any way
            raise _OpaqueError from error
        if not isinstance(parts, str):
            listed = [list(part) if isinstance(part, Iterator) else part for part in parts]
            return ("instance", [self.term(part, seen) for part in listed])
        module = getattr(thing, "__module__", None) or kind.__module__
        if not self.outside(module):
            raise _OpaqueError
        return self.named(module, parts)

    def python(self, function: FunctionType) -> Term:
        """A function of the project: its syntax, and the values of its defaults and attributes."""
        space = function.__globals__
        home = space.get("__file__")
        names = ChainMap(_cells(function), space, vars(builtins))
        held = [self.value(item, home) for item in (function.__defaults__, function.__kwdefaults__, vars(function))]
        node = definition(function.__code__, space)
        if node is None:
            return ("bytecode", held, self.bytecode(function.__code__, names, home))
        return ("function", held, Syntax(self, names, home).of(node, is_stage=function is self.stage))

    def bytecode(self, code: CodeType, names: Mapping[str, Any], home: str | None) -> Term:
        """Code whose syntax cannot be told: its instructions, constants and names, and the values of those that it reads."""
        constants = [
            self.bytecode(item, names, home) if isinstance(item, CodeType) else self.value(item, home) for item in code.co_consts
        ]
        inputs = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        read = [self.value(names[name], home) for name in (*code.co_names, *code.co_freevars) if name in names]
        return (code.co_code.hex(), code.co_flags, code.co_exceptiontable.hex(), code.co_names, inputs, constants, read)

    def classed(self, cls: type) -> Term:
        """A class of the project: its syntax and the data in it; the whole file where it is not defined at the top of that."""
        module = sys.modules.get(cls.__module__)
        file = getattr(module, "__file__", None)
        data = [
            (name, self.value(item, file))
            for name, item in vars(cls).items()
            if not name.startswith("__") and type(item) in (*PLAIN, *CONTAINERS)
        ]
        top = tree(file) if file else None
        nodes = [node for node in top.body if isinstance(node, ast.ClassDef) and node.name == cls.__qualname__] if top else []
        if len(nodes) != 1 or module is None:
            return ("class", cls.__qualname__, self.whole(file), data)
        return ("class", Syntax(self, ChainMap(vars(module), vars(builtins)), file).of(nodes[0]), data)

    def whole(self, file: str | None) -> Term:
        """A mention of all that a file of the project says."""
        return self.number(self.said, file) if file else ("no file",)

    def said(self, file: str) -> Term:
        """All that a file says, and what it imports."""
        module = tree(file)
        if module is None:
            return ("file", hashlib.sha256(Path(file).read_bytes()).hexdigest() if Path(file).is_file() else "")
        imports = [node for node in ast.walk(module) if isinstance(node, ast.Import | ast.ImportFrom)]
        return ("module", ast.dump(module), [self.imported(node, file) for node in imports])

    def imported(self, node: Import, file: str | None) -> Term:
        """What an import in a file takes in: the whole files of the project, or a foreign name. Nothing is imported for it."""
        taken = []
        for alias in node.names:
            name, folder = alias.name, None
            if isinstance(node, ast.ImportFrom):
                name = f"{node.module}.{alias.name}" if node.module else alias.name
            parts = name.split(".")
            if isinstance(node, ast.ImportFrom) and node.level and file:
                package = Path(file).parents[node.level - 1]
                folder, parts = str(package.parent), [package.name, *parts]
            files = _files(parts, folder)
            taken.append((name, self.origin(files[0] if files else None, parts[0]) or [self.whole(each) for each in files]))
        return tuple(taken)

    def is_followed(self, module: ModuleType) -> bool:
        """Whether a module belongs to the project."""
        return not self.outside(module.__name__, module)

    def named(self, module: str, name: str) -> Term:
        """Something foreign, known by its name and by the version of what it comes from."""
        return ("named", module, name, self.outside(module))

    def outside(self, name: str, module: ModuleType | None = None) -> str | None:
        """The origin of a module; None for one of the project."""
        return self.origin(getattr(module or sys.modules.get(name), "__file__", None), name)

    def _origin(self, file: str | None, module: str) -> str | None:
        """The distribution, with its version, or the library that code comes from; None for code of the project."""
        path = Path(file).resolve() if file and not file.startswith("<") else None
        top = module.partition(".")[0]
        below = path.relative_to(self.root).parts if path and path.is_relative_to(self.root) else None
        if below and path and not FOREIGN_FOLDERS & set(below) and not path.is_relative_to(STANDARD):
            return None
        if top in sys.stdlib_module_names:
            return "standard"
        owners = distributions().get(top, [])
        if owners:
            return " ".join(sorted(f"{owner} {version(owner)}" for owner in set(owners)))
        return "unknown" if path and FOREIGN_FOLDERS & set(below or path.parts) else None


def _module(function: FunctionType) -> str:
    return str(function.__globals__.get("__name__"))


def _cells(function: FunctionType) -> dict[str, Any]:
    """What a function closes over, by name."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # not bound yet
            found[name] = cell.cell_contents
    return found


def _files(parts: list[str], folder: str | None) -> list[str]:
    """The files of a dotted name, from the outermost package, as far as there are any."""
    found: list[str] = []
    path = [folder] if folder else None
    for part in parts:
        spec = PathFinder.find_spec(part, path)
        if spec is None:
            break
        if spec.origin:
            found.append(spec.origin)
        if spec.submodule_search_locations is None:
            break
        path = list(spec.submodule_search_locations)
    return found


def _order(item: Any) -> str:
    """Where an item of a set comes, whatever the hash seed."""
    if isinstance(item, frozenset | tuple):
        keys = [_order(each) for each in item]
        return str(keys if isinstance(item, tuple) else sorted(keys))
    text = getattr(item, "__qualname__", None) or repr(item)
    if "0x" in text and type(item) not in PLAIN:
        raise _OpaqueError
    return f"{type(item).__qualname__} {text}"


@functools.cache
def distributions() -> Mapping[str, list[str]]:
    """The packages that brought each module; finding out takes seconds, so that is done once."""
    return packages_distributions()
