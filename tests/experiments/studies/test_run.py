"""Studies on this machine alone, without an emulated platform."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from experiments.applications.running import Run, run_application
from experiments.applications.spec import Application, periodic_b, single_b
from experiments.datasets import DataSet
from experiments.platform.description import Description
from experiments.platform.emulated import Emulated
from experiments.studies import rerunning, settings
from experiments.studies import run as run_module
from experiments.studies.run import run_study
from experiments.studies.settings import Settings
from experiments.studies.study import Study
from ioncast_base.errors import IoncastError
from summario.reading.log import read_log
from tests.support.emulated import small
from tests.support.plain_platform import PlainPlatform

SETTINGS = Settings(
    scale=1 / 64, repetitions=2, seed=1, engine="fio", darshan=None, command="ioncast tiny"
)


def other(tasks: int, nodes: int, scale: float) -> Application:
    """An application with the same I/O under another name; it needs no other benchmark."""
    return replace(single_b(tasks, nodes, scale), name="other")


TINY = Study("tiny", "Tiny", "A file per process.", builders=(single_b, other), scale=1 / 64)


@dataclass(frozen=True)
class Alone(PlainPlatform):
    """The part of a platform that a study needs."""

    description: Description
    campaign_platform: Path


@pytest.fixture(scope="module")
def alone(
    fio: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Emulated:
    folder = tmp_path_factory.mktemp("alone")
    scratch = folder / "scratch"
    scratch.mkdir()
    platform = folder / "platform.toml"
    platform.write_text(
        f"""system = "alone"
