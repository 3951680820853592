"""Pure decisions: from descriptions and declarations to what must be done, as data."""
