"""Collections that the code calls otherwise than the catalog: recognised, and their logs kept under the new name.

``new`` is ``old`` renamed if new has code and no log, old a log and no code, the same code or plan makes both, and new can go on
where old ends. No row changes by it, so nobody is asked: whoever advances ``new`` first lets the logs have the new name. The
control table has it before the logs do, and the collection's own log is the last to get it: who dies in between does it again.
"""

from __future__ import annotations

import logging
from collections.abc import Collection as Names
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from firnline.errors import FirnlineError
from firnline.model.declaration import Collection
from firnline.model.fingerprint import Fingerprint
from firnline.model.foreign import is_foreign
from firnline.model.graph import Graph
from firnline.model.names import collection_of, logs_of, parted, place
from firnline.plan.renaming import called, called_now, half_renamed, known_as, renamed
from firnline.runtime.project import Project
from firnline.world import world

if TYPE_CHECKING:
    from firnline.plan.agreement import Agreement
    from firnline.tables.metadata import Metadata
    from firnline.tables.sidecar import Input, Sidecar

_logger = logging.getLogger(__name__)


def known_names(
    project: Project,
    graph: Graph,
    collection: Collection,
    renames: Mapping[str, str] | None = None,
    agreed: Agreement | None = None,
) -> dict[str, str]:
    """What a stage and its inputs are known as in plans, where that is not their name.

    Args:
        project: The project.
        graph: The pipeline.
        collection: The stage.
        renames: Collections whose logs still have other names.
        agreed: What the pipeline's control table says, if that is known.
    """
    known: dict[str, str] = {}
    of_each = {} if agreed is None else {graph.name: agreed}
    for each in (collection.name, *collection.inputs):
        pipeline, name = place(graph.name, each)
        if pipeline not in of_each:
            of_each[pipeline] = project.control(pipeline).agreement()
        said = of_each[pipeline]
        asked = name if name in said.names else (renames or {}).get(each, name)
        found = known_as(said, asked)
        if found != asked and asked not in said.names:  # it took up a name that another had, or the other never got its new one
            found = known_as(said, half_renamed(said.names, project.catalog.names(pipeline)).get(asked, asked))
        if found != name:
            known[each] = f"{pipeline}.{found}" if is_foreign(each) else found
    return known


def inputs_of(project: Project, graph: Graph, sidecar: Sidecar) -> dict[str, Input]:
    """What a publish of a pipeline was made from, by the names of today."""
    known = {each.name for each in graph.collections}
    return {name if name in known else _now(project, graph, name): of for name, of in sidecar.inputs.items()}


def _now(project: Project, graph: Graph, name: str) -> str:
    space, collection = place(graph.name, name)
    if collection in project.catalog.names(space):
        return name
    found = called_now(project.control(space).agreement().names, collection)
    return f"{space}.{found}" if is_foreign(name) else found


def renames(project: Project, graph: Graph) -> dict[str, str]:
    """The collections whose logs have other names, with these."""
    from firnline.tables.control import TABLE

    there = project.catalog.names(graph.name) - {TABLE}
    known = {each.name for each in graph.collections}
    new = [each for each in graph.collections if each.name not in there]
    left = {name for name in there if collection_of(name) not in known} if new else set()
    tables = {name: project.catalog.table(graph.name, name) for name in sorted(left) if "__" not in name}
    old = {name: table for name, table in tables.items() if table is not None and table.head is not None}
    found: dict[str, str] = {}
    while old and new:
        more = _match(project, graph, [each for each in new if _is_readable(each, there, found)], old, found)
        if not more:
            break
        found |= more  # what reads these can be known now
        new = [each for each in new if each.name not in found]
        old = {name: table for name, table in old.items() if name not in more.values()}
    return found


def keep_renamed(project: Project, graph: Graph, collection: str) -> bool:
    """Let a collection without a log have the one of its old name, if there is one; whether there was."""
    if collection in project.catalog.names(graph.name):
        return False
    old = renames(project, graph).get(collection)
    if old is None:
        return False
    _logger.info("%s.%s goes on with the log of %s", graph.name, collection, old)
    _keep(project, graph, old, collection)
    return True


def keep_all(project: Project, graph: Graph) -> None:
    """Let all renamed collections of a pipeline have their logs; what was to be renamed, and is not any more, has its own."""
    there, known = project.catalog.names(graph.name), {each.name for each in graph.collections}
    for old, new in half_renamed(project.control(graph.name).agreement().names, there).items():
        if old in known and new not in known:
            _keep(project, graph, new, old)
    for each in graph.collections:
        if each.name not in there:
            keep_renamed(project, graph, each.name)


