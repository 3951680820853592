"""Fingerprints: of a stage's function, a hash of what it means.

Where the function stands, what it and its variables are called, how it is laid out, documented and annotated does not count. A
change of its syntax, of a value it reads, or of project code it reaches, at any depth, does. Where the two wishes meet the second
wins: what cannot be followed is taken in whole.

Everything reached is numbered in the order in which the syntax mentions it, and described once; a mention is its number. So
cycles end, and neither addresses nor hash seeds come in. Nothing is run save the import of project modules that a function
itself imports.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import functools
import hashlib
import importlib
import inspect
import linecache
import sys
import sysconfig
import warnings
from collections import ChainMap, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from importlib.metadata import packages_distributions, version
from importlib.util import find_spec, resolve_name
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any, cast

Term = tuple[Any, ...]
Names = Mapping[str, Any]
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

DIGITS = 32
HOPS = 50
# Deep enough for the longest chain of calls that Python compiles.
DEPTH = 30_000
PLAIN = (type(None), bool, int, float, complex, str, bytes, Decimal, date, datetime, time, timedelta, type(...), range)
CONTENT: tuple[Callable[[Any], Any], ...] = (int, float, complex, str, bytes, Decimal, tuple, list, dict, set, frozenset)
FOREIGN_FOLDERS = {".venv", "site-packages", "dist-packages"}
# Callers that pass by position only to a function they are given, and do not hand it on.
BLIND = {"filter", "map", "max", "min", "sorted", "reduce", "aggregate", "exists", "forall", "transform", "zip_with"}
BLIND_MODULES = {"builtins", "functools", "_functools", "pyspark"}
# Code that mentions one of these may see the names of local variables (pandas and DuckDB read their caller's frame).
FRAME_READERS = {"locals", "vars", "eval", "exec", "dir", "globals", "query", "sql", "execute", "_getframe", "currentframe"}
# What code may see of other code, by the word it needs for that.
REFLECTION = {"__doc__": "docs", "getdoc": "docs", "__annotations__": "hints", "get_type_hints": "hints", "signature": "hints"}
REFLECTION |= {"__name__": "name", "__qualname__": "name", "getsource": "names", "__code__": "names"}
# Objects that change nothing in a result, by package and type.
INERT = {("firnline", "Pipeline"), ("logging", "Logger"), ("logging", "LoggerAdapter")}
INNER = ("func", "__wrapped__")
TRAITS = ("returnType", "_returnType", "evalType", "deterministic")
_CODE = (FunctionType, MethodType, functools.partial, type)
_SCOPED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_UNREAD = {"ctx", "type_comment", "kind"}
_ANNOTATIONS = annotations.compiler_flag
_MISSING = object()
_GLOBAL: Term = ("global",)


@dataclass(frozen=True, slots=True)
class _Named:
    """Something outside the project, known by its dotted name and never imported for a fingerprint."""

    name: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class _Imported:
    """What an import inside a function binds, and where it was found."""

    thing: Any
    home: ModuleType | None = None
    name: str = ""


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
        walk = _Walk(root, function, seen=set())
        terms = walk.terms()
        seen = {REFLECTION[word] for word in walk.mentioned & REFLECTION.keys()}
        if seen:
            terms = _Walk(root, function, seen).terms()
        text = repr((terms, sorted(settings.items())))
    finally:
        sys.setrecursionlimit(limit)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


class _Walk:
    """One traversal of all that a function reaches."""

    def __init__(self, root: Path, function: Callable[..., Any], seen: set[str]) -> None:
        self.root = root.resolve()
        self.function = function
        self.stage = inspect.unwrap(function)
        self.seen = seen
        self.mentioned: set[str] = set()
        self.numbers: dict[tuple[Any, ...], int] = {}
        self.waiting: deque[tuple[Callable[..., Term], tuple[Any, ...]]] = deque()
        self.kept: list[Any] = []
        self.open: set[int] = set()

    def terms(self) -> list[Term]:
        """The descriptions of everything reached, in the order of their numbers."""
        try:
            parameters = [(name, int(of.kind)) for name, of in inspect.signature(self.function).parameters.items()]
        except (TypeError, ValueError):
            parameters = []
        described = [("stage", parameters, self.value(self.function, None, called=True))]
        while self.waiting:
            describe, subject = self.waiting.popleft()
            described.append(describe(*subject))
        return described

    def number(self, describe: Callable[..., Term], thing: Any, *details: Any) -> Term:
        """A mention of the thing, which is described when its turn comes."""
        key = (describe.__name__, id(thing), *(detail for detail in details if isinstance(detail, bool)))
        if key not in self.numbers:
            self.numbers[key] = len(self.numbers)
            self.kept.append(thing)
            self.waiting.append((describe, (thing, *details)))
        return ("@", self.numbers[key])

    def value(self, thing: Any, home: ModuleType | None, name: str = "", called: bool = False) -> Term:
        """The meaning of a value found under a name in a module; ``called`` if all that is done with it is a call."""
        kind = type(thing)
        if kind in PLAIN and (kind in (str, bytes) or "0x" not in repr(thing)):
            return (kind.__name__, repr(thing))
        if kind in (tuple, list, dict, set, frozenset, MappingProxyType):
            return self.container(thing, home, name)
        if isinstance(thing, _Named):
            return ("named", thing.name, self.origin(None, thing.name), thing.text)
        if isinstance(thing, ModuleType):
            origin = self.outside(thing.__name__, thing)
            return ("named", thing.__name__, origin) if origin else self.number(self.whole, thing)
        if isinstance(thing, FunctionType):
            return self.number(self.python, thing, called, home, name)
        if isinstance(thing, type):
            return self.number(self.classed, thing)
        if isinstance(thing, functools.partial):
            return ("partial", *(self.value(part, home) for part in (thing.func, thing.args, thing.keywords)))
        if isinstance(thing, MethodType | staticmethod | classmethod):
            owner = getattr(thing, "__self__", None)
            return (kind.__name__, self.value(thing.__func__, home, called=called), self.value(owner, home))
        if isinstance(thing, property):
            return ("property", *(self.value(part, home, called=True) for part in (thing.fget, thing.fset, thing.fdel)))
        if isinstance(thing, BuiltinFunctionType):
            owner = thing.__self__
            bound = () if isinstance(owner, ModuleType | None) else self.value(owner, home)
            return ("named", thing.__module__, thing.__qualname__, self.origin(None, thing.__module__ or "builtins"), bound)
        if _is_inert(kind):
            return ("inert", kind.__name__)
        return self.number(self.instance, thing, home, name)

    def container(self, thing: Any, home: ModuleType | None, name: str) -> Term:
        """A built-in container by its items: in their order, or sorted where there is none."""
        if id(thing) in self.open:
            return ("cycle",)
        self.open.add(id(thing))
        items = list(thing.items() if isinstance(thing, dict | MappingProxyType) else thing)
        unordered = isinstance(thing, set | frozenset)
        terms = [self.value(item, home, name) for item in (sorted(items, key=_order) if unordered else items)]
        self.open.discard(id(thing))
        return (type(thing).__name__, *(sorted(terms, key=repr) if unordered else terms))

    def python(self, function: FunctionType, called: bool, found: ModuleType | None, name: str) -> Term:
        """A Python function: syntax, values of defaults, closure and attributes; if foreign, its name and what it wraps."""
        code, module = function.__code__, str(function.__globals__.get("__name__"))
        closure = _cells(function)
        is_stage = function is self.stage
        origin = None if is_stage else self.origin(code.co_filename, module)
        if origin:
            seen = [self.value(item, found) for content in closure.values() for item in _code_in(content)]
            made = self.making(*self.home(found, name))
            return ("named", module, code.co_qualname, origin, *seen, *self.wrapped(function, found), *made)
        home = sys.modules.get(module)
        names = ChainMap(closure, function.__globals__, vars(builtins))
        node = _definition(code, function.__globals__)
        defaults = (self.value(function.__defaults__, home), self.value(function.__kwdefaults__, home))
        extra = sorted((name, self.value(item, home, called=called)) for name, item in vars(function).items())
        if node is None:
            return ("bytecode", defaults, extra, self.bytecode(code, names, home))
        syntax = _Syntax(self, names, home, node)
        return ("function", defaults, extra, syntax.function(node, is_root=True, is_stage=is_stage, annotated=not called))

    def bytecode(self, code: CodeType, names: Names, home: ModuleType | None) -> Term:
        """Code whose source is not at hand: its instructions, constants and names, and the values of those that it reads."""
        constants = [
            self.bytecode(item, names, home) if isinstance(item, CodeType) else self.value(item, home) for item in code.co_consts
        ]
        read = [names[name] for name in (*code.co_names, *code.co_freevars) if name in names]
        modules = [vars(item) for item in read if isinstance(item, ModuleType)]
        parts = [module[name] for module in modules for name in code.co_names if name in module]
        inputs = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        values = [self.value(item, home) for item in (*read, *parts)]
        return (code.co_code.hex(), code.co_flags, code.co_exceptiontable.hex(), code.co_names, inputs, constants, values)

    def classed(self, cls: type) -> Term:
        """A class: its syntax, bases and members; if foreign, its name."""
        home = sys.modules.get(cls.__module__)
        origin = self.outside(cls.__module__)
        if origin:
            return ("named", cls.__module__, cls.__qualname__, origin)
        nodes = [node for name, node in _classes(_tree(home)) if name == cls.__qualname__] if home else []
        syntax = [_Syntax(self, ChainMap(vars(home), vars(builtins)), home, node).emit(node) for node in nodes if home]
        members = [
            (name, self.value(member, home, called=True))
            for name, member in sorted(vars(cls).items())
            if not name.startswith("_abc_") and (_has_source(member) or not name.startswith("__"))
        ]
        return ("class", cls.__name__, syntax, [self.value(base, home) for base in (type(cls), *cls.__bases__)], members)

    def instance(self, thing: Any, home: ModuleType | None, name: str) -> Term:
        """Any other object: of a project class, by its state; of a foreign one, by what it wraps or shows; and how it is made."""
        kind = type(thing)
        where, name = self.home(home, name)
        if where and name and self.outside(where.__name__):
            return ("named", where.__name__, name, self.outside(where.__name__))
        content = [self.value(base(thing), home, name) for base in CONTENT if isinstance(thing, cast(type, base))]
        term: Term = ("instance", self.value(kind, home), self.making(where, name), content)
        if not self.outside(kind.__module__):
            return (*term, [(key, self.value(item, home)) for key, item in _state(thing)])
        public = [item for key, item in getattr(thing, "__dict__", {}).items() if key[0] != "_"]
        inside = [_code_in(item) for item in (*public, getattr(thing, "default_factory", None))]
        shown: Any = self.wrapped(thing, home) or (() if isinstance(thing, dict | set | frozenset) else _shown(thing))
        if shown is None and where and not self.outside(where.__name__):
            shown = self.number(self.whole, where)
        return (*term, self.value([*_data(thing), *inside], home), shown)

    def home(self, module: ModuleType | None, name: str) -> tuple[ModuleType | None, str]:
        """The module and name under which a value was made, behind the imports that handed it on."""
        for _ in range(HOPS if name else 0):
            if module is None or self.outside(module.__name__):
                break
            for bound, node in _bound(_tree(module) or ast.Module([], [])):
                if isinstance(node, ast.ImportFrom) and bound in (name, "*"):
                    source = sys.modules.get(_source(node, module.__package__))
                    known = name if bound == "*" else node.names[0].name
                    if source and known in vars(source) and vars(source)[known] is vars(module).get(name, _MISSING):
                        module, name = source, known
                        break
            else:
                break
        return module, name

    def wrapped(self, thing: Any, home: ModuleType | None) -> list[Term]:
        """The functions inside a foreign wrapper such as a UDF, and what else decides its result."""
        attributes = getattr(thing, "__dict__", {})
        inner = [(key, self.value(attributes[key], home)) for key in INNER if key in attributes]
        return [*inner, *((key, _shown(attributes[key])) for key in TRAITS if inner and key in attributes)]

    def making(self, home: ModuleType | None, name: str) -> list[Term]:
        """The statements of a module that bind the name."""
        tree = _tree(home) if home and name and not self.outside(home.__name__) else None
        if home is None or tree is None:
            return []
        names = ChainMap(vars(home), vars(builtins))
        makers = [node for node in tree.body if not isinstance(node, _SCOPED) and name in (bound for bound, _ in _bound(node))]
        return [_Syntax(self, names, home, node).emit(node) for node in makers]

    def whole(self, module: ModuleType) -> Term:
        """A module whose use cannot be told apart: all of its syntax, or of its values where there is no source."""
        tree = _tree(module)
        if tree is None:
            return ("module", [(key, self.value(item, module)) for key, item in sorted(vars(module).items()) if key[:2] != "__"])
        return ("module", _Syntax(self, ChainMap(vars(module), vars(builtins)), module, tree).emit(tree))

    def outside(self, name: str, module: ModuleType | None = None) -> str | None:
        """The origin of a module; None for one of the project."""
        return self.origin(getattr(module or sys.modules.get(name), "__file__", None), name)

    def origin(self, file: str | None, module: str) -> str | None:
        """The distribution, with its version, or the library that code comes from; None for code of the project."""
        path = None if file is None or file.startswith("<") else Path(file).resolve()
        top = module.partition(".")[0]
        foreign = path is not None and FOREIGN_FOLDERS & set(_below(path, self.root))
        if path and path.is_relative_to(self.root) and not foreign and not _is_standard(path):
            return None
        if top in sys.stdlib_module_names:
            return "standard"
        owners = _distributions().get(top, [])
        if owners:
            return " ".join(sorted(f"{owner} {version(owner)}" for owner in set(owners)))
        return "unknown" if foreign else None

    def imported(self, node: ast.Import | ast.ImportFrom, names: Names) -> _Imported:
        """What an import statement of one name inside a function binds."""
        alias = node.names[0]
        member = alias.name if isinstance(node, ast.ImportFrom) else ""
        wanted = _source(node, names.get("__package__")) if isinstance(node, ast.ImportFrom) else alias.name
        bound = wanted if member or alias.asname else wanted.partition(".")[0]
        file = _file(wanted.partition(".")[0])
        if file is None or self.origin(file, wanted):
            return _Imported(_Named(f"{bound}.{member}" if member else bound))
        try:
            importlib.import_module(wanted)
            if member and member != "*" and member not in vars(sys.modules[bound]):
                return _Imported(importlib.import_module(f"{bound}.{member}"))
        except Exception:  # a module may fail in any way where its surroundings are missing: its text then stands for it
            folder = Path(file) if Path(file).is_dir() else Path(file).parent
            files = sorted(folder.rglob("*.py")) if file.endswith("__init__.py") or folder == Path(file) else [Path(file)]
            return _Imported(_Named(f"{bound}.{member}", "".join(_text(str(each), {}) for each in files)))
        home = sys.modules[bound]
        return _Imported(vars(home)[member], home, member) if member in vars(home) else _Imported(home)


class _Syntax:
    """The normalised syntax of one definition: local variables by number, other names by what they mean."""

    def __init__(self, walk: _Walk, names: Names, home: ModuleType | None, tree: ast.AST) -> None:
        self.walk, self.names, self.home = walk, names, home
        nodes = list(ast.walk(tree))
        callees = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
        loads = [node for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
        self.passed = {node.id for node in loads if id(node) not in callees}
        used = {node.id for node in loads if id(node) in callees or hasattr(builtins, node.id)}
        used |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
        walk.mentioned |= used | self.passed
        self.renames = not ("names" in walk.seen or used & FRAME_READERS)
        self.scopes: list[tuple[dict[str, Any], bool]] = []
        self.blind: set[int] = set()
        self.variables = 0

    def emit(self, node: Any) -> Any:
        """The term of a node, of a list of nodes, or of a bare value."""
        if isinstance(node, list):
            return [self.emit(item) for item in node if not self.is_idle(item)]
        if not isinstance(node, ast.AST):
            return node
        special = getattr(self, f"on_{type(node).__name__.lower()}", self.plain)
        return special(node)

    def plain(self, node: ast.AST) -> Term:
        fields = [(key, item) for key, item in ast.iter_fields(node) if key not in _UNREAD and item is not None and item != []]
        return (type(node).__name__, *((key, self.emit(item)) for key, item in fields))

    def is_idle(self, node: Any) -> bool:
        """Whether a statement says nothing that is not said elsewhere."""
        if isinstance(node, ast.Import | ast.ImportFrom):
            told = [name for name, _ in _imports(node) if isinstance(self.lookup(name), tuple)]
            return not told or (isinstance(node, ast.Import) and not self.scopes)
        if isinstance(node, ast.AnnAssign):
            return node.value is None and not self.in_class()
        is_lone = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        return isinstance(node, ast.Pass) or (is_lone and "docs" not in self.walk.seen)

    def in_class(self) -> bool:
        return bool(self.scopes) and self.scopes[-1][1]

    def on_constant(self, node: ast.Constant) -> Term:
        return (type(node.value).__name__, repr(node.value))

    def on_annassign(self, node: ast.AnnAssign) -> Term:
        """An annotated assignment as a plain one, save in a class, where annotations make fields."""
        if self.in_class() or node.value is None:
            return self.plain(node)
        return self.plain(ast.Assign(targets=[node.target], value=node.value))

    def on_name(self, node: ast.Name) -> Term:
        return self.mention(node) if isinstance(node.ctx, ast.Load) else self.binding(node.id)

    def on_augassign(self, node: ast.AugAssign) -> Term:
        """An assignment that also reads its target."""
        read = self.mention(ast.Name(node.target.id, ast.Load())) if isinstance(node.target, ast.Name) else ()
        return (*self.plain(node), read)

    def on_attribute(self, node: ast.Attribute) -> Term:
        return self.mention(node)

    def on_call(self, node: ast.Call) -> Term:
        """A call; lambdas handed to a caller that is blind to parameter names lose theirs."""
        if self.is_blind(node.func) and all(keyword.arg for keyword in node.keywords):
            handed = (*node.args, *(keyword.value for keyword in node.keywords))
            self.blind |= {id(item) for item in handed if isinstance(item, ast.Lambda)}
        return ("Call", self.mention(node.func, called=True), self.emit(node.args), [self.plain(word) for word in node.keywords])

    def is_blind(self, callee: ast.expr) -> bool:
        """Whether the callee is known not to see the parameter names of the functions it is given."""
        found, _, _, rest = self.find(callee)
        path = ""
        if isinstance(found, _Named):
            path = ".".join((found.name, *rest))
        elif isinstance(found, FunctionType | BuiltinFunctionType | type) and not rest:
            path = f"{found.__module__}.{found.__qualname__}"
        return path.partition(".")[0] in BLIND_MODULES and path.rpartition(".")[2] in BLIND

    def find(self, node: ast.AST) -> tuple[Any, ModuleType | None, str, list[str]]:
        """What a dotted name leads to, the module and name it was found under, and the attributes left to read."""
        path: list[str] = []
        while isinstance(node, ast.Attribute):
            path.insert(0, node.attr)
            node = node.value
        local = self.lookup(node.id) if isinstance(node, ast.Name) else ()
        if isinstance(local, _Imported):
            thing, home, name = local.thing, local.home, local.name
        elif isinstance(node, ast.Name) and local is _GLOBAL:
            thing, home, name = self.names.get(node.id, _MISSING), self.home, node.id
        else:
            return _MISSING, None, "", path
        while path and isinstance(thing, ModuleType) and path[0] in vars(thing):
            home, name = thing, path.pop(0)
            thing = vars(home)[name]
        return thing, home, name, path

    def mention(self, node: ast.expr, called: bool = False) -> Term:
        """A name or attribute that is read, by what it means."""
        thing, home, name, rest = self.find(node)
        if thing is _MISSING:
            if isinstance(node, ast.Name):
                return self.binding(node.id)
            return ("Attribute", self.emit(node.value), node.attr) if isinstance(node, ast.Attribute) else self.emit(node)
        term = self.walk.value(thing, home, name, called=called and not rest)
        if any(thing is reader for reader in (globals, eval, exec)) and self.home:
            term = (*term, self.walk.number(self.walk.whole, self.home))
        for attribute in rest:
            term = ("Attribute", term, attribute)
        return term

    def lookup(self, name: str) -> Any:
        """The term of a local name, or what a local import binds, or the mark of a global one."""
        for depth, (scope, is_class) in enumerate(reversed(self.scopes)):
            if name in scope and (depth == 0 or not is_class):
                return scope[name]
        return _GLOBAL

    def binding(self, name: str) -> Term:
        """The term of a name where it is bound."""
        local = self.lookup(name)
        return local if isinstance(local, tuple) and local is not _GLOBAL else ("global", name)

    def scope(self, parameters: Iterable[ast.arg], body: Iterable[ast.AST], is_class: bool = False, blind: bool = False) -> None:
        """Enter a scope: decide the term of every name that it binds."""
        bound = [*((arg.arg, arg) for arg in parameters), *(pair for node in body for pair in _bound(node))]
        names: dict[str, Any] = {}
        for name, binder in bound:
            keeps = is_class or not self.renames or (isinstance(binder, ast.arg) and not blind)
            binders = [other for known, other in bound if known == name]
            if any(isinstance(other, ast.Global | ast.Nonlocal) for other in binders):
                if isinstance(binder, ast.Global):
                    names[name] = _GLOBAL
            elif len(binders) == 1 and not is_class and isinstance(binder, ast.Import | ast.ImportFrom):
                names[name] = self.walk.imported(binder, self.names)
            elif name not in names:
                keeps = keeps or any(isinstance(other, _SCOPED) for other in binders)
                names[name] = ("local", name) if keeps else ("variable", self.variables)
                self.variables += not keeps
        self.scopes.append((names, is_class))

    def function(self, node: Definition, is_root: bool = False, is_stage: bool = False, annotated: bool = False) -> Term:
        """A definition. Of the stage the name is left out; of any root the defaults, which are known by value."""
        arguments, declared = node.args, None if isinstance(node, ast.Lambda) else node
        decorators = [item for item in (declared.decorator_list if declared else ()) if not self.declares(item, is_stage)]
        body = [node.body] if isinstance(node, ast.Lambda) else node.body
        name = declared.name if declared and ("name" in self.walk.seen or not is_stage) else ""
        outside = [self.emit(decorators), [] if is_root else self.emit([arguments.defaults, arguments.kw_defaults])]
        if annotated or decorators or "hints" in self.walk.seen:
            outside.append(self.emit([*(arg.annotation for arg in _arguments(arguments)), declared and declared.returns]))
        self.scope(_arguments(arguments), body, blind=id(node) in self.blind)
        shape = [(key, self.emit(group)) for key, group in ast.iter_fields(arguments) if group and "defaults" not in key]
        term = (type(node).__name__, name, *outside, shape, self.emit(body))
        self.scopes.pop()
        return term

    def on_arg(self, node: ast.arg) -> Term:
        return self.binding(node.arg)

    def declares(self, decorator: ast.expr, is_stage: bool) -> bool:
        """Whether a decorator only declares a collection."""
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        if not isinstance(called, ast.Attribute) or called.attr not in ("source", "stage"):
            return False
        return is_stage or _is_inert(type(self.find(called.value)[0]))

    def on_functiondef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Term:
        """A nested function; its annotations count where it is decorated or handed on, for pandas UDFs read them."""
        return self.function(node, annotated=node.name in self.passed)

    on_asyncfunctiondef = on_functiondef

    def on_lambda(self, node: ast.Lambda) -> Term:
        return self.function(node)

    def on_classdef(self, node: ast.ClassDef) -> Term:
        """A class: its own names are attributes, so they stay."""
        outside = [self.emit(part) for part in (node.decorator_list, node.bases, node.keywords)]
        self.scope((), node.body, is_class=True)
        term = ("ClassDef", node.name, *outside, self.emit(node.body))
        self.scopes.pop()
        return term

    def on_comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Term:
        """A comprehension; its first iterable is read outside its scope."""
        first = self.emit(node.generators[0].iter)
        self.scope((), [generator.target for generator in node.generators])
        parts = [
            (self.emit(each.target), self.emit(each.iter) if at else first, self.emit(each.ifs), each.is_async)
            for at, each in enumerate(node.generators)
        ]
        results = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        term = (type(node).__name__, parts, self.emit(results))
        self.scopes.pop()
        return term

    on_listcomp = on_setcomp = on_generatorexp = on_dictcomp = on_comprehension

    def on_import(self, node: ast.Import | ast.ImportFrom) -> Term:
        """An import whose names are not followed where they are read."""
        found = [(self.lookup(name), self.walk.imported(one, self.names)) for name, one in _imports(node)]
        return ("import", [(at, self.walk.value(it.thing, it.home, it.name)) for at, it in found if isinstance(at, tuple)])

    on_importfrom = on_import

    def on_capture(self, node: ast.AST) -> Term:
        """A node that binds names given as text."""
        named = [self.binding(name) for name, binder in _bound(node) if binder is node]
        fields = [(key, self.emit(item)) for key, item in ast.iter_fields(node) if key not in ("name", "rest", "names")]
        return (type(node).__name__, named, fields)

    on_excepthandler = on_matchas = on_matchstar = on_matchmapping = on_global = on_nonlocal = on_capture


def _bound(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """The names that a node binds in the scope it stands in, each with what binds it."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name, node
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name, node
            return
        case ast.Lambda():
            return
        case ast.Import() | ast.ImportFrom():
            yield from _imports(node)
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            yield from ((name, node) for name in names)
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name, node
        case ast.MatchMapping(rest=str(name)):
            yield name, node
    # The targets of a comprehension are its own; what its conditions bind with := is not.
    parts = [node.iter, *node.ifs] if isinstance(node, ast.comprehension) else ast.iter_child_nodes(node)
    for part in parts:
        yield from _bound(part)


