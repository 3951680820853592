"""The page as a plugin of Airflow. Every process of Airflow loads plugins; only the one that serves the page loads the rest."""

from __future__ import annotations

import sys
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.plugins_manager import AirflowPlugin

if TYPE_CHECKING:
    from fastapi import FastAPI

PREFIX = "/firnline"
NAME = "Firnline"


class Page:
    """The ASGI application, made when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        await self._app(scope, receive, send)

    @cached_property
    def _app(self) -> FastAPI:
        from firnline.runtime.chatter import hush
        from firnline.runtime.project import Project
        from firnline.web.app import application

        hush()
        return application(Project.load(self._folder))


def page_plugin() -> type[AirflowPlugin]:
    """The plugin of the project that holds the calling file."""
    folder = Path(sys._getframe(1).f_code.co_filename).parent
    # Relative, so that an Airflow below another path than / finds it too.
    where = {"nav": "", "dag": "?on=dag&dag_id={DAG_ID}", "dag_run": "?on=run&dag_id={DAG_ID}&run_id={RUN_ID}"}
    views = [
        {
            "name": NAME,
            "href": f"{PREFIX.lstrip('/')}/{query}",
            "destination": destination,
            "url_route": "firnline" if destination == "nav" else f"firnline_{destination}",
            "icon": f"{PREFIX}/static/icon.svg",
            "icon_dark_mode": f"{PREFIX}/static/icon-dark.svg",
            **({"nav_top_level": True} if destination == "nav" else {}),
        }
        for destination, query in where.items()
    ]

    apps = [{"app": Page(folder), "url_prefix": PREFIX, "name": NAME}]
    return type("FirnlinePlugin", (AirflowPlugin,), {"name": "firnline", "fastapi_apps": apps, "external_views": views})
