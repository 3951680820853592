"""Publications and failures. A revision is history: it repeats the columns instead of importing them."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create both tables."""
    op.create_table(
        "firnline_publication",
        sa.Column("pipeline", sa.Text, nullable=False),
        sa.Column("collection", sa.Text, nullable=False),
        sa.Column("generation", sa.BigInteger, nullable=False),
        sa.Column("lower", sa.BigInteger, nullable=False),
        sa.Column("upper", sa.BigInteger, nullable=False),
        sa.Column("snapshot_id", sa.BigInteger, nullable=False),
        sa.Column("rows", sa.BigInteger, nullable=False),
        sa.Column("weight", sa.BigInteger, nullable=False),
        sa.Column("fingerprint", sa.Text, nullable=False),
        sa.Column("attempt", sa.Text, nullable=False),
        sa.Column("sidecar", sa.Text, nullable=False),
        sa.Column("published_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("seconds", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("pipeline", "collection", "generation", "lower", name="firnline_publication_key"),
    )
    op.create_index("firnline_publication_reach", "firnline_publication", ["pipeline", "collection", "generation", "upper"])
    op.create_table(
        "firnline_failure",
        sa.Column("pipeline", sa.Text, nullable=False),
        sa.Column("collection", sa.Text, nullable=False),
        sa.Column("lower", sa.BigInteger, nullable=False),
        sa.Column("upper", sa.BigInteger, nullable=False),
        sa.Column("attempt", sa.Text, nullable=False),
        sa.Column("code", sa.Text, nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("retryable", sa.Boolean, nullable=False),
        sa.Column("failed_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("pipeline", "collection", "lower", name="firnline_failure_key"),
    )