def check_renamed(project: Project, graph: Graph, code: str) -> None:
    """Refuse, before anything is changed, what would pass over logs that have their old names yet."""
    for new, old in renames(project, graph).items():
        todo = f"Let it have its name first: firnline approve {graph.name}"
        raise FirnlineError(code, f"{new!r} goes on with the log of {old!r}, which has its old name yet", todo=todo)


def _keep(project: Project, graph: Graph, old: str, new: str) -> None:
    from firnline.runtime.forgetting import forget_notes
    from firnline.tables import determinants, plain, views
    from firnline.tables.trash import COPIED

    catalog, pipeline = project.catalog, graph.name
    project.control(pipeline).name(lambda present: renamed(present, old, new))
    _move(project, f"{pipeline}/{determinants.FOLDER}/{old}", f"{pipeline}/{determinants.FOLDER}/{new}")
    forget_notes(project, graph, [old], graph.schedule.start)  # nobody would look for them any more
    if parted(pipeline)[1] is None:
        catalog.forget_view(f"{pipeline}{views.NAMESPACE}", old)
        if old in catalog.names(f"{pipeline}{plain.NAMESPACE}"):
            catalog.rename(f"{pipeline}{plain.NAMESPACE}", old, new)
    for each in logs_of([old], catalog.names(pipeline)):
        _move(project, f"{pipeline}/{each}/{COPIED}", f"{pipeline}/{called(each, old, new)}/{COPIED}")
        catalog.rename(pipeline, each, called(each, old, new))
        world().reach("rename.moved")


def _move(project: Project, folder: str, into: str) -> None:
    """Let small files below the warehouse be where they are looked for under a collection's new name."""
    catalog = project.catalog
    for path in catalog.paths(f"{catalog.warehouse}/{folder}"):
        with suppress(FileNotFoundError):  # somebody else moves them, too
            catalog.write_once(f"{catalog.warehouse}/{into}/{path.rpartition(f'/{folder}/')[2]}", catalog.read(path))
            catalog.remove(path)


def _is_readable(collection: Collection, there: Names[str], found: Mapping[str, str]) -> bool:
    return all(is_foreign(name) or name in there or name in found for name in collection.inputs)


def _match(
    project: Project, graph: Graph, asked: list[Collection], old: Mapping[str, Metadata], found: Mapping[str, str]
) -> dict[str, str]:
    """The collections that can go on with a log, each with its own; of several logs with the one that went furthest."""
    from firnline.runtime.offline_plan import offline_plans
    from firnline.tables.log import head_of

    heads = {name: head for name, table in old.items() if (head := head_of(table)).fingerprint}
    codes = {head.fingerprint.code for head in heads.values() if head.fingerprint}
    edited = [each.name for each in asked if each.kind == "stage" and graph.fingerprints[each.name] not in codes]
    plans = offline_plans(project, graph, edited, found) if edited else {}
    matched: dict[str, str] = {}
    for each in asked:
        today = Fingerprint(graph.fingerprints[each.name], plans.get(each.name))
        free = sorted(heads.keys() - matched.values(), key=lambda name: -heads[name].description.upper)
        same = (name for name in free if (made_by := heads[name].fingerprint) and today.is_same(made_by))
        able = next((name for name in same if _can_go_on(project, graph, each, old[name], found)), None)
        if able is not None:
            matched[each.name] = able
    return matched


def _can_go_on(project: Project, graph: Graph, collection: Collection, table: Metadata, found: Mapping[str, str]) -> bool:
    """Whether the inputs of a collection are as a log knew them, and there epoch by epoch from its end on."""
    from firnline.tables.log import entries_of, head_of
    from firnline.tables.metadata import ADOPTED
    from firnline.tables.reusing import rewound_since

    if ADOPTED in table.properties:
        return False
    upper = head_of(table).description.upper
    newest = next(entries_of(table), None)
    read = {} if newest is None else inputs_of(project, graph, project.log(graph.name, table.name).sidecar(newest))
    for name in collection.inputs:
        log = project.log(graph.name, found.get(name, name))
        head = log.head()
        if head is None or head.description.since > upper:
            return False
        then = read.get(name) or read.get(found.get(name, name))
        if then is None:
            return False
        if then.generation != head.description.generation:
            since = rewound_since(log, then.generation)
            if since is None or since < upper:
                return False
    return True
