"""What Firnline stands on, as data: each prerequisite says whether it is met, and if not, how to mend it.

Checking changes nothing and starts no JVM but ``java -version``; mending is asked for. A mended prerequisite is checked again,
so that ``ok`` always is what was seen last. Neither Spark nor Airflow is imported: installed metadata says enough.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Generic, TypeVar
from urllib.parse import urlsplit

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from firnline.errors import FirnlineError
from firnline.settings import Settings

JAVA_OLDEST, JAVA_NEWEST = 17, 22
"""Spark needs the one; of the Hadoop inside it, a call fails after the other (Subject.getSubject)."""
JAVA_PACKAGES = ("openjdk-17-jre-headless", "openjdk-21-jre-headless", "default-jre-headless")
"""Tried in this order: each release of a distribution has another one of them."""
FREE_NEEDED = 2 * 1024**3

ONLINE = "Check the network, then run this again."
REINSTALL = "Run 'make setup', or with pip: pip install --no-deps --require-hashes -r requirements.lock."


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check saw."""

    ok: bool
    detail: str
    how_to_mend: str = ""
    is_needed: bool = True
    """Whether nothing works without it."""

    @property
    def is_wrong(self) -> bool:
        """Whether something has to be done."""
        return self.is_needed and not self.ok


S = TypeVar("S", contravariant=True)


@dataclass(frozen=True, slots=True)
class Prerequisite(Generic[S]):
    """Something that must be there; ``S`` is ``Settings``, or ``Settings | None`` where no project is needed to check it."""

    name: str
    check: Callable[[S], Finding]
    mend: Callable[[S], None] | None = None


@dataclass(frozen=True, slots=True)
class Jar:
    """A jar that Spark needs beside its own, with the only content it may have."""

    organisation: str
    name: str
    version: str
    sha256: str

    @property
    def file(self) -> str:
        """Its file name."""
        return f"{self.name}-{self.version}.jar"


JARS = (
    Jar(
        "org.apache.iceberg",
        "iceberg-spark-runtime-4.1_2.13",
        "1.12.0",
        "3123c3798af642dd537230923548e013ef41cc28b6626e5225808cf5670a0f82",
    ),
    Jar("org.apache.spark", "spark-avro_2.13", "4.1.1", "6a19d90bc3b6e88d8db0fa36a19273aa10fea2dbd7a62bb60e4cedd73051b32d"),
    Jar("org.postgresql", "postgresql", "42.7.8", "2a32a9dcbc42d67a50ad3a0de5efd102c8d2be46720045f2cbd6689f160ab7c7"),
    Jar("org.xerial", "sqlite-jdbc", "3.51.0.0", "b0ca8cf80d6eff80ee18aa6e8a6aa72f697af0bf9c822c4b2ad9e35c7a3146e1"),
)


EXTRA_JARS: Mapping[str, tuple[Jar, ...]] = MappingProxyType(
    {
        "kafka": (
            Jar(
                "org.apache.spark",
                "spark-sql-kafka-0-10_2.13",
                "4.1.1",
                "9c1ce986f548e6b1dcb0e2dfe2f253a0bc58f2232a32a0c9c6c674dd25a8570c",
            ),
            Jar(
                "org.apache.spark",
                "spark-token-provider-kafka-0-10_2.13",
                "4.0.0",
                "f2be3b76f9e6cbe63379d4e4e0dc14f59dbf056ae2ad16ff15ac108004c86767",
            ),
            Jar(
                "org.apache.kafka",
                "kafka-clients",
                "3.9.1",
                "7568b998572d256f0b7bc0afdc1b7a2588b8b08415c62ce314c864a6851ae9d9",
            ),
            Jar(
                "org.apache.commons",
                "commons-pool2",
                "2.12.1",
                "5273c8bc8c0dca2211175c0d27efbd7228efae99689aac001a8e1ef8e872e9ef",
            ),
        ),
        "s3": (
            Jar(
                "org.apache.iceberg",
                "iceberg-aws-bundle",
                "1.12.0",
                "dd7e49ffa4ac9b215bed846581991259e3aec9bb2fa08d6cec029c46cd66d957",
            ),
        ),
    }
)
"""What only some sources, or a warehouse with such addresses, need."""


# Python and its packages


