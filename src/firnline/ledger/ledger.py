"""Questions to the ledger, and entries for it. Every call is one transaction, and every writing call can be repeated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, astuple
from functools import cached_property
from typing import Any

from sqlalchemy import Connection, Engine, Select, Table, and_, bindparam, delete, func, select

from firnline.errors import FirnlineError
from firnline.ledger.database import connect_lazily, for_writing, parse, translated
from firnline.ledger.entry import Input, Part, Publication
from firnline.ledger.migration import ensure_newest
from firnline.ledger.schema import INPUTS, PARTS, PUBLICATIONS

_P = PUBLICATIONS.c


class Ledger:
    """An index of what the logs hold. Making one touches nothing; the first call brings the tables up to date.

    Args:
        uri: ``sqlite:///PATH`` or ``postgresql://...``.
        timeout: Seconds to wait for a lock or a server before LEDGER_UNAVAILABLE.
    """

    def __init__(self, uri: str, timeout: float = 30.0) -> None:
        self._url = parse(uri)
        self._timeout = timeout

    def record(self, publications: Sequence[Publication], inputs: Sequence[Input] = (), parts: Sequence[Part] = ()) -> None:
        """Enter publications with all their inputs and parts.

        What is there already of the same epochs of a collection and generation is replaced, inputs and parts too: the same
        publication once more, or those that a merge stands for.
        """
        if not publications:
            return
        # In the order of keys, so that two writers of the same entries never wait for each other in a circle; and publications
        # first, so that whoever waits for one waits before it touches its inputs and parts.
        ordered = sorted(publications, key=lambda p: (p.pipeline, p.collection, p.generation, p.lower))
        keys = _keys(ordered)
        with self._transaction(writing=True) as connection:
            self._upsert(connection, PUBLICATIONS, ordered)
            connection.execute(_of_publication(PUBLICATIONS).where(_P.lower != bindparam("of_lower")), keys)
            for table in (INPUTS, PARTS):
                connection.execute(_of_publication(table), keys)
            self._upsert(connection, INPUTS, sorted(inputs, key=astuple))
            self._upsert(connection, PARTS, sorted(parts, key=astuple))

    def publications(self, pipeline: str, collection: str | None = None) -> list[Publication]:
        """The publications of each collection's newest generation, ordered by collection and lower."""
        # Ordered here, because databases disagree about how underscores sort.
        found = (Publication(*row) for row in self._newest(PUBLICATIONS, pipeline, collection))
        return sorted(found, key=lambda p: (p.collection, p.lower))

    def inputs(self, pipeline: str, collection: str | None = None) -> list[Input]:
        """What the publications of each collection's newest generation read, ordered by collection, lower and input."""
        found = (Input(*row) for row in self._newest(INPUTS, pipeline, collection))
        return sorted(found, key=lambda i: (i.collection, i.lower, i.input))

    def parts(self, pipeline: str, collection: str | None = None) -> list[Part]:
        """What the publications of each collection's newest generation changed, ordered by collection, epoch and part."""
        found = (Part(*row) for row in self._newest(PARTS, pipeline, collection))
        return sorted(found, key=lambda p: (p.collection, p.epoch, p.part))

    def known(self, pipeline: str, collections: Iterable[str]) -> set[tuple[str, int, int]]:
        """(collection, generation, lower) of all publications of some collections."""
        wanted = and_(_P.pipeline == pipeline, _P.collection.in_(sorted(collections)))
        found = self._ask(select(_P.collection, _P.generation, _P.lower).where(wanted))
        return {(collection, generation, lower) for collection, generation, lower in found}

    def every(self, pipeline: str, collection: str) -> list[Publication]:
        """All publications of a collection, of older generations too."""
        wanted = and_(_P.pipeline == pipeline, _P.collection == collection)
        return [Publication(*row) for row in self._ask(select(PUBLICATIONS).where(wanted))]

    def drop(self, publications: Sequence[Publication]) -> None:
        """Drop what is there of the same epochs of a collection and generation, inputs and parts too."""
        with self._transaction(writing=True) as connection:
            for table in (PUBLICATIONS, INPUTS, PARTS) if publications else ():
                connection.execute(_of_publication(table), _keys(publications))

    def forget(self, pipeline: str) -> None:
        """Drop a pipeline's publications with their inputs and parts, to rebuild them from the logs."""
        with self._transaction(writing=True) as connection:
            for table in (PUBLICATIONS, INPUTS, PARTS):
                connection.execute(delete(table).where(table.c.pipeline == pipeline))

    @cached_property
    def _engine(self) -> Engine:
        engine = connect_lazily(self._url, self._timeout)
        ensure_newest(engine, self._timeout)
        return engine

    @contextmanager
    def _transaction(self, *, writing: bool) -> Iterator[Connection]:
        try:
            with translated(self._url):
                engine = for_writing(self._engine) if writing else self._engine
                with engine.begin() as connection:
                    yield connection
        except FirnlineError:
            # Whatever happened to the database may include that somebody dropped it: the next call looks again.
            self.__dict__.pop("_engine", None)
            raise

    def _newest(self, table: Table, pipeline: str, collection: str | None) -> Sequence[Sequence[Any]]:
        """The rows of a table that belong to the newest generation of their collection."""
        wanted = _P.pipeline == pipeline if collection is None else and_(_P.pipeline == pipeline, _P.collection == collection)
        newest = (
            select(_P.collection, func.max(_P.generation).label("generation")).where(wanted).group_by(_P.collection).subquery()
        )
        is_newest = and_(table.c.collection == newest.c.collection, table.c.generation == newest.c.generation)
        return self._ask(select(table).join(newest, is_newest).where(table.c.pipeline == pipeline))

    def _ask(self, query: Select[Any]) -> Sequence[Sequence[Any]]:
        """Rows whose columns are in the order of the entry's fields, which is the tables' order."""
        with self._transaction(writing=False) as connection:
            return connection.execute(query).all()

    def _upsert(self, connection: Connection, table: Table, entries: Sequence[Publication | Input | Part]) -> None:
        """Insert entries, or replace those with the same key."""
        if not entries:
            return
        insert: Any = self._insert(table)
        replaced: Mapping[str, Any] = {c.name: insert.excluded[c.name] for c in table.columns if not c.primary_key}
        keys = [c.name for c in table.primary_key]
        connection.execute(insert.on_conflict_do_update(index_elements=keys, set_=replaced), [asdict(entry) for entry in entries])

    def _insert(self, table: Table) -> Any:
        if self._url.get_backend_name() == "sqlite":
            from sqlalchemy.dialects import sqlite

            return sqlite.insert(table)
        from sqlalchemy.dialects import postgresql

        return postgresql.insert(table)


def _keys(publications: Iterable[Publication]) -> list[dict[str, Any]]:
    """The parameters of ``_of_publication``."""
    return [{f"of_{key}": value for key, value in asdict(publication).items()} for publication in publications]


def _of_publication(table: Table) -> Any:
    """Deletes what belongs to the publication whose fields are the parameters."""
    point = table.c.epoch if table is PARTS else table.c.lower
    return delete(table).where(
        *(table.c[key] == bindparam(f"of_{key}") for key in ("pipeline", "collection", "generation")),
        point >= bindparam("of_lower"),
        point < bindparam("of_upper"),
    )
