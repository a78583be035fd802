"""The report in a real browser: self-contained, and readable in two widths, in dark mode, on paper and by keyboard."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from synthetic import (
    busy_machine,
    explanation,
    folder,
    interval,
    killed,
    ladder_results,
    measured,
    misplaced,
    sweep_results,
)
from synthetic_scaling import scaling_results

from bench import api
from bench.model.result import Summary
from bench.render.report import html
from bench.render.report.compose import compose
from bench.store import files

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, ViewportSize

pytestmark = [pytest.mark.once, pytest.mark.needs("chromium")]

WIDE: ViewportSize = {"width": 1280, "height": 900}
NARROW: ViewportSize = {"width": 400, "height": 800}

CONTRAST = """() => {
  const context = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgb = (colour) => {
    context.clearRect(0, 0, 1, 1); context.fillStyle = colour; context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data];
  };
  const light = (c) => {
    const linear = (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    const [r, g, b] = c.slice(0, 3).map((v) => linear(v / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let ancestor = element; ancestor; ancestor = ancestor.parentElement) {
      const colour = rgb(getComputedStyle(ancestor).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255, 255];
  };
  const contrasts = [];
  for (const element of document.querySelectorAll('body *')) {
    const drawn = element.closest('svg');
    const written = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (drawn ? element.tagName !== 'text' : !written) continue;
    const style = getComputedStyle(element);
    const ink = drawn ? style.fill : style.color;
    if (ink === 'rgb(10, 10, 10)') continue;  // on the colour of a phase, which unit tests check
    const [a, b] = [light(rgb(ink)), light(behind(drawn || element))];
    contrasts.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), element.textContent.trim().slice(0, 40)]);
  }
  return contrasts;
}"""


def wait_until(page: Page, condition: str, seconds: float = 10) -> None:
    """Wait for a condition. Playwright's `wait_for_function` evaluates code, which the page's policy forbids."""
    end = time.monotonic() + seconds
    while not page.evaluate(condition):
        assert time.monotonic() < end, condition
        page.wait_for_timeout(20)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Address of a report with all kinds of verdicts, failures, long names, many columns and repeated runs."""
    path = tmp_path_factory.mktemp("report")
    machine = {"framework": {"tensorflow": "2.21.0"}, "host": {"cpu": {"model": "A processor", "limit": 2.0}}}
    failed = {"status": "failed", "failure": killed(), "summary": Summary(), "samples": []}
    loops = [
        measured("10", [0.1, 0.101, 0.099], group="loops", environment=machine, warnings=busy_machine()),
        measured("11", [0.0081, 0.0082, 0.008], group="loops", loop="fit", environment=machine),
        measured("12", [0.1, 0.13, 0.09], group="loops", loop="step", environment=machine),
        measured("13", [0.2, 0.201, 0.202], group="loops", loop="fused", placement=misplaced()),
        measured("14", [], group="loops", loop="resident", **failed),
    ]
    long_names = [
        measured(
            str(20 + n),
            [0.02, 0.021 + n / 1000],
            group="long",
            workload="a-very-long-name-of-a-workload" * 3,
            params={"batch": 2**n},
        )
        for n in range(10)
    ]
    repeated = [measured(str(40 + n), [0.02], group=str(40 + n), workload="mnist") for n in range(3)]
    transfer = measured("50", [], group="t", workload="transfer", summary=Summary(series={"to device": interval(0.1)}))
    analysed = ladder_results()
    results = folder(
        path / "results", *loops, *long_names, *repeated, transfer, *analysed, *sweep_results(), *scaling_results()
    )
    files.write_explanation(explanation(analysed), results)
    page = path / "report.html"
    page.write_text(html.render(compose(*api.report(results, 0.02)), "1.2.3"), encoding="utf-8")
    return page.as_uri()


@pytest.fixture(scope="module")
def browser(chromium_path: str) -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=chromium_path, args=["--no-sandbox"], timeout=180_000)
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Browser, address: str, request: pytest.FixtureRequest) -> Iterator[Page]:
    """Open the report in a window. `request.param` has the options of the context, such as its size."""
    context = browser.new_context(**{"viewport": WIDE, **getattr(request, "param", {})})
    context.set_default_timeout(120_000)
    page = context.new_page()
    page.goto(address)
    yield page
    context.close()


@pytest.mark.essential
def test_the_report_opens_without_errors_and_loads_nothing_else(browser: Browser, address: str) -> None:
    context = browser.new_context(viewport=WIDE)
    context.set_default_timeout(120_000)
    page = context.new_page()
    requests: list[str] = []
    messages: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.goto(address, wait_until="networkidle")
    assert [url for url in requests if not url.startswith("data:")] == [address]
    assert messages == []
    context.close()


