"""Failures are kept beside the logs: the ledger holds nothing that is nowhere else."""

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Drop the table."""
    op.drop_table("firnline_failure")
