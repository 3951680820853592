"""``firnline up``: Airflow in the foreground, with the project's pipelines scheduled."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from firnline.cli.app import app
from firnline.cli.output import Cold, console, errors
from firnline.errors import FirnlineError

if TYPE_CHECKING:
    from firnline.airflow.server import Server
    from firnline.runtime.project import Project


@app.command()
def up(
    cold: Cold = False,
    port: Annotated[
        int | None,
        typer.Option(help="The port of Airflow's web page on this machine; 8080 by default, or a free one.", min=1, max=65535),
    ] = None,
) -> None:
    """Keep Airflow running, with the project's pipelines scheduled, until Ctrl-C. Then every process it started ends, too."""
    from firnline.airflow.server import USUAL_PORT, Server, usual_port
    from firnline.runtime.project import Project

    project = Project.load()
    _, broken = project.graphs()  # compiled here, so that the first parse is a short one
    for name, problem in broken.items():
        errors.print(f"{name}: {problem}", style="red", markup=False, soft_wrap=True)
    try:
        with Server(project.settings, port or usual_port(), triggerer=True, engine=not cold, tell=console.print) as server:
            _schedule(server, project)
            if server.port not in (port, USUAL_PORT):
                console.print(f"Port {USUAL_PORT} is taken, so Airflow has another one.")
            password = server.password if console.is_terminal else f"in {server.home.passwords}"  # no log shall have it
            console.print(
                f"Airflow's web page: [bold]{server.url}[/bold]  user {server.user}, password {password}", soft_wrap=True
            )
            if (project.settings.root / "plugins" / "firnline_plugin.py").exists():
                console.print(f"Firnline's page in it: [bold]{server.url}/plugin/firnline[/bold]")
            console.print(f"Logs are in {server.home.logs}. Ctrl-C ends it all.")
            while True:
                server.check()
                time.sleep(1)
    except (KeyboardInterrupt, SystemExit):
        console.print("Airflow has ended, with every process it started.")


def _schedule(server: Server, project: Project) -> None:
    """Unpause every DAG that never ran: others are paused because somebody wants it. One that does not load is told."""
    for name in project.pipelines():
        if (project.settings.root / "dags" / f"{name}.py").exists():
            try:
                server.wait_until_parsed(name, 60)
            except FirnlineError as error:
                errors.print(str(error), style="red", markup=False)
    for dag in server.api.dags():
        if not server.api.has_runs(dag):
            server.api.unpause(dag)
