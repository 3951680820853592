"""Questions to the ledger, and entries for it. Every call is one transaction, and every writing call can be repeated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import cached_property
from typing import Any

from sqlalchemy import Connection, Engine, Select, Table, and_, delete, func, select

from firnline.errors import FirnlineError
from firnline.ledger.database import connect_lazily, for_writing, parse, translated
from firnline.ledger.entry import Publication
from firnline.ledger.migration import ensure_newest
from firnline.ledger.schema import PUBLICATIONS

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

    def record(self, publications: Sequence[Publication]) -> None:
        """Enter publications; one that is there already, by (pipeline, collection, generation, lower), is replaced."""
        if publications:
            # In the order of keys, so that two writers of the same entries never wait for each other in a circle.
            ordered = sorted(publications, key=lambda p: (p.pipeline, p.collection, p.generation, p.lower))
            self._upsert(PUBLICATIONS, [asdict(publication) for publication in ordered])

    def publications(self, pipeline: str, collection: str | None = None) -> list[Publication]:
        """The publications of each collection's newest generation, ordered by collection and lower."""
        wanted = _P.pipeline == pipeline if collection is None else and_(_P.pipeline == pipeline, _P.collection == collection)
        newest = (
            select(_P.collection, func.max(_P.generation).label("generation")).where(wanted).group_by(_P.collection).subquery()
        )
        is_newest = and_(_P.collection == newest.c.collection, _P.generation == newest.c.generation)
        found = self._ask(select(PUBLICATIONS).join(newest, is_newest).where(wanted))
        # Ordered here, because databases disagree about how underscores sort.
        return sorted((Publication(*row) for row in found), key=lambda p: (p.collection, p.lower))

    def newest_snapshots(self, pipeline: str) -> dict[str, tuple[int, int]]:
        """(generation, upper) of each collection, as far as the index reaches."""
        reach = select(_P.collection, _P.generation, func.max(_P.upper)).where(_P.pipeline == pipeline)
        newest: dict[str, tuple[int, int]] = {}
        for collection, generation, upper in self._ask(reach.group_by(_P.collection, _P.generation)):
            newest[collection] = max(newest.get(collection, (generation, upper)), (generation, upper))
        return newest

    def forget(self, pipeline: str) -> None:
        """Drop a pipeline's publications, to rebuild them from the logs."""
        with self._transaction(writing=True) as connection:
            connection.execute(delete(PUBLICATIONS).where(_P.pipeline == pipeline))

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

    def _ask(self, query: Select[Any]) -> Sequence[Sequence[Any]]:
        """Rows whose columns are in the order of the entry's fields, which is the tables' order."""
        with self._transaction(writing=False) as connection:
            return connection.execute(query).all()

    def _upsert(self, table: Table, rows: list[dict[str, Any]]) -> None:
        """Insert rows, or replace those with the same key."""
        insert: Any = self._insert(table)
        replaced: Mapping[str, Any] = {c.name: insert.excluded[c.name] for c in table.columns if not c.primary_key}
        keys = [c.name for c in table.primary_key]
        with self._transaction(writing=True) as connection:
            connection.execute(insert.on_conflict_do_update(index_elements=keys, set_=replaced), rows)

    def _insert(self, table: Table) -> Any:
        if self._url.get_backend_name() == "sqlite":
            from sqlalchemy.dialects import sqlite

            return sqlite.insert(table)
        from sqlalchemy.dialects import postgresql

        return postgresql.insert(table)
