"""A project on disk: its settings, its pipelines, its logs and its ledger.

The pipeline NAME lives in ``include/pipelines/NAME.py``. ``graph`` answers without importing it, from a cache that is made in a
process of its own whenever the project's code or environment changed: DAG parsing and control commands never import PySpark.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.util import cache_from_source
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from firnline.engine.pinned import PINNED
from firnline.errors import FirnlineError, GraphError, Location
from firnline.model.declaration import Collection, Function, Pipeline
from firnline.model.durability import Keeping
from firnline.model.foreign import pipelines_read
from firnline.model.graph import Graph, branched, check
from firnline.model.names import is_name, parted, place
from firnline.runtime.cache import keep, recall
from firnline.settings import PROFILE, Settings

if TYPE_CHECKING:
    from firnline.ledger import Ledger
    from firnline.runtime.flusher import Flusher
    from firnline.runtime.stash import Stash
    from firnline.tables.catalog import Catalog
    from firnline.tables.check_results import CheckResults
    from firnline.tables.control import Control
    from firnline.tables.determinants import Determinants
    from firnline.tables.failures import Failures
    from firnline.tables.log import Log

PIPELINES = Path("include", "pipelines")
EXPECTATIONS = Path("include", "expectations")
_PACKAGE = "include"


@dataclass(frozen=True)
class Declared:
    """A pipeline with its functions, as its module declares it."""

    graph: Graph
    functions: dict[str, Function]
    root: Path
    """The project's folder."""
    loss_handler: Function | None = None
    """What is asked before lost rows are repaired."""
    sinks: Mapping[str, Function] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Project:
    """A Firnline project."""

    settings: Settings

    @classmethod
    def load(cls, start: Path | None = None) -> Project:
        """The project that holds the folder ``start`` (the current one by default)."""
        return cls(Settings.load(start))

    @cached_property
    def catalog(self) -> Catalog:
        """The Iceberg catalog."""
        from firnline.tables.catalog import Catalog

        return Catalog(self.settings.catalog_uri, self.settings.warehouse, self.settings.catalog_options, self.concordance)

    @property
    def concordance(self) -> Path | None:
        """The folder of the concordance; None if data files are not on this machine's disk."""
        return self.settings.work / "concordance" if urlsplit(self.settings.warehouse).scheme in ("", "file") else None

    @cached_property
    def ledger(self) -> Ledger:
        """The ledger."""
        from firnline.ledger import Ledger

        return Ledger(self.settings.ledger_uri)

    @cached_property
    def stash(self) -> Stash:
        """What is on its way to the ledger."""
        from firnline.runtime.stash import Stash

        return Stash(self.settings.work / "stash")

    @cached_property
    def flusher(self) -> Flusher:
        """What carries it there."""
        from firnline.runtime.flusher import Flusher

        return Flusher(self)

    def log(self, pipeline: str, collection: str) -> Log:
        """The log of a collection, of another pipeline if its name says so."""
        from firnline.tables.log import Log

        return Log(self.catalog, *place(pipeline, collection))

    def failures(self, pipeline: str) -> Failures:
        """The failed attempts of a pipeline."""
        from firnline.tables.failures import Failures

        return Failures(self.catalog, pipeline)

    def check_results(self, pipeline: str) -> CheckResults:
        """What became of the checks of a pipeline."""
        from firnline.tables.check_results import CheckResults

        return CheckResults(self.catalog, pipeline)

    def determinants(self, pipeline: str, collection: str, lower: int) -> Determinants:
        """What an epoch of a source took from the outside."""
        from firnline.tables.determinants import Determinants

        main, branch = parted(pipeline)
        behind = None if branch is None else Determinants(self.catalog, main, collection, lower)
        return Determinants(self.catalog, pipeline, collection, lower, behind)

    def control(self, pipeline: str) -> Control:
        """The control table of a pipeline."""
        from firnline.tables.control import Control

        return Control(self.catalog, pipeline)

    def pipelines(self) -> tuple[str, ...]:
        """The names of the project's pipelines."""
        folder = self.settings.root / PIPELINES
        return tuple(sorted(path.stem for path in folder.glob("*.py") if is_name(path.stem)))

    def suites(self) -> tuple[str, ...]:
        """The names of the project's suites of expectations."""
        folder = self.settings.root / EXPECTATIONS
        return tuple(sorted({path.stem for path in folder.glob("[!.]*") if path.suffix in (".json", ".py")}))

    def graph(self, name: str) -> Graph:
        """A pipeline's graph, without importing its module into this process."""
        home = self.home(name)
        home._path(parted(name)[0])
        document = recall(self._graphs, name, home.state()) or self._compile(name)
        return Graph.of_json(document)

    def graphs(self) -> tuple[list[Graph], dict[str, FirnlineError]]:
        """The graphs of the pipelines that load, and what is wrong with the others: they must not stop or hide these."""
        found, broken = list[Graph](), dict[str, FirnlineError]()
        for name in self.pipelines():
            try:
                found.append(self.graph(name))
            except FirnlineError as error:
                broken[name] = error
        return found, broken

    def home(self, name: str) -> Project:
        """The project with the code of a pipeline: this one, but for a branch that has code of its own."""
        if parted(name)[1] is None:
            return self
        from firnline.runtime.branch import note_of

        code = note_of(self, name).code
        return self if code is None else Project(self.settings.model_copy(update={"root": Path(code)}))

    def declared(self, name: str) -> Declared:
        """A pipeline with its functions; imports its module, and PySpark with it."""
        home = self.home(name)
        state = home.state()
        declared, branch = home._declared(parted(name)[0]), parted(name)[1]
        if branch is not None:
            declared = replace(declared, graph=branched(declared.graph, name))
        keep(self._graphs, name, state, declared.graph.as_json())
        return declared

    def _declared(self, name: str) -> Declared:
        self._path(name)
        declared = self.checked(self._import(name))
        return replace(declared, graph=replace(declared.graph, doc=inspect.getdoc(sys.modules[_module(name)]) or ""))

    def checked(self, pipeline: Pipeline) -> Declared:
        """A pipeline that is imported already, with its functions."""
        from firnline.model.fingerprint import fingerprint

        root = self.settings.root
        fingerprints = {
            collection.name: fingerprint(function, root, {**PINNED, **_shape(collection)})
            for collection, function in pipeline.declared
        }
        keeping = Keeping(self.settings.warehouse, self.settings.replicas)
        graph = check(pipeline, fingerprints, self.suites(), keeping, self._others(pipeline))
        functions = {collection.name: function for collection, function in pipeline.declared}
        sinks = {sink.name: function for sink, function in pipeline.sinks}
        return Declared(graph, functions, root, next(iter(pipeline.loss_handlers), None), sinks)

    @property
    def _graphs(self) -> Path:
        return self.settings.work / "graphs"

    def _path(self, name: str) -> Path:
        path = self.settings.root / PIPELINES / f"{name}.py"
        if not is_name(name) or not path.is_file():
            known = ", ".join(self.pipelines()) or "none"
            raise FirnlineError("NO_SUCH_PIPELINE", f"there is no pipeline {name!r}; this project has: {known}")
        return path

    def _import(self, name: str) -> Pipeline:
        root = str(self.settings.root)
        if sys.path[0] != root:
            sys.path.insert(0, root)
        for loaded in [module for module in sys.modules if module == _PACKAGE or module.startswith(f"{_PACKAGE}.")]:
            del sys.modules[loaded]  # an older text of it, or another project's
        self._forget_bytecode()
        importlib.invalidate_caches()
        return self._imported(name)

    def _others(self, pipeline: Pipeline) -> dict[str, Pipeline]:
        """The pipelines that one reads, and those that these read."""
        found, waiting = dict[str, Pipeline](), {*pipelines_read(pipeline)}
        while waiting:
            name = waiting.pop()
            if name != pipeline.name and name in self.pipelines():
                found[name] = self._imported(name)
                waiting |= {*pipelines_read(found[name])} - found.keys()
        return found

    def _imported(self, name: str) -> Pipeline:
        try:
            with self._loading():
                module = importlib.import_module(_module(name))
        except (Exception, SystemExit) as error:
            raise _unloadable(name, error, self.settings.root) from error
        _ship_by_value()
        declared = list({id(value): value for value in vars(module).values() if isinstance(value, Pipeline)}.values())
        found = [pipeline for pipeline in declared if pipeline.name == name]
        if len(found) == 1:
            return found[0]
        if not found and declared:
            check(declared[0], {})
        file = f"{PIPELINES / name}.py"
        if found:
            raise FirnlineError("NO_SUCH_PIPELINE", f"{file} declares two pipelines named {name!r}", found[1].where)
        todo = f"Declare Pipeline({name!r}, ...) in it; what is no pipeline belongs into {_PACKAGE}/, not {PIPELINES}/."
        raise FirnlineError("NO_SUCH_PIPELINE", f"{file} declares no Pipeline named {name!r}", todo=todo)

    @contextmanager
    def _loading(self) -> Iterator[None]:
        """What a module makes when it is loaded (columns, windows, UDFs) is made for Connect, without waiting for Spark."""
        from pyspark.sql.connect.session import SparkSession  # late: graphs that are known need no PySpark

        from firnline.engine.unplugged import unplugged

        if SparkSession.getActiveSession() is None:
            with unplugged(self.settings.spark_conf):
                yield
        else:
            yield

    def _forget_bytecode(self) -> None:
        """Remove what Python kept of the project's code: it tells two texts of one length apart by the second only."""
        for path in self._code():
            with suppress(OSError):
                Path(cache_from_source(str(path))).unlink(missing_ok=True)

    def state(self) -> str:
        """A hash of all that a graph, its fingerprints and those of its plans are made from."""
        state = hashlib.sha256(sys.version.encode())
        for path in self._code():
            state.update(str(path).encode() + b"\0" + _content(path))
        ours = Path(__file__).parent.parent
        made_by = [*sorted((ours / "model").glob("*.py")), *sorted((ours / "incremental").glob("*.py"))]
        for path in (*made_by, ours / "engine" / "pinned.py", Path(__file__)):
            state.update(path.read_bytes())
        state.update(repr((self.suites(), self.settings.warehouse, self.settings.replicas)).encode())
        state.update(str(os.stat(sysconfig.get_path("purelib")).st_mtime_ns).encode())
        return state.hexdigest()[:16]

    def _code(self) -> Iterator[Path]:
        """The project's own Python files: all below its root, but for hidden ones, environments and the work folder."""
        for folder, inner, files in os.walk(self.settings.root):
            inner[:] = sorted(
                name for name in inner if not name.startswith((".", "__")) and not self._is_foreign(Path(folder, name))
            )
            yield from (Path(folder, name) for name in sorted(files) if name.endswith(".py") and not name.startswith("."))

    def _is_foreign(self, folder: Path) -> bool:
        return folder == self.settings.work or os.path.exists(folder / "pyvenv.cfg")  # unlike Path.exists, whoever may enter it

    def _compile(self, name: str) -> dict[str, object]:
        done = subprocess.run(
            [sys.executable, "-c", f"from {__name__} import print_graph; print_graph({name!r})"],
            cwd=self.settings.root,
            env={**os.environ, "FIRNLINE_ROOT": str(self.settings.root), PROFILE: self.settings.profile},
            capture_output=True,
            text=True,
        )
        try:
            answer = json.loads(done.stdout.splitlines()[-1])
        except (IndexError, ValueError):
            tail = (done.stderr or done.stdout).strip()[-2000:]
            raise FirnlineError("PIPELINE_UNLOADABLE", f"the pipeline {name!r} did not load: {tail}") from None
        if "problems" in answer:
            raise GraphError([_problem(entry) for entry in answer["problems"]])
        graph: dict[str, object] = answer["graph"]
        return graph


