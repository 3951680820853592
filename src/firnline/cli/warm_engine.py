"""``firnline engine``: the project's warm engine, a Spark that outlives tasks and commands."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from firnline.cli.app import app
from firnline.cli.output import Json, console, print_json
from firnline.settings import Settings

if TYPE_CHECKING:
    from firnline.engine.server import Engine, State

group = typer.Typer(help="The warm engine: a Spark that stays between tasks, so that each starts at once.", no_args_is_help=True)
app.add_typer(group, name="engine")


@group.command()
def start(json: Json = False) -> None:
    """Start the project's engine in the background and wait until it answers; one that runs stays as it is."""
    engine = _engine()
    ran = engine.state() is not None
    if not json and not ran:
        console.print("the engine is starting ...")
    _tell(engine.start(), json)


@group.command()
def stop(
    patience: Annotated[
        float, typer.Option(min=0, help="Seconds to wait for tasks that work on it; then they are ended.")
    ] = 60.0,
    json: Json = False,
) -> None:
    """Let nobody new work on the engine, wait for those who do, and end it."""
    was_running = _engine().stop(patience)
    if json:
        print_json({"stopped": was_running})
    else:
        console.print("the engine has ended" if was_running else "no engine runs")


@group.command()
def status(json: Json = False) -> None:
    """Say whether the project's engine runs, and where; exit code 1 if it does not."""
    state = _engine().state()
    _tell(state, json)
    if state is None:
        raise typer.Exit(1)


def _engine() -> Engine:
    from firnline.engine.server import Engine

    return Engine(Settings.load())


def _tell(state: State | None, json: bool) -> None:
    if json:
        print_json(_document(state))
    elif state is None:
        console.print("no engine runs; start it with: firnline engine start")
    else:
        again = f", started again {state.restarts} times" if state.restarts else ""
        console.print(f"the engine is {state.phase} at {state.endpoint} (process {state.pid}{again})", soft_wrap=True)


def _document(state: State | None) -> dict[str, Any]:
    if state is None:
        return {"phase": "stopped"}
    return {
        "phase": state.phase,
        "address": str(state.endpoint),
        "process": state.pid,
        "since": datetime.fromtimestamp(state.since, UTC),
        "restarts": state.restarts,
    }
