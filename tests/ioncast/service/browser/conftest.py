"""A real Chromium, and the demonstration's service as `ioncast serve` runs it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.support.postgresql import Server
from tests.support.services import use
from tests.support.serving import PATIENT, Served, running, wait_for

# A machine that runs other tests at the same time may be slow.
PATIENCE_MS = 120_000
_OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    # There is no graphics card, so a process for it gains nothing.
    "--in-process-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    # A site that browsers do not trust like this machine: over http, by a name.
    "--host-resolver-rules=MAP intranet.test 127.0.0.1",
]


# Not for the whole session: as long as it runs, tests in this process cannot run an event loop.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    use("browser")
    with sync_playwright() as playwright:
        expect.set_options(timeout=PATIENCE_MS)
        started = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=_OPTIONS, timeout=PATIENCE_MS
        )
        yield started
        started.close()


@pytest.fixture(scope="session")
def served(site_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    environment = {**PATIENT, "IONCAST_STORE": str(site_store)}
    with running(folder, "--demo", "--workers", "2", environment=environment) as service:
        wait_for(lambda: service.ask("/readyz").status == 200, "the demonstration's data")
        yield service


@pytest.fixture
def served_from_postgresql(
    postgresql: Server, demo_on_postgresql: str, site_store: Path, tmp_path: Path
) -> Iterator[Served]:
    environment = {**PATIENT, "IONCAST_STORE": str(site_store)}
    with postgresql.database("browser") as url:
        postgresql.copy(demo_on_postgresql, "browser")
        told = ("--db", url, "--workers", "1")
        with running(tmp_path, *told, environment=environment) as service:
            yield service


@pytest.fixture(scope="session")
def screenshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of screenshots: IONCAST_SCREENSHOTS, or a temporary one."""
    named = os.environ.get("IONCAST_SCREENSHOTS")
    folder = Path(named) if named else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