io_nodes = [0]
nodes = 1
processes_per_node = 2
launch = "mpiexec -n {{tasks}}"
test_directory = "{scratch}"
""",
        encoding="utf-8",
    )
    return cast(Emulated, Alone(scratch, small("alone", io_nodes=(0,)), platform))


@contextmanager
def failing(**reasons: list[str]) -> Iterator[None]:
    """Let the first reruns of applications fail, each with the next reason."""

    def run_or_fail(
        application: Application, platform: Emulated, io_nodes: int, **options: Any
    ) -> Run:
        if reasons.get(application.name):
            raise IoncastError(reasons[application.name].pop(0))
        return run_application(application, platform, io_nodes, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rerunning, "run_application", run_or_fail)
        yield


@pytest.fixture(scope="module")
def troubled(alone: Emulated, tmp_path_factory: pytest.TempPathFactory) -> tuple[DataSet, str]:
    """A study with a failing rerun, an application that never runs, and Darshan without mpi4py."""
    failures = {
        "single-b": ["a process failed (1): \x1b[31mno space\x1b[0m"],
        "other": ["it is broken", "it is still broken"],
    }
    said = io.StringIO()
    with failing(**failures), redirect_stderr(said), pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings, "has_mpi4py", lambda: False)
        patch.setattr(settings, "find_darshan", lambda: Path("libdarshan.so"))
        folder = tmp_path_factory.mktemp("troubled") / "tiny"
        how = replace(SETTINGS, command="ioncast tiny --output 'a\tb'")
        return run_study(TINY, alone, folder, how), said.getvalue()


def test_an_application_that_never_runs_does_not_cost_the_others(
    troubled: tuple[DataSet, str],
) -> None:
    data, _ = troubled
    assert {name: len(runs) for name, runs in data.applications.items()} == {"single-b": 1}
    assert [log.application for log in data.provenance.logs] == ["single-b"]
    assert "other was left out: every rerun failed: it is broken" in data.provenance.notes


def test_unprintable_texts_are_replaced_in_the_provenance(troubled: tuple[DataSet, str]) -> None:
    known = troubled[0].provenance
    assert "a rerun failed: a process failed (1): ?[31mno space?[0m" in known.notes
    assert known.command == "ioncast tiny --output 'a?b'"


def test_a_note_explains_that_darshan_needs_mpi4py(
    troubled: tuple[DataSet, str],
) -> None:
    known = troubled[0].provenance
    assert known.logs[0].source.startswith("libdarshan-util's writer")
    assert (
        "the log of single-b has the application's own counters: Darshan's runtime is installed,"
        " but it traces nothing here without mpi4py"
    ) in known.notes


def test_the_date_of_a_study_is_that_of_its_first_run(troubled: tuple[DataSet, str]) -> None:
    data, _ = troubled
    job = read_log(data.folder / "logs" / data.provenance.logs[0].file).job
    started = datetime.fromtimestamp(job.start_seconds, timezone.utc)
    assert data.provenance.date == started.date().isoformat()


def test_the_number_of_runs_and_the_progress_are_printed(
    troubled: tuple[DataSet, str],
) -> None:
    lines = troubled[1].splitlines()
    # The two applications have the same pattern, so there is one benchmark.
    assert (
        "ioncast: 6 runs: benchmarks: 1, applications: 2, numbers of I/O nodes: 1, repetitions: 2"
    ) in lines
    assert "reference runs: 2 of 2 runs done" in lines
    assert lines[-1] == "runs: 3 of 6 runs done, 3 failed"


def test_a_study_without_a_successful_rerun_is_an_error(alone: Emulated, tmp_path: Path) -> None:
    with (
        failing(**{"single-b": ["broken", "again"], "other": ["missing", "again"]}),
        pytest.raises(IoncastError) as caught,
    ):
        run_study(TINY, alone, tmp_path, SETTINGS)
    reasons = str(caught.value).removeprefix("every rerun failed: ").split("; ")
    assert sorted(reasons) == ["other: missing", "single-b: broken"]


@contextmanager
def stopping(*, after: int) -> Iterator[list[str]]:
    """Stop a study, as Ctrl-C does, after some runs of applications; give their names."""
    ran: list[str] = []

    def run_or_stop(
        application: Application, platform: Emulated, io_nodes: int, **options: Any
    ) -> Run:
        if len(ran) == after:
            raise KeyboardInterrupt
        ran.append(application.name)
        return run_application(application, platform, io_nodes, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_module, "run_application", run_or_stop)
        patch.setattr(rerunning, "run_application", run_or_stop)
        yield ran


def exit_codes(folder: Path) -> dict[Path, int]:
    """The runs of benchmarks that have ended, with the times of their ends."""
    return {file: file.stat().st_mtime_ns for file in folder.glob("campaign/runs/*/exit_code")}


def test_a_stopped_study_continues_with_the_runs_that_are_missing(
    alone: Emulated, tmp_path: Path
) -> None:
    # Two reference runs come first, then two of the four reruns.
    with stopping(after=4), pytest.raises(KeyboardInterrupt):
        run_study(TINY, alone, tmp_path, SETTINGS)
    ended = exit_codes(tmp_path)
    kept = {file: file.read_text() for file in tmp_path.glob("reruns/*")}
    assert len(kept) == 2
    with stopping(after=4) as ran:
        data = run_study(TINY, alone, tmp_path, SETTINGS)
    assert len(ran) == 2
    assert exit_codes(tmp_path).items() >= ended.items()
    assert {file: file.read_text() for file in kept} == kept
    assert {name: len(runs) for name, runs in data.applications.items()} == {
        "single-b": 2,
        "other": 2,
    }
    assert len(data.benchmarks) == 2


def test_a_study_that_is_stopped_in_a_reference_run_begins_it_again(
    alone: Emulated, tmp_path: Path
) -> None:
    with stopping(after=1), pytest.raises(KeyboardInterrupt):
        run_study(TINY, alone, tmp_path, SETTINGS)
    assert [file.name for file in (tmp_path / "logs").iterdir()] == ["single-b-ionodes0.darshan"]
    with stopping(after=5) as ran:
        run_study(TINY, alone, tmp_path, SETTINGS)
    assert ran[0] == "other"


def test_a_damaged_result_of_a_rerun_is_measured_again(alone: Emulated, tmp_path: Path) -> None:
    run_study(TINY, alone, tmp_path, SETTINGS)
    damaged = tmp_path / "reruns" / "other-n0-r2.json"
    damaged.write_text(damaged.read_text()[:40])
    with stopping(after=1) as ran:
        run_study(TINY, alone, tmp_path, SETTINGS)
    assert ran == ["other"]


def test_a_study_keeps_the_bandwidth_of_each_phase_of_a_rerun(
    alone: Emulated, tmp_path: Path
) -> None:
    twice = Study(
        "twice",
        "Twice",
        "Two phases.",
        builders=(partial(periodic_b, phases=2, pause_s=1.1),),
        scale=1 / 1024,
    )
    how = replace(SETTINGS, scale=1 / 1024, repetitions=1)
    [run] = run_study(twice, alone, tmp_path, how).applications["periodic-b"]
    first, second = run.phases_mib_s
    # Both phases have the same bytes, so the times of their parts add up.
    assert 2 / run.bandwidth_mib_s == pytest.approx(1 / first + 1 / second)