def _imports(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, ast.Import | ast.ImportFrom]]:
    """The names that an import binds, each with an import of it alone."""
    for alias in node.names:
        if isinstance(node, ast.Import):
            yield alias.asname or alias.name.partition(".")[0], ast.Import([alias])
        else:
            yield alias.asname or alias.name, ast.ImportFrom(node.module, [alias], node.level)


def _source(node: ast.ImportFrom, package: str | None) -> str:
    """The full name of the module that names are imported from."""
    name = "." * node.level + (node.module or "")
    return resolve_name(name, package) if package else name


def _arguments(arguments: ast.arguments) -> list[ast.arg]:
    every = (*arguments.posonlyargs, *arguments.args, arguments.vararg, *arguments.kwonlyargs, arguments.kwarg)
    return [arg for arg in every if arg]


def _definition(code: CodeType, variables: dict[str, Any]) -> Definition | None:
    """The syntax that the code was compiled from; None unless compiling it now gives the same code."""
    parsed = _parsed(_text(code.co_filename, variables), code.co_flags & _ANNOTATIONS)
    if parsed is None or code not in parsed[1]:
        return None
    found = parsed[2].get((code.co_firstlineno, code.co_name), [])
    if len(found) > 1:
        spans = [span for span in code.co_positions() if span[3]] or [(0, 0, 0, 0)]
        found = [node for node in found if isinstance(node, ast.Lambda) and all(_encloses(node.body, span) for span in spans)]
    return found[-1] if found else None


