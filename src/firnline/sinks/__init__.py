"""Places outside that changes are delivered to, exactly once."""