def check_python(_: Settings | None) -> Finding:
    """The interpreter is one that Firnline's own metadata allows."""
    running = ".".join(map(str, sys.version_info[:3]))
    try:
        allowed = metadata.metadata("firnline")["Requires-Python"]
    except metadata.PackageNotFoundError:
        return Finding(False, f"{running}, but Firnline itself is not installed in this environment", REINSTALL)
    how = f"Make the environment with a Python {allowed}: remove .venv, then 'make setup'."
    return Finding(running in SpecifierSet(allowed), running, how)


def check_package(name: str) -> Finding:
    """The installed version of a package is one that Firnline's own metadata allows."""
    wanted = _required(name)
    if wanted is None:
        return Finding(False, "Firnline's own metadata is missing or does not name it", REINSTALL)
    installed = _installed(name)
    if installed is None:
        return Finding(False, f"missing; wanted {wanted}", REINSTALL)
    return Finding(installed.version in wanted, f"{installed.version} (wanted {wanted})", REINSTALL)


def check_pyspark(_: Settings | None) -> Finding:
    """PySpark is there, of the right version, and every module in it is the one it was installed with."""
    version = check_package("pyspark")
    spark = _installed("pyspark")
    if not version.ok or spark is None:
        return version
    again = (
        f"Run 'uv pip uninstall pyspark-client', then 'uv pip install --reinstall --no-deps pyspark=={spark.version}' "
        f"(with pip: 'pip uninstall -y pyspark-client', 'pip install --force-reinstall --no-deps pyspark=={spark.version}')."
    )
    second = _installed("pyspark-client")
    if second is not None:
        return Finding(False, f"pyspark-client {second.version} is installed too and overwrites files of PySpark", again)
    home = os.environ.get("SPARK_HOME")
    if home and Path(home).resolve() != Path(str(spark.locate_file("pyspark"))).resolve():
        return Finding(False, f"SPARK_HOME is {home}: another Spark would be started", "Unset SPARK_HOME.")
    changed = sorted(_changed_modules(spark))
    if changed:
        return Finding(False, f"{len(changed)} modules are not those of {spark.version}, such as {changed[0]}", again)
    return Finding(True, f"{spark.version}, files as installed")


def check_spark_submit(_: Settings | None) -> Finding:
    """``spark-submit`` is beside the interpreter, where Airflow's Spark hook is told to look for it."""
    script = Path(sysconfig.get_path("scripts")) / "spark-submit"
    return Finding(os.access(script, os.X_OK), str(script), REINSTALL)


def _required(name: str) -> SpecifierSet | None:
    try:
        requirements = [Requirement(text) for text in metadata.requires("firnline") or ()]
    except metadata.PackageNotFoundError:
        return None
    return next((one.specifier for one in requirements if canonicalize_name(one.name) == name), None)


def _installed(name: str) -> metadata.Distribution | None:
    try:
        return metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None


def _changed_modules(distribution: metadata.Distribution) -> Iterator[str]:
    """The modules whose content is not what the distribution's RECORD says."""
    # ``distribution.files`` would leave out what is missing, from Python 3.12 on.
    for file, expected, _ in csv.reader((distribution.read_text("RECORD") or "").splitlines()):
        if not file.endswith(".py") or not expected:
            continue
        method, _, wanted = expected.partition("=")
        try:
            content = Path(str(distribution.locate_file(file))).read_bytes()
        except OSError:
            yield file
            continue
        if base64.urlsafe_b64encode(hashlib.new(method, content).digest()).rstrip(b"=").decode() != wanted:
            yield file


# Java


def check_java(_: Settings | None) -> Finding:
    """The ``java`` that Spark would start (``JAVA_HOME`` before the path, as Spark does) is one that Spark runs on."""
    home = os.environ.get("JAVA_HOME")
    how = f"Install Java {JAVA_OLDEST} to {JAVA_NEWEST} (Debian, Ubuntu: {JAVA_PACKAGES[0]}), or set JAVA_HOME to one."
    java = _java()
    if java is None:
        return Finding(False, f"JAVA_HOME is {home}, without bin/java" if home else "no java on the path", how)
    try:
        run = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding(False, f"{java} does not run: {error}", how)
    said = re.search(r'version "(?:1\.)?(\d+)([^"]*)"', run.stderr + run.stdout)
    if run.returncode or said is None:
        return Finding(False, f"{java} does not say its version", how)
    return Finding(JAVA_OLDEST <= int(said[1]) <= JAVA_NEWEST, f"{said[1]}{said[2]} ({java})", how)


