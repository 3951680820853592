"""Cases written in YAML, ``tests/test_*.yaml``: rows in, rows out, epoch by epoch.

A file maps the names of cases to what they are::

    test_a_correction:
      stage: sales.spend_by_customer
      schemas:                                     # if the values do not say it
        orders: order_id string, customer string, amount decimal(10,2)
      epochs:
        - inputs:
            orders:
              - {order_id: "1", customer: Ada, amount: 420.00}
          outputs:                                 # the rows after the epoch
            - {customer: Ada, orders: 1, spent: 420.00}
        - crash: publish.committed
          inputs: ...
          changes: ...                             # what the epoch changes, with _diff

A case of one epoch may have ``inputs``, ``outputs`` and ``changes`` itself, without ``epochs``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml

from firnline.errors import FirnlineError, Location
from firnline.model.names import DIFF
from firnline.testing.differing import told
from firnline.testing.history import Crash, Item, table_of
from firnline.testing.running import Ran, run

_WEIGHT = pa.field(DIFF, pa.int64())
_OF_EPOCH = ("inputs", "outputs", "changes", "crash")
_OF_CASE = ("stage", "description", "schemas", "start", "epochs")


@dataclass(frozen=True)
class Case:
    """A case of a file."""

    path: Path
    line: int
    name: str
    stage: str
    schemas: Mapping[str, str]
    start: object
    epochs: tuple[Mapping[str, Any], ...]

    def check(self) -> None:
        """Run the case; an AssertionError tells which rows differ, and after which epoch."""
        history = list[Item]()
        for epoch in self.epochs:
            history += [_crash(each) for each in _several(epoch.get("crash"))]
            history.append({name: rows or [] for name, rows in (epoch.get("inputs") or {}).items()})
        ran = run(self.stage, history, schemas=self.schemas, start=self.start, root=self.path.parent)
        for number, epoch in enumerate(self.epochs, 1):
            if "outputs" in epoch:
                _compare(ran, epoch["outputs"] or [], ran.rows(after=number), f"after {ran.label(number)}")
            if "changes" in epoch:
                found = ran.changes(epoch=number)
                _compare(ran, [{DIFF: 1, **row} for row in epoch["changes"] or []], found, f"changed by {ran.label(number)}")


def cases_of(path: Path) -> list[Case]:
    """The cases of a file, in order."""
    try:
        node = yaml.compose(path.read_text(encoding="utf-8"), yaml.SafeLoader)
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise FirnlineError("BAD_HISTORY", f"{path.name} is no YAML: {error}", Location(str(path), 1)) from None
    if not isinstance(document, dict):
        raise FirnlineError("BAD_HISTORY", f"{path.name} maps no names to cases", Location(str(path), 1))
    assert isinstance(node, yaml.MappingNode)
    lines = [key.start_mark.line + 1 for key, _ in node.value]
    if len(lines) != len(document):
        raise FirnlineError("BAD_HISTORY", f"{path.name} has two cases of one name", Location(str(path), 1))
    return [_case(path, line, name, entry) for line, (name, entry) in zip(lines, document.items(), strict=True)]


def _case(path: Path, line: int, name: object, entry: Any) -> Case:
    def refuse(what: str) -> FirnlineError:
        return FirnlineError("BAD_HISTORY", f"the case {name!r}: {what}", Location(str(path), line))

    if not isinstance(entry, dict) or not isinstance(entry.get("stage"), str):
        raise refuse("it has no stage")
    single = {key: entry[key] for key in _OF_EPOCH if key in entry}
    epochs = entry.get("epochs", [single])
    if not isinstance(epochs, list) or not all(isinstance(epoch, dict) for epoch in epochs):
        raise refuse("its epochs are no list of mappings")
    if single and "epochs" in entry:
        raise refuse(f"it has both epochs and {next(iter(single))}")
    unknown = {*entry} - {*_OF_CASE, *_OF_EPOCH} | {key for epoch in epochs for key in epoch if key not in _OF_EPOCH}
    if unknown:
        raise refuse(f"nobody knows {', '.join(map(repr, sorted(map(str, unknown))))}")
    if not any(key in epoch for epoch in epochs for key in ("outputs", "changes")):
        raise refuse("it expects nothing: no epoch has outputs or changes")
    return Case(path, line, str(name), entry["stage"], entry.get("schemas") or {}, entry.get("start"), tuple(epochs))


def _several(crash: Any) -> list[Any]:
    return [] if crash is None else crash if isinstance(crash, list) else [crash]


def _crash(given: Any) -> Crash:
    """``POINT``, or ``{point: POINT, collection: NAME}``."""
    return Crash(**given) if isinstance(given, dict) else Crash(given)


def _compare(ran: Ran, expected: list[dict[str, Any]], found: list[dict[str, Any]], when: str) -> None:
    schema = ran.schema()
    if any(DIFF in row for row in [*expected, *found]):
        schema = schema.append(_WEIGHT)
    unknown = {name for row in expected for name in row if name not in schema.names}
    if unknown:
        raise AssertionError(f"{ran.name} has no column {', '.join(sorted(unknown))}; its columns: {', '.join(schema.names)}")
    rows = table_of(str(ran.name), expected, schema).to_pylist()
    differing = told(rows, found, names=("expected", "found"))
    if differing is not None:
        raise AssertionError(f"{ran.name} {when} is not as expected:\n{differing}")
