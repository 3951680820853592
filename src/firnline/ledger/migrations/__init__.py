"""How the ledger's tables came about, one revision a file. Run by ``firnline.ledger.migration``."""