def _first_line(node: Definition) -> int:
    decorators = [] if isinstance(node, ast.Lambda) else node.decorator_list
    return min(item.lineno for item in (node, *decorators))


def _encloses(node: ast.expr, span: tuple[int | None, int | None, int | None, int | None]) -> bool:
    line, last, column, end = (value or 0 for value in span)
    return (node.lineno, node.col_offset) <= (line, column) and (last, end) <= (node.end_lineno or 0, node.end_col_offset or 0)


def _classes(tree: ast.AST | None, prefix: str = "") -> Iterator[tuple[str, ast.ClassDef]]:
    """Every class below a tree with its qualified name."""
    for node in ast.iter_child_nodes(tree) if tree else ():
        if isinstance(node, ast.expr):
            continue
        inside = prefix
        if isinstance(node, ast.ClassDef):
            yield prefix + node.name, node
            inside = f"{prefix}{node.name}."
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inside = f"{prefix}{node.name}.<locals>."
        yield from _classes(node, inside)


def _tree(module: ModuleType) -> ast.Module | None:
    parsed = _parsed(_text(getattr(module, "__file__", None) or "", vars(module)))
    return parsed[0] if parsed else None


def _text(file: str, variables: dict[str, Any]) -> str:
    linecache.checkcache(file)
    return "".join(linecache.getlines(file, variables))


