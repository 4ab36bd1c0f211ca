"""Named I/O nodes for jobs: their choice, and the hooks that give them and take them back."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from scheduler_plugin.arbiter.placement_list import list_text
from scheduler_plugin.collector.name_history import NameHistory
from tests.support.examples import examples
from tests.support.hook_site import HOOKS, Site, site_in, write_program

NAMES = [f"io{number}" for number in range(1, 9)]
NOW_S = 1_764_355_000


def chosen(
    number: int,
    *,
    pool: list[str] = NAMES,
    taken: dict[int, list[str]] | None = None,
    placement: str = "",
    jobs_each: int | str = 1,
) -> list[str]:
    """The I/O nodes of job 7, as the hooks choose them."""
    lines = [f"pool {name}" for name in pool]
    lines += [f"taken ./{job}.hosts:{name}" for job, own in (taken or {}).items() for name in own]
    lines += [f"list {line}" for line in placement.removesuffix("\n").split("\n") if placement]
    values = {"job": 7, "number": number, "jobs_each": jobs_each, "now_s": NOW_S}
    variables = [word for key, value in values.items() for word in ("-v", f"{key}={value}")]
    done = subprocess.run(
        ["awk", *variables, "-f", str(HOOKS / "choose_io_nodes.awk")],
        input="".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape"),
        capture_output=True,
        check=True,
        timeout=60,
    )
    return done.stdout.decode().splitlines()


def written(*lines: str, age_s: int = 0) -> str:
    """The arbiter's list."""
    return "\n".join([f"ioncast-placement {NOW_S - age_s}", *lines, f"end {NOW_S - age_s}"])


def test_the_first_free_io_nodes_are_chosen_without_a_list() -> None:
    assert chosen(3, taken={1: ["io1"], 2: ["io3"]}) == ["io2", "io4", "io5"]


@pytest.mark.parametrize("age_s", [0, 29, -29])
def test_a_new_list_gives_the_order(age_s: int) -> None:
    placement = written("7 io5 io4 io1", age_s=age_s)
    assert chosen(4, taken={1: ["io4"]}, placement=placement) == ["io5", "io1", "io2", "io3"]


def test_the_list_that_the_arbiter_writes_is_read() -> None:
    names = {number: ("io8", f"io{number % 8 + 1}") for number in range(6, 2000)}
    placement = list_text(names, NOW_S)
    assert chosen(3, placement=placement) == ["io8", "io1", "io2"]
    assert chosen(2, placement=placement, taken={1: ["io8"]}, jobs_each=2) == ["io8", "io1"]


def test_slow_io_nodes_are_chosen_last() -> None:
    slow = list_text({}, NOW_S, ["io1", "io2"])
    assert chosen(2, placement=slow) == ["io3", "io4"]
    assert chosen(2, placement=slow, taken={1: NAMES[2:8]}) == ["io1", "io2"]
    shared = {1: NAMES[2:8], 2: ["io3"]}
    assert chosen(3, placement=slow, taken=shared, jobs_each=2) == ["io4", "io5", "io6"]
    assert chosen(7, placement=slow, taken=shared, jobs_each=2) == [*NAMES[3:8], "io1", "io2"]
    # The arbiter's choice for a job comes first.
    named = list_text({7: ("io2",)}, NOW_S, ["io1", "io2"])
    assert chosen(2, placement=named) == ["io2", "io3"]
    assert chosen(1, placement=named.replace("end 17", "end 18")) == ["io1"]


def test_only_the_line_for_the_job_counts() -> None:
    placement = written("* io5 io4", "7 io8 io2", "8 io7")
    assert chosen(3, placement=placement) == ["io8", "io2", "io1"]


@pytest.mark.parametrize(
    "placement",
    [
        written("7 io5", "last io1", age_s=30),
        written("7 io5", age_s=-30),
        written("7 io5").rsplit("\n", 1)[0],
        written("7 io5").replace("end 17", "end 18"),
        written("7 io5").replace("ioncast-placement", "other"),
        "7 io5",
        "ioncast-placement -1\n7 io5\nend -1",
    ],
)
def test_an_old_or_damaged_list_counts_for_nothing(placement: str) -> None:
    assert chosen(2, placement=placement) == ["io1", "io2"]


def test_a_job_keeps_the_io_nodes_that_it_has() -> None:
    own = ["io6", "io2"]
    assert chosen(2, taken={7: own, 1: ["io1"]}, placement=written("7 io5")) == own