@pytest.mark.essential
def test_every_chart_is_visible_and_all_its_layers_have_marks(page: Page) -> None:
    charts: list[Any] = page.evaluate(
        "[...document.querySelectorAll('figure svg')].map((svg) => [svg.getBoundingClientRect().height,"
        " [...svg.querySelectorAll('.role-mark')].map((layer) => [...layer.children].filter((mark) =>"
        " {const box = mark.getBoundingClientRect(); return box.width + box.height > 0}).length)])"
    )
    assert len(charts) >= 8
    assert [height for height, _ in charts if height < 40] == []
    assert [layers for _, layers in charts if len(layers) < 2 or min(layers) < 1] == []


def test_no_label_of_a_chart_is_cut_off(page: Page) -> None:
    cut = page.evaluate(
        "[...document.querySelectorAll('figure svg text')].filter((text) => {"
        " const box = text.getBoundingClientRect(), frame = text.closest('svg').getBoundingClientRect();"
        " return box.width && (box.left < frame.left - 2 || box.right > frame.right + 2)"
        "}).map((text) => text.textContent)"
    )
    assert cut == []


def test_labels_of_a_chart_do_not_overlap(page: Page) -> None:
    charts: list[Any] = page.evaluate(
        "[...document.querySelectorAll('figure svg')].map((svg) => [...svg.querySelectorAll('text')].map((text) => {"
        " const box = text.getBoundingClientRect();"
        " return [box.left, box.top, box.right, box.bottom, text.textContent]}).filter((label) => label[4].trim()))"
    )
    assert sum(map(len, charts)) > 100
    covered = [
        (a[4], b[4])
        for texts in charts
        for n, a in enumerate(texts)
        for b in texts[n + 1 :]
        if min(a[2], b[2]) - max(a[0], b[0]) > -2 and min(a[3], b[3]) - max(a[1], b[1]) > 3
    ]
    assert covered == []


@pytest.mark.parametrize("page", [{"viewport": NARROW}], indirect=True)
def test_at_400_pixels_regions_scroll_sideways_and_the_page_does_not(page: Page) -> None:
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]
    assert page.evaluate(
        "[...document.querySelectorAll('.scroll')].some((region) => region.scrollWidth > region.clientWidth)"
    )
    outside = page.evaluate(
        "[...document.querySelectorAll('p, li, h1, h2, h3, figcaption, caption span')].filter((element) =>"
        " element.getBoundingClientRect().right > innerWidth).map((element) => element.textContent)"
    )
    assert outside == []


@pytest.mark.parametrize("page", [{"viewport": NARROW}], indirect=True)
def test_arrow_keys_scroll_a_region(page: Page) -> None:
    wide = page.locator(".scroll:has(table)").nth(1)
    wide.focus()
    page.keyboard.press("ArrowRight")
    wait_until(page, "[...document.querySelectorAll('.scroll')].some((region) => region.scrollLeft > 0)")


def test_tab_reaches_every_link_and_region_in_order(page: Page) -> None:
    count = page.evaluate("document.querySelectorAll('a, .scroll').length")
    page.evaluate("document.querySelectorAll('a, .scroll').forEach((element, n) => { element.dataset.n = n })")
    reached = []
    for _ in range(count):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.dataset.n"))
        outlined = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outlined == "solid"
    assert reached == [str(n) for n in range(count)]
    unnamed = page.evaluate(
        "[...document.querySelectorAll('.scroll')]"
        ".filter((region) => !region.ariaLabel || region.role !== 'region').length"
    )
    assert unnamed == 0


def test_a_link_leads_to_its_section(page: Page) -> None:
    link = page.get_by_role("link").nth(1)
    title = link.text_content()
    link.press("Enter")
    wait_until(page, "scrollY > 0")
    target = page.locator("section:target h2")
    assert target.text_content() == title
    box = target.bounding_box()
    assert box is not None
    assert 0 <= box["y"] < WIDE["height"]


@pytest.mark.parametrize("page", [{"color_scheme": "light"}, {"color_scheme": "dark"}], indirect=True, ids=str)
def test_text_has_enough_contrast_in_light_and_dark_mode(page: Page) -> None:
    contrasts: list[Any] = page.evaluate(CONTRAST)
    assert len(contrasts) > 300
    assert [contrast for contrast in contrasts if contrast[0] < 4.5] == []


@pytest.mark.parametrize("page", [{"color_scheme": "dark"}], indirect=True)
def test_dark_mode_is_dark_and_print_is_white_with_all_columns(page: Page) -> None:
    paper = "getComputedStyle(document.documentElement).backgroundColor"
    colours = f"[{paper}, getComputedStyle(document.querySelector('svg text')).fill]"
    assert page.evaluate(colours) == ["rgb(22, 23, 27)", "rgb(236, 236, 241)"]
    page.emulate_media(media="print")
    assert page.evaluate(colours) == ["rgb(255, 255, 255)", "rgb(26, 26, 31)"]
    assert page.evaluate("getComputedStyle(document.querySelector('.scroll')).overflowX") == "visible"
    assert page.pdf().startswith(b"%PDF")
