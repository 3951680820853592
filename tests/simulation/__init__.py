"""The runtime in a world where anything may happen at any step, decided by a seed. See docs/concepts/certainty.md."""
