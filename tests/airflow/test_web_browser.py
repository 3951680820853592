"""The page in a real browser, inside a live Airflow, over a pipeline that it ran: the right numbers, and actions that act."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

import httpx
import pytest
from playwright.sync_api import Browser, Frame, Page, Route, expect, sync_playwright

from firnline.airflow.server import Server
from firnline.model.hold import Hold
from firnline.runtime.branch import branches, drop
from firnline.runtime.history import sampled
from firnline.runtime.project import Project
from firnline.runtime.safepoint import hold
from firnline.runtime.verify import verify
from tests.airflow.conftest import ROLES
from tests.oracle.amplab import EPOCHS
from tests.project import ROOT
from tests.verifying import local, taken

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(1500), pytest.mark.usefixtures("steps")]

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
SCREENSHOTS = ROOT / ".firnline" / "screenshots"
PATIENCE = 60_000
COLLECTIONS = ("rankings", "user_visits", "revenue_by_ip", "revenue_by_prefix", "top_sources")

expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=[*FLAGS])
        yield browser
        browser.close()


@contextmanager
def opened(browser: Browser, server: Server, path: str, user: str = "", *, dark: bool = False) -> Iterator[tuple[Page, Frame]]:
    """Airflow at a path, and the page that it frames there; nothing may go wrong in it, and nothing leave this machine."""
    password = user if user in ROLES else server.password
    login = {"username": user or server.user, "password": password}
    token = httpx.post(f"{server.url}/auth/token", json=login, trust_env=False, timeout=120).json()["access_token"]
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="dark" if dark else "light")
    context.add_cookies([{"name": "_token", "value": token, "url": server.url}])
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on(
        "request", lambda request: None if request.url.startswith((server.url, "data:", "blob:")) else wrong.append(request.url)
    )
    page.goto(f"{server.url}{path}")
    inner = page.wait_for_selector("iframe[title=Firnline]").content_frame()  # type: ignore[union-attr]
    assert inner is not None
    yield page, inner
    context.close()
    assert wrong == []


def test_the_navigation_leads_to_all_pipelines(browser: Browser, server: Server) -> None:
    with opened(browser, server, "/plugin/firnline") as (page, inner):
        card = inner.get_by_role("button", name="amplab")
        expect(card).to_contain_text("complete up to 2026-01-04")
        expect(card).to_contain_text("whole")
        card.click()
        expect(inner.get_by_role("heading", name="amplab", level=1)).to_be_visible()
        page.screenshot(path=SCREENSHOTS / "navigation.png")


def test_the_overview_tells_what_the_logs_hold(browser: Browser, project: Project, server: Server) -> None:
    with opened(browser, server, "/dags/amplab/plugin/firnline_dag") as (page, inner):
        expect(inner.get_by_text("Nothing is missing")).to_be_visible()
        expect(inner.get_by_text("Complete up to 2026-01-04", exact=True)).to_be_visible()
        runs = {epoch: [run.id for run in server.api.runs("amplab") if run.lower == moment(epoch)] for epoch in EPOCHS}
        for name in COLLECTIONS:
            rows = {entry.lower: entry.rows for entry in project.log("amplab", name).entries()}
            for epoch in EPOCHS:
                cell = inner.locator(f'[data-key="cell-{name}@{epoch}"]')
                expect(cell).to_contain_text(f"{rows[project.graph('amplab').schedule.point(epoch)]:,}")
                assert cell.get_attribute("data-state") in {server.api.returned("amplab", run, name) for run in runs[epoch]}
            expect(inner.get_by_role("button", name=f"{name}, ", exact=False).first).to_be_visible()
        inner.locator('[data-key="node-revenue_by_ip"]').click()
        expect(inner.get_by_role("region", name="Details of revenue_by_ip", exact=True)).to_contain_text("4/4 parts")
        page.screenshot(path=SCREENSHOTS / "overview.png")


def test_on_a_run_its_epoch_is_marked_and_links_lead_to_airflow(browser: Browser, server: Server) -> None:
    run = next(run for run in server.api.runs("amplab") if run.lower == moment("2026-01-02"))
    with opened(browser, server, f"/dags/amplab/runs/{run.id}/plugin/firnline_dag_run") as (page, inner):
        expect(inner.locator("thead th.marked")).to_have_attribute("aria-label", "2026-01-02")
        inner.locator('[data-key="cell-top_sources@2026-01-02"]').click()
        inner.get_by_role("link", name="Its task in Airflow").click()
        page.wait_for_url("**/dags/amplab/runs/*/tasks/top_sources*")


def test_the_grid_is_walked_with_the_keyboard(browser: Browser, server: Server) -> None:
    with opened(browser, server, "/dags/amplab/plugin/firnline_dag") as (page, inner):
        inner.locator('[data-key="cell-rankings@2026-01-03"]').focus()
        for key in ("ArrowLeft", "ArrowDown", "ArrowUp", "ArrowDown", "ArrowUp", "Home", "ArrowRight"):
            page.keyboard.press(key)
        page.keyboard.press("Enter")
        expect(inner.get_by_role("region", name="Details of rankings at 2026-01-02")).to_be_visible()
        assert inner.evaluate("document.activeElement.dataset.key") == "cell-rankings@2026-01-02"
        inner.get_by_role("tab", name="Overview").focus()
        page.keyboard.press("ArrowRight")
        expect(inner.get_by_role("tab", name="Lineage")).to_have_attribute("aria-selected", "true")


def test_lineage_grows_click_by_click(browser: Browser, project: Project, server: Server) -> None:
    with opened(browser, server, "/dags/amplab/plugin/firnline_dag") as (page, inner):
        inner.locator('[data-key="cell-top_sources@2026-01-02"]').click()
        inner.get_by_role("button", name="Where it came from").click()
        nodes = inner.locator("g.publication")
        expect(nodes).to_have_count(2)  # itself, and what it read
        inner.locator('[data-key="publication-revenue_by_ip@2026-01-02"]').click()
        expect(nodes).to_have_count(4)
        visits = inner.locator('[data-key="publication-user_visits@2026-01-02"]')
        (entry,) = (each for each in project.log("amplab", "user_visits").entries() if each.lower == point(project, "2026-01-02"))
        expect(visits).to_contain_text(f"{entry.rows:,} rows")
        visits.press("Enter")
        expect(inner.get_by_role("region", name="Publication user_visits@2026-01-02")).to_contain_text(entry.attempt[:12])
        page.screenshot(path=SCREENSHOTS / "lineage.png")
        inner.locator('[data-key="publication-revenue_by_ip@2026-01-02"]').click()
        inner.locator('[data-key="part-1"]').click()
        expect(inner.locator('[data-key="publication-revenue_by_ip@2026-01-02"]')).to_contain_text("part 1")
        inner.get_by_label("show").select_option("downstream")
        expect(nodes).to_have_count(2)  # itself and the best of them


def test_a_lineage_that_is_late_or_fails_does_not_stay(browser: Browser, server: Server) -> None:
    with opened(browser, server, "/dags/amplab/plugin/firnline_dag") as (page, inner):
        held: list[Route] = []
        one, zero = (re.compile(rf"/lineage\?.*part={part}$") for part in (1, 0))
        page.route(one, lambda route: held.append(route))  # a method of a list cannot be marked
        page.route(zero, lambda route: route.abort())
        inner.get_by_role("tab", name="Lineage").click()
        inner.locator('[data-key="choice-collection"]').select_option("revenue_by_ip")
        first = inner.locator("g.publication").first
        expect(first).to_contain_text("all parts")
        inner.locator('[data-key="choice-part"]').select_option("1")
        inner.locator('[data-key="choice-part"]').select_option("0")
        expect(inner.get_by_role("alert")).to_be_visible()
        page.unroute(zero)
        inner.get_by_role("button", name="Try again").click()
        expect(first).to_contain_text("part 0")
        with page.expect_response(one):
            held[0].continue_()
        page.wait_for_timeout(500)
        expect(first).to_contain_text("part 0", timeout=1)


def moment(epoch: str) -> datetime:
    return datetime.fromisoformat(f"{epoch}T00:00+00:00")


def point(project: Project, epoch: str) -> int:
    return project.graph("amplab").schedule.point(epoch)


def test_storage_and_quality_tell_what_is_stored_and_what_checks_said(browser: Browser, project: Project, server: Server) -> None:
    with opened(browser, server, "/dags/amplab/plugin/firnline_dag", dark=True) as (page, inner):
        inner.get_by_role("tab", name="Storage").click()
        for name in COLLECTIONS:
            table = project.log("amplab", name).load()
            assert table is not None
            sample = sampled(table)
            row = inner.locator(f'[data-log="{name}"]')
            expect(row.locator("td").nth(0)).to_have_text(str(sample.layers))
            expect(row.locator("td").nth(3)).to_have_text(f"{sample.rows:,}")
            expect(row.locator("td").nth(5)).to_contain_text(f"{sample.amplification:.2f}")
        expect(inner.get_by_text("Read amplification over epochs")).to_be_visible()
        page.screenshot(path=SCREENSHOTS / "storage_dark.png")
        inner.get_by_role("tab", name="Quality").click()
        expect(inner.locator('[data-check="revenue_by_ip.revenue_is_sane.delta"]')).to_contain_text("met")
        page.screenshot(path=SCREENSHOTS / "quality_dark.png")


def test_light_and_dark_follow_airflow(browser: Browser, server: Server) -> None:
    for dark in (False, True):
        with opened(browser, server, "/dags/amplab/plugin/firnline_dag", dark=dark) as (page, inner):
            expect(inner.get_by_text("Nothing is missing")).to_be_visible()
            assert inner.evaluate("document.documentElement.dataset.theme") == ("dark" if dark else "light")
            page.screenshot(path=SCREENSHOTS / f"overview_{'dark' if dark else 'light'}.png")
            other = "light" if dark else "dark"  # as Airflow's own switch does it
            page.evaluate(f"Object.assign(document.documentElement, {{className: '{other}'}}).style.colorScheme = '{other}'")
            expect(inner.locator("html")).to_have_attribute("data-theme", other)


def test_a_dag_that_is_no_pipeline_says_so(browser: Browser, server: Server) -> None:
    with opened(browser, server, "/dags/firnline_repair/plugin/firnline_dag") as (_, inner):
        expect(inner.get_by_text("Not a pipeline of Firnline")).to_be_visible()


def test_a_hold_is_released_when_it_is_confirmed_by_somebody_who_may(browser: Browser, project: Project, server: Server) -> None:
    graph, control = project.graph("amplab"), project.control("amplab")
    hold(project, graph, lambda _, floor: Hold("reader", "dashboard", floor, "ana", release="close it"))
    with opened(browser, server, "/dags/amplab/plugin/firnline_dag", "vera") as (_, inner):
        expect(inner.locator('[data-key="release-dashboard"]')).to_be_disabled()
        expect(inner.get_by_role("button", name="Repair …")).to_be_disabled()
    with opened(browser, server, "/dags/amplab/plugin/firnline_dag", "uma") as (page, inner):
        inner.locator('[data-key="release-dashboard"]').click()
        dialog = inner.get_by_role("dialog")
        expect(dialog).to_contain_text("reader dashboard of ana keeps every epoch from 2026-01-01 on")
        page.screenshot(path=SCREENSHOTS / "release.png")
        dialog.get_by_role("button", name="Cancel").click()
        assert [each.name for each in control.holds()] == ["dashboard"]
        inner.locator('[data-key="release-dashboard"]').click()
        dialog.get_by_role("button", name="Release", exact=True).click()
        expect(inner.get_by_text("Released reader dashboard.")).to_be_visible()
        expect(inner.locator('[data-key="release-dashboard"]')).to_have_count(0)
    assert control.holds() == ()


def test_a_repair_repairs(browser: Browser, project: Project, server: Server) -> None:
    (manifest, *_) = taken(project, "amplab", "top_sources").revisions[1].manifests or ()
    local(manifest.file.path).unlink()
    assert verify(project, "amplab").problems
    server.api.unpause("firnline_repair")
    with opened(browser, server, "/dags/amplab/plugin/firnline_dag") as (page, inner):
        inner.get_by_role("button", name="Repair …").click()
        inner.get_by_role("dialog").get_by_role("button", name="Repair", exact=True).click()
        expect(inner.get_by_text("The repair has ended")).to_be_visible(timeout=5 * PATIENCE)
        page.screenshot(path=SCREENSHOTS / "repaired.png")
    server.api.pause("firnline_repair")
    assert verify(project, "amplab").problems == ()
    assert any(run.kind == "manual" and run.state == "success" for run in server.api.runs("firnline_repair"))


def test_a_rewind_is_shown_first_and_can_be_undone(browser: Browser, project: Project, server: Server) -> None:
    def ends() -> list[str]:
        heads = (project.log("amplab", name).head() for name in ("revenue_by_ip", "top_sources", "user_visits"))
        return [project.graph("amplab").schedule.label(head.description.upper) for head in heads if head]

    with opened(browser, server, "/dags/amplab/plugin/firnline_dag") as (page, inner):
        inner.locator('[data-key="cell-revenue_by_ip@2026-01-03"]').click()
        inner.locator('[data-key="rewind"]').click()
        dialog = inner.get_by_role("dialog")
        expect(dialog).to_contain_text("revenue_by_ip ends at 2026-01-03 instead of 2026-01-04")
        page.screenshot(path=SCREENSHOTS / "rewind.png")
        assert ends() == ["2026-01-04"] * 3
        dialog.get_by_role("button", name="Rewind", exact=True).click()
        expect(inner.locator('[data-key="cell-top_sources@2026-01-03"]')).to_have_attribute("data-state", "missing")
        assert ends() == ["2026-01-03", "2026-01-03", "2026-01-04"]
        inner.get_by_role("button", name="Undo …").click()
        inner.get_by_role("dialog").get_by_role("button", name="Undo", exact=True).click()
        expect(inner.locator('[data-key="cell-top_sources@2026-01-03"]')).not_to_have_attribute("data-state", "missing")
    assert ends() == ["2026-01-04"] * 3


def test_a_branch_is_made_and_compared(browser: Browser, project: Project, server: Server) -> None:
    with opened(browser, server, "/dags/amplab/plugin/firnline_dag") as (page, inner):
        inner.locator('[data-key="cell-top_sources@2026-01-03"]').click()
        inner.locator('[data-key="branch"]').click()
        inner.get_by_label("Its name").fill("what_if")
        inner.get_by_role("dialog").get_by_role("button", name="Branch", exact=True).click()
        expect(inner.get_by_text("The branch what_if begins at 2026-01-03")).to_be_visible()
        inner.get_by_role("tab", name="Branches").click()
        expect(inner.locator('[data-branch="what_if"]')).to_contain_text("2026-01-03")
        inner.locator('[data-key="diff-what_if"]').click()
        expect(inner.get_by_text("what_if and the pipeline are the same")).to_be_visible()
        page.screenshot(path=SCREENSHOTS / "branches.png")
    assert [each.branch for each in branches(project, project.graph("amplab"))] == ["what_if"]
    drop(project, "amplab", "what_if")
