"""The hub in a real browser: every page in both themes and narrow, by keyboard, and checked with axe-core."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hubs import Served, in_thread
from test_hub_pages import filled, links, page
from test_hub_runs import run, send

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, ViewportSize

pytestmark = [pytest.mark.once, pytest.mark.needs("chromium")]

WIDE: ViewportSize = {"width": 1280, "height": 900}
NARROW: ViewportSize = {"width": 400, "height": 800}


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A hub with documents of every kind, which the tests share."""
    from bench.config.hub_settings import load
    from bench.hub.db.database import Database

    folder = tmp_path_factory.mktemp("hub")
    (folder / "tokens").write_text("0123456789abcdef\n", encoding="utf-8")
    database = Database(str(folder / "hub.db"))
    database.upgrade()
    url, stop = in_thread(load(tokens_file=folder / "tokens"), database)
    served = Served(url, database)
    filled(served)
    yield served
    stop()
    database.close()


@pytest.fixture(scope="module")
def paths(hub: Served) -> list[str]:
    """A page of each kind, with charts of each kind."""
    series = hub.get("/api/v1/results?workload=along&limit=1")["results"][0]["series"]
    return [
        "/", "/results", "/results/10", "/results/13", "/compare?baseline=10&other=11", f"/history/{series}",
        "/explanations", "/explanations/why", "/sweeps/batches", "/runs", "/runs/over", "/results/none",
    ]  # fmt: skip


@pytest.fixture(scope="module")
def browser(chromium_path: str) -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        started = play.chromium.launch(executable_path=chromium_path, args=["--no-sandbox"], timeout=180_000)
        yield started
        started.close()


def opened(browser: Browser, **given: Any) -> Page:
    context = browser.new_context(**{"viewport": WIDE, **given})
    context.set_default_timeout(120_000)
    return context.new_page()


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("theme", [pytest.param("light", marks=pytest.mark.essential), "dark"])
def test_every_page_loads_completely_and_is_accessible(
    browser: Browser, hub: Served, paths: list[str], theme: str, size: ViewportSize, tmp_path: Path
) -> None:
    """No error, no request to another site, all charts drawn, and no finding of axe-core."""
    from axe_playwright_python.sync_playwright import Axe

    shown = opened(browser, color_scheme=theme, viewport=size, bypass_csp=False)
    asked: list[str] = []
    told: list[str] = []
    shown.on("request", lambda request: asked.append(request.url))
    shown.on("console", lambda message: told.append(f"{shown.url}: {message.text}"))
    shown.on("pageerror", lambda error: told.append(f"{shown.url}: {error}"))
    found: dict[str, list[tuple[str, str]]] = {}
    charts = 0
    for path in paths:
        shown.goto(hub.url + path, wait_until="load")
        charts += shown.locator("figure svg .role-mark").count() > 0
        shown.screenshot(path=tmp_path / f"{theme}-{len(found)}.png", full_page=True)
        violations = Axe().run(shown).response["violations"]
        found[path] = [(each["id"], each["nodes"][0]["html"][:200]) for each in violations]
    assert {path: each for path, each in found.items() if each} == {}
    assert charts >= 5
    assert [url for url in asked if not url.startswith((hub.url, "data:"))] == []
    # The browser itself reports the missing page.
    assert [line for line in told if "status of 404" not in line] == []
    shown.context.close()


def test_at_400_pixels_only_tables_scroll_sideways(browser: Browser, hub: Served, paths: list[str]) -> None:
    shown = opened(browser, viewport=NARROW)
    for path in paths:
        shown.goto(hub.url + path)
        assert shown.evaluate("document.documentElement.scrollWidth") <= NARROW["width"], path
        outside = shown.evaluate(
            "[...document.querySelectorAll('p, li, h1, h2, h3, figcaption, caption span, label, button')]"
            ".filter((each) => each.getBoundingClientRect().right > innerWidth).map((each) => each.textContent)"
        )
        assert outside == [], path
    shown.context.close()


def test_the_keyboard_leads_from_the_overview_to_the_steps_chart_of_a_result(browser: Browser, hub: Served) -> None:
    shown = opened(browser)
    shown.goto(hub.url)
    for _ in range(40):
        shown.keyboard.press("Tab")
        if shown.evaluate("document.activeElement.getAttribute('href')") == "/results/10":
            break
    assert shown.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    shown.keyboard.press("Enter")
    shown.wait_for_url("**/results/10")
    for _ in range(60):
        shown.keyboard.press("Tab")
        if shown.evaluate("document.activeElement.ariaLabel") == "Chart: Steps":
            break
    box = shown.locator("[aria-label='Chart: Steps'] svg").bounding_box()
    assert box is not None
    assert 0 <= box["y"] + box["height"] / 2 <= WIDE["height"]
    shown.context.close()


def test_the_first_tab_stop_skips_the_navigation(browser: Browser, hub: Served) -> None:
    shown = opened(browser)
    shown.goto(hub.url)
    shown.keyboard.press("Tab")
    assert shown.evaluate("document.activeElement.textContent") == "Skip to the content"
    shown.keyboard.press("Enter")
    assert shown.evaluate("document.activeElement.id") == "main"
    shown.context.close()


def test_the_page_of_runs_updates_itself_without_a_reload(browser: Browser, hub: Served) -> None:
    shown = opened(browser)
    told: list[str] = []
    shown.on("console", lambda message: told.append(message.text))
    shown.goto(f"{hub.url}/runs")
    shown.evaluate("window.loadedOnce = true")
    send(hub, run("followed", title="a run to follow", progress={"title": "<b>bold</b>", "phase": "first_step"}))
    shown.get_by_text("<b>bold</b>: first step").wait_for()
    assert shown.get_by_text("This page updates itself").is_visible()
    send(hub, run("followed", title="a run to follow", state="failed", reason="it broke"))
    shown.get_by_text("it broke").wait_for()
    assert shown.evaluate("window.loadedOnce")
    assert told == []
    shown.context.close()


def test_the_page_of_runs_reloads_itself_without_scripts(browser: Browser, hub: Served) -> None:
    shown = opened(browser, java_script_enabled=False)
    shown.goto(f"{hub.url}/runs")
    assert shown.get_by_role("heading", name="In progress").is_visible()
    assert re.search(r'<noscript><meta http-equiv="refresh" content="\d+"></noscript>', page(hub, "/runs"))
    assert "/runs" in links(page(hub, "/runs"))
    shown.context.close()


def test_the_form_filters_results(browser: Browser, hub: Served) -> None:
    shown = opened(browser)
    shown.goto(f"{hub.url}/results")
    shown.get_by_label("pool").select_option("arm")
    shown.get_by_label("status").select_option("failed")
    shown.get_by_role("button", name="Show").click()
    shown.wait_for_url("**/results?*pool=arm*")
    assert shown.locator("tbody th a").all_text_contents() == ["cifar on cpu, as-written"]
    shown.context.close()
