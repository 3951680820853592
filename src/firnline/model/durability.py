"""How well batches are kept: which places there are, and on how many of them a collection's batches have to be.

A place is named by its URL and known by a short id. The warehouse is one place; replicas are the others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import get_args
from urllib.parse import urlsplit

from firnline.errors import FirnlineError
from firnline.model.declaration import Collection, Level, Pipeline


@dataclass(frozen=True, slots=True)
class Keeping:
    """Where a project keeps what is published."""

    warehouse: str = ""
    replicas: tuple[str, ...] = ()
    """Of pipelines that name none."""


NOWHERE_ELSE = Keeping()


def settled(url: object) -> str:
    """A place's URL in one way of writing.

    >>> settled("file:///mnt/b/"), settled("s3://bucket/x")
    ('file:///mnt/b', 's3://bucket/x')
    """
    parts = urlsplit(url) if isinstance(url, str) else urlsplit("")
    if not parts.scheme or not (parts.netloc or parts.path.strip("/")) or parts.query or parts.fragment:
        raise ValueError(f"{url!r} is no URL of a place; write for example 'file:///mnt/b' or 's3://bucket/folder'")
    if parts.scheme == "file" and (parts.netloc or not parts.path.startswith("/")):
        raise ValueError(f"{url!r} is no absolute path; write for example 'file:///mnt/b'")
    return str(url).rstrip("/")


def place_id(url: str) -> str:
    """The short name of a place.

    >>> place_id("file:///mnt/b")
    '57a3490f0ab6'
    """
    return hashlib.sha256(url.encode()).hexdigest()[:12]


def replicas_of(pipeline: Pipeline, keeping: Keeping) -> tuple[str, ...]:
    """The places beside the warehouse; they must have passed ``durability_problems``."""
    return tuple(map(settled, keeping.replicas if pipeline.replicas is None else pipeline.replicas))


def kept(collection: Collection, pipeline: Pipeline, replicas: tuple[str, ...]) -> Collection:
    """A collection that says how well it is kept, whatever it left open."""
    level: Level = collection.level or ("remote" if replicas else "disk")
    durability = 1
    if level == "remote":
        durability = collection.durability or pipeline.durability or 1 + len(replicas)
    return replace(collection, level=level, durability=durability)


def durability_problems(pipeline: Pipeline, keeping: Keeping) -> Iterator[FirnlineError]:
    """What is wrong with replicas and with what is asked of them."""

    def problem(what: str, collection: Collection | None = None) -> FirnlineError:
        return FirnlineError("BAD_OPTION", what, pipeline.where if collection is None else collection.where)

    named: object = keeping.replicas if pipeline.replicas is None else pipeline.replicas
    if not isinstance(named, list | tuple):
        yield problem(f"replicas={named!r} is no list of URLs")
        named = ()
    found: list[str] = []
    for each in named:
        try:
            url = settled(each)
        except ValueError as error:
            yield problem(f"replicas: {error}")
            continue
        if url in found:
            yield problem(f"replicas name {url} twice, and a place counts once")
        if keeping.warehouse and _overlap(url, keeping.warehouse.rstrip("/")):
            yield problem(f"the replica {url} and the warehouse {keeping.warehouse} are in one another")
        found.append(url)
    places = 1 + len(found)
    if pipeline.durability is not None and (wrong := _unfit(pipeline.durability, places)):
        yield problem(f"durability={pipeline.durability!r}: {wrong}")
    for collection, _ in pipeline.declared:
        name, level, asked = collection.name, collection.level, collection.durability
        if level is not None and level not in get_args(Level):
            yield problem(f"{name!r} has level={level!r}", collection)
        if level == "remote" and places == 1:
            yield problem(f"{name!r} has level='remote', and there is no replica", collection)
        if level == "memory" and collection.kind == "source":
            yield problem(f"the source {name!r} has level='memory', and is computed from nothing that is kept", collection)
        if level == "memory" and collection.nondeterministic:
            yield problem(f"{name!r} has level='memory', and is nondeterministic: it cannot be computed again", collection)
        if asked is None:
            continue
        if wrong := _unfit(asked, places):
            yield problem(f"{name!r} has durability={asked!r}: {wrong}", collection)
        elif level in ("memory", "disk") and asked > 1:
            yield problem(f"{name!r} has durability={asked} and level={level!r}, which keeps it in one place", collection)


def _overlap(one: str, other: str) -> bool:
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


def _unfit(durability: object, places: int) -> str:
    """Why a number of places cannot be had."""
    if not isinstance(durability, int) or isinstance(durability, bool) or durability < 1:
        return "not a number of places"
    if durability > places:
        return f"there {'is 1 place' if places == 1 else f'are {places} places'}, the warehouse being one"
    return ""