@pytest.mark.parametrize("own", [["io6"], ["io6", "gone"], ["io6", "io1"]])
def test_io_nodes_that_a_job_cannot_have_are_chosen_anew(own: list[str]) -> None:
    assert chosen(2, taken={7: own, 1: ["io1"]}) == ["io2", "io3"]


def test_shared_io_nodes_are_filled_one_job_after_the_other() -> None:
    taken = {1: ["io1", "io2"], 2: ["io1"]}
    assert chosen(3, pool=NAMES[:3], taken=taken, jobs_each=2) == ["io3", "io2"]


@pytest.mark.parametrize(
    ("jobs_each", "names"),
    [(10**9, ["io2", "io3", "io1"]), ("two", []), ("", []), (-1, []), ("1e", ["io2", "io3"])],
)
def test_the_choice_ends_with_any_number_of_jobs(jobs_each: int | str, names: list[str]) -> None:
    assert chosen(9, pool=NAMES[:3], taken={1: ["io1"]}, jobs_each=jobs_each) == names


def test_names_with_the_same_uri_are_one_daemon() -> None:
    pool = ["a tcp://1", "b tcp://1", "a tcp://2", "c tcp://3"]
    assert chosen(4, pool=pool) == ["a tcp://1", "a tcp://2", "c tcp://3"]
    assert chosen(4, pool=pool, taken={1: ["b tcp://1"]}) == ["a tcp://2", "c tcp://3"]
    own = ["b tcp://1", "c tcp://3"]
    assert chosen(2, pool=pool, taken={7: own, 1: ["a tcp://2"]}) == own


@settings(max_examples=examples(200))
@given(
    st.lists(st.lists(st.sampled_from(NAMES), unique=True, max_size=4), max_size=6),
    st.integers(0, 9),
    st.integers(1, 3),
    st.one_of(
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=60),
        st.lists(
            st.sampled_from([*NAMES, "7", "*", "io1 io1", "other", "last io1 io4"]), max_size=8
        ).map(lambda lines: written(*lines)),
    ),
)
def test_whatever_the_list_says_no_io_node_is_given_to_too_many_jobs(
    others: list[list[str]], number: int, jobs_each: int, placement: str
) -> None:
    found = chosen(
        number, taken=dict(enumerate(others, 100)), placement=placement, jobs_each=jobs_each
    )
    loads = Counter(name for own in others for name in own)
    free = [name for name in NAMES if loads[name] < jobs_each]
    assert len(found) == len(set(found)) == min(number, len(free))
    assert set(found) <= set(free)


