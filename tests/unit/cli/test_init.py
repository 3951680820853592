"""``firnline init`` without a JVM: what it writes, what it refuses, and what the new project's README says about it."""

from __future__ import annotations

import csv
import json
import re
import subprocess
from decimal import Decimal
from email.message import Message
from importlib.metadata import Distribution
from pathlib import Path

import pytest
from typer.testing import CliRunner

from firnline.cli.app import app
from firnline.cli.init import installed_from, write
from firnline.errors import FirnlineError
from firnline.runtime.project import Project

ROOT = Path(__file__).parents[3]
FIRNLINE = "-e '/some where/firn$line#1'"


class Installed(Distribution):
    """A distribution that says where it came from."""

    def __init__(self, origin: object = None) -> None:
        self.origin = origin

    @property
    def metadata(self) -> Message:  # type: ignore[override]
        message = Message()
        message["Version"] = "1.2.3"
        return message

    def read_text(self, filename: str) -> str | None:
        return json.dumps(self.origin) if self.origin and filename == "direct_url.json" else None

    def locate_file(self, path: object) -> Path:  # type: ignore[override]
        raise NotImplementedError


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    write(folder, {"NAME": "shop", "VERSION": "1.2.3", "FIRNLINE": FIRNLINE})
    return folder


def files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_the_command_writes_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["init", "shop", "--json"], catch_exceptions=False)
    document = json.loads(done.stdout)
    assert sorted(document["files"]) == files(tmp_path / "shop")
    assert document["folder"] == str(tmp_path / "shop")
    assert CliRunner().invoke(app, ["init", "another"], catch_exceptions=False).stdout.count("make ") == 2


def test_the_layout_is_that_of_every_project(shop: Path) -> None:
    assert {path.name for path in shop.iterdir()} == {
        *("dags", "plugins", "spark_jobs", "tests", "include", "docker"),
        *("pyproject.toml", "requirements.lock", "Makefile", "firnline.mk", "README.md", "firnline.toml", ".gitignore"),
    }


def test_no_placeholder_is_left(shop: Path) -> None:
    left = [path for path in files(shop) if re.search(r"@[A-Z]+@", (shop / path).read_text())]
    assert not left


def test_environment_and_job_are_those_of_firnline(shop: Path) -> None:
    for path in ("requirements.lock", "spark_jobs/advance.py"):
        assert (shop / path).read_text() == (ROOT / path).read_text()


def test_the_example_loads(shop: Path) -> None:
    project = Project.load(shop)
    assert project.pipelines() == ("sales",)
    graph = project.graph("sales")
    assert [each.name for each in graph.collections] == ["orders", "spend_by_customer", "customers_by_level"]
    assert len(list(graph.schedule.epochs(graph.schedule.start, graph.schedule.end or 0))) == 3


def test_the_readme_names_every_folder_and_file(shop: Path) -> None:
    table = (shop / "README.md").read_text().partition("## What is where")[2].partition("\n\nA second")[0]
    named = {name.split("/")[0] for row in table.splitlines() for name in re.findall(r"`([\w./]+)`", row.partition(" | ")[0])}
    assert named == {path.name for path in shop.iterdir()} - {"README.md", ".gitignore"}
    assert all((shop / name).exists() for name in re.findall(r"^\| `([\w./]+)`", table, re.MULTILINE))


def test_the_readme_shows_what_the_landing_files_add_up_to(shop: Path) -> None:
    spent: dict[str, list[Decimal]] = {}
    for path in sorted(shop.glob("include/landing/sales/*/orders.csv")):
        for row in csv.DictReader(path.read_text().splitlines()):
            amounts = spent.setdefault(row["customer"], [])
            amounts.append(Decimal(row["change"] + row["amount"]))
    count = {name: sum(1 if amount > 0 else -1 for amount in amounts) for name, amounts in spent.items()}
    expected = [(name, str(count[name]), str(sum(spent[name]))) for name in sorted(spent) if count[name]]
    readme = (shop / "README.md").read_text()
    assert re.findall(r"^│ (\w+) +│ (\d+) +│ ([\d.]+) +│$", readme, re.MULTILINE) == expected


def test_every_target_that_the_readme_uses_can_be_made(shop: Path) -> None:
    listed = subprocess.run(["make", "-C", str(shop), "--no-print-directory"], capture_output=True, text=True, check=True).stdout
    targets = set(re.findall(r"^  make (\w+)", listed, re.MULTILINE))
    assert targets == {"help", "setup", "demo", "up", "test", "lock", "clean"}
    assert set(re.findall(r"make ([a-z]+)", (shop / "README.md").read_text())) <= targets


def test_make_hands_over_the_firnline_it_was_made_with(shop: Path) -> None:
    command = ["make", "-C", str(shop), "--no-print-directory", "--eval", "ask: ; @printf '%s|' $(FIRNLINE)", "ask"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "-e|/some where/firn$line#1|"
    other = subprocess.run([*command, "FIRNLINE=firnline==9"], capture_output=True, text=True, check=True).stdout
    assert other == "firnline==9|"


@pytest.mark.parametrize("name", ["Shop", "my-shop", "../shop", "a/b", "", "1shop", "_x", "shop; rm"])
def test_a_bad_name_is_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refused = CliRunner().invoke(app, ["init", name]).exception
    assert isinstance(refused, FirnlineError)
    assert refused.code == "BAD_NAME"
    assert not any(tmp_path.iterdir())


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    with pytest.raises(FirnlineError, match="FOLDER_EXISTS"):
        write(tmp_path, {})
    with pytest.raises(FirnlineError, match="FOLDER_EXISTS"):
        write(tmp_path / "mine", {})
    assert files(tmp_path) == ["mine"]


def test_an_empty_folder_is_used(tmp_path: Path) -> None:
    assert write(tmp_path, {}) == files(tmp_path)


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FirnlineError, match=r"PREREQUISITE.*cannot be written"):
        write(tmp_path / "file" / "shop", {})


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        (None, "firnline==1.2.3"),
        ({"url": "file:///src/firnline", "dir_info": {"editable": True}}, "-e /src/firnline"),
        ({"url": "file:///my%20src/firnline", "dir_info": {}}, "'/my src/firnline'"),
        ({"url": "https://host/f.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}}, "git+https://host/f.git@abc"),
        (
            {"url": "file:///dist/firnline-1.2.3-py3-none-any.whl", "archive_info": {}},
            "file:///dist/firnline-1.2.3-py3-none-any.whl",
        ),
    ],
)
def test_the_same_firnline_is_installed(origin: object, expected: str) -> None:
    assert installed_from(Installed(origin)) == expected
