"""The ledger's tables. Natural keys only: writing an entry twice leaves one.

The columns are the fields of ``entry``, by name. All tables start with ``firnline_``, Alembic's own too, because the ledger may
share a database with others (Airflow's has an ``alembic_version``).
"""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import BigInteger, Column, DateTime, Dialect, Double, Index, Integer, MetaData, PrimaryKeyConstraint, Table, Text
from sqlalchemy.types import TypeDecorator

HEAD = "0003"
"""The newest revision in ``migrations``: here too, because asking Alembic costs a second. A test keeps the two equal."""
VERSION_TABLE = "firnline_ledger_version"


class Moment(TypeDecorator[datetime]):
    """A datetime in UTC, with its zone, on databases that keep zones and on those that do not."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """To the database."""
        return None if value is None else _in_utc(value)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """From the database."""
        return None if value is None else _in_utc(value)


class Unsigned(TypeDecorator[int]):
    """An integer of 64 bits without a sign: as text, since databases have none."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: int | None, dialect: Dialect) -> str | None:
        """To the database."""
        return None if value is None else str(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> int | None:
        """From the database."""
        return None if value is None else int(value)


def _in_utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


METADATA = MetaData()

PUBLICATIONS = Table(
    "firnline_publication",
    METADATA,
    Column("pipeline", Text, nullable=False),
    Column("collection", Text, nullable=False),
    Column("generation", BigInteger, nullable=False),
    Column("lower", BigInteger, nullable=False),
    Column("upper", BigInteger, nullable=False),
    Column("snapshot_id", BigInteger, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("weight", BigInteger, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("attempt", Text, nullable=False),
    Column("sidecar", Text, nullable=False),
    Column("published_at", Moment, nullable=False),
    Column("seconds", Double, nullable=False),
    PrimaryKeyConstraint("pipeline", "collection", "generation", "lower", name="firnline_publication_key"),
    # Which generation is the newest, and how far it reaches, is answered from this index alone.
    Index("firnline_publication_reach", "pipeline", "collection", "generation", "upper"),
)

INPUTS = Table(
    "firnline_input",
    METADATA,
    Column("pipeline", Text, nullable=False),
    Column("collection", Text, nullable=False),
    Column("generation", BigInteger, nullable=False),
    Column("lower", BigInteger, nullable=False),
    Column("input", Text, nullable=False),
    Column("input_generation", BigInteger, nullable=False),
    Column("input_upper", BigInteger, nullable=False),
    Column("input_snapshot", BigInteger, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("parts", Text, nullable=False),
    PrimaryKeyConstraint("pipeline", "collection", "generation", "lower", "input", name="firnline_input_key"),
)

PARTS = Table(
    "firnline_part",
    METADATA,
    Column("pipeline", Text, nullable=False),
    Column("collection", Text, nullable=False),
    Column("generation", BigInteger, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("part", Integer, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("weight", BigInteger, nullable=False),
    Column("first", Unsigned, nullable=False),
    Column("second", Unsigned, nullable=False),
    PrimaryKeyConstraint("pipeline", "collection", "generation", "epoch", "part", name="firnline_part_key"),
)
