"""Alembic's entry: it migrates the connection it is given, inside that connection's transaction."""

from alembic import context

from firnline.ledger.schema import METADATA, VERSION_TABLE

context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA, version_table=VERSION_TABLE)
with context.begin_transaction():
    context.run_migrations()
