"""The outline of a bound plan: its canonical form, and the same with what may change by itself left out."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from firnline.incremental.algebra import Filter, Input, Node, changed, walk
from firnline.incremental.canonical import Canonical, Meaning

_DIGITS = 12


def outlined(root: Node, ids: Mapping[str, str], exact: Canonical) -> dict[str, Any]:
    """The fields of an outline that come from a plan.

    Args:
        root: The plan, without columns that nobody reads.
        ids: The ids of the stage's columns, by name.
        exact: What the plan means.
    """
    loose, bare = exact.loose(), _unfiltered(root)
    said, meant = exact.meaning(root), loose.meaning(bare[id(root)])
    filters = [node for node in walk(root) if isinstance(node, Filter)]
    reads = [(node.collection, each.name) for node in walk(root) if isinstance(node, Input) for each in node.columns]

    def columns(of: Meaning) -> dict[str, str]:
        return {name: short(of.columns[each]) for name, each in ids.items()}

    return {
        "rows": short(said.rows),
        "columns": columns(said),
        "loose_rows": short(meant.rows),
        "loose_columns": columns(meant),
        "filters": short([loose.said(each.condition, loose.known(bare[id(each.input)]).columns) for each in filters]),
        "functions": short(sorted(exact.called)),
        "types": {f"{of}.{name}": exact.types(of).get(name, "") for of, name in sorted(reads)},
    }


def short(said: object) -> str:
    """A hash that is long enough to tell what differs."""
    return hashlib.sha256(repr(said).encode()).hexdigest()[:_DIGITS]


def _unfiltered(root: Node) -> dict[int, Node]:
    """The nodes of a tree as they are without its filters, by the ids of those that they stand for."""
    done: dict[int, Node] = {}
    for node in walk(root):
        inputs = {each.name: done[id(value)] for each in fields(node) if isinstance(value := getattr(node, each.name), Node)}
        done[id(node)] = inputs["input"] if isinstance(node, Filter) else changed(node, **inputs)
    return done
