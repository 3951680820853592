"""The fingerprint and the outline of a stage's plan: equal for two texts that mean the same, as far as ``canonical`` sees it.

It holds the bound plan with the types of the columns it reads and the fingerprints of the Python functions in it, the names of
the stage's columns, its keys and ``partition_by``, the pinned settings and the version of Spark. Types of the stage's own columns
follow from these.
"""

from __future__ import annotations

import hashlib

import pyspark

from firnline.engine.pinned import PINNED
from firnline.incremental.canonical import Canonical
from firnline.incremental.outlining import outlined, short
from firnline.incremental.pruning import pruned
from firnline.incremental.scope import Bound
from firnline.model.declaration import Collection
from firnline.model.fingerprint import DIGITS
from firnline.model.outline import Outline


def outline_of(bound: Bound, collection: Collection, canonical: Canonical) -> Outline | None:
    """The outline of a bound plan, its fingerprint in it; None if the plan does not hold all of its meaning."""
    fields = sorted(bound.fields, key=lambda field: field.name)
    ids = [field.id for field in fields]
    root = pruned(bound.node, ids)
    rows = canonical.hash(root, ids)
    if not canonical.is_whole:
        return None
    names = [field.name for field in fields]
    engine = (sorted(PINNED.items()), pyspark.__version__)
    said = (rows, names, collection.keys, collection.partition_by, *engine)
    plan = hashlib.sha256(repr(said).encode()).hexdigest()[:DIGITS]
    shape = short((collection.keys, collection.partition_by))
    parts = outlined(root, dict(zip(names, ids, strict=True)), canonical)
    return Outline(plan, **parts, shape=shape, engine=short(engine))
