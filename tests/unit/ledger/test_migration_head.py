"""What the ledger knows about its migrations without Alembic agrees with Alembic."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Table

from firnline.ledger import Input, Ledger, Part, Publication
from firnline.ledger.schema import HEAD, INPUTS, PARTS, PUBLICATIONS


def test_head_is_the_newest_revision() -> None:
    config = Config()
    config.set_main_option("script_location", "firnline.ledger:migrations")
    assert ScriptDirectory.from_config(config).get_heads() == [HEAD]


def _modules_after(code: str) -> set[str]:
    program = f"import sys\n{code}\nprint(*sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, env=environment)
    return set(done.stdout.split())


def test_neither_importing_the_ledger_nor_using_one_that_is_up_to_date_imports_alembic(tmp_path: Path) -> None:
    use = f"from firnline.ledger import Ledger; Ledger('sqlite:///{tmp_path}/ledger.db').publications('web')"
    assert "alembic" not in _modules_after("import firnline.ledger")
    assert "alembic" in _modules_after(use)
    assert "alembic" not in _modules_after(use)


def test_making_a_ledger_touches_nothing(tmp_path: Path) -> None:
    Ledger(f"sqlite:///{tmp_path}/folder/ledger.db")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("table", "entry"), [(PUBLICATIONS, Publication), (INPUTS, Input), (PARTS, Part)], ids=str)
def test_columns_are_the_fields_in_their_order(table: Table, entry: type) -> None:
    assert [column.name for column in table.columns] == [field.name for field in fields(entry)]
