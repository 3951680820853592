"""What publications read, and what they changed in which part."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Create both tables."""
    op.create_table(
        "firnline_input",
        sa.Column("pipeline", sa.Text, nullable=False),
        sa.Column("collection", sa.Text, nullable=False),
        sa.Column("generation", sa.BigInteger, nullable=False),
        sa.Column("lower", sa.BigInteger, nullable=False),
        sa.Column("input", sa.Text, nullable=False),
        sa.Column("input_generation", sa.BigInteger, nullable=False),
        sa.Column("input_upper", sa.BigInteger, nullable=False),
        sa.Column("input_snapshot", sa.BigInteger, nullable=False),
        sa.Column("rows", sa.BigInteger, nullable=False),
        sa.Column("parts", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("pipeline", "collection", "generation", "lower", "input", name="firnline_input_key"),
    )
    op.create_table(
        "firnline_part",
        sa.Column("pipeline", sa.Text, nullable=False),
        sa.Column("collection", sa.Text, nullable=False),
        sa.Column("generation", sa.BigInteger, nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("part", sa.Integer, nullable=False),
        sa.Column("rows", sa.BigInteger, nullable=False),
        sa.Column("weight", sa.BigInteger, nullable=False),
        sa.Column("first", sa.Text, nullable=False),
        sa.Column("second", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("pipeline", "collection", "generation", "epoch", "part", name="firnline_part_key"),
    )
