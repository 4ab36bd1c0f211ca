"""Every page in a real browser: its look, with the keyboard, a screen reader, no scripts."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, expect

from experiments.applications.darshan_writer import Dxt, Record, write_log
from tests.support.serving import Served

pytestmark = [pytest.mark.browser, pytest.mark.serving]

LOGS = Path(__file__).resolve().parents[4] / "experiments" / "data" / "testbed" / "logs"
LOG = LOGS / "multiphase-ionodes4.darshan"
# Its advice saves time, costs time, or is not known.
PERIODIC = LOGS / "periodic-ionodes0.darshan"
WIDE, NARROW = (1280, 900), (390, 844)
# Colours do not depend on the width.
SCHEMES: dict[tuple[int, int], tuple[Literal["light", "dark"], ...]] = {
    WIDE: ("light", "dark"),
    NARROW: ("dark",),
}
PAGES = {
    "overview": "/",
    "applications": "/applications",
    "application": "/applications/2",
    "application-timeline": "/applications/2#timeline",
    "application-prediction": "/applications/2#prediction",
    "application-tables": "/applications/2#tables",
    "application-history": "/applications/2#history",
    "comparison": "/applications/2/compare?run=4&with=6",
    "jobs": "/jobs",
    "job": "/jobs/hacc-io-4-0",
    "survey": "/survey",
    "worth": "/worth",
    "queries": "/queries",
    "query": "/queries/users",
    "benchmarks": "/benchmarks",
    "benchmark": "/benchmarks/14",
    "validation": "/validation",
    "predict": "/predict",
    "interface": "/docs",
    "login": "/login",
}
# Pages of each kind whose folded parts are checked, too.
UNFOLDED = {
    *("application", "application-timeline", "application-prediction", "application-tables"),
    *("application-history", "comparison", "survey", "validation", "interface"),
}
# The answer ends within so many pixels from the top of a page, by the width of the window.
ANSWER_ENDS = {WIDE: 900, NARROW: 2500}
# The console message for a page that is an error on purpose.
_FAILED = "Failed to load resource"


@dataclass
class Window:
    """A page of the browser with its errors."""

    page: Page
    address: str
    problems: list[str] = field(default_factory=list)

    def open(self, path: str) -> Page:
        self.page.goto(self.address + path)
        return self.page

    def choose(self, tab: str) -> None:
        """Show a section of the page."""
        self.page.get_by_role("tab", name=tab).click()

    def heard(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"} and _FAILED not in message.text:
            self.problems.append(message.text)


Open = Callable[..., Window]


@pytest.fixture
def window(browser: Browser, served: Served) -> Iterator[Open]:
    """Open a window; at the end its console must be free of errors."""
    opened: list[Window] = []

    def make(size: tuple[int, int] = WIDE, scheme: Any = "light", **options: Any) -> Window:
        width, height = size
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, **options
        )
        found = Window(context.new_page(), served.url)
        found.page.set_default_timeout(120_000)
        found.page.on("console", found.heard)
        found.page.on("pageerror", lambda error: found.problems.append(str(error)))
        opened.append(found)
        return found

    yield make
    for each in opened:
        each.page.context.close()
    assert [problem for each in opened for problem in each.problems] == []


def violations(page: Page, *rules: str) -> str:
    """The violations that axe-core finds by these rules, or by all of them."""
    page.wait_for_load_state()
    options: dict[str, Any] = {"resultTypes": ["violations"]}
    if rules:
        options["runOnly"] = {"type": "rule", "values": list(rules)}
    found = Axe().run(page, options=options).response["violations"]
    return json.dumps(
        [{each["id"]: [node["html"] for node in each["nodes"]]} for each in found], indent=1
    ).strip("[]")


def overflow(page: Page) -> int:
    """The number of pixels by which the page is wider than the window."""
    width: int = page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    return width


def show_in(page: Page, scheme: Literal["light", "dark"]) -> None:
    """Change the colour scheme and wait for the next frame."""
    page.emulate_media(color_scheme=scheme)
    page.evaluate("() => new Promise(requestAnimationFrame)")


def assert_it_fits_and_can_be_used(page: Page, size: tuple[int, int], screenshot: Path) -> None:
    """Show a page in the colour schemes of a width, and make a picture of each."""
    first, *_ = SCHEMES[size]
    for scheme in SCHEMES[size]:
        show_in(page, scheme)
        path = screenshot.with_name(f"{screenshot.name}-{size[0]}-{scheme}.png")
        page.screenshot(path=path, full_page=True)
        assert overflow(page) == 0
        # Only the colours differ from the page in the first scheme.
        rules = [] if scheme == first else ["color-contrast"]
        assert violations(page, *rules) == "", scheme


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["1280", "390"])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_and_can_be_used_by_everybody(
    window: Open, screenshots: Path, name: str, size: tuple[int, int]
) -> None:
    page = window(size).open(PAGES[name])
    assert_it_fits_and_can_be_used(page, size, screenshots / name)
    if name in UNFOLDED:
        for summary in page.locator("summary:visible").all():
            summary.click()
        assert overflow(page) == 0
        # In a narrow window, unfolded tables differ in one thing: they scroll.
        rules = [] if size == WIDE else ["scrollable-region-focusable"]
        assert violations(page, *rules) == "", "unfolded"


def test_every_page_is_also_shown_from_postgresql(served_from_postgresql: Served) -> None:
    """A browser would show nothing else than from SQLite."""
    paths = {path.partition("#")[0] for path in PAGES.values()}
    statuses = {path: served_from_postgresql.ask(path).status for path in paths}
    assert statuses == dict.fromkeys(paths, 200)


def test_a_figure_follows_the_colour_scheme(window: Open) -> None:
    page = window(scheme="light").open(PAGES["benchmark"])
    text = page.locator(".plot .area text").first

    def colour() -> str:
        return str(text.evaluate("each => getComputedStyle(each).fill"))

    light = colour()
    page.emulate_media(color_scheme="dark")
    expect(text).not_to_have_css("fill", light)
    page.emulate_media(color_scheme="light")
    expect(text).to_have_css("fill", light)


def test_a_figure_describes_the_point_under_the_pointer(window: Open) -> None:
    page = window().open(PAGES["application-timeline"])
    bar = page.locator("figure[aria-labelledby=phases-title] rect > title").first
    expect(bar).to_contain_text("MiB in")


def test_the_menu_of_a_narrow_window_opens_by_keyboard(window: Open, screenshots: Path) -> None:
    page = window(NARROW).open("/")
    menu = page.get_by_role("navigation", name="Main")
    expect(menu).to_be_hidden()
    for _ in range(3):
        page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Menu")).to_be_focused()
    page.keyboard.press("Enter")
    expect(menu).to_be_visible()
    assert violations(page) == ""
    page.screenshot(path=screenshots / "menu-390-light.png")
    page.keyboard.press("Escape")
    expect(menu).to_be_hidden()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Applications", exact=True)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1, name="Applications")).to_be_visible()


def test_the_first_key_leads_past_the_menu(window: Open) -> None:
    page = window().open("/")
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()


def test_all_of_the_form_is_reached_by_keyboard_in_its_order(window: Open) -> None:
    page = window().open("/predict")
    page.locator("main").focus()
    reached = []
    for _ in range(6):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.name || document.activeElement.type"))
    assert reached == ["log", "system", "nodes", "ran_with", "available", "submit"]


def drop(page: Page, name: str, content: bytes) -> None:
    """Drop a file on the drop zone, as a person does it."""
    transfer = page.evaluate_handle(
        """([name, content]) => {
            const transfer = new DataTransfer();
            const bytes = Uint8Array.from(atob(content), (each) => each.charCodeAt(0));
            transfer.items.add(new File([bytes], name));
            return transfer;
        }""",
        [name, base64.b64encode(content).decode()],
    )
    zone = page.locator(".drop")
    zone.dispatch_event("dragenter", {"dataTransfer": transfer})
    zone.dispatch_event("dragover", {"dataTransfer": transfer})
    expect(zone).to_contain_class("over")
    zone.dispatch_event("drop", {"dataTransfer": transfer})


def result_of(opened: Window, log: Path) -> Page:
    """Drop a log, and return the page of its result."""
    page = opened.open("/predict")
    page.get_by_label("Compute nodes").fill("8")
    drop(page, log.name, log.read_bytes())
    expect(page.get_by_role("heading", level=1, name=log.name)).to_be_visible()
    return page


FIGURES = {
    "Causes": ["Bandwidth today and then: collective MPI-IO calls"],
    "Prediction": ["Bandwidth by number of I/O nodes"],
    "Time line": ["Where the time went"],
    "Tables": [
        "POSIX requests by size",
        "Time by layer",
        "Files by bytes and time",
        "Balance of the processes",
    ],
}


def end_of_answer(page: Page) -> float:
    """The pixels from the top of the page to the end of the answer."""
    box = page.get_by_role("region", name="The answer").bounding_box()
    assert box is not None
    return box["y"] + box["height"]


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["1280", "390"])
def test_a_log_that_is_dropped_shows_causes_phases_curve_and_decision(
    window: Open, screenshots: Path, size: tuple[int, int]
) -> None:
    opened = window(size)
    page = result_of(opened, PERIODIC)
    expect(page.get_by_role("heading", name="For the next run")).to_be_visible()
    assert end_of_answer(page) <= ANSWER_ENDS[size]
    causes = page.get_by_role("region", name="Causes")
    expect(causes.locator("ol > li")).to_have_count(5)
    expect(causes.get_by_text("To know it, measure this").first).to_be_visible()
    for summary in causes.locator("summary").all():
        summary.press("Enter")
    for tab, titles in FIGURES.items():
        opened.choose(tab)
        captions = page.locator("figcaption:visible").all()
        found = [each.inner_text().partition("\n")[0] for each in captions]
        assert found[-len(titles) :] == titles
        assert_it_fits_and_can_be_used(page, size, screenshots / f"predicted-{tab.lower()}")
    assert page.locator("figure[aria-labelledby=phases-title] rect > title").count() == 4


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["1280", "390"])
def test_the_answer_of_a_run_ends_on_the_first_screens(window: Open, size: tuple[int, int]) -> None:
    for number in (1, 2, 3):
        assert end_of_answer(window(size).open(f"/applications/{number}")) <= ANSWER_ENDS[size]


def test_sections_are_chosen_by_keyboard_and_by_their_address(window: Open) -> None:
    opened = window()
    page = opened.open(PAGES["application"])
    causes = page.get_by_role("tab", name="Causes")
    expect(causes).to_have_attribute("aria-selected", "true")
    causes.focus()
    for key, name in (
        ("ArrowRight", "Time line"),
        ("End", "Runs and decisions"),
        ("ArrowRight", "Causes"),
        ("ArrowLeft", "Runs and decisions"),
        ("Home", "Causes"),
    ):
        page.keyboard.press(key)
        expect(page.get_by_role("tab", name=name)).to_be_focused()
        expect(page.get_by_role("tabpanel", name=name)).to_be_visible()
        expect(page.get_by_role("tabpanel")).to_have_count(1)
    opened.choose("Tables")
    expect(page).to_have_url(re.compile("#tables$"))
    page.get_by_role("region", name="The answer").get_by_role("link").first.press("Enter")
    expect(page.get_by_role("tabpanel", name="Causes")).to_be_visible()
    expect(page.locator("#cause-1")).to_be_in_viewport()
    page.go_back()
    expect(page.get_by_role("tabpanel", name="Tables")).to_be_visible()


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["1280", "390"])
def test_a_result_is_kept_by_keyboard_opens_in_another_browser_and_is_deleted(
    window: Open, screenshots: Path, size: tuple[int, int]
) -> None:
    opened = window(size)
    page = result_of(opened, LOG)
    page.get_by_role("link", name="Keep this result").focus()
    page.keyboard.press("Enter")
    # The browser follows the link some time after the key.
    expect(page.get_by_role("heading", name="Keep this result")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Keep this result")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/kept/[\w-]{43}$"))
    another = window(size)
    reader = another.open(page.url.removeprefix(another.address))
    expect(reader.get_by_role("heading", level=1, name=LOG.name)).to_be_visible()
    assert_it_fits_and_can_be_used(reader, size, screenshots / "kept")
    reader.get_by_role("button", name="Delete this result").focus()
    reader.keyboard.press("Enter")
    expect(reader.get_by_role("heading", level=1, name="The result is deleted")).to_be_visible()
    assert violations(reader) == ""
    answer = page.reload()
    assert answer is not None
    assert answer.status == 404
    expect(page.get_by_role("heading", level=1, name="Not found")).to_be_visible()
    assert violations(page) == ""


def test_a_result_that_cannot_be_kept_is_not_lost(window: Open) -> None:
    opened = window()
    page = result_of(opened, LOG)
    page.locator("input[name=sealed]").evaluate("field => field.value = 'forged'")
    page.get_by_role("button", name="Keep this result").click()
    expect(page.get_by_text("The result is not as this service sent it")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("heading", level=1, name=LOG.name)).to_be_visible()
    page.get_by_role("button", name="Keep this result").click()
    expect(page).to_have_url(re.compile(r"/kept/[\w-]{43}$"))


def test_a_result_is_kept_and_deleted_without_scripts_over_plain_http(
    window: Open, served: Served
) -> None:
    """Browsers send `Sec-Fetch-Site` only over https and to this machine."""
    opened = window(java_script_enabled=False)
    opened.address = opened.address.replace("127.0.0.1", "intranet.test")
    page = opened.page
    sent: list[Request] = []

    def note(request: Request) -> None:
        sent.append(request)

    page.on("request", note)
    page.goto(f"{opened.address}/predict")
    page.get_by_label("Drop a Darshan log here").set_input_files(LOG)
    page.get_by_label("Compute nodes").fill("8")
    page.get_by_role("button", name="Predict").click()
    page.get_by_role("button", name="Keep this result").click()
    expect(page).to_have_url(re.compile(r"/kept/[\w-]{43}$"))
    address = page.url
    page.get_by_role("button", name="Delete this result").click()
    expect(page.get_by_role("heading", level=1, name="The result is deleted")).to_be_visible()
    answer = page.goto(address)
    assert answer is not None
    assert answer.status == 404
    headers = [(each.url, each.all_headers()) for each in sent]
    assert not [told for _, told in headers if "sec-fetch-site" in told]
    assert {told["origin"] for url, told in headers if "/kept" in url and "origin" in told} == {
        opened.address
    }
    # No other request names the address of the kept result, and no log.
    assert not [told for _, told in headers if "/kept/" in told.get("referer", "")]
    assert "/kept" not in served.log.read_text(encoding="utf-8")
    # Each page tells that a header counts only over https.
    assert all("Cross-Origin-Opener-Policy" in problem for problem in opened.problems)
    opened.problems.clear()


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["1280", "390"])
def test_a_damaged_log_that_is_dropped_is_answered_with_a_line(
    window: Open, screenshots: Path, size: tuple[int, int]
) -> None:
    page = window(size).open("/predict")
    content = bytearray(LOG.read_bytes())
    content[200:400] = bytes(200)
    drop(page, "damaged.darshan", bytes(content))
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("The upload failed. damaged.darshan: ")
    assert violations(page) == ""
    page.screenshot(path=screenshots / f"damaged-{size[0]}-light.png", full_page=True)
    assert overflow(page) == 0


def test_a_log_is_chosen_and_sent_by_keyboard(window: Open) -> None:
    page = window().open("/predict")
    page.get_by_label("Drop a Darshan log here, or choose it").set_input_files(LOG)
    expect(page.locator(".drop output")).to_have_text(LOG.name)
    page.get_by_label("I/O nodes of this run").focus()
    page.keyboard.type("4")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1, name=LOG.name)).to_be_visible()
    page.get_by_role("tab", name="Prediction").click()
    expect(page.get_by_text("The earlier run got")).to_be_visible()


def test_everything_works_without_scripts(window: Open) -> None:
    opened = window(NARROW, java_script_enabled=False)
    page = opened.page
    page.goto(f"{opened.address}/predict")
    page.get_by_label("Drop a Darshan log here, or choose it").set_input_files(LOG)
    page.get_by_role("button", name="Predict").click()
    expect(page.get_by_role("heading", level=1, name=LOG.name)).to_be_visible()
    expect(page.get_by_role("heading", name="Why is my I/O slow?")).to_be_visible()
    expect(page.get_by_text("1. Processes share a file saves")).to_be_visible()
    curve = page.locator("figure[aria-labelledby=curve-title]")
    curve.get_by_text("The numbers").click()
    expect(curve.get_by_role("table")).to_be_visible()
    page.locator("summary").get_by_text("Operations", exact=True).click()
    expect(page.get_by_role("table", name="Operations")).to_be_visible()
    for figure in page.locator("figure .area").all():
        expect(figure).to_be_visible()
    page.locator("figure[aria-labelledby=layers-title]").get_by_text("The numbers").click()
    expect(
        page.get_by_role("table", name="Mean seconds of a process in each layer")
    ).to_be_visible()
    page.get_by_role("button", name="Menu").click()
    page.get_by_role("link", name="Validation").click()
    expect(page.get_by_role("heading", level=1, name="Validation")).to_be_visible()


def test_the_time_line_is_zoomed_and_moved_and_the_address_keeps_it(window: Open) -> None:
    page = window().open(PAGES["application-timeline"])
    lines = page.get_by_role("group", name="Time line; plus and minus zoom, the arrows move")
    area = lines.locator(".area").first
    width = area.bounding_box()["width"]  # type: ignore[index]
    for zoom in (2, 4):
        page.get_by_role("button", name="Zoom in").click()
        expect(page).to_have_url(re.compile(rf"#timeline\?zoom={zoom}&at=0\.49"))
    zoomed = area.bounding_box()["width"]  # type: ignore[index]
    assert zoomed / width == pytest.approx(4, rel=0.15)
    assert area.locator(".ticks text").count() > 6
    # The same zoom and place after a reload, and by keyboard.
    lines.focus()
    page.keyboard.press("ArrowRight")
    expect(page).to_have_url(re.compile(r"zoom=4&at=0\.5"))
    page.keyboard.press("+")
    expect(page).to_have_url(re.compile(r"zoom=8&at=0\.5"))
    left = lines.evaluate("each => each.scrollLeft")
    page.reload()
    assert lines.evaluate("each => each.scrollLeft") == pytest.approx(left, abs=20)
    assert violations(page) == ""
    page.keyboard.press("Tab")
    page.get_by_role("button", name="All").click()
    expect(page).to_have_url(re.compile(r"#timeline$"))
    assert area.bounding_box()["width"] == width  # type: ignore[index]


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["1280", "390"])
def test_the_requests_of_a_cause_are_picked_out_from_the_cause(
    window: Open, size: tuple[int, int], tmp_path: Path
) -> None:
    """Rank 0 writes small requests into one file, and rank 1 large ones into another."""
    page = window(size).open("/predict")
    page.get_by_label("Darshan log").set_input_files(small_beside_large(tmp_path / "mixed.darshan"))
    page.get_by_role("button", name="Predict").click()
    page.get_by_role("link", name="Its requests on the time line").first.click()
    bars = page.locator(".timeline .bars rect")
    expect(bars.first).to_be_visible()
    faint = [each.evaluate("e => getComputedStyle(e).opacity") for each in bars.all()]
    # The small ones are joined.
    assert (faint.count("1"), faint.count("0.12")) == (1, 2)
    chosen = page.get_by_label("In full colour")
    assert "P06" in chosen.evaluate("each => each.selectedOptions[0].text")
    chosen.select_option("all requests")
    expect(page).to_have_url(re.compile("#timeline$"))
    assert bars.last.evaluate("e => getComputedStyle(e).opacity") == "1"


def small_beside_large(path: Path) -> Path:
    """Write the log of a run with many small writes beside two large ones."""
    small, large = 1024, 64 << 20
    records, traces = [], []
    for rank, (size, count, histogram) in enumerate(
        ((small, 3000, "POSIX_SIZE_WRITE_1K_10K"), (large, 2, "POSIX_SIZE_WRITE_10M_100M"))
    ):
        file = f"/data/{rank}"
        counters = {
            "POSIX_WRITES": count,
            "POSIX_BYTES_WRITTEN": count * size,
            "POSIX_ACCESS1_ACCESS": size,
            "POSIX_ACCESS1_COUNT": count,
            histogram: count,
        }
        times = {
            "POSIX_F_WRITE_START_TIMESTAMP": 1.0,
            "POSIX_F_WRITE_END_TIMESTAMP": 7.0,
            "POSIX_F_WRITE_TIME": 6.0,
        }
        records.append(Record("POSIX", file, rank, counters, times))
        step = 6.0 / count
        requests = [(n * size, size, 1 + n * step, 1 + (n + 0.9) * step) for n in range(count)]
        traces.append(Dxt("DXT_POSIX", file, rank, "n1", requests))
    return write_log(path, nprocs=2, records=records, dxt=traces)


def test_numbers_of_figures_are_folded(window: Open) -> None:
    page = window().open(PAGES["application-timeline"])
    table = page.get_by_role("table", name="Phases of the run")
    expect(table).to_be_hidden()
    page.locator("figure[aria-labelledby=phases-title]").get_by_text("The numbers").click()
    expect(table).to_be_visible()


def test_the_list_is_sorted_filtered_and_paged_without_scripts(window: Open) -> None:
    opened = window(NARROW, java_script_enabled=False)
    page = opened.page
    page.goto(f"{opened.address}/applications")
    page.get_by_role("link", name="Program", exact=True).click()
    expect(page.get_by_role("columnheader", name="Program")).to_have_attribute(
        "aria-sort", "ascending"
    )
    page.get_by_label("User", exact=True).fill("nobody")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_text("No application found.")).to_be_visible()
    page.get_by_role("link", name="Show all").click()
    expect(page.get_by_role("row")).to_have_count(4)


def test_runs_are_compared_without_scripts(window: Open) -> None:
    opened = window(NARROW, java_script_enabled=False)
    page = opened.page
    page.goto(opened.address + PAGES["application"])
    page.get_by_role("link", name=re.compile("^Compare with the run of")).first.press("Enter")
    expect(page.get_by_role("heading", level=1, name=re.compile("^Two runs of"))).to_be_visible()
    page.locator("summary").get_by_text("Layers").press("Enter")
    expect(page.get_by_role("table", name="Layers")).to_be_visible()
    for summary in page.locator("summary").get_by_text("The numbers").all():
        summary.click()
    for name in ("Phases of run A", "Phases of run B", "Seconds of I/O, and bandwidth"):
        expect(page.get_by_role("table", name=name)).to_be_visible()
    page.get_by_role("link", name="Swap the runs").press("Enter")
    expect(page).to_have_url(re.compile(r"run=\d&with=\d$"))


def test_a_job_is_found_by_its_id(window: Open) -> None:
    page = window().open("/jobs")
    page.get_by_label("Job id").fill("hacc-io-4-0")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1, name="Job hacc-io-4-0")).to_be_visible()
    page.get_by_role("link", name="hacc_io_write_posix_fpp").first.click()
    expect(page.get_by_role("heading", name="For the next run")).to_be_visible()


@pytest.mark.parametrize("name", ["benchmarks", "applications", "validation"])
def test_a_table_that_scrolls_shows_it_until_its_end(window: Open, name: str) -> None:
    """A shade is over the right edge of the table, unless the table ends there."""
    page = window(NARROW).open(PAGES[name])
    shade = """table => {
        const box = table.closest(".wide"), style = getComputedStyle(box, "::after");
        const hidden = box.scrollWidth - box.clientWidth - box.scrollLeft;
        const width = parseFloat(style.width) + parseFloat(style.borderRightWidth);
        return [style.position, hidden, width];
    }"""
    wide = [
        table
        for table in page.locator(".wide table").all()
        if table.is_visible() and table.evaluate(shade)[1] > 0
    ]
    assert wide
    for table in wide:
        position, hidden, width = table.evaluate(shade)
        assert position == "sticky"
        assert hidden > 0
        assert width >= 10
        table.evaluate("table => { table.closest('.wide').scrollLeft = 10000; }")
        assert table.evaluate(shade)[1] < 1


def test_a_search_finds_an_application_and_its_page_leads_to_a_benchmark(window: Open) -> None:
    opened = window()
    page = opened.open("/applications")
    page.get_by_label("Program or user").fill("hacc")
    page.keyboard.press("Enter")
    expect(page.get_by_role("row")).to_have_count(2)
    page.get_by_role("link", name="hacc_io_write_posix_fpp").click()
    opened.choose("Prediction")
    page.get_by_role("link", name=re.compile(r"^Benchmark \d+$")).first.click()
    expect(page.get_by_role("heading", level=2, name="Command")).to_be_visible()


@pytest.mark.parametrize("scheme", SCHEMES[WIDE])
def test_a_missing_page_is_an_error_page(window: Open, screenshots: Path, scheme: str) -> None:
    page = window(NARROW, scheme).open("/nothing")
    expect(page.get_by_role("heading", level=1)).to_have_text("Not Found")
    page.screenshot(path=screenshots / f"missing-390-{scheme}.png")
    assert violations(page) == ""


def test_a_wrong_token_is_rejected_with_a_message(window: Open) -> None:
    page = window().open("/login")
    page.get_by_label("Token").fill("ion_nothing")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("The token is unknown or was revoked;")
    assert violations(page) == ""


def test_a_page_is_printed_without_menu_and_buttons(window: Open, screenshots: Path) -> None:
    page = window().open(PAGES["application"])
    page.emulate_media(media="print")
    expect(page.get_by_role("navigation", name="Main")).to_be_hidden()
    page.pdf(path=screenshots / "application.pdf")
