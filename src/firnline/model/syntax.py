"""Syntax: what a definition says, however it is laid out and whatever its local variables are called.

``Syntax(reader, names, home).of(node)`` is equal for two definitions that differ only in layout, comments, docstrings and the
names of variables. A name that is not local stands for its value, of which ``reader`` gives the term; a change of either is
another term. What is local and called from elsewhere by name (parameters, nested functions, members of a class) keeps its name.
"""

from __future__ import annotations

import ast
import functools
import linecache
import warnings
from collections.abc import Iterable, Iterator, Mapping
from types import CodeType, ModuleType
from typing import Any, Protocol

Term = tuple[Any, ...]
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Import = ast.Import | ast.ImportFrom

# Code that mentions one of these may see the names of local variables: pandas and DuckDB read their caller's frame.
FRAME_READERS = {"locals", "vars", "dir", "query", "sql", "execute", "_getframe", "currentframe"}
# Code that mentions one of these may see more of its module than it names.
REFLECTION = {"globals", "eval", "exec", "__doc__", "getdoc", "__annotations__", "get_type_hints", "signature", "getsource"}
REFLECTION |= {"__name__", "__qualname__", "__code__", "__globals__"}
_NAMED = (ast.arg, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_UNREAD = {"ctx", "type_comment", "kind"}
_MISSING = object()


class Reader(Protocol):
    """Knows the meaning of what a definition reads."""

    def value(self, thing: Any, home: str | None) -> Term:
        """The term of a value that code of the file ``home`` reads."""

    def whole(self, file: str | None) -> Term:
        """The term of all that a file says."""

    def imported(self, node: Import, file: str | None) -> Term:
        """The term of what an import in a file takes in."""

    def is_followed(self, module: ModuleType) -> bool:
        """Whether members of a module stand for themselves, not for their dotted names."""


class Syntax:
    """The normalised syntax of one definition.

    Args:
        reader: Gives the terms of values.
        names: The values of the names that are not local.
        home: The file that the definition stands in.
    """

    def __init__(self, reader: Reader, names: Mapping[str, Any], home: str | None) -> None:
        self.reader, self.names, self.home = reader, names, home
        self.scopes: list[tuple[dict[str, Term | None], bool]] = []
        self.variables = 0
        self.renames = True

    def of(self, node: Definition | ast.ClassDef, is_stage: bool = False) -> Term:
        """The term of a class, or of a function without its defaults, which are known by value."""
        nodes = list(ast.walk(node))
        words = {str(getattr(each, "attr", getattr(each, "id", ""))) for each in nodes}
        self.renames = not words & FRAME_READERS
        term = self.emit(node) if isinstance(node, ast.ClassDef) else self.function(node, is_root=True, is_stage=is_stage)
        if words & REFLECTION or any(isinstance(each, ast.Global) for each in nodes):
            return (term, self.reader.whole(self.home))
        return (term,)

    def emit(self, node: Any) -> Any:
        """The term of a node, of a list of nodes, or of a bare value."""
        if isinstance(node, list):
            return [self.emit(item) for item in node if not _is_idle(item)]
        if not isinstance(node, ast.AST):
            return node
        return getattr(self, f"on_{type(node).__name__.lower()}", self.plain)(node)

    def plain(self, node: ast.AST) -> Term:
        """A node by its kind and its fields."""
        fields = [(key, item) for key, item in ast.iter_fields(node) if key not in _UNREAD and item is not None and item != []]
        return (type(node).__name__, [(key, self.emit(item)) for key, item in fields])

    def on_constant(self, node: ast.Constant) -> Term:
        """A constant by type and value: 1, 1.0 and True differ."""
        return (type(node.value).__name__, repr(node.value))

    def on_annassign(self, node: ast.AnnAssign) -> Term:
        """An annotated assignment as a plain one, save in a class, where annotations make fields."""
        in_class = self.scopes and self.scopes[-1][1]
        return self.plain(node if in_class or not node.value else ast.Assign(targets=[node.target], value=node.value))

    def on_name(self, node: ast.Name) -> Term:
        """A name, read or bound."""
        return self.mention(node) if isinstance(node.ctx, ast.Load) else self.binding(node.id)

    def mention(self, node: ast.Name | ast.Attribute) -> Term:
        """A name that is read, with its attributes: through modules that are followed, the member that they lead to."""
        path: list[str] = []
        start: ast.expr = node
        while isinstance(start, ast.Attribute):
            path.insert(0, start.attr)
            start = start.value
        thing = self.names.get(start.id, _MISSING) if isinstance(start, ast.Name) and not self.lookup(start.id) else _MISSING
        home = self.home
        while path and isinstance(thing, ModuleType) and self.reader.is_followed(thing) and path[0] in vars(thing):
            home, thing = getattr(thing, "__file__", None), vars(thing)[path.pop(0)]
        if thing is not _MISSING:
            term = self.reader.value(thing, home)
        else:
            term = self.binding(start.id) if isinstance(start, ast.Name) else self.emit(start)
        for attribute in path:
            term = ("Attribute", term, attribute)
        return term

    on_attribute = mention

    def lookup(self, name: str) -> Term | None:
        """The term of a local name; None for one that is not local."""
        for depth, (scope, is_class) in enumerate(reversed(self.scopes)):
            if name in scope and (depth == 0 or not is_class):
                return scope[name]
        return None

    def binding(self, name: str) -> Term:
        """The term of a name where it is bound, or has no value."""
        return self.lookup(name) or ("global", name)

    def enter(self, parameters: Iterable[ast.arg], body: Iterable[ast.AST], is_class: bool = False) -> None:
        """Enter a scope: decide the term of every name that it binds."""
        binders: dict[str, list[ast.AST]] = {arg.arg: [arg] for arg in parameters}
        for name, node in (pair for each in body for pair in _bound(each)):
            binders.setdefault(name, []).append(node)
        names: dict[str, Term | None] = {}
        for name, nodes in binders.items():
            if any(isinstance(node, ast.Global | ast.Nonlocal) for node in nodes):
                if any(isinstance(node, ast.Global) for node in nodes):
                    names[name] = None
            elif is_class or not self.renames or any(isinstance(node, _NAMED) for node in nodes):
                names[name] = ("local", name)
            else:
                names[name] = ("variable", self.variables)
                self.variables += 1
        self.scopes.append((names, is_class))

    def function(self, node: Definition, is_root: bool = False, is_stage: bool = False) -> Term:
        """A function; of the stage, without its name, its declaration and, unless it is decorated otherwise, its annotations."""
        declared = None if isinstance(node, ast.Lambda) else node
        decorators = [item for item in (declared.decorator_list if declared else ()) if not (is_stage and _declares(item))]
        arguments = _arguments(node.args)
        hints = [*(arg.annotation for arg in arguments), declared and declared.returns]
        outside = [
            declared.name if declared and not is_stage else "",
            self.emit(decorators),
            [] if is_stage and not decorators else [hint and ast.dump(hint) for hint in hints],
            [] if is_root else self.emit([*node.args.defaults, *node.args.kw_defaults]),
        ]
        body = [node.body] if isinstance(node, ast.Lambda) else node.body
        # Parameters of which there are several can be exchanged, which a call by name would see; a lambda's only one cannot.
        is_lone = isinstance(node, ast.Lambda) and len(arguments) == 1 and not is_root
        own: list[ast.AST] = [ast.Name(arguments[0].arg, ast.Store())] if is_lone else []
        self.enter([] if is_lone else arguments, [*own, *body])
        shape = [(key, self.emit(group)) for key, group in ast.iter_fields(node.args) if group and "defaults" not in key]
        term = (type(node).__name__, *outside, len(node.args.defaults), shape, self.emit(body))
        self.scopes.pop()
        return term

    on_functiondef = on_asyncfunctiondef = on_lambda = function

    def on_arg(self, node: ast.arg) -> Term:
        """A parameter, whose annotation is said elsewhere."""
        return self.binding(node.arg)

    def on_classdef(self, node: ast.ClassDef) -> Term:
        """A class: its own names are attributes, so they stay."""
        outside = [self.emit(part) for part in (node.decorator_list, node.bases, node.keywords)]
        self.enter((), node.body, is_class=True)
        term = ("ClassDef", node.name, *outside, self.emit(node.body))
        self.scopes.pop()
        return term

    def on_comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Term:
        """A comprehension; its first iterable is read outside its scope."""
        first = self.emit(node.generators[0].iter)
        self.enter((), [generator.target for generator in node.generators])
        parts = [
            (self.emit(each.target), self.emit(each.iter) if at else first, self.emit(each.ifs), each.is_async)
            for at, each in enumerate(node.generators)
        ]
        results = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        term = (type(node).__name__, parts, self.emit(results))
        self.scopes.pop()
        return term

    on_listcomp = on_setcomp = on_generatorexp = on_dictcomp = on_comprehension

    def on_import(self, node: Import) -> Term:
        """An import inside a function: its names are variables, and what it takes in counts whole."""
        return ("import", [self.binding(name) for name, _ in _bound(node)], self.reader.imported(node, self.home))

    on_importfrom = on_import

    def on_capture(self, node: ast.AST) -> Term:
        """A node that binds names given as text."""
        named = [self.binding(name) for name, binder in _bound(node) if binder is node]
        fields = [(key, self.emit(item)) for key, item in ast.iter_fields(node) if key not in ("name", "rest", "names")]
        return (type(node).__name__, named, fields)

    on_excepthandler = on_matchas = on_matchstar = on_matchmapping = on_global = on_nonlocal = on_capture


def definition(code: CodeType, variables: dict[str, Any]) -> Definition | None:
    """The syntax that the code was compiled from; None where it cannot be told, or where the file has changed since."""
    parsed = _parsed(_text(code.co_filename, variables), code.co_flags & annotations.compiler_flag)
    found = parsed[2].get((code.co_firstlineno, code.co_name), []) if parsed and code in parsed[1] else []
    return found[0] if len(found) == 1 else None


def tree(file: str) -> ast.Module | None:
    """The syntax of a file; None if it has none."""
    parsed = _parsed(_text(file, {}))
    return parsed[0] if parsed else None


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
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from ((alias.asname or alias.name.partition(".")[0], node) for alias in names)
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


def _is_idle(node: Any) -> bool:
    """Whether a statement does nothing, such as a docstring."""
    return isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


def _declares(decorator: ast.expr) -> bool:
    """Whether a decorator of a stage declares it."""
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(called, ast.Attribute) and called.attr in ("source", "stage", "sql")


def _arguments(arguments: ast.arguments) -> list[ast.arg]:
    every = (*arguments.posonlyargs, *arguments.args, arguments.vararg, *arguments.kwonlyargs, arguments.kwarg)
    return [arg for arg in every if arg]


def _text(file: str, variables: dict[str, Any]) -> str:
    linecache.checkcache(file)
    return "".join(linecache.getlines(file, variables))


@functools.lru_cache(maxsize=512)
def _parsed(text: str, flags: int = 0) -> tuple[ast.Module, frozenset[CodeType], dict[tuple[int, str], list[Definition]]] | None:
    """The syntax of a source text, all code compiled from it, and its definitions by first line and name."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = ast.parse(text)
            found = [compile(module, "<fingerprint>", "exec", flags, dont_inherit=True)]
    except (SyntaxError, ValueError):
        return None
    for code in found:
        found.extend(item for item in code.co_consts if isinstance(item, CodeType))
    definitions: dict[tuple[int, str], list[Definition]] = {}
    for node in ast.walk(module):
        if isinstance(node, Definition):
            line = min(item.lineno for item in (node, *getattr(node, "decorator_list", ())))
            definitions.setdefault((line, getattr(node, "name", "<lambda>")), []).append(node)
    return (module, frozenset(found), definitions) if text.strip() else None
