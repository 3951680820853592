"""``firnline doctor``: is all there that Firnline needs, and if not, how to mend it."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import Annotated

import typer

from firnline.cli.app import app
from firnline.cli.output import Json, console, errors, print_json, print_table
from firnline.errors import FirnlineError
from firnline.settings import PROFILE, Settings


class Extra(StrEnum):
    """What only some sources or warehouses need."""

    KAFKA = "kafka"
    S3 = "s3"


Mend = Annotated[bool, typer.Option("--mend", help="Mend what needs no asking: Java (as root, with apt), the jars, the classes.")]
Profile = Annotated[str | None, typer.Option("--profile", help="The profile to check; by default that of FIRNLINE_PROFILE.")]
Only = Annotated[str | None, typer.Option("--only", metavar="NAME", help="Check this prerequisite and no other.")]
With = Annotated[list[Extra] | None, typer.Option("--with", help="Also what only some sources or warehouses need.")]


@app.command()
def doctor(profile: Profile = None, only: Only = None, extras: With = None, mend: Mend = False, json: Json = False) -> None:
    """Check every prerequisite and say how to mend what is wrong; exit code 1 if anything still is."""
    from firnline.runtime.prerequisites import Finding, examine, extra
    from firnline.runtime.surroundings import SURROUNDINGS
    from firnline.runtime.training import CLASSES

    if profile is not None:
        os.environ[PROFILE] = profile
    settings: Settings | None = None
    try:
        settings = Settings.load()
        project = Finding(True, f"{settings.root}, profile {settings.profile}")
    except FirnlineError as error:
        if only is not None and error.code == "BAD_SETTING":
            raise
        project = Finding(False, f"{error.code}: {error.what}", error.todo)
    around = (*(extra(each.value) for each in extras or ()), CLASSES, *SURROUNDINGS)
    examined = [*examine(settings, around, only=only, mend=mend, tell=lambda what: errors.print(what, markup=False))]
    if only is not None and not examined:
        raise typer.BadParameter(f"there is no prerequisite {only!r}", param_hint="--only")
    found = [("project", project), *examined]
    wrong = [(name, finding) for name, finding in found if finding.is_wrong]
    if json:
        items = [
            {
                "name": name,
                "ok": finding.ok,
                "is_needed": finding.is_needed,
                "detail": finding.detail,
                "how_to_mend": None if finding.ok else finding.how_to_mend,
            }
            for name, finding in found
        ]
        print_json({"ok": not wrong, "prerequisites": items})
    else:
        words = {True: "WRONG", False: "slow"}
        rows = [("ok" if finding.ok else words[finding.is_needed], name, finding.detail) for name, finding in found]
        print_table("Prerequisites", ("", "what", "found"), rows)
        lacking = [(name, finding) for name, finding in found if not finding.ok]
        for how in dict.fromkeys(finding.how_to_mend for _, finding in lacking):
            names = ", ".join(name for name, finding in lacking if finding.how_to_mend == how)
            console.print(f"{names}: {how}", markup=False, soft_wrap=True)
    if wrong:
        raise typer.Exit(1)
