"""The ledger: an SQL index of the logs, for fast questions.

Everything in it can be rebuilt from the logs, and nothing is decided by it alone: it may lag behind, be dropped, or be away.
"""

from firnline.ledger.entry import Input, Part, Publication
from firnline.ledger.ledger import Ledger

__all__ = ["Input", "Ledger", "Part", "Publication"]
