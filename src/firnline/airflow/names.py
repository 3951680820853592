"""The ids of DAGs that look after all pipelines of a project."""

from __future__ import annotations

REPAIR = "firnline_repair"
MAINTENANCE = "firnline_maintenance"
REPLICATE = "firnline_replicate"
