"""The archive of classes: what Spark loads at every start, parsed and verified once, which a JVM then maps into memory.

It is made for one JVM and one class path. A JVM that it does not fit goes without it and says nothing: no session depends on it.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

from firnline.settings import Settings

_SHARING = re.compile(r"-Xshare:|SharedArchiveFile|ArchiveClassesAtExit")
_QUIET = "-Xlog:cds=error -Xlog:cds+dynamic=error"


def archive_of(settings: Settings) -> Path:
    """Where the archive is, if there is one: beside the jars, since it goes with them."""
    return settings.jars.resolve() / "classes.jsa"


def with_archive(settings: Settings, options: str) -> str:
    """A JVM's options, and the archive, where there is one and the options say nothing of sharing themselves."""
    archive = archive_of(settings)
    if not archive.is_file() or _SHARING.search(options):
        return options
    return f"{options} -XX:SharedArchiveFile={_quoted(archive)} -Xshare:auto {_QUIET}".strip()


def archiving(draft: Path) -> str:
    """The option of a JVM that writes an archive of what it loaded when it ends."""
    return f"-XX:ArchiveClassesAtExit={_quoted(draft)}"


def identity(settings: Settings) -> str:
    """Of the JVM and the class path that an archive is made for: another one means that it does not fit."""
    seen = hashlib.sha256(_java().encode())
    for folder in (settings.jars.resolve(), spark_home() / "jars"):
        for jar in sorted(folder.glob("*.jar")):
            known = jar.stat()
            seen.update(f"{jar}\0{known.st_size}\0{known.st_mtime_ns}\0".encode())
    return seen.hexdigest()


def spark_home() -> Path:
    """The Spark of this environment."""
    spark = find_spec("pyspark")  # found, not imported
    assert spark is not None
    assert spark.origin is not None
    return Path(spark.origin).parent


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java") or "java"
    return subprocess.run([java, "-version"], capture_output=True, text=True, check=True).stderr


def _quoted(path: Path) -> str:
    """For Spark, which cuts options at spaces."""
    escaped = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"' if re.search(r"[\s\"'\\]", str(path)) else escaped