def mend_java(_: Settings | None) -> None:
    """Install Java from the distribution's packages, where nobody has to be asked for that."""
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0 or os.environ.get("JAVA_HOME"):
        raise FirnlineError("PREREQUISITE", "Java cannot be installed from here", todo=check_java(None).how_to_mend)
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    _run([apt, "-qq", "update"], "apt-get update", quiet)
    for package in JAVA_PACKAGES:
        try:
            _run([apt, "-qq", "install", "-y", "--no-install-recommends", package], f"apt-get install {package}", quiet)
        except FirnlineError:
            if package == JAVA_PACKAGES[-1]:
                raise
        else:
            return


def _java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        return str(java) if os.access(java, os.X_OK) else None
    return shutil.which("java")


# The project's work folder, and what is in it


def check_work(settings: Settings) -> Finding:
    """The work folder, or the folder it will be made in, takes files and has room for them."""
    place = next(folder for folder in (settings.work, *settings.work.parents) if folder.exists())
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        return Finding(False, f"{place}: {error.strerror}", f"Make {settings.work} writable, or name another one: FIRNLINE_WORK.")
    free = shutil.disk_usage(place).free
    detail = f"{settings.work}, {free / 1024**3:.0f} GiB free"
    return Finding(free >= FREE_NEEDED, detail, f"Free {FREE_NEEDED // 1024**3} GiB there, or name another one: FIRNLINE_WORK.")


def check_jars(settings: Settings, extra: str | None = None) -> Finding:
    """Each jar is there with its pinned content and in no other version; by default those that the project surely needs."""
    wrong = [f"{jar.file} {problem}" for jar, problem in _wrong_jars(settings, extra)]
    wrong += [f"{file.name} is of another version" for file in _other_versions(settings, extra)]
    if wrong:
        ask = f"firnline doctor{f' --with {extra}' if extra else ''} --mend"
        how = f"Run '{ask}': it resolves them once, with the Ivy inside PySpark, and removes other versions."
        return Finding(False, ", ".join(wrong), how)
    return Finding(True, ", ".join(f"{jar.name} {jar.version}" for jar in _needed_jars(settings, extra)))


def mend_jars(settings: Settings, extra: str | None = None) -> None:
    """Resolve the jars with the Ivy that ships inside PySpark; each moves into place only after its hash matches."""
    java, spark = _java(), _installed("pyspark")
    ivy = next(Path(str(spark.locate_file("pyspark/jars"))).glob("ivy-*.jar"), None) if spark else None
    if java is None or ivy is None:
        raise FirnlineError("PREREQUISITE", "the jars need Java and PySpark", todo="Mend those first, then run this again.")
    settings.jars.mkdir(parents=True, exist_ok=True)
    for jar, _ in _wrong_jars(settings, extra):
        # The cache goes with the folder: a damaged download must not come back at the next attempt.
        with tempfile.TemporaryDirectory(prefix="resolve-", dir=settings.jars.parent) as folder:
            _run(_ivy(java, ivy, jar, Path(folder)), f"resolving {jar.file}")
            fetched = Path(folder) / jar.file
            if not fetched.is_file():
                raise FirnlineError("PREREQUISITE", f"{jar.file} is in no repository that Ivy can reach", todo=ONLINE)
            if _sha256(fetched) != jar.sha256:
                todo = "Find out who changed it: it was not used, and is deleted."
                raise FirnlineError("PREREQUISITE", f"{jar.file} from the repository is not the pinned one", todo=todo)
            fetched.replace(settings.jars / jar.file)
    for file in _other_versions(settings, extra):
        file.unlink()


def _needed_jars(settings: Settings, extra: str | None) -> tuple[Jar, ...]:
    if extra is not None:
        return EXTRA_JARS[extra]
    return (*JARS, *EXTRA_JARS.get(urlsplit(settings.warehouse).scheme, ()))


