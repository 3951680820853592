"""Stages on a session without a server, bound and canonical."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from pyspark.sql import DataFrame

from firnline.engine.ddl import of_ddl
from firnline.engine.frames import frame_of, relation_of
from firnline.engine.python_functions import noted
from firnline.engine.unplugged import UnpluggedError, known, unplugged
from firnline.incremental.binding import Binder
from firnline.incremental.canonical import Canonical
from firnline.incremental.relation import named
from firnline.incremental.scope import Bound
from firnline.model.fingerprint import fingerprint

Stage = Callable[..., Any]
ORDERS, PEOPLE = "id int, who string, amount int, tags array<string>", "name string, city string"


def refuse(_: object) -> NoReturn:
    raise UnpluggedError


def bound(stage: Stage, orders: str = ORDERS) -> tuple[Bound, Canonical]:
    """A stage of orders and people, bound, and what tells the meaning of its plan."""
    inputs: dict[int, tuple[str, list[str]]] = {}
    with unplugged({}, lambda frame: Binder(inputs, refuse).bind(relation_of(frame)).names) as session:
        schemas: dict[str, Any] = {"orders": of_ddl(orders), "people": of_ddl(PEOPLE)}
        frames: dict[str, DataFrame] = {name: known(frame_of(session, named(name)), of) for name, of in schemas.items()}
        inputs |= {relation_of(frame).common.plan_id: (name, frame.columns) for name, frame in frames.items()}
        with noted() as functions:
            relation = relation_of(stage(frames["orders"], frames["people"]))
        found = Binder(inputs, refuse).bind(relation)
    types = {name: [(each.name, each.dataType.simpleString()) for each in of.fields] for name, of in schemas.items()}
    known_functions = {pickled: fingerprint(each, Path(__file__).parent) for pickled, each in functions.items()}
    return found, Canonical(types, known_functions, {})
