"""A view per collection, for SQL: only the user's columns, whole epochs only, up to the frontier as it is when it is asked.

A view is a row of the catalog and a small file, as Iceberg's view specification has it; PyIceberg's catalog does not write them,
Spark's reads them. The query itself looks up the frontier, so that a view changes only when the columns do, and maintenance
changes nothing that it says. Should a merge come between its two looks, ``since`` of the log is the point.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from firnline.model.description import SINCE
from firnline.model.names import BOOKKEEPING, DIFF, EPOCH, floating, quoted
from firnline.tables.commit import until_known
from firnline.tables.control import FRONTIER
from firnline.tables.control import TABLE as CONTROL
from firnline.world import world

if TYPE_CHECKING:
    from firnline.tables.catalog import Catalog
    from firnline.tables.metadata import Metadata

NAMESPACE = "__views"


def query(log: Metadata) -> str:
    """The rows of a log's collection, in Spark's SQL."""
    names = [name for name in log.columns if name not in BOOKKEEPING]
    columns = ", ".join(map(quoted, names))
    lying = floating({name: log.types[name] for name in names})
    exact = {name: f"coalesce({quoted(name)}, {quoted(name)}) AS {quoted(name)}" for name in lying}  # as firnline.read has them
    shown = ", ".join(exact.get(name, quoted(name)) for name in names)
    frontier = _head_of(log.pipeline, CONTROL, f"get_json_object(s.summary['{FRONTIER}'], '$.upper')")
    since = _head_of(log.pipeline, log.name, f"s.summary['{SINCE}']")
    point = f"SELECT max(point) FROM ({frontier} UNION ALL {since})"
    rows = f"SELECT {columns} FROM {quoted(log.pipeline, log.name)} WHERE {EPOCH} < ({point})"
    return f"SELECT {shown} FROM ({rows} GROUP BY {columns} HAVING sum({DIFF}) > 0)"


def _head_of(pipeline: str, table: str, value: str) -> str:
    """What the head of a table says."""
    snapshots, refs = (quoted(pipeline, table, part) for part in ("snapshots", "refs"))
    joined = f"{snapshots} s JOIN {refs} r ON s.snapshot_id = r.snapshot_id"
    return f"SELECT CAST({value} AS bigint) AS point FROM {joined} WHERE r.name = 'main'"


def keep(catalog: Catalog, log: Metadata, doc: str) -> bool:
    """Make the view of a log, or make it anew if it does not say what it should; whether it had to."""
    namespace = f"{log.pipeline}{NAMESPACE}"

    def attempt_once() -> bool:
        there = catalog.view(namespace, log.name)
        made = _metadata(catalog, log, namespace, doc, None if there is None else there[1])
        if made is None:
            return False
        catalog.put_view(namespace, log.name, None if there is None else there[0], made)
        return True

    return until_known(f"the view of {log.pipeline}.{log.name}", attempt_once)


def _metadata(catalog: Catalog, log: Metadata, namespace: str, doc: str, before: dict[str, Any] | None) -> dict[str, Any] | None:
    """The file of a view; None if the one before says the same."""
    fields = [
        {"id": number, "name": name, "required": False, "type": _type(log.types[name])}
        for name, number in log.columns.items()
        if name not in BOOKKEEPING
    ]
    text, names = query(log), [field["name"] for field in fields]
    number = 1 if before is None else int(before["current-version-id"]) + 1
    now = int(world().now().timestamp() * 1000)
    if before is not None:
        last = before["versions"][-1]
        said = (
            last["representations"][0]["sql"],
            _shown(before["schemas"][-1]["fields"]),
            before["properties"].get("comment", ""),
        )
        if said == (text, _shown(fields), doc):
            return None
    version = {
        "version-id": number,
        "timestamp-ms": now,
        "schema-id": number - 1,
        "summary": {"engine-name": "firnline"},
        "default-namespace": [log.pipeline],
        "representations": [{"type": "sql", "sql": text, "dialect": "spark"}],
    }
    return {
        "view-uuid": before["view-uuid"] if before else _uuid(world().new_id()),
        "format-version": 1,
        "location": before["location"] if before else f"{catalog.warehouse}/{namespace}/{log.name}",
        "properties": {"spark.query-column-names": ",".join(names), "provider": "iceberg", **({"comment": doc} if doc else {})},
        "schemas": [{"type": "struct", "schema-id": number - 1, "fields": fields}],
        "current-version-id": number,
        "versions": [version],
        "version-log": [*(before["version-log"] if before else ()), {"timestamp-ms": now, "version-id": number}],
    }


def _shown(fields: Any) -> Any:
    """What a reader sees of columns: a REST catalog gives them numbers of its own."""
    if isinstance(fields, dict):
        return {name: _shown(value) for name, value in fields.items() if not name.endswith("id")}
    return [_shown(each) for each in fields] if isinstance(fields, list) else fields


def _type(described: str) -> Any:
    return json.loads(described) if described.startswith("{") else described


def _uuid(text: str) -> str:
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:32]))
