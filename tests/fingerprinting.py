"""Modules made up on the spot, and the fingerprints of the stages in them."""

from __future__ import annotations

import importlib.util
import itertools
import sys
import textwrap
from pathlib import Path
from types import ModuleType

from firnline.model.fingerprint import fingerprint

COUNTER = itertools.count()


class Project:
    """A folder into which modules are written and from which they are imported, each time under a new name."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def module(self, source: str, name: str = "", folder: str = "") -> ModuleType:
        name = name or f"fingerprinted_{next(COUNTER)}"
        file = self.root / folder / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(source))
        spec = importlib.util.spec_from_file_location(name, file)
        assert spec
        assert spec.loader
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module

    def of(self, source: str, stage: str = "stage", **settings: str) -> str:
        """The fingerprint of the stage in a module with this source."""
        return fingerprint(getattr(self.module(source), stage), self.root, settings)

    def with_helpers(self, stage: str, helpers: str) -> str:
        """The fingerprint of a stage that may import the module ``helpers``."""
        self.module(helpers, name="helpers")
        return self.of(stage)
