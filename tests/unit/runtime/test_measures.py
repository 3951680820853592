from __future__ import annotations

import io
import logging
from datetime import timedelta
from typing import Any

import pytest

from firnline.airflow.metrics import emit
from firnline.model.epoch import Epoch
from firnline.model.gap import Gap, Span
from firnline.runtime.measures import measures
from firnline.runtime.project import Project
from tests.web_logs import copies, of_today


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return copies(tmp_path_factory.mktemp("measures") / "project")()


def test_an_epoch_is_measured(web: Project) -> None:
    gap = Gap("g", "visits", (Span(1, 1, (0,)),), 1, "2026-01-01", "web.visits", "lost", {"seen": 3}, phase="open")
    web.control("web").change(lambda gaps: gaps.opened(gap))
    found = {(each.name, each.tags.get("collection")): each.value for each in measures(web, of_today(web), Epoch(1, 2))}
    size = found.pop(("firnline.collection.bytes", "visits")), found.pop(("firnline.collection.bytes", "seen"))
    assert all(each > 0 for each in size)
    assert found == {
        ("firnline.epoch.duration", None): 1.0,  # half a second each
        ("firnline.frontier.lag", None): 0,
        ("firnline.safe_point.lag", None): 3,
        ("firnline.gaps", None): 1,
        **{("firnline.collection.duration", name): 0.5 for name in ("visits", "seen")},
        **{("firnline.collection.rows", name): 3 for name in ("visits", "seen")},
        **{("firnline.collection.parts_recomputed", name): 2 for name in ("visits", "seen")},
        **{("firnline.collection.parts_kept", name): 0 for name in ("visits", "seen")},
    }


class Heard:
    """A collector of Airflow's stats that remembers."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Any, Any]] = []

    def gauge(self, name: str, value: float, tags: Any = None) -> None:
        self.told.append((name, value, tags))

    def timing(self, name: str, value: timedelta, tags: Any = None) -> None:
        self.told.append((name, value, tags))


def test_airflows_stats_hear_of_it_and_never_fail_an_epoch(web: Project) -> None:
    from airflow.sdk.observability import stats

    heard, said = Heard(), io.StringIO()
    logging.getLogger("firnline.airflow.metrics").addHandler(logging.StreamHandler(said))
    stats.initialize(factory=lambda: heard, export_legacy_names=True)  # type: ignore[arg-type, return-value]
    emit(web, of_today(web), Epoch(1, 2))
    assert ("firnline.epoch.duration", timedelta(seconds=1), {"pipeline": "web"}) in heard.told
    assert ("firnline.collection.rows", 3, {"pipeline": "web", "collection": "seen"}) in heard.told

    def broken() -> Heard:
        raise RuntimeError("no collector")

    stats.initialize(factory=broken, export_legacy_names=True)  # type: ignore[arg-type]
    emit(web, of_today(web), Epoch(1, 2))
    assert "no collector" in said.getvalue()
