"""The words of Firnline as values: pure, frozen, without I/O."""
