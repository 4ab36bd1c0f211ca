"""The arbiter's rounds with a server that answers like slurmrestd."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scheduler_plugin.arbiter.arbiter_loop import Arbiter
from scheduler_plugin.service_client import Ioncast, ServiceUnreachableError, SlowIoNodes
from scheduler_plugin.settings import SiteSettings
from scheduler_plugin.slurm import Slurm, SlurmAnswerError, SlurmUnreachableError
from scheduler_plugin.slurm.licences import licence_count
from tests.scheduler_plugin.slurm.recorded import VERSIONS, Slurmrestd, served

PROJECT = Path(__file__).resolve().parents[3]
# Minutes after the submission of the recorded job, and before its hold ends by itself: it is
# released as decided, because no service is there to be asked for its decision.
LATER_S = 1790000000.0 + 200
REJECTED = {"errors": [{"error_number": 2073, "error": "Job is no longer pending execution"}]}


@pytest.fixture(params=VERSIONS)
def slurmrestd(request: pytest.FixtureRequest) -> Slurmrestd:
    return Slurmrestd((request.param,))


@pytest.fixture
def arbiter(slurmrestd: Slurmrestd) -> Iterator[Arbiter]:
    nowhere = "unix:/nowhere/ioncast.sock"
    settings = SiteSettings.model_validate(
        {
            "system": "testbed",
            "slurmrestd": {"address": nowhere, "user": "ada", "token_file": "/nowhere"},
            "service": {"address": nowhere, "token_file": "/nowhere"},
        }
    )
    with (
        served(slurmrestd) as address,
        Slurm(address, "ada", lambda: "token") as slurm,
        Ioncast(nowhere, lambda: "token", 1.0) as service,
    ):
        yield Arbiter(settings, slurm, service)


def test_each_change_is_progress(arbiter: Arbiter, slurmrestd: Slurmrestd) -> None:
    progress: list[int] = []
    made = arbiter.round(LATER_S, lambda: progress.append(1))
    assert [change.job.id for change in made] == [101]
    assert len(progress) == 1
    # An operator may not change administrators' comments: Slurm would reject the release.
    [body] = [body for method, _, _, body in slurmrestd.asked if method == "POST"]
    assert body.keys() == {"begin_time"}


def test_releases_that_slurm_rejects_again_and_again_are_a_failure(
    arbiter: Arbiter, slurmrestd: Slurmrestd
) -> None:
    slurmrestd.instead["job/101"] = (500, json.dumps(REJECTED), 0.0)
    # A job may end between two requests, so the first time does not count.
    assert arbiter.round(LATER_S) == []
    with pytest.raises(SlurmAnswerError, match="rejects the release of 1 held job"):
        arbiter.round(LATER_S)
    del slurmrestd.instead["job/101"]
    assert len(arbiter.round(LATER_S)) == 1


def test_a_change_without_an_answer_ends_the_round_without_progress(
    arbiter: Arbiter, slurmrestd: Slurmrestd
) -> None:
    assert arbiter.slurm.version
    slurmrestd.instead["job/101"] = (502, "Bad Gateway", 0.0)
    progress: list[int] = []
    with pytest.raises(SlurmUnreachableError):
        arbiter.round(LATER_S, lambda: progress.append(1))
    assert progress == []


def with_hooks(arbiter: Arbiter, hooks: Path) -> Arbiter:
    arbitrate = arbiter.settings.arbitrate.model_copy(update={"hooks": str(hooks)})
    arbiter.settings = arbiter.settings.model_copy(update={"arbitrate": arbitrate})
    return arbiter


def hooks_in(folder: Path, jobs_per_io_node: int) -> Path:
    """Settings of hooks with four I/O nodes, and the arbiter's list."""
    (folder / "placement").touch()
    hooks = folder / "hooks.conf"
    hooks.write_text(
        f"IO_NODES='io1 io2 io3 io4'\nJOBS_PER_IO_NODE={jobs_per_io_node}\n"
        f"JOBS_FOLDER={folder}\nPLACEMENT={folder}/placement\n"
    )
    return hooks


def test_the_list_for_the_hooks_is_written_before_jobs_are_released(
    arbiter: Arbiter, slurmrestd: Slurmrestd, tmp_path: Path
) -> None:
    hooks, placement = hooks_in(tmp_path, 2), tmp_path / "placement"
    seen: list[str] = []
    made = with_hooks(arbiter, hooks).round(LATER_S, lambda: seen.append(placement.read_text()))
    [job] = [change.job for change in made]
    names = [f"io{number}" for number in range(1, 5)]
    chosen = " ".join(names[: licence_count(job.licenses, "ionode")])
    first, last = f"ioncast-placement {LATER_S:.0f}", f"end {LATER_S:.0f}"
    assert seen[0].splitlines() == [first, f"{job.id} {chosen}", last]


def test_no_list_is_written_where_no_io_nodes_are_shared(arbiter: Arbiter, tmp_path: Path) -> None:
    with_hooks(arbiter, hooks_in(tmp_path, 1)).round(LATER_S)
    assert (tmp_path / "placement").read_text() == ""


