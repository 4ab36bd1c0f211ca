"""The whole way over real I/O nodes: benchmarks, the prediction of something else, its reruns."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from benchdb.campaigns.engines import ENGINES, Job
from benchdb.exports import export_rows
from benchdb.store import open_database, transaction
from experiments.applications.running import run_application
from experiments.applications.spec import Application, Step
from experiments.platform.description import Storage
from experiments.platform.emulator import Emulated, find
from ior_configs import IorConfig
from ior_configs.campaign import campaign_text
from tests.support.emulated import (
    bundled,
    emulated,
    leftovers,
    need_platform,
    received_bytes,
    small,
    unique_name,
)
from tests.support.fio import fio  # noqa: F401  a fixture

IO_NODES = (0, 1, 2, 4, 8)
KIB = 1 << 10
# Sizes of requests and of files that the campaign does not have.
UNSEEN = Application(
    name="unseen",
    tasks=16,
    nodes=8,
    steps=(
        Step("checkpoint", "write", "unique", "contiguous", ((512 * KIB, 6),)),
        Step("output", "write", "shared", "1d-strided", ((64 * KIB, 16),)),
    ),
    pause_s=1.2,
)


@dataclass(frozen=True)
class Story:
    """What came of it.

    Attributes
    ----------
    stored : list of dict
        The benchmarks' measurements.
    prediction, validation : dict
        What `ioncast predict` and `ioncast validate` said of the application.
    left : list of str
        What there was of the platform after it went down.
    """

    stored: list[dict[str, Any]]
    prediction: dict[str, Any]
    validation: dict[str, Any]
    left: list[str]

    def mean_mib_s(self, operation: str, file_access: str, transfer_size: int) -> dict[int, float]:
        """One pattern's curve."""
        wanted = (operation, file_access, transfer_size)
        found = defaultdict(list)
        for row in self.stored:
            if (row["operation"], row["file_access"], row["transfer_size"]) == wanted:
                found[row["io_nodes"]].append(row["bandwidth_mib_s"])
        return {io_nodes: sum(values) / len(values) for io_nodes, values in found.items()}


def ioncast(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "ioncast", *arguments]


def said(*arguments: str) -> str:
    done = execute(*arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def execute(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ioncast(*arguments), capture_output=True, text=True, check=False, timeout=600
    )


def campaign_arguments(name: str, folder: Path) -> list[str]:
    """`ioncast campaign run` with fio; each run once and with half of the bytes."""
    file = folder / "forwarding.toml"
    text = re.sub(r"(?m)^repetitions = .*", "repetitions = 1", campaign_text("forwarding"))
    half = {"512k": "256k", "1m": "512k", "2m": "1m", "4m": "2m"}
    text = re.sub(r'(?<=bytes_per_process = ")\w+', lambda size: half[size[0]], text)
    file.write_text(text, encoding="utf-8")
    platform_file = f"/run/ioncast-platform/{name}/platform.toml"
    where = ("--dir", str(folder / "campaign"), "--db", str(folder / "bench.sqlite"))
    return ["campaign", "run", str(file), "--platform", platform_file, "--engine", "fio", *where]


def rerun(name: str, folder: Path) -> tuple[Path, Path]:
    """The application's log, with direct access, and its runs with each number of I/O nodes."""
    log, reruns = folder / "unseen.darshan", folder / "reruns.csv"
    platform = find(name)
    run_application(UNSEEN, platform, 0, log=log)
    with reruns.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["application", "io_nodes", "repetition", "bandwidth_mib_s"])
        for io_nodes in IO_NODES:
            run = run_application(UNSEEN, platform, io_nodes)
            writer.writerow([UNSEEN.name, io_nodes, 1, run.bandwidth_mib_s])
    return log, reruns


@pytest.fixture(scope="module")
def story(fio: str, tmp_path_factory: pytest.TempPathFactory) -> Story:  # noqa: F811
    need_platform()
    folder, name = tmp_path_factory.mktemp("forwarding"), unique_name()
    try:
        said("platform", "up", "--name", name)
        if execute(*campaign_arguments(name, folder)).returncode:
            # GlusterFS forgets a lock now and then, which fails a run.
            said("campaign", "resume", str(folder / "campaign"), "--retry-failed")
        log, reruns = rerun(name, folder)
    finally:
        said("platform", "down", name)
    left = leftovers(name)
    database = str(folder / "bench.sqlite")
    asked = ("--system", name, "--nodes", "8", "--db", database, "--format", "json")
    engine = open_database(database, create=False)
    with transaction(engine) as connection:
        stored = [dict(row) for row in export_rows(connection)]
    engine.dispose()
    return Story(
        stored=stored,
        prediction=json.loads(said("predict", str(log), *asked)),
        validation=json.loads(said("validate", str(reruns), "--log", f"unseen={log}", *asked)),
        left=left,
    )


def test_fio_measures_six_patterns_with_every_number_of_io_nodes(story: Story) -> None:
    assert len(story.stored) == 6 * len(IO_NODES)
    assert {row["io_nodes"] for row in story.stored} == set(IO_NODES)
    assert {(row["engine"], row["tasks"], row["nodes"]) for row in story.stored} == {("fio", 16, 8)}