def _wrong_jars(settings: Settings, extra: str | None) -> list[tuple[Jar, str]]:
    wrong = []
    for jar in _needed_jars(settings, extra):
        file = settings.jars / jar.file
        if not file.is_file():
            wrong.append((jar, "is missing"))
        elif _sha256(file) != jar.sha256:
            wrong.append((jar, "is not the pinned one"))
    return wrong


def _other_versions(settings: Settings, extra: str | None) -> list[Path]:
    """Jars that an older or newer Firnline left: whatever is in the folder is on the class path."""
    found = []
    for jar in EXTRA_JARS[extra] if extra else (*JARS, *chain.from_iterable(EXTRA_JARS.values())):
        line = re.split(r"[-_](?=\d)", jar.name)[0]  # a name may hold a version of Spark or Scala
        others = re.compile(rf"{re.escape(line)}[-_]\d.*\.jar")
        found += [file for file in settings.jars.glob("*.jar") if others.fullmatch(file.name) and file.name != jar.file]
    return sorted(found)


def _sha256(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _ivy(java: str, ivy: Path, jar: Jar, folder: Path) -> list[str]:
    options = ["-cache", str(folder / "ivy"), "-warn", "-notransitive", "-types", "jar", "bundle"]
    what = ["-dependency", jar.organisation, jar.name, jar.version]
    return [java, "-cp", str(ivy), "org.apache.ivy.Main", *what, *options, "-retrieve", f"{folder}/[artifact]-[revision].[ext]"]


def _run(command: list[str], what: str, environment: dict[str, str] | None = None) -> None:
    """Run a command silently; if it fails, the end of what it said is the reason."""
    try:
        run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise FirnlineError("PREREQUISITE", f"{what} failed: {error}") from error
    if run.returncode:
        said = [line.strip() for line in (run.stdout + run.stderr).splitlines() if line.strip(" .\t")]
        raise FirnlineError("PREREQUISITE", f"{what} failed: {' '.join(said[-3:])}", todo=ONLINE)


# All of them


def _package(name: str) -> Prerequisite[Settings | None]:
    return Prerequisite(name, lambda _: check_package(name))


MACHINE: tuple[Prerequisite[Settings | None], ...] = (
    Prerequisite("Python", check_python),
    Prerequisite("Java", check_java, mend_java),
    Prerequisite("PySpark", check_pyspark),
    Prerequisite("spark-submit", check_spark_submit),
    *map(_package, ("apache-airflow", "apache-airflow-providers-apache-spark", "pyiceberg", "great-expectations")),
)

PROJECT: tuple[Prerequisite[Settings], ...] = (
    Prerequisite("work folder", check_work),
    Prerequisite("jars", check_jars, mend_jars),
)


def extra(name: str) -> Prerequisite[Settings]:
    """Some of ``EXTRA_JARS``."""
    return Prerequisite(f"jars for {name}", partial(check_jars, extra=name), partial(mend_jars, extra=name))


def examine(
    settings: Settings | None,
    around: Sequence[Prerequisite[Settings]] = (),
    *,
    only: str | None = None,
    mend: bool = False,
    tell: Callable[[str], None] = lambda _: None,
) -> Iterator[tuple[str, Finding]]:
    """Check every prerequisite in order; those of a project only if there is one.

    Args:
        settings: The project's, or nothing outside of one.
        around: What else to check of a project.
        only: The name of the one to check; all by default.
        mend: Whether to mend what can be mended.
        tell: Called with a sentence before something is mended, since that may take minutes.
    """
    for machine in MACHINE:
        if only in (None, machine.name):
            yield machine.name, _examine(machine, settings, mend, tell)
    if settings is None:
        return
    for project in (*PROJECT, *around):
        if only in (None, project.name):
            yield project.name, _examine(project, settings, mend, tell)


def _examine(prerequisite: Prerequisite[S], settings: S, mend: bool, tell: Callable[[str], None]) -> Finding:
    finding = prerequisite.check(settings)
    if finding.ok or not mend or prerequisite.mend is None:
        return finding
    tell(f"mending {prerequisite.name}: {finding.detail}")
    try:
        prerequisite.mend(settings)
    except FirnlineError as error:
        return Finding(False, f"{finding.detail}; {error.what}", error.todo, finding.is_needed)
    return prerequisite.check(settings)
