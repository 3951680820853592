"""Making the archive of classes: a driver runs a small pipeline once and, when it ends, writes what it loaded meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from firnline.engine.classes import archive_of, archiving, identity
from firnline.errors import FirnlineError
from firnline.runtime.prerequisites import Finding, Prerequisite
from firnline.settings import FILE, Settings

_SECONDS = 600
_SETTINGS = """
spark_master = "local[2]"
spark_memory = "1g"
spark_shuffle_partitions = 2
spark_java_options = '-XX:TieredStopAtLevel=1 {option}'
"""
_PIPELINE = '''
"""What most stages do: files and rows come in, change, are joined, grouped and ranked."""

from pyspark.sql import Window
from pyspark.sql import functions as F

import firnline as fl

training = fl.Pipeline("training", schedule=1, start=0)


@training.source(keys=["page"])
def pages(epoch):
    return epoch.files("pages/{epoch}.csv", format="csv", schema="page bigint, rank double, name string")


@training.source(keys=["id"], parts=2)
def visits(epoch):
    ids = epoch.spark.range(epoch.lower * 10000, epoch.lower * 10000 + (10000 if epoch.lower == 0 else 10))
    return ids.select("id", (F.col("id") % 3).alias("page"), F.timestamp_seconds("id").alias("at"))


@training.stage(keys=["page"])
def visits_by_page(visits, pages):
    seen = visits.join(pages, "page").groupBy("page", "name")
    return seen.agg(F.count("*").alias("visits"), F.sum("rank").alias("rank"), F.max("at").alias("last"))


@training.stage(keys=["id"])
def first_visits(visits):
    return visits.withColumn("n", F.row_number().over(Window.partitionBy("page").orderBy("id"))).where("n < 4")
'''
_JOB = "import sys; from firnline.runtime.job import main; sys.exit(main(['training', '--lower', '1', '--upper', '2']))"
_HOW = "Run 'firnline doctor --only classes --mend': it takes about a minute."


def check_archive(settings: Settings) -> Finding:
    """The archive is there, for this JVM and these jars; without it, drivers start as ever, more slowly."""
    archive, stamp = archive_of(settings), _stamp(settings)
    if not archive.is_file() or not stamp.is_file():
        return Finding(False, "no archive of Spark's classes", _HOW, is_needed=False)
    try:
        fits = stamp.read_text() == identity(settings)
    except (OSError, subprocess.SubprocessError) as error:
        return Finding(False, f"{archive}: {error}", _HOW, is_needed=False)
    size = f"{archive.stat().st_size / 1024**2:.0f} MB"
    detail = f"{archive}, {size}" if fits else f"{archive} is of another Java or of other jars"
    return Finding(fits, detail, _HOW, is_needed=False)


def make_archive(settings: Settings) -> None:
    """Run the pipeline, and put the archive into place."""
    archive, stamp = archive_of(settings), _stamp(settings)
    with TemporaryDirectory(prefix="classes-", dir=archive.parent.parent) as folder:
        root = Path(folder)
        draft = root / archive.name
        _write_project(root, settings, draft)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("FIRNLINE_")}
        environment |= {"FIRNLINE_ROOT": str(root), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        try:
            # Its output ends when the JVM does, after Python: by then the archive is written.
            run = subprocess.run(
                [sys.executable, "-c", _JOB], cwd=root, env=environment, capture_output=True, text=True, timeout=_SECONDS
            )
            known = identity(settings)
        except (OSError, subprocess.SubprocessError) as error:
            raise FirnlineError("PREREQUISITE", f"the classes were not archived: {error}", todo=_HOW) from error
        if run.returncode or not draft.is_file():
            said = " ".join((run.stdout + run.stderr).split())[-500:]
            raise FirnlineError("PREREQUISITE", f"the classes were not archived: {said}", todo=_HOW)
        stamp.unlink(missing_ok=True)
        draft.replace(archive)
        stamp.write_text(known)


def _write_project(root: Path, settings: Settings, draft: Path) -> None:
    for name in ("include/pipelines", "pages", ".firnline"):
        (root / name).mkdir(parents=True)
    (root / FILE).write_text(_SETTINGS.format(option=archiving(draft)))
    (root / "include" / "pipelines" / "training.py").write_text(_PIPELINE)
    (root / ".firnline" / "jars").symlink_to(settings.jars.resolve())
    for epoch in range(2):
        (root / "pages" / f"{epoch}.csv").write_text(f"page,rank,name\n{epoch},{epoch}.5,page {epoch}\n")


def _stamp(settings: Settings) -> Path:
    return archive_of(settings).with_suffix(".made-for")


CLASSES = Prerequisite("classes", check_archive, make_archive)