def test_one_io_node_is_too_few_for_some_patterns_and_better_than_eight_for_others(
    story: Story,
) -> None:
    """One run of each on a machine that may be busy: only what the links set far apart."""
    own_files = story.mean_mib_s("write", "unique", 1024 * KIB)
    small_strided = story.mean_mib_s("write", "shared", 8 * KIB)
    read_back = story.mean_mib_s("read", "unique", 1024 * KIB)
    # The link of one I/O node is slower than those of all compute nodes together.
    assert own_files[0] > own_files[1]
    assert read_back[0] > read_back[1]
    # One writer keeps the lock of a file that many would pass on to each other.
    assert small_strided[1] > small_strided[8]


def test_the_choice_for_an_application_that_was_not_benchmarked_is_held_against_its_reruns(
    story: Story, record_property: Callable[[str, object], None]
) -> None:
    matches = {phase["match"]["kind"] for phase in story.prediction["phases"]}
    assert len(story.prediction["phases"]) == 2
    assert "exact" not in matches
    [application] = story.validation["applications"]
    error = application["prediction"]["cells"]["mean"]
    regret = application["prediction"]["regret"]
    record_property("measured", f"unseen application: error {error:.1%}, regret {regret:.1%}")
    # One run of each on a machine that may be busy: no more than that it makes sense.
    assert error < 0.75
    assert regret < 0.45


def test_nothing_is_left_when_the_platform_is_down(story: Story) -> None:
    assert story.left == []


def fio_job(platform: Emulated, config: IorConfig, io_nodes: int) -> Job:
    """What `ioncast campaign` tells the engine."""
    nodes = range(config.nodes or 1)
    return Job(
        config=config,
        program="fio",
        launch="",
        test_file=str(platform.scratch / "test"),
        output="output.json",
        node_files=tuple(str(platform.node_directory(io_nodes, node) / "test") for node in nodes),
    )


def shell(lines: Sequence[str], folder: Path) -> None:
    for line in lines:
        subprocess.run(["bash", "-c", line], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def small_platform() -> Iterator[Emulated]:
    """Two compute nodes, and I/O nodes that cache what they read."""
    storage = {"servers": 2, "replicas": 2, "memory": "1g", "cache": "64m"}
    with emulated(small(unique_name(), storage=Storage.model_validate(storage))) as platform:
        yield platform


@pytest.mark.parametrize("io_nodes", [0, 1, 2])
@pytest.mark.parametrize(
    "config",
    [
        IorConfig(write=True, fsync=True, block_size=256 * KIB, tasks=4, nodes=2),
        IorConfig(
            write=True, block_size=8 * KIB, transfer_size=8 * KIB, segments=9, tasks=4, nodes=2
        ),
    ],
    ids=["contiguous", "1d-strided"],
)
def test_processes_of_all_nodes_write_one_whole_file(
    config: IorConfig,
    io_nodes: int,
    small_platform: Emulated,
    fio: str,  # noqa: F811
    tmp_path: Path,
) -> None:
    job = fio_job(small_platform, config, io_nodes)
    engine = ENGINES["fio"]
    shell(engine.prepare(job), tmp_path)
    filled = engine.measure(job).replace("=global", "=global --buffer_pattern=0x5a")
    shell([filled], tmp_path)
    file = Path(job.test_file)
    assert file.read_bytes() == b"\x5a" * (4 * config.bytes_per_process)
    shell(engine.remove(job), tmp_path)
    assert not file.exists()


@pytest.mark.parametrize("file_per_process", [False, True])
def test_what_is_read_is_in_no_cache_of_an_io_node(
    file_per_process: bool,
    small_platform: Emulated,
    fio: str,  # noqa: F811
    tmp_path: Path,
) -> None:
    """Each run's bytes come from the storage, those of a second run of a kind as well."""
    config = IorConfig(
        read=True, file_per_process=file_per_process, block_size=1024 * KIB, tasks=4, nodes=2
    )
    job = fio_job(small_platform, config, 1)
    engine = ENGINES["fio"]
    for _ in range(2):
        shell(engine.prepare(job), tmp_path)
        before = received_bytes(small_platform, "io0")
        shell([engine.measure(job)], tmp_path)
        assert received_bytes(small_platform, "io0") - before >= 4 * 1024 * KIB
        shell(engine.remove(job), tmp_path)


@pytest.fixture
def campaign_in_flight(
    fio: str,  # noqa: F811
    tmp_path: Path,
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A platform's name, and an `ioncast campaign run` of which fio is at work there."""
    with emulated(bundled(unique_name())) as platform:
        process = subprocess.Popen(
            ioncast(*campaign_arguments(platform.name, tmp_path)), stderr=subprocess.DEVNULL
        )
        try:
            give_up_at = time.monotonic() + 60
            while not list(tmp_path.glob("campaign/runs/*/started")):
                assert process.poll() is None
                assert time.monotonic() < give_up_at
                time.sleep(0.02)
            yield platform.name, process
        finally:
            process.kill()
            process.wait()


def at_work_in(folder: Path) -> list[str]:
    """Processes whose working directory is in a folder."""
    places = {path.parent.name: path for path in Path("/proc").glob("[0-9]*/cwd")}
    found = []
    for pid, place in places.items():
        try:
            if place.readlink().is_relative_to(folder):
                found.append(pid)
        except OSError:
            continue
    return found


def test_nothing_is_left_when_the_campaign_was_killed_in_the_middle(
    campaign_in_flight: tuple[str, subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    """Its run in flight goes on without it, until its files are gone."""
    name, process = campaign_in_flight
    process.kill()
    process.wait()
    said("platform", "down", name)
    assert leftovers(name) == []
    give_up_at = time.monotonic() + 30
    while (pids := at_work_in(tmp_path)) and time.monotonic() < give_up_at:
        time.sleep(0.05)
    assert pids == []
