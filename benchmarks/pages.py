"""Time from the upload of a log until its page is there, beside PyDarshan's summary.

    python benchmarks/pages.py [--repeat N]

`ioncast serve --demo` runs already, as a site's service does; `python -m darshan summary` is a new
process each time. The ways take turns, so that a slow minute of the machine affects all of them. A
missed goal does not change the exit code.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import importlib.metadata
import importlib.util
import os
import platform
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from urllib.request import urlopen

from measuring import DATA, Claim, ioncast, machine, run_once
from service import form_of, free_port, running

LOGS = (
    DATA / "runs/logs/large-64k-records.darshan",
    DATA / "darshan-logs/partial_data_dxt/partial_data_dxt.darshan",
)
SYSTEM = "testbed"
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
HTML = {"Accept": "text/html"}
STARTED_WITHIN_S = 600
PAGE, LOADED, SUMMARY = (
    "`POST /predict` until the last byte of the page",
    "Chromium: from the button *Predict* until the page's `load` event",
    "`python -m darshan summary`, a new process",
)

Way = Callable[[Path], object]


def main() -> None:
    arguments = parse_arguments()
    names = ("ioncast", "darshan", "flask", "jinja2")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)
    print(f"{machine()}\nPython {platform.python_version()}, {versions}")
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ioncast-benchmark-")))
        port = stack.enter_context(demonstration(folder))
        ways: dict[str, Way] = {PAGE: lambda log: page_of(port, log)}
        if BROWSER and importlib.util.find_spec("playwright"):
            ways[LOADED] = stack.enter_context(browser(port))
        ways[SUMMARY] = lambda log: summary_of(log, folder)
        found = [claim for log in LOGS for claim in measured(log, ways, arguments.repeat)]
    print("\nGoals", *found, sep="\n")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=5, metavar="N", help="turns of each (5)")
    arguments = parser.parse_args()
    if arguments.repeat < 1:
        parser.error("--repeat must be at least 1")
    if not all(log.is_file() for log in LOGS):
        parser.error(f"the logs of {DATA} are missing")
    if not ioncast().is_file():
        parser.error(
            f"{ioncast()} does not exist; run this with the Python in which ioncast is installed"
        )
    return arguments


@contextlib.contextmanager
def demonstration(folder: Path) -> Iterator[int]:
    """Run the service with the demonstration's data; yield its port."""
    port = free_port()
    command = [str(ioncast()), "serve", "--demo", "--bind", f"127.0.0.1:{port}"]
    with running([*command, "--state", str(folder / "state")], folder):
        end = time.monotonic() + STARTED_WITHIN_S
        while True:
            try:
                urlopen(f"http://127.0.0.1:{port}/readyz").close()
                break
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.5)
        yield port


def page_of(port: int, log: Path) -> bytes:
    body, headers = form_of({"system": SYSTEM}, log.name, log.read_bytes())
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
        connection.request("POST", "/predict", body, {**headers, **HTML})
        response = connection.getresponse()
        page = response.read()
    if response.status != http.HTTPStatus.OK or not page.rstrip().endswith(b"</html>"):
        sys.exit(f"POST /predict answered {response.status}: {page[:1000]!r}")
    if b"No insights were made" in page:
        sys.exit(f"the page of {log.name} has no insights")
    return page


@contextlib.contextmanager
def browser(port: int) -> Iterator[Way]:
    """Start Chromium; yield a function that sends a log by the form."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - it may not be installed

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        window = started.new_page()
        window.set_default_timeout(1000 * STARTED_WITHIN_S)

        def send(log: Path) -> float:
            window.goto(f"http://127.0.0.1:{port}/predict")
            window.locator("input[type=file]").set_input_files(log)
            window.locator("select[name=system]").select_option(SYSTEM)
            start = time.monotonic()
            with window.expect_navigation(wait_until="load"):
                window.get_by_role("button", name="Predict").click()
            seconds = time.monotonic() - start
            window.get_by_role("heading", level=1, name=log.name).wait_for()
            return seconds

        yield send
        started.close()


def summary_of(log: Path, folder: Path) -> None:
    report = ["--output", str(folder / "report.html")]
    run_once([sys.executable, "-W", "ignore", "-m", "darshan", "summary", *report, str(log)])


def measured(log: Path, ways: Mapping[str, Way], repeat: int) -> Iterator[Claim]:
    load = os.getloadavg()[0]
    turns = [{name: seconds_of(way, log) for name, way in ways.items()} for _ in range(repeat)]
    seconds = {name: [turn[name] for turn in turns] for name in ways}
    page_bytes = len(ways[PAGE](log))
    print(
        f"\n{log.name}, {log.stat().st_size / 2**20:.1f} MiB; its page has"
        f" {page_bytes / 2**10:,.0f} KiB; {repeat} turns, load average {load:.1f} to"
        f" {os.getloadavg()[0]:.1f}\n"
    )
    print("| way | s, shortest | median | longest | ratio |\n| --- | ---: | ---: | ---: | ---: |")
    for name, values in seconds.items():
        print(f"| {name} | {cells(values)} | {min(values) / min(seconds[PAGE]):.2f} |")
    ratio = min(seconds[SUMMARY]) / min(seconds[PAGE])
    yield Claim(f"{log.name}: the page is there before the summary", f"{ratio:.2f} ×", ratio >= 1)


def seconds_of(way: Way, log: Path) -> float:
    """The seconds that a way takes; it may measure a part of itself."""
    start = time.monotonic()
    found = way(log)
    return found if isinstance(found, float) else time.monotonic() - start


def cells(values: Sequence[float]) -> str:
    return " | ".join(f"{f(values):.2f}" for f in (min, statistics.median, max))


if __name__ == "__main__":
    main()