@functools.lru_cache(maxsize=512)
def _parsed(text: str, flags: int = 0) -> tuple[ast.Module, frozenset[CodeType], dict[tuple[int, str], list[Definition]]] | None:
    """The syntax of a source text, all code compiled from it, and its definitions by first line and name."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
            found = [compile(tree, "<fingerprint>", "exec", flags, dont_inherit=True)]
    except (SyntaxError, ValueError):
        return None
    for code in found:
        found.extend(item for item in code.co_consts if isinstance(item, CodeType))
    definitions: dict[tuple[int, str], list[Definition]] = {}
    for node in ast.walk(tree):
        if isinstance(node, Definition):
            definitions.setdefault((_first_line(node), getattr(node, "name", "<lambda>")), []).append(node)
    return (tree, frozenset(found), definitions) if text.strip() else None


@functools.cache
def _distributions() -> Mapping[str, list[str]]:
    return packages_distributions()


def _is_standard(path: Path) -> bool:
    return path.is_relative_to(Path(sysconfig.get_path("stdlib")).resolve())


def _below(path: Path, root: Path) -> tuple[str, ...]:
    return path.relative_to(root).parts if path.is_relative_to(root) else path.parts


def _is_inert(kind: type) -> bool:
    return (kind.__module__.partition(".")[0], kind.__name__) in INERT


def _cells(function: FunctionType) -> dict[str, Any]:
    """What a function closes over, by name."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # not bound yet
            found[name] = cell.cell_contents
    return found


