"""``firnline init``: a new project, made from the files in ``firnline/template``.

In a file, ``@NAME@`` stands for the project's name, ``@VERSION@`` for Firnline's version and ``@FIRNLINE@`` for what installs
the Firnline that runs now. A file's name that begins with ``dot-`` begins with a dot in the project.
"""

from __future__ import annotations

import json as json_
import re
import shlex
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import typer

from firnline.cli.app import app
from firnline.cli.output import Json, console, print_json
from firnline.errors import FirnlineError
from firnline.model.names import check_name

PIPELINE = "sales"
_PACKAGE = Path(__file__).parent.parent
_TEMPLATE = _PACKAGE / "template"
_SHARED = ("requirements.lock", "spark_jobs/advance.py")
"""Files that a project has in common with Firnline's own: in the wheel they are in the template, in a checkout at its root."""


@app.command()
def init(name: Annotated[str, typer.Argument(help="The project's name, and its folder's.")], json: Json = False) -> None:
    """Write a new project with an example pipeline, its DAG, its test and a README."""
    folder = Path.cwd() / check_name("project", name)
    firnline = installed_from(metadata.distribution("firnline"))
    files = write(folder, {"NAME": name, "VERSION": metadata.version("firnline"), "FIRNLINE": firnline})
    if json:
        print_json({"project": name, "folder": str(folder), "pipeline": PIPELINE, "firnline": firnline, "files": files})
        return
    console.print(f"{len(files)} files in {folder}. Next:", markup=False, soft_wrap=True)
    console.print(f"  cd {name}\n  make demo    # run the pipeline {PIPELINE} through Airflow")
    console.print("  make test    # test it on real Spark")


def write(folder: Path, values: dict[str, str]) -> list[str]:
    """Write the template's files into a folder, which must be empty or not there yet; the paths written, below it."""
    written = []
    try:
        is_empty = folder.is_dir() and not any(folder.iterdir())
        if not is_empty and (folder.is_symlink() or folder.exists()):
            raise FirnlineError("FOLDER_EXISTS", f"{folder} exists and is not an empty folder")
        for path, source in sorted(_files()):
            text = source.read_text(encoding="utf-8")
            for token, value in values.items():
                text = text.replace(f"@{token}@", _escaped(value) if path == "Makefile" else value)
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
            written.append(path)
    except OSError as error:
        todo = "Run it where you may write, then try again."
        raise FirnlineError("PREREQUISITE", f"{folder} cannot be written: {error}", todo=todo) from error
    return written


def installed_from(distribution: metadata.Distribution) -> str:
    """What `uv pip install` must be given to install the same Firnline, quoted for a shell.

    A checkout is installed as it was; what came from a registry is named by its version.
    """
    text = distribution.read_text("direct_url.json")
    origin: dict[str, Any] = json_.loads(text) if text else {}
    if "vcs_info" in origin:
        return shlex.quote(f"{origin['vcs_info']['vcs']}+{origin['url']}@{origin['vcs_info']['commit_id']}")
    if "dir_info" in origin:
        checkout = shlex.quote(url2pathname(urlsplit(origin["url"]).path))
        return f"-e {checkout}" if origin["dir_info"].get("editable") else checkout
    if "archive_info" in origin:
        return shlex.quote(origin["url"])
    return f"firnline=={distribution.version}"


def _files() -> Iterator[tuple[str, Path]]:
    """Each file of a new project: its path there, and where its text is; what tools leave behind is not part of it."""
    for source in _TEMPLATE.rglob("*"):
        path = source.relative_to(_TEMPLATE)
        if source.is_file() and not any(part.startswith((".", "__pycache__")) for part in path.parts):
            yield re.sub("^dot-", ".", path.as_posix()), source
    for shared in _SHARED:
        if not (_TEMPLATE / shared).is_file():
            yield shared, _PACKAGE.parent.parent / shared


def _escaped(value: str) -> str:
    return value.replace("$", "$$").replace("#", "\\#")