# The hooks ---------------------------------------------------------------------------------------


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A site with eight named I/O nodes, and a squeue that reads the running jobs from a file."""
    site = site_in(tmp_path, "dash")
    (tmp_path / "bin").mkdir()
    write_program(tmp_path / "bin" / "squeue", f"#!/bin/sh\nexec cat {tmp_path}/running\n")
    configure(site)
    return site


def configure(site: Site, **changed: object) -> None:
    names = {"IO_NODES": " ".join(NAMES), "JOBS_FOLDER": site.jobs, **changed}
    site.configure(**names)
    with site.conf.open("a") as file:
        file.write(f"PATH={site.folder}/bin:$PATH\n")


def names_of(site: Site, job: int) -> list[str]:
    file = site.jobs / f"{job}.hosts"
    return file.read_text().splitlines() if file.exists() else []


def test_tasks_and_the_sites_script_are_told_the_names(site: Site) -> None:
    write_program(
        site.folder / "site.sh", f'#!/bin/sh\necho "$1 $ION_NODES" >>{site.folder}/calls\n'
    )
    configure(site, SITE_SCRIPT=site.folder / "site.sh")
    assert site.prolog(7, "ionode:2").returncode == 0
    assert site.tells_tasks(7) == {"ION_COUNT": "2", "ION_NODES": "io1,io2"}
    assert site.tells_tasks(8, ION_NODES="io1,io2") == {"ION_NODES": ""}
    assert site.epilog(7, "ionode:2").returncode == 0
    assert site.calls() == ["start io1,io2", "end io1,io2"]
    assert site.files() == set()


def test_the_names_of_ended_jobs_stay_in_the_history(site: Site) -> None:
    history = NameHistory(str(site.jobs))
    for job in (7, 8):
        site.prolog(job, f"ionode:{job - 6}")
        site.epilog(job, f"ionode:{job - 6}")
    history.refresh()
    assert (history.names_of(7, 0, math.inf), history.names_of(8, 0, math.inf)) == (
        ("io1",),
        ("io1", "io2"),
    )
    # A hook that was killed left a part of a line.
    with (site.jobs / "history").open("a") as file:
        file.write("9 17643550")
    site.prolog(7, "ionode:1", "n1")
    site.prolog(9, "ionode:2")
    history.refresh()
    assert [history.names_of(job, 0, math.inf) for job in (7, 9)] == [("io1",), ("io2", "io3")]


def test_the_history_has_at_most_two_files_of_a_mebibyte(site: Site) -> None:
    line = "\n7 1764355000 io8 end\n"
    (site.jobs / "history").write_text(line * ((1 << 20) // len(line) + 1))
    (site.jobs / "history.old").write_text(line)
    site.prolog(8, "ionode:1")
    assert "\n8 " in (site.jobs / "history").read_text()
    assert (site.jobs / "history").stat().st_size < 100
    assert (site.jobs / "history.old").stat().st_size > 1 << 20
    history = NameHistory(str(site.jobs))
    history.refresh()
    assert [history.names_of(job, 0, math.inf) for job in (7, 8)] == [("io8",), ("io1",)]


def test_a_job_gets_its_names_also_where_the_history_cannot_be_written(site: Site) -> None:
    (site.jobs / "history").mkdir()
    done = site.prolog(7, "ionode:2")
    assert done.returncode == 0
    assert f"job 7: cannot write {site.jobs}/history" in done.stderr
    assert site.tells_tasks(7) == {"ION_COUNT": "2", "ION_NODES": "io1,io2"}


def test_a_site_may_let_jobs_share_io_nodes(site: Site) -> None:
    configure(site, JOBS_PER_IO_NODE=2)
    for job in (1, 2, 3):
        site.prolog(job, "ionode:5")
    loads = Counter(name for job in (1, 2, 3) for name in names_of(site, job))
    assert loads == {name: 2 if name not in {"io8"} else 1 for name in NAMES}
    assert site.prolog(4, "ionode:1").returncode == 0
    assert names_of(site, 4) == ["io8"]


@pytest.mark.parametrize("jobs_each", ["0", "65", "two", "1 2", "-1", "9" * 30, "1.5"])
def test_a_wrong_number_of_jobs_is_one_job_and_a_line_in_the_log(
    site: Site, jobs_each: str
) -> None:
    configure(site, JOBS_PER_IO_NODE=jobs_each)
    site.prolog(1, "ionode:7")
    done = site.prolog(2, "ionode:2")
    complaint = f"JOBS_PER_IO_NODE {jobs_each} is not a number from 1 to 64 ({site.conf})"
    assert (done.returncode, done.stderr) == (0, f"ioncast: {complaint}\n")
    assert names_of(site, 2) == ["io8"]
    assert site.tells_tasks(2) == {"ION_COUNT": "2", "ION_NODES": "io8"}
    assert site.epilog(2, "ionode:2").stderr == ""


@pytest.mark.parametrize("jobs_each", ["", "1", "08", "64"])
def test_a_right_number_of_jobs_is_no_line_in_the_log(site: Site, jobs_each: str) -> None:
    configure(site, JOBS_PER_IO_NODE=jobs_each)
    assert site.prolog(1, "ionode:7").stderr == ""
    site.prolog(2, "ionode:8")
    assert len(names_of(site, 2)) == (8 if jobs_each in {"08", "64"} else 1)


def test_the_arbiters_list_is_read_where_the_site_names_it(site: Site) -> None:
    placement = site.folder / "placement"
    configure(site, PLACEMENT=placement)
    now_s = int(subprocess.run(["date", "+%s"], capture_output=True, check=True).stdout)
    # The list counts for 30 seconds, and machines that run tests may stand still for some.
    lines = "7 io8\n8 io7\n9 io7\n"
    placement.write_text(f"ioncast-placement {now_s + 20}\n{lines}end {now_s + 20}\n")
    site.prolog(7, "ionode:1")
    assert names_of(site, 7) == ["io8"]
    if os.geteuid() == 0:
        shutil.chown(placement, "nobody")
        site.prolog(8, "ionode:1")
        assert names_of(site, 8) == ["io1"]
    placement.unlink()
    os.mkfifo(placement)
    site.prolog(9, "ionode:1")
    assert names_of(site, 9) == ["io2" if os.geteuid() == 0 else "io1"]


@pytest.mark.promise("hooks-no-names")
@pytest.mark.parametrize("fault", ["hangs", "cannot be written", "cannot be locked", "no squeue"])
def test_a_job_starts_without_names_where_none_can_be_given(site: Site, fault: str) -> None:
    # Ten seconds in the hook.
    write_program(
        site.folder / "bin" / "timeout",
        '#!/bin/sh\nshift 3\nexec /usr/bin/timeout 1 "$@"\n',
    )
    number = 2
    if fault == "hangs":
        os.mkfifo(site.jobs / "lock")
    elif fault == "cannot be written":
        (site.jobs / ".7.hosts.new").mkdir()
    elif fault == "cannot be locked":
        (site.jobs / "lock").mkdir()
    else:
        (site.jobs / "6.hosts").write_text("".join(f"{name}\n" for name in NAMES))
    (site.jobs / "7.hosts").write_text("io3\n")
    done = site.prolog(7, f"ionode:{number}")
    assert done.returncode == 0
    assert "job 7 starts without names of its I/O nodes" in done.stderr
    assert site.tells_tasks(7) == {"ION_COUNT": "2"}


@pytest.mark.promise("hooks-killed")
def test_io_nodes_of_jobs_without_an_epilog_are_taken_back_when_they_are_needed(site: Site) -> None:
    for job in (1, 2, 3):
        site.prolog(job, "ionode:2")
    (site.folder / "running").write_text("1 RUNNING\n2 PENDING\n7 CONFIGURING\n")
    site.prolog(7, "ionode:4")
    assert names_of(site, 1) == ["io1", "io2"]
    assert names_of(site, 7) == ["io3", "io4", "io5", "io6"]
    assert [names_of(site, job) for job in (2, 3)] == [[], []]


class Step(NamedTuple):
    """A job starts with I/O nodes, or with 0 the oldest one ends; its hook may be killed."""

    io_nodes: int
    killed_before: str


STARTS = st.builds(
    Step, st.integers(3, 8), st.sampled_from(["", "", "", "flock", "awk", "mv", "after mv", "rm"])
)
ENDS = st.builds(Step, st.just(0), st.sampled_from(["", "rm"]))


@pytest.mark.promise("hooks-killed")
@pytest.mark.slow
@settings(
    max_examples=examples(60, part=0.5),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    deadline=None,
)
@example([Step(8, ""), Step(0, "rm"), Step(8, "")])
@example([Step(8, "after mv"), Step(0, "rm"), Step(4, "rm"), Step(4, "")])
@given(st.lists(STARTS | ENDS, min_size=5, max_size=10))
def test_after_any_order_of_hooks_and_kills_no_io_node_is_given_twice_or_lost(
    tmp_path: Path, steps: list[Step]
) -> None:
    shutil.rmtree(tmp_path)
    tmp_path.mkdir()
    site = site_in(tmp_path, "dash")
    (tmp_path / "bin").mkdir()
    write_program(tmp_path / "bin" / "squeue", f"#!/bin/sh\nexec cat {tmp_path}/running\n")
    for program in ("flock", "awk", "mv", "rm"):
        write_program(
            tmp_path / "bin" / program,
            f'#!/bin/sh\nkill=$(cat {tmp_path}/kill)\n[ "$kill" != {program} ] || kill -9 0\n'
            f'/usr/bin/{program} "$@" || exit\n[ "$kill" != "after {program}" ] || kill -9 0\n',
        )
    configure(site)
    # The licences of running jobs, as Slurm counts them.
    running: dict[int, int] = {}
    for job, (io_nodes, killed_before) in enumerate(steps, 1):
        (tmp_path / "kill").write_text(killed_before)
        if not io_nodes:
            if running:
                oldest = min(running)
                number = running.pop(oldest)
                site.epilog(oldest, f"ionode:{number}")
            continue
        free = len(NAMES) - sum(running.values())
        running[job] = min(io_nodes, free)
        states = "".join(f"{number} RUNNING\n" for number in running)
        (tmp_path / "running").write_text(states)
        site.prolog(job, f"ionode:{running[job]}")
        own = {number: names_of(site, number) for number in running}
        given_out = [name for names in own.values() for name in names]
        assert len(set(given_out)) == len(given_out)
        if not killed_before:
            assert len(own[job]) == running[job]