def _file(top: str) -> str | None:
    """The file or folder of a top-level module, without importing it."""
    try:
        spec = find_spec(top)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    return spec.origin if spec.has_location else next(iter(spec.submodule_search_locations or ()), None)


def _order(item: Any) -> str:
    return str(getattr(item, "__qualname__", None) or _shown(item))


def _code_in(content: Any) -> list[Any]:
    """What counts of a value that a foreign function closes over: a plain value, or code, also in a container."""
    if type(content) in PLAIN or isinstance(content, _CODE):
        return [content]
    if isinstance(content, dict):
        content = [*content.keys(), *content.values()]
    return [item for item in content if isinstance(item, _CODE)] if isinstance(content, list | tuple) else []


def _has_source(member: Any) -> bool:
    """Whether a member of a class is code that someone wrote, unlike the methods that a dataclass generates."""
    code = getattr(getattr(member, "fget", None) or getattr(member, "__func__", member), "__code__", None)
    return code is not None and not code.co_filename.startswith("<")


def _state(thing: Any) -> list[tuple[str, Any]]:
    slots = {name for cls in type(thing).__mro__ for name, item in vars(cls).items() if inspect.ismemberdescriptor(item)}
    held = {name: getattr(thing, name) for name in slots if hasattr(thing, name)}
    return sorted({**getattr(thing, "__dict__", {}), **held}.items(), key=lambda entry: str(entry[0]))


def _data(thing: Any) -> list[Any]:
    """The values in an array or a pandas object, whose text leaves out the middle."""
    parts = [thing, getattr(thing, "index", None), getattr(thing, "columns", None)]
    return [part.__array__().tolist() for part in parts if hasattr(type(part), "__array__")]


def _shown(thing: Any) -> str | None:
    """The text of a value; None if it has none that lasts."""
    try:
        text = repr(thing)
    except Exception:  # a foreign object may refuse in any way
        return None
    return None if "0x" in text else text
