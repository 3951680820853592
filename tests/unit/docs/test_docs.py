"""The documentation says what is there: its code runs, its links lead somewhere, no command, setting or error is left out."""

import re
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
import typer.main

from firnline import Pipeline
from firnline.cli.app import app
from firnline.errors import CODES
from firnline.model.graph import check
from firnline.settings import Settings

ROOT = Path(__file__).parents[3]
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]
QUOTED = [
    path for folder in ("docs/snippets", "include", "dags", "src/firnline/template") for path in (ROOT / folder).rglob("*.py")
]
# Excerpts of these start Airflow or Spark when they run: tests on the real thing do that.
RUN_ELSEWHERE = {
    ROOT / "dags" / "amplab.py",
    ROOT / "docs" / "snippets" / "read_top_sources.py",
    ROOT / "src" / "firnline" / "template" / "plugins" / "firnline_plugin.py",
}
MACHINE = re.compile(r"(?<![\w.:/])/(?:work|home|root|tmp|Users|usr|opt|var|mnt|srv|etc)/\S*")
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def by_name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path, language: str) -> list[str]:
    return [text for kind, text in FENCED.findall(page.read_text(encoding="utf-8")) if kind == language]


def quoted_from(block: str) -> Path | None:
    """The file of which the block is an excerpt of whole lines."""
    return next((path for path in QUOTED if f"\n{block.strip()}\n" in f"\n{path.read_text(encoding='utf-8')}\n"), None)


def prose(page: Path) -> str:
    return FENCED.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(page: Path) -> Iterator[tuple[Path, str]]:
    """Where a page's links into the tree lead: a file, and an anchor in it or nothing."""
    for target in LINK.findall(prose(page)):
        if "://" not in target:
            path, _, anchor = target.partition("#")
            yield (page.parent / path).resolve() if path else page, anchor


def section(page: Path, heading: str) -> str:
    """What stands under a heading, down to the next one of any level."""
    text = page.read_text(encoding="utf-8")
    found = re.search(rf"^#+ {re.escape(heading)}.*?\n(.*?)(?=^#+ |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"{by_name(page)} has no heading {heading!r}"
    return found.group(0)


def commands() -> Iterator[tuple[str, object]]:
    """Every command with its whole name."""
    waiting = [("firnline", typer.main.get_command(app))]
    while waiting:
        name, command = waiting.pop()
        inner = getattr(command, "commands", None)
        if inner is None:
            yield name, command
        else:
            waiting += [(f"{name} {key}", value) for key, value in inner.items()]


@pytest.mark.parametrize("page", PAGES, ids=by_name)
def test_every_python_block_runs_or_quotes_a_file(page):
    names: dict[str, object] = {"__name__": "page"}
    for block in blocks(page, "python"):
        if quoted_from(block) not in RUN_ELSEWHERE:
            exec(compile(block, by_name(page), "exec"), names)
    pipelines = {value.name: value for value in names.values() if isinstance(value, Pipeline)}
    for pipeline in pipelines.values():
        check(pipeline, {}, {each.suite for collection, _ in pipeline.declared for each in collection.checks}, others=pipelines)


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "snippets").glob("*.py")), ids=by_name)
def test_every_snippet_is_quoted_somewhere(path):
    assert any(quoted_from(block) == path for page in PAGES for block in blocks(page, "python"))


def test_the_first_screen_has_a_pipeline_of_fifteen_lines():
    first = blocks(README, "python")[0]
    assert quoted_from(first) == ROOT / "docs" / "snippets" / "pages.py"
    assert len([line for line in first.splitlines() if line.strip()]) <= 15


def test_the_output_on_the_first_screen_is_what_duckdb_computes():
    table = next(text for text in blocks(README, "text") if "show pages.best_pages --changes" in text)
    shown = {tuple(cell.strip() for cell in line.strip("│").split("│")) for line in table.splitlines() if line.startswith("│")}
    days = sorted(folder.name for folder in (ROOT / "include" / "landing" / "amplab").iterdir())
    expected, before = set(), set()
    for count, day in enumerate(days, 1):
        after = best_pages(days[:count])
        expected |= {(day, "+1", *row) for row in after - before} | {(day, "-1", *row) for row in before - after}
        before = after
    assert shown == expected


def best_pages(days: list[str]) -> set[tuple[str, ...]]:
    files = [str(ROOT / "include" / "landing" / "amplab" / day / "rankings.csv") for day in days]
    ranked = f"""
        SELECT page_url, page_rank, avg_duration FROM read_csv({files!r}, header = true)
        GROUP BY ALL HAVING sum(CASE WHEN change = '-' THEN -1 ELSE 1 END) > 0
        ORDER BY page_rank DESC, page_url LIMIT 5"""
    return {tuple(map(str, row)) for row in duckdb.sql(ranked).fetchall()}


@pytest.mark.parametrize("page", PAGES, ids=by_name)
def test_every_link_leads_somewhere(page):
    for path, anchor in links(page):
        assert path.exists(), f"{path} does not exist"
        assert not anchor or anchor in anchors(path), f"{by_name(path)} has no heading #{anchor}"


def test_every_page_can_be_reached_from_the_readme():
    reached, waiting = set(), [README]
    while waiting:
        page = waiting.pop()
        if page not in reached:
            reached.add(page)
            waiting += [path for path, _ in links(page) if path in PAGES]
    assert reached == set(PAGES)


@pytest.mark.parametrize("page", [*PAGES, *sorted((ROOT / "docs").rglob("*.svg"))], ids=by_name)
def test_no_page_names_a_path_of_a_machine(page):
    assert MACHINE.findall(page.read_text(encoding="utf-8")) == []


def test_the_errors_page_has_exactly_the_codes():
    page = ROOT / "docs" / "errors.md"
    assert re.findall(r"^### (\w+)$", page.read_text(encoding="utf-8"), re.MULTILINE) == list(CODES)


@pytest.mark.parametrize("code", CODES)
def test_every_error_has_an_example_and_says_whether_it_is_retryable(code):
    text = section(ROOT / "docs" / "errors.md", code)
    assert f"```text\n{code}: " in text
    assert ("*Retryable" in text) == CODES[code].retryable


@pytest.mark.parametrize(("name", "command"), list(commands()), ids=lambda value: value if isinstance(value, str) else "")
def test_the_reference_has_every_command_with_its_options(name, command):
    text = section(ROOT / "docs" / "reference.md", f"`{name}")
    options = {option for parameter in command.params for option in parameter.opts if option.startswith("--")}
    assert {option for option in options - {"--help"} if option not in text} == set()
    assert f"`{name}" in README.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", Settings.model_fields)
def test_the_reference_has_every_setting_with_its_default_and_variable(name):
    row = re.search(
        rf"^\| `{name}` \|.*`FIRNLINE_.*$", (ROOT / "docs" / "reference.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert row
    assert f"`FIRNLINE_{name.upper()}`" in row.group()
    default = Settings.model_fields[name].default
    if isinstance(default, str | int | float | Path) and default:
        assert str(default) in row.group()
