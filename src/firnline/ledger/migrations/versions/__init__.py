"""The revisions, in the order their names give."""
