"""From benchmarks on real I/O nodes to the prediction of another application and its reruns."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from benchdb.campaigns.engines import ENGINES, BenchmarkJob
from benchdb.measurements.exports import export_rows
from benchdb.store.database import open_database, transaction
from experiments.applications.running import Run, run_application
from experiments.applications.spec import Application, Step
from experiments.platform.description import Storage
from experiments.platform.emulated import Emulated
from experiments.platform.emulator import find
from ioncast_base.errors import IoncastError
from ior_configs import IorConfig
from ior_configs.campaign_files import campaign_text
from tests.support.emulated import (
    bundled,
    emulated,
    leftovers,
    received_bytes,
    small,
    unique_name,
    wait_until,
)

pytestmark = [pytest.mark.platform, pytest.mark.fio]

IO_NODES = (0, 1, 2, 4, 8)
KIB = 1 << 10
# The campaign has neither these request sizes nor these file sizes.
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
    """The results of all steps.

    Attributes
    ----------
    stored : list of dict
        Measurements of the benchmarks.
    prediction, validation : dict
        Output of `ioncast predict` and `ioncast validate` for the application.
    reruns : dict of int to float
        Bandwidth of the application in MiB/s, by number of I/O nodes.
    left : list of str
        Everything that was left of the platform after `down`.
    """

    stored: list[dict[str, Any]]
    prediction: dict[str, Any]
    validation: dict[str, Any]
    reruns: dict[int, float]
    left: list[str]


def ioncast(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "ioncast", *arguments]


def said(*arguments: str) -> str:
    done = execute(*arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def execute(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ioncast(*arguments), capture_output=True, text=True, check=False, timeout=1800
    )


def small_campaign(repetitions: int) -> str:
    """The campaign `forwarding`, which has six patterns, with half of the bytes."""
    text = re.sub(
        r"(?m)^repetitions = .*", f"repetitions = {repetitions}", campaign_text("forwarding")
    )
    half = {"512k": "256k", "1m": "512k", "2m": "1m", "4m": "2m"}
    return re.sub(r'(?<=bytes_per_process = ")\w+', lambda size: half[size[0]], text)


def campaign_arguments(name: str, folder: Path) -> list[str]:
    """Arguments of `ioncast campaign run` with fio and one repetition."""
    file = folder / "forwarding.toml"
    file.write_text(small_campaign(repetitions=1), encoding="utf-8")
    platform_file = f"/run/ioncast-platform/{name}/platform.toml"
    where = ("--dir", str(folder / "campaign"), "--db", str(folder / "bench.sqlite"))
    return ["campaign", "run", str(file), "--platform", platform_file, "--engine", "fio", *where]


def benchmark(name: str, folder: Path) -> list[dict[str, Any]]:
    """Run a campaign; repeat the runs until the measurements show the effect of the links."""
    arguments = campaign_arguments(name, folder)
    for repetitions in range(2, 6):
        if execute(*arguments).returncode:
            # GlusterFS sometimes does not release a lock; then a run fails.
            said("campaign", "resume", str(folder / "campaign"), "--retry-failed")
        rows = stored_in(folder)
        if shows_the_links(rows):
            break
        # The machine was busy, so measure once more.
        (folder / "campaign" / "campaign.toml").write_text(small_campaign(repetitions))
        arguments = ["campaign", "resume", str(folder / "campaign")]
    return rows


def stored_in(folder: Path) -> list[dict[str, Any]]:
    engine = open_database(folder / "bench.sqlite", create=False)
    with transaction(engine) as connection:
        rows = [dict(row) for row in export_rows(connection)]
    engine.dispose()
    return rows


def shows_the_links(rows: Sequence[dict[str, Any]]) -> bool:
    """Whether one I/O node is too few for some patterns and better than eight for others."""
    own_files = best_mib_s(rows, "write", "unique", 1024 * KIB)
    small_strided = best_mib_s(rows, "write", "shared", 8 * KIB)
    read_back = best_mib_s(rows, "read", "unique", 1024 * KIB)
    return (
        # The link of one I/O node is slower than those of all compute nodes together.
        own_files[0] > own_files[1]
        and read_back[0] > read_back[1]
        # One writer keeps the lock of a shared file; several would pass it on to each other.
        and small_strided[1] > small_strided[8]
    )


def best_mib_s(
    rows: Sequence[dict[str, Any]], operation: str, file_access: str, transfer_size: int
) -> dict[int, float]:
    """The highest bandwidths of a pattern: other work on the machine only makes runs slower."""
    wanted = (operation, file_access, transfer_size)
    best: defaultdict[int, float] = defaultdict(float)
    for row in rows:
        if (row["operation"], row["file_access"], row["transfer_size"]) == wanted:
            best[row["io_nodes"]] = max(best[row["io_nodes"]], row["bandwidth_mib_s"])
    return best


def rerun(name: str, folder: Path) -> tuple[Path, dict[int, float]]:
    """Run the application for its log, with direct access, and with each number of I/O nodes."""
    log, platform = folder / "unseen.darshan", find(name)
    run_twice_at_most(platform, 0, log=log)
    return log, {n: run_twice_at_most(platform, n).bandwidth_mib_s for n in IO_NODES}


def run_twice_at_most(platform: Emulated, io_nodes: int, log: Path | None = None) -> Run:
    try:
        return run_application(UNSEEN, platform, io_nodes, log=log)
    except IoncastError:
        # GlusterFS sometimes does not release a lock.
        return run_application(UNSEEN, platform, io_nodes, log=log)


def table_of(runs: Mapping[int, float], file: Path) -> Path:
    """Write the reruns as a table for `ioncast validate`."""
    rows = [f"{UNSEEN.name},{io_nodes},1,{mib_s}\n" for io_nodes, mib_s in runs.items()]
    file.write_text("".join(["application,io_nodes,repetition,bandwidth_mib_s\n", *rows]))
    return file


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    folder, name = tmp_path_factory.mktemp("forwarding"), unique_name()
    try:
        said("platform", "up", "--name", name)
        stored = benchmark(name, folder)
        log, reruns = rerun(name, folder)
    finally:
        said("platform", "down", name)
    left = leftovers(name)
    database = str(folder / "bench.sqlite")
    asked = ("--system", name, "--nodes", "8", "--db", database, "--format", "json")
    table = str(table_of(reruns, folder / "reruns.csv"))
    return Story(
        stored=stored,
        prediction=json.loads(said("predict", str(log), *asked)),
        validation=json.loads(said("validate", table, "--log", f"unseen={log}", *asked)),
        reruns=reruns,
        left=left,
    )


def test_fio_measures_six_patterns_with_every_number_of_io_nodes(story: Story) -> None:
    assert sum(row["repetition"] == 0 for row in story.stored) == 6 * len(IO_NODES)
    assert {row["io_nodes"] for row in story.stored} == set(IO_NODES)
    assert {(row["engine"], row["tasks"], row["nodes"]) for row in story.stored} == {("fio", 16, 8)}


def test_one_io_node_is_too_few_for_some_patterns_and_better_than_eight_for_others(
    story: Story,
) -> None:
    assert shows_the_links(story.stored)


def test_the_prediction_of_an_application_without_benchmarks_is_compared_with_reruns(
    story: Story, record_property: Callable[[str, object], None]
) -> None:
    matches = {phase["match"]["kind"] for phase in story.prediction["phases"]}
    assert len(story.prediction["phases"]) >= 2
    assert "exact" not in matches
    [application] = story.validation["applications"]
    error = application["prediction"]["cells"]["mean"]
    regret = application["prediction"]["regret"]
    record_property("measured", f"unseen application: error {error:.1%}, regret {regret:.1%}")
    # The test does not judge the prediction: this machine may be busy.
    measured = story.reruns
    predicted = {
        point["io_nodes"]: point["predicted_mib_s"]["mean"] for point in application["curve"]
    }
    assert error == pytest.approx(
        fmean(abs(predicted[n] - measured[n]) / measured[n] for n in measured)
    )
    assert regret == pytest.approx(
        1 - measured[application["best"]["predicted"]] / max(measured.values())
    )


def test_nothing_is_left_when_the_platform_is_down(story: Story) -> None:
    assert story.left == []


def fio_job(platform: Emulated, config: IorConfig, io_nodes: int) -> BenchmarkJob:
    """The job that `ioncast campaign` would give to the engine."""
    nodes = range(config.nodes or 1)
    return BenchmarkJob(
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
        IorConfig(write=True, fsync="end", block_size=256 * KIB, tasks=4, nodes=2),
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
    fio: str,
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
def test_input_files_are_in_no_cache_of_an_io_node(
    file_per_process: bool,
    small_platform: Emulated,
    fio: str,
    tmp_path: Path,
) -> None:
    """The bytes of each run come from the storage, also in a second run of the same kind."""
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
    fio: str,
    tmp_path: Path,
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A platform's name, and an `ioncast campaign run` there that has started fio."""
    with emulated(bundled(unique_name())) as platform:
        process = subprocess.Popen(
            ioncast(*campaign_arguments(platform.name, tmp_path)), stderr=subprocess.DEVNULL
        )
        try:
            begun = "campaign/runs/*/started"
            wait_until(lambda: process.poll() is not None or list(tmp_path.glob(begun)))
            assert process.poll() is None
            yield platform.name, process
        finally:
            process.kill()
            process.wait()


def at_work_in(folder: Path) -> list[str]:
    """Ids of the processes whose working directory is in a folder."""
    places = {path.parent.name: path for path in Path("/proc").glob("[0-9]*/cwd")}
    found = []
    for pid, place in places.items():
        try:
            if place.readlink().is_relative_to(folder):
                found.append(pid)
        except OSError:
            continue
    return found


def test_nothing_is_left_when_a_campaign_is_killed_during_a_run(
    campaign_in_flight: tuple[str, subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    """The run goes on without the campaign, until its files are gone."""
    name, process = campaign_in_flight
    process.kill()
    process.wait()
    said("platform", "down", name)
    wait_until(lambda: at_work_in(tmp_path) == [])
    assert leftovers(name) == []
