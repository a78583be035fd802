"""The hub in a real browser: every page in both themes and two widths, with the keyboard, and checked by axe-core."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hubs import RunningHub, serve_in_thread
from synthetic import measured
from test_hub_pages import fill, get_page, links
from test_hub_runs import run, send

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, ViewportSize

pytestmark = [pytest.mark.once, pytest.mark.needs("chromium")]

WIDE: ViewportSize = {"width": 1280, "height": 900}
NARROW: ViewportSize = {"width": 400, "height": 800}


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningHub]:
    """A hub with documents of every kind, which the tests share."""
    from bench.config.hub_settings import load
    from bench.hub.db.database import Database

    folder = tmp_path_factory.mktemp("hub")
    (folder / "tokens").write_text("0123456789abcdef\n", encoding="utf-8")
    database = Database(str(folder / "hub.db"))
    database.upgrade()
    url, stop = serve_in_thread(load(tokens_file=folder / "tokens"), database)
    served = RunningHub(url, database)
    fill(served)
    yield served
    stop()
    database.close()


@pytest.fixture(scope="module")
def paths(hub: RunningHub) -> list[str]:
    """Paths of one page of each kind, with charts of each kind."""
    key = hub.get("/api/v1/results?workload=slower&limit=1")["results"][0]["comparison_key"]
    return [
        "/", "/results", "/results/10", "/results/13", "/compare?baseline=10&other=11", f"/history/{key}",
        "/explanations", "/explanations/why", "/sweeps/batches", "/results/204", "/scaling/scaling", "/runs",
        "/runs/ended", "/results/none",
    ]  # fmt: skip


@pytest.fixture(scope="module")
def browser(chromium_path: str) -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=chromium_path, args=["--no-sandbox"], timeout=180_000)
        yield chromium
        chromium.close()


def open_page(browser: Browser, **options: Any) -> Page:
    context = browser.new_context(**{"viewport": WIDE, **options})
    context.set_default_timeout(120_000)
    return context.new_page()


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("theme", [pytest.param("light", marks=pytest.mark.essential), "dark"])
def test_every_page_loads_completely_and_is_accessible(
    browser: Browser, hub: RunningHub, paths: list[str], theme: str, size: ViewportSize, tmp_path: Path
) -> None:
    """Pages have no errors, no requests to other sites, all their charts and no findings of axe-core."""
    from axe_playwright_python.sync_playwright import Axe

    page = open_page(browser, color_scheme=theme, viewport=size, bypass_csp=False)
    requests: list[str] = []
    messages: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: messages.append(f"{page.url}: {message.text}"))
    page.on("pageerror", lambda error: messages.append(f"{page.url}: {error}"))
    findings: dict[str, list[tuple[str, str]]] = {}
    charts = 0
    for path in paths:
        page.goto(hub.url + path, wait_until="load")
        charts += page.locator("figure svg .role-mark").count() > 0
        page.screenshot(path=tmp_path / f"{theme}-{len(findings)}.png", full_page=True)
        violations = Axe().run(page).response["violations"]
        findings[path] = [(violation["id"], violation["nodes"][0]["html"][:200]) for violation in violations]
    assert {path: violations for path, violations in findings.items() if violations} == {}
    assert charts >= 5
    assert [url for url in requests if not url.startswith((hub.url, "data:"))] == []
    # The browser reports the missing page, which is among the paths.
    assert [line for line in messages if "status of 404" not in line] == []
    page.context.close()


def test_at_400_pixels_only_tables_scroll_sideways(browser: Browser, hub: RunningHub, paths: list[str]) -> None:
    page = open_page(browser, viewport=NARROW)
    for path in paths:
        page.goto(hub.url + path)
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"], path
        outside = page.evaluate(
            "[...document.querySelectorAll('p, li, h1, h2, h3, figcaption, caption span, label, button')]"
            ".filter((element) => element.getBoundingClientRect().right > innerWidth)"
            ".map((element) => element.textContent)"
        )
        assert outside == [], path
    page.context.close()


def test_at_400_pixels_the_step_times_are_visible(browser: Browser, hub: RunningHub, paths: list[str]) -> None:
    page = open_page(browser, viewport=NARROW)
    # A run of the filled hub may be lost by now, and only a live one has step times.
    send(
        hub,
        run("narrow", progress={"title": "cifar", "phase": "steps", "estimates": [{"title": "x", "step_seconds": 1}]}),
    )
    history = next(path for path in paths if path.startswith("/history"))
    for path, head in (("/results", "step"), (history, "step"), ("/results/10", "median"), ("/runs", "step so far")):
        page.goto(hub.url + path)
        # One call finds and measures the head, because an event replaces the table of runs at any time.
        find = "[...document.querySelectorAll('th')].find((cell) => cell.textContent.trim() === head)"
        assert 0 < page.evaluate(f"(head) => {find}.getBoundingClientRect().right", head) <= NARROW["width"], path
    page.context.close()


def test_the_keyboard_leads_from_the_overview_to_the_steps_chart_of_a_result(browser: Browser, hub: RunningHub) -> None:
    page = open_page(browser)
    page.goto(hub.url)
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.getAttribute('href')") == "/results/10":
            break
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    page.wait_for_url("**/results/10")
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.ariaLabel") == "Chart: Steps":
            break
    box = page.locator("[aria-label='Chart: Steps'] svg").bounding_box()
    assert box is not None
    assert 0 <= box["y"] + box["height"] / 2 <= WIDE["height"]
    page.context.close()


def test_the_first_tab_stop_skips_the_navigation(browser: Browser, hub: RunningHub) -> None:
    page = open_page(browser)
    page.goto(hub.url)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.context.close()


def test_the_page_of_runs_updates_itself_without_a_reload(browser: Browser, hub: RunningHub) -> None:
    page = open_page(browser)
    messages: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    page.goto(f"{hub.url}/runs")
    page.evaluate("window.loadedOnce = true")
    send(hub, run("followed", title="a run to follow", progress={"title": "<b>bold</b>", "phase": "first_step"}))
    page.get_by_text("<b>bold</b>: first step").wait_for()
    assert page.get_by_text("This page updates itself").is_visible()
    send(hub, run("followed", title="a run to follow", state="failed", reason="it broke"))
    page.get_by_text("it broke").wait_for()
    assert page.evaluate("window.loadedOnce")
    assert messages == []
    page.context.close()


def test_the_page_of_runs_reloads_itself_without_scripts(browser: Browser, hub: RunningHub) -> None:
    page = open_page(browser, java_script_enabled=False)
    page.goto(f"{hub.url}/runs")
    assert page.get_by_role("heading", name="In progress").is_visible()
    assert re.search(r'<noscript><meta http-equiv="refresh" content="\d+"></noscript>', get_page(hub, "/runs"))
    assert "/runs" in links(get_page(hub, "/runs"))
    page.context.close()


def test_a_result_is_edited_and_deleted_on_its_page(browser: Browser, hub: RunningHub) -> None:
    hub.send(measured("900", [0.1]))
    page = open_page(browser)
    page.on("dialog", lambda dialog: dialog.accept())
    page.goto(f"{hub.url}/results/900")
    page.get_by_text("Edit or delete").click()
    page.get_by_label("tags").fill("mine, new")
    page.get_by_label("note").fill("my note")
    page.get_by_label("token").fill("wrong")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("the token is not valid").wait_for()
    page.get_by_label("token").fill(hub.token)
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Tags: mine, new.").wait_for()
    assert page.get_by_text("my note").first.is_visible()
    page.get_by_text("Edit or delete").click()
    page.get_by_role("button", name="Delete").click()
    page.wait_for_url("**/results")
    assert hub.request("GET", "/results/900").status == 404
    page.context.close()


def test_the_form_filters_results(browser: Browser, hub: RunningHub) -> None:
    page = open_page(browser)
    page.goto(f"{hub.url}/results")
    page.get_by_label("pool").select_option("arm")
    page.get_by_label("status").select_option("failed")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**/results?*pool=arm*")
    assert page.locator("tbody th a").all_text_contents() == ["cifar on cpu, as-written"]
    page.context.close()
