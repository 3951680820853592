"""Real checks on made-up machines: a path with scripts in it, an installation with a RECORD, a work folder."""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from firnline.errors import FirnlineError
from firnline.runtime import prerequisites
from firnline.runtime.prerequisites import (
    EXTRA_JARS,
    JARS,
    MACHINE,
    Finding,
    Jar,
    Prerequisite,
    check_jars,
    check_java,
    check_package,
    check_pyspark,
    check_python,
    check_work,
    examine,
    extra,
    mend_jars,
    mend_java,
)
from firnline.settings import FILE, Settings

Installer = Callable[..., Path]


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    for name in [name for name in os.environ if name.startswith("FIRNLINE_")]:
        monkeypatch.delenv(name)
    (tmp_path / FILE).touch()
    return Settings.load(tmp_path)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A search path with nothing but this folder."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return folder


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installer:
    """Install a package as pip would: its files, their RECORD, its metadata."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))

    def one(name: str, version: str, files: dict[str, str] | None = None, header: str = "") -> Path:
        info = site / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{header}")
        lines = []
        for file, text in (files or {}).items():
            (site / file).parent.mkdir(parents=True, exist_ok=True)
            (site / file).write_text(text)
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
            lines.append(f"{file},sha256={digest},{len(text)}\n")
        (info / "RECORD").write_text("".join(lines))
        return site

    return one


def script(file: Path, *lines: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(("#!/bin/sh", *lines, "")))
    file.chmod(0o755)


def java(file: Path, version: str) -> None:
    script(file, f"echo 'openjdk version \"{version}\" 2025-04-15' >&2")


# Java


@pytest.mark.parametrize(
    ("version", "ok"),
    [
        ("1.8.0_392", False),
        ("11.0.21", False),
        ("17.0.15", True),
        ("21", True),
        ("22.0.2", True),
        ("23-ea", False),
        ("25", False),
    ],
)
def test_java_must_be_17_to_22(path: Path, version: str, ok: bool) -> None:
    java(path / "java", version)
    found = check_java(None)
    assert found.ok is ok
    assert version.removeprefix("1.") in found.detail


def test_java_of_java_home_counts_before_the_path(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java(path / "java", "21.0.1")
    java(tmp_path / "old" / "bin" / "java", "11.0.21")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    assert not check_java(None).ok
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    assert "without bin/java" in check_java(None).detail


@pytest.mark.usefixtures("path")
def test_missing_java_says_what_to_install() -> None:
    found = check_java(None)
    assert not found.ok
    assert "Install Java 17 to 22" in found.how_to_mend


def test_a_java_that_does_not_run_is_no_java(path: Path) -> None:
    script(path / "java", "echo 'Unable to locate a Java Runtime.' >&2", "exit 1")
    assert "does not say its version" in check_java(None).detail


@pytest.mark.usefixtures("path")
def test_java_is_not_installed_where_somebody_must_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(FirnlineError, match="Install Java 17 to 22"):
        mend_java(None)


def test_java_comes_from_the_first_package_that_the_distribution_has(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    java(path / "java.new", "21.0.1")
    script(
        path / "apt-get",
        f'echo "$DEBIAN_FRONTEND $*" >> {path}/calls',
        'case "$*" in',
        "*openjdk-17*) echo 'E: Unable to locate package' >&2; exit 100;;",
        f"*openjdk-21*) /bin/mv {path}/java.new {path}/java;;",
        "esac",
    )
    assert not check_java(None).ok
    mend_java(None)
    assert check_java(None).ok
    calls = (path / "calls").read_text().splitlines()
    assert [call.split()[2] for call in calls] == ["update", "install", "install"]
    assert all(call.startswith("noninteractive ") for call in calls)


# Python and its packages


def test_packages_are_measured_by_what_firnline_requires(install: Installer) -> None:
    install("firnline", "0.1.0", header="Requires-Python: >=3.11,<3.13\nRequires-Dist: pyiceberg[pyarrow]==0.12.0\n")
    install("pyiceberg", "0.11.0")
    assert check_python(None).ok
    found = check_package("pyiceberg")
    assert (found.ok, found.detail) == (False, "0.11.0 (wanted ==0.12.0)")
    assert "make setup" in found.how_to_mend


def test_a_python_outside_the_allowed_range_is_wrong(install: Installer) -> None:
    install("firnline", "0.1.0", header="Requires-Python: >=4\n")
    assert not check_python(None).ok


@pytest.fixture
def spark(install: Installer, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    install("firnline", "0.1.0", header="Requires-Dist: pyspark[connect]==4.1.4\n")
    return install("pyspark", "4.1.4", {"pyspark/__init__.py": "", "pyspark/version.py": "__version__ = '4.1.4'\n"})


@pytest.mark.usefixtures("spark")
def test_pyspark_as_installed_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", sys.path[:1])  # no other packages than the fabricated ones
    assert check_pyspark(None) == Finding(True, "4.1.4, files as installed")


@pytest.mark.parametrize("spoil", [lambda file: file.write_text("__version__ = '4.2.0'\n"), Path.unlink])
def test_one_changed_or_missing_module_of_pyspark_is_found(
    spark: Path, spoil: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", sys.path[:1])
    spoil(spark / "pyspark" / "version.py")
    found = check_pyspark(None)
    assert not found.ok
    assert "pyspark/version.py" in found.detail
    assert "--reinstall --no-deps pyspark==4.1.4" in found.how_to_mend


@pytest.mark.usefixtures("spark")
def test_a_second_spark_is_found_even_before_it_changed_a_file(install: Installer) -> None:
    install("pyspark-client", "4.2.0")
    found = check_pyspark(None)
    assert not found.ok
    assert "pyspark-client 4.2.0" in found.detail


def test_a_spark_home_elsewhere_is_a_second_spark_too(spark: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", sys.path[:1])
    monkeypatch.setenv("SPARK_HOME", str(spark / "pyspark"))
    assert check_pyspark(None).ok
    monkeypatch.setenv("SPARK_HOME", str(spark / "elsewhere"))
    assert check_pyspark(None).how_to_mend == "Unset SPARK_HOME."


def test_another_pyspark_is_wrong(install: Installer) -> None:
    install("firnline", "0.1.0", header="Requires-Dist: pyspark[connect]==4.1.4\n")
    install("pyspark", "4.2.0")
    assert not check_pyspark(None).ok


# The work folder


def test_missing_jars_are_named(settings: Settings) -> None:
    found = check_jars(settings)
    assert not found.ok
    assert all(f"{jar.file} is missing" in found.detail for jar in JARS)
    assert "--mend" in found.how_to_mend


def test_a_warehouse_in_an_object_store_needs_a_jar_more(settings: Settings) -> None:
    on_s3 = settings.model_copy(update={"warehouse": "s3://lake/warehouse"})
    assert all(f"{jar.file} is missing" in check_jars(on_s3).detail for jar in (*JARS, *EXTRA_JARS["s3"]))


def test_jars_that_only_some_sources_need_are_asked_for_by_name(settings: Settings) -> None:
    found = check_jars(settings, "kafka")
    assert not found.ok
    assert all(f"{jar.file} is missing" in found.detail for jar in EXTRA_JARS["kafka"])
    assert "--with kafka --mend" in found.how_to_mend
    assert [name for name, _ in examine(settings, [extra("kafka")])][-1] == "jars for kafka"


def test_a_jar_with_another_content_is_wrong(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    jar = Jar("org.example", "ours", "1.0", hashlib.sha256(b"ours").hexdigest())
    monkeypatch.setattr(prerequisites, "JARS", (jar,))
    settings.jars.mkdir(parents=True)
    (settings.jars / jar.file).write_bytes(b"ours")
    assert check_jars(settings).ok
    (settings.jars / jar.file).write_bytes(b"theirs")
    assert check_jars(settings).detail == "ours-1.0.jar is not the pinned one"


def test_jars_of_other_versions_are_told_and_removed(
    settings: Settings, path: Path, install: Installer, monkeypatch: pytest.MonkeyPatch
) -> None:
    jar = Jar("org.example", "ours-4.1_2.13", "1.0", hashlib.sha256(b"ours").hexdigest())
    monkeypatch.setattr(prerequisites, "JARS", (jar,))
    install("pyspark", "4.1.4", {"pyspark/jars/ivy-2.5.3.jar": ""})
    script(path / "java")
    settings.jars.mkdir(parents=True)
    theirs = ["ours-and-more-1.0.jar", "oursql-1.0.jar"]
    for name in (jar.file, "ours-4.0_2.13-1.0.jar", "ours-4.1_2.13-0.9.jar", *theirs):
        (settings.jars / name).write_bytes(b"ours")
    told = "ours-4.0_2.13-1.0.jar is of another version, ours-4.1_2.13-0.9.jar is of another version"
    assert check_jars(settings).detail == told
    mend_jars(settings)
    assert check_jars(settings).ok
    assert sorted(each.name for each in settings.jars.iterdir()) == sorted([jar.file, *theirs])


@pytest.mark.parametrize(("sent", "ok"), [("ours", True), ("theirs", False)])
def test_a_resolved_jar_moves_into_place_only_with_its_hash(
    settings: Settings, path: Path, install: Installer, monkeypatch: pytest.MonkeyPatch, sent: str, ok: bool
) -> None:
    jar = Jar("org.example", "ours", "1.0", hashlib.sha256(b"ours").hexdigest())
    monkeypatch.setattr(prerequisites, "JARS", (jar,))
    install("pyspark", "4.1.4", {"pyspark/jars/ivy-2.5.3.jar": ""})
    # The last argument is Ivy's pattern; its folder is where the jar is expected.
    script(path / "java", 'for last; do :; done; folder="${last%/*}"', f'printf %s {sent} > "$folder/{jar.file}"')
    if ok:
        mend_jars(settings)
    else:
        with pytest.raises(FirnlineError, match="not the pinned one"):
            mend_jars(settings)
    assert check_jars(settings).ok is ok
    assert [entry.name for entry in settings.work.iterdir()] == ["jars"]


@pytest.mark.usefixtures("path")
def test_jars_are_not_resolved_without_java(settings: Settings) -> None:
    with pytest.raises(FirnlineError, match="need Java"):
        mend_jars(settings)


def test_a_work_folder_that_is_no_folder_is_wrong(settings: Settings) -> None:
    assert check_work(settings).ok
    settings.work.touch()
    assert not check_work(settings).ok


def test_a_full_disk_is_found_before_it_is_written_to(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prerequisites, "FREE_NEEDED", 1 << 62)
    assert "Free" in check_work(settings).how_to_mend


# All of them


def test_what_was_mended_is_checked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    there: list[str] = []
    thing: Prerequisite[Settings | None] = Prerequisite(
        "thing", lambda _: Finding(bool(there), "thing", "Make it."), lambda _: there.append("thing")
    )
    monkeypatch.setattr(prerequisites, "MACHINE", (thing,))
    assert not dict(examine(None))["thing"].ok
    told: list[str] = []
    assert dict(examine(None, mend=True, tell=told.append))["thing"].ok
    assert told == ["mending thing: thing"]


def test_a_failed_mending_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Settings | None) -> None:
        raise FirnlineError("PREREQUISITE", "the registry is away", todo="Wait.")

    thing: Prerequisite[Settings | None] = Prerequisite("thing", lambda _: Finding(False, "missing", "Make it."), fail)
    monkeypatch.setattr(prerequisites, "MACHINE", (thing,))
    assert dict(examine(None, mend=True))["thing"] == Finding(False, "missing; the registry is away", "Wait.")


def test_outside_of_a_project_only_the_machine_is_examined() -> None:
    assert [name for name, _ in examine(None)] == [one.name for one in MACHINE]


def test_checking_loads_neither_spark_nor_airflow() -> None:
    program = """
import sys
from firnline.runtime.prerequisites import examine
list(examine(None))
assert not {"pyspark", "airflow", "great_expectations", "pyiceberg"} & set(sys.modules)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
