"""A stage run, a read, a status: decisions of ``plan`` carried out through the adapters."""