class Decisions:
    """A service that knows no decision, and notes for which ones it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def decision(self, decision_id: str) -> dict[str, Any] | None:
        self.asked.append(decision_id)
        return None

    def slow_io_nodes(self, system: str) -> SlowIoNodes:
        return SlowIoNodes()


class Finds(Decisions):
    """A service that has found slow I/O nodes of the system, or is away."""

    def __init__(self, *slow: str, at_s: float = LATER_S) -> None:
        super().__init__()
        self.found = SlowIoNodes(at_s, dict.fromkeys(slow, 4.0))
        self.is_away = False

    def slow_io_nodes(self, system: str) -> SlowIoNodes:
        assert system == "testbed"
        if self.is_away:
            raise ServiceUnreachableError("away", where="here")
        return self.found


def lists(arbiter: Arbiter, folder: Path, *seconds: float) -> list[list[str]]:
    """The lines of the list after rounds at some times, without its first and last line."""
    found = []
    for second in seconds:
        (folder / "placement").write_text("")
        arbiter.round(LATER_S + second)
        found.append((folder / "placement").read_text().splitlines()[1:-1])
    return found


def test_slow_io_nodes_are_last_in_the_list_as_long_as_the_service_tells_them(
    arbiter: Arbiter, tmp_path: Path
) -> None:
    arbiter.service = service = Finds("io1", "io9", "io3")  # type: ignore[assignment]
    with_hooks(arbiter, hooks_in(tmp_path, 1))
    # The service is asked after the releases.
    assert lists(arbiter, tmp_path, 0, 5) == [[], ["last io1 io3"]]
    service.is_away = True
    assert lists(arbiter, tmp_path, 3500, 3700) == [["last io1 io3"], []]
    service.is_away = False
    assert lists(arbiter, tmp_path, 7000, 7001) == [[], ["last io1 io3"]]
    service.found = SlowIoNodes(LATER_S + 7000)
    assert lists(arbiter, tmp_path, 8000, 8001) == [["last io1 io3"], []]


def test_an_old_answer_about_slow_io_nodes_does_not_count(arbiter: Arbiter, tmp_path: Path) -> None:
    arbiter.service = Finds("io1", at_s=LATER_S - 3 * 86_400)  # type: ignore[assignment]
    with_hooks(arbiter, hooks_in(tmp_path, 1))
    assert lists(arbiter, tmp_path, 0, 5) == [[], []]


def test_where_jobs_share_io_nodes_the_slow_ones_are_last_too(
    arbiter: Arbiter, tmp_path: Path
) -> None:
    arbiter.service = Finds("io1")  # type: ignore[assignment]
    with_hooks(arbiter, hooks_in(tmp_path, 2))
    # A dry round makes no list, and changes nothing, so that the job waits for the next round too.
    arbiter.is_dry = True
    arbiter.round(LATER_S)
    arbiter.is_dry = False
    [[slow, job]] = lists(arbiter, tmp_path, 5)
    assert slow == "last io1"
    number, *names = job.split()
    assert (number, names) == ("101", ["io2", "io3", "io4", "io1"][: len(names)])


@pytest.mark.parametrize(("jobs_per_io_node", "asked"), [(1, ["d1"]), (2, ["d1", "d2"])])
def test_decisions_of_running_jobs_are_read_only_where_jobs_share_io_nodes(
    arbiter: Arbiter, tmp_path: Path, jobs_per_io_node: int, asked: list[str]
) -> None:
    arbiter.service = service = Decisions()  # type: ignore[assignment]
    with_hooks(arbiter, hooks_in(tmp_path, jobs_per_io_node)).round(LATER_S)
    assert service.asked == asked


def test_a_running_jobs_decision_that_nobody_knows_is_asked_for_in_its_first_minute(
    arbiter: Arbiter, tmp_path: Path
) -> None:
    arbiter.service = service = Decisions()  # type: ignore[assignment]
    with_hooks(arbiter, hooks_in(tmp_path, 2))
    # The running job was submitted 20 s after the time to which LATER_S adds. The service may store
    # a decision late. Waiting jobs are asked for as long as they wait.
    for seconds, asked in ((70, ["d1", "d2"]), (81, ["d1", "d2"]), (82, ["d1"]), (83, ["d1"])):
        service.asked.clear()
        arbiter.round(LATER_S - 200 + seconds)
        assert service.asked == asked


def test_a_fault_of_the_list_delays_no_release(arbiter: Arbiter, tmp_path: Path) -> None:
    hooks = tmp_path / "hooks.conf"
    with_hooks(arbiter, hooks)
    assert len(arbiter.round(LATER_S)) == 1
    hooks.write_text(f"IO_NODES=io1\nJOBS_FOLDER={tmp_path}\nPLACEMENT={tmp_path}/none\n")
    assert len(arbiter.round(LATER_S)) == 1
    hooks.write_text("IO_NODES=io1\n")
    assert len(arbiter.round(LATER_S)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("hooks", ["/nowhere", None])
def test_scipy_is_imported_at_the_start_if_there_may_be_a_list(hooks: str | None) -> None:
    script = f"""
import sys
from ioncast_base.errors import IoncastError
from scheduler_plugin.arbiter.arbiter_loop import Arbiter, share_until_stopped
from scheduler_plugin.settings import SiteSettings
part = {{"address": "unix:/nowhere", "user": "ada", "token_file": "/nowhere"}}
service = {{"address": "unix:/nowhere", "token_file": "/nowhere"}}
arbitrate = {{"lock": "/nowhere/lock", "hooks": {hooks!r}}}
table = {{"system": "a", "slurmrestd": part, "service": service, "arbitrate": arbitrate}}
try:
    share_until_stopped(Arbiter(SiteSettings.model_validate(table), None, None))
except IoncastError as error:
    print("scipy.optimize" in sys.modules, error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=PROJECT
    )
    assert done.stdout.startswith(f"{hooks is not None} ")
    assert "/nowhere/lock" in done.stdout
