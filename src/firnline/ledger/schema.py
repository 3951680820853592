"""The ledger's tables. Natural keys only: writing an entry twice leaves one.

The columns are the fields of ``entry``, by name. All tables start with ``firnline_``, Alembic's own too, because the ledger may
share a database with others (Airflow's has an ``alembic_version``).
"""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import BigInteger, Column, DateTime, Dialect, Double, Index, MetaData, PrimaryKeyConstraint, Table, Text
from sqlalchemy.types import TypeDecorator

HEAD = "0002"
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
    # How far a generation reaches, is answered from this index alone.
    Index("firnline_publication_reach", "pipeline", "collection", "generation", "upper"),
)