def _module(name: str) -> str:
    return ".".join((*PIPELINES.parts, name))


def _content(path: Path) -> bytes:
    """What is in a file; nothing where it cannot be read, which who imports it hears of."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _ship_by_value() -> None:
    """Let functions of the project travel to Python workers whole: those have no copy of the project to import them from."""
    from pyspark.cloudpickle import register_pickle_by_value

    register_pickle_by_value(sys.modules[_PACKAGE])  # type: ignore[no-untyped-call]


def _shape(collection: Collection) -> dict[str, str]:
    """What else a collection's rows depend on than its function."""
    shape = {"keys": json.dumps(collection.keys), "partition_by": json.dumps(collection.partition_by)}
    if collection.query is not None:
        shape["query"] = _settled(collection.query)
    return shape


def _settled(query: str) -> str:
    """A query without its layout and comments; as it stands where it is not even SQL's words."""
    import sqlglot  # late: few need it, and it takes a while to load

    try:
        tokens = sqlglot.tokenize(query, read="spark")
    except sqlglot.errors.SqlglotError:
        return query
    kept = ("STRING", "VAR", "IDENTIFIER")
    names = [(token.token_type.name, token.text) for token in tokens]
    return repr([(name, text if name in kept else text.upper()) for name, text in names])


def _unloadable(name: str, error: BaseException, root: Path) -> FirnlineError:
    where = user_line(error, root)
    return FirnlineError("PIPELINE_UNLOADABLE", f"the pipeline {name!r} did not load: {type(error).__name__}: {error}", where)


def user_line(error: BaseException, root: Path) -> Location | None:
    """The last line of the project's own code that an error passed through."""
    found = None
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        found = Location(error.filename, error.lineno)
    trace = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if Path(file).is_relative_to(root / _PACKAGE):
            found = Location(file, trace.tb_lineno)
        trace = trace.tb_next
    return found


def _problem(entry: dict[str, str]) -> FirnlineError:
    return FirnlineError(entry["code"], entry["what"], Location.of(entry["where"]), todo=entry["todo"])


def print_graph(name: str) -> None:
    """Print a pipeline's graph, or what is wrong with it, as one line of JSON."""
    try:
        print(json.dumps({"graph": Project.load().declared(name).graph.as_json()}))
    except GraphError as error:
        print(json.dumps({"problems": [problem.as_json() for problem in error.problems]}))
    except FirnlineError as error:
        print(json.dumps({"problems": [error.as_json()]}))
