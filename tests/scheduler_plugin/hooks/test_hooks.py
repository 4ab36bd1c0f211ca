"""The hooks of Slurm, called directly and by a real Slurm."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.hook_site import DAEMONS, HOOKS, POOL, Site, site_in, write_program
from tests.support.licences import COUNTED, LEFT_ALONE
from tests.support.slurm import Cluster, cluster


# /bin/sh is dash on Debian, and bash on Red Hat and SUSE.
@pytest.fixture(params=["dash", "bash"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Site:
    return site_in(tmp_path, request.param)


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    return line


def licence_count(shell: str, licences: str, name: str = "ionode") -> int:
    command = f'. {HOOKS}/io_nodes.sh; licence_count "$1" "$2"'
    done = subprocess.run(
        [f"/bin/{shell}", "-c", command, "sh", licences, name],
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


@pytest.mark.parametrize(
    ("licences", "count"),
    [
        ("ionode:4", 4),
        ("ionode", 1),
        ("matlab:2,ionode:4", 4),
        ("ionode:4,matlab:2", 4),
        ("ionode@server:4", 4),
        ("ionode@server", 1),
        ("ionode:2;ionode:3", 5),
        # Alternatives of Slurm 25.05.
        ("matlab:1|ionode:2", 2),
        ("ionode:0", 0),
        ("ionode:4,", 4),
        ("ionode: \t+4", 4),
        ("ionode: \n4", 4),
        *COUNTED,
        *((text, 0) for text in LEFT_ALONE),
        ("ionodes:4", 0),
        ("my-ionode:4", 0),
        ("matlab", 0),
        ("", 0),
    ],
)
def test_licences_are_counted_as_slurm_counts_them(licences: str, count: int) -> None:
    assert licence_count("dash", licences) == count


@st.composite
def licence_texts(draw: st.DrawFn) -> tuple[str, int]:
    """A text of licences, and its count of ionode."""
    names = st.sampled_from(["ionode", "ionode@db", "matlab", "ionode2", "a.ionode", "_ionode"])
    parts = draw(st.lists(st.tuples(names, st.none() | st.integers(0, 4096)), max_size=6))
    text = draw(st.sampled_from(",;|")).join(
        name if count is None else f"{name}:{count}" for name, count in parts
    )
    ours = [count for name, count in parts if name in {"ionode", "ionode@db"}]
    return text, sum(1 if count is None else count for count in ours)


@settings(max_examples=examples(60))
@given(licence_texts())
def test_any_text_of_licences_is_counted(text: tuple[str, int]) -> None:
    licences, count = text
    assert licence_count("dash", licences) == count


@settings(max_examples=examples(60))
@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40))
def test_no_text_of_licences_breaks_the_shell(text: str) -> None:
    assert licence_count("dash", text) >= 0


@pytest.mark.tools
def test_shellcheck_finds_nothing() -> None:
    deployed = HOOKS.parent / "deploy" / "renew-slurm-token"
    scripts = sorted(str(path) for path in (*HOOKS.glob("*.sh"), deployed))
    done = subprocess.run(
        ["shellcheck", "-x", *scripts], capture_output=True, text=True, check=False, cwd=HOOKS
    )
    assert done.stdout == ""


@pytest.mark.promise("hooks-start-script-fails-without-io-nodes")
@pytest.mark.parametrize("licences", ["", "matlab:2", "ionode:0"])
def test_a_job_without_io_nodes_needs_nothing(site: Site, licences: str) -> None:
    for done in (site.prolog(7, licences), site.epilog(7, licences)):
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert site.tells_tasks(7) == {}


def test_a_job_with_io_nodes_is_not_started_without_settings(site: Site) -> None:
    assert str(site.conf) in one_line(site.prolog(7, "ionode:4"))


def test_the_settings_that_are_shipped_do_nothing(site: Site) -> None:
    shutil.copy(HOOKS / "hooks.conf", site.conf)
    assert site.prolog(7, "ionode:4").returncode == 0
    assert site.epilog(7, "ionode:4").returncode == 0
    assert site.files() == set()


def test_the_sites_script_is_called_at_start_and_end(site: Site) -> None:
    site.use_script()
    assert site.prolog(7, "matlab:2,ionode:4").returncode == 0
    assert site.tells_tasks(7) == {"ION_COUNT": "4"}
    assert site.epilog(7, "matlab:2,ionode:4").returncode == 0
    assert site.calls() == ["start 7 4 n[1-4]", "end 7 4 n[1-4]"]
    assert site.files() == set()


@pytest.mark.promise("hooks-slurmctld-lost-state")
@pytest.mark.parametrize("licences", ["", "matlab:2"])
def test_a_job_without_io_nodes_gets_no_number_of_an_earlier_job_with_its_id(
    site: Site, licences: str
) -> None:
    """slurmctld that has lost its state runs no epilog, and uses ids again."""
    site.use_script()
    site.prolog(7, "ionode:4")
    assert site.prolog(7, licences).returncode == 0
    assert site.calls()[1:] == ["end 7 4 "]
    assert site.files() == set()
    assert site.tells_tasks(7) == {}


@pytest.mark.promise("hooks-start-script-fails-without-io-nodes")
@pytest.mark.parametrize("licences", ["", "matlab:2"])
def test_a_job_without_io_nodes_starts_although_an_earlier_job_cannot_be_ended(
    site: Site, licences: str
) -> None:
    site.use_script()
    site.prolog(7, "ionode:4")
    (site.folder / "broken").touch()
    assert site.prolog(7, licences).returncode == 0
    assert site.files() == set()


def test_another_name_of_the_licence_can_be_set(site: Site) -> None:
    site.configure(LICENCE="fwd", SITE_SCRIPT=site.folder / "site.sh")
    site.prolog(7, "ionode:4,fwd:2")
    assert site.calls() == ["start 7 2 n[1-4]"]


def test_the_job_ends_with_the_number_that_it_started_with(site: Site) -> None:
    site.use_script()
    site.prolog(7, "ionode:4")
    site.epilog(7, "")
    assert site.calls()[-1] == "end 7 4 n[1-4]"


@pytest.mark.promise("hooks-start-script-fails")
def test_a_job_is_not_started_where_the_sites_script_fails(site: Site) -> None:
    site.use_script()
    (site.folder / "broken").touch()
    assert "site.sh start 7 4 n[1-4] failed" in one_line(site.prolog(7, "ionode:4"))
    assert site.files() == set()


@pytest.mark.promise("hooks-end-script-fails")
def test_a_job_whose_end_fails_leaves_no_files(site: Site) -> None:
    site.use_script()
    site.prolog(7, "ionode:4")
    (site.folder / "broken").touch()
    assert "site.sh end 7 4 n[1-4] failed" in one_line(site.epilog(7, "ionode:4"))
    assert site.files() == set()


def test_users_can_read_a_jobs_files_whatever_the_controllers_umask(site: Site) -> None:
    site.use_script()
    command = f"umask 077; . {HOOKS}/io_nodes.sh; read_configuration; start_io_nodes 7 4 n1"
    subprocess.run([f"/bin/{site.shell}", "-c", command, f"{site.hooks}/hook"], check=True)
    assert (site.jobs / "7.count").stat().st_mode & 0o777 == 0o644


@pytest.mark.promise("hooks-start-script-fails")
def test_a_folder_that_is_missing_is_named(site: Site) -> None:
    site.use_gekkofwd()
    site.jobs.rmdir()
    assert f"{site.jobs} is not a folder" in one_line(site.prolog(7, "ionode:4"))


def test_a_list_of_daemons_that_is_missing_is_named(site: Site) -> None:
    site.use_gekkofwd()
    (site.folder / "daemons").unlink()
    assert f"{site.folder}/daemons" in one_line(site.prolog(7, "ionode:4"))


@pytest.mark.slurm
def test_gekkofwd_gets_its_two_files(site: Site) -> None:
    # The map in GekkoFS's documentation: two nodes for each of two daemons.
    site.use_gekkofwd()
    assert site.prolog(7, "ionode:2", "node-[1-4]").returncode == 0
    assert site.daemons_of(7) == DAEMONS.splitlines()[:2]
    lines = (site.jobs / "7.map").read_text()
    assert lines == "node-1 0\nnode-2 0\nnode-3 1\nnode-4 1\n"
    assert site.tells_tasks(7) == {
        "ION_COUNT": "2",
        "ION_NODES": "io1,io2",
        "LIBGKFS_HOSTS_FILE": f"{site.jobs}/7.hosts",
        "LIBGKFS_FORWARDING_MAP_FILE": f"{site.jobs}/7.map",
    }
    assert site.epilog(7, "ionode:2", "node-[1-4]").returncode == 0
    assert site.files() == set()


@pytest.mark.slurm
@pytest.mark.parametrize(("daemons", "nodes"), [(3, 8), (8, 3), (1, 5), (5, 5), (4, 6)])
def test_each_node_has_a_daemon_of_its_job_and_loads_are_even(
    site: Site, daemons: int, nodes: int
) -> None:
    site.use_gekkofwd()
    names = [f"n{number:02}" for number in range(1, nodes + 1)]
    site.prolog(7, f"ionode:{daemons}", ",".join(f"{name}.site.org" for name in names))
    lines = [line.split() for line in (site.jobs / "7.map").read_text().splitlines()]
    assert [name for name, _ in lines] == names
    indices = [int(index) for _, index in lines]
    assert set(indices) <= set(range(daemons))
    loads = [indices.count(index) for index in set(indices)]
    assert len(loads) == min(daemons, nodes)
    assert max(loads) - min(loads) <= 1


@pytest.mark.slurm
def test_no_two_jobs_have_a_daemon_in_common(site: Site) -> None:
    site.use_gekkofwd()
    site.prolog(1, "ionode:3")
    site.prolog(2, "ionode:3")
    assert not set(site.daemons_of(1)) & set(site.daemons_of(2))


@pytest.mark.promise("hooks-killed")
@pytest.mark.slurm
def test_a_prolog_that_is_run_twice_changes_nothing(site: Site) -> None:
    site.use_gekkofwd()
    site.prolog(1, "ionode:3")
    site.prolog(2, "ionode:3")
    before = site.daemons_of(2)
    site.epilog(1, "ionode:3")
    assert site.prolog(2, "ionode:3").returncode == 0
    assert site.daemons_of(2) == before


@pytest.mark.promise("hooks-killed")
@pytest.mark.slurm
def test_an_epilog_that_is_run_twice_takes_nothing_from_others(site: Site) -> None:
    site.use_gekkofwd()
    site.prolog(1, "ionode:3")
    site.epilog(1, "ionode:3")
    site.prolog(2, "ionode:3")
    assert site.epilog(1, "ionode:3").returncode == 0
    assert len(site.daemons_of(2)) == 3


@pytest.mark.promise("hooks-slurmctld-lost-state")
@pytest.mark.slurm
def test_a_job_whose_last_epilog_was_lost_gets_the_number_it_asks_for_now(site: Site) -> None:
    site.use_gekkofwd()
    site.prolog(1, "ionode:6")
    assert site.prolog(1, "ionode:8").returncode == 0
    assert site.daemons_of(1) == DAEMONS.splitlines()


@pytest.mark.promise("hooks-start-script-fails")
@pytest.mark.slurm
def test_a_job_is_not_started_where_too_few_daemons_are_free(site: Site) -> None:
    site.use_gekkofwd()
    site.prolog(1, "ionode:6")
    line = one_line(site.prolog(2, "ionode:3"))
    assert "job 2: 3 I/O nodes, but 2 daemons" in line
    assert site.files() == {"1.count", "1.hosts", "1.map"}
    site.epilog(1, "ionode:6")
    assert site.prolog(2, "ionode:3").returncode == 0


@pytest.mark.slurm
def test_daemons_are_not_shared_where_other_io_nodes_would_be(site: Site) -> None:
    site.use_gekkofwd()
    with site.conf.open("a") as file:
        file.write("JOBS_PER_IO_NODE=2\n")
    site.prolog(1, "ionode:6")
    assert "but 2 daemons" in one_line(site.prolog(2, "ionode:3"))


@pytest.mark.slurm
def test_a_daemon_that_has_written_its_line_twice_is_one(site: Site) -> None:
    # A daemon of GekkoFS adds its line to the file at each start, so a line may be repeated.
    site.use_gekkofwd(DAEMONS.splitlines(keepends=True)[0] * 2 + "\n")
    assert "but 1 daemons" in one_line(site.prolog(1, "ionode:2"))


@pytest.mark.promise("hooks-killed")
@pytest.mark.slurm
def test_a_file_that_a_crash_left_half_written_hinders_no_job(site: Site) -> None:
    site.use_gekkofwd()
    (site.jobs / ".7.hosts.new").write_text("io1 ofi+t")
    site.prolog(7, "ionode:8")
    assert site.daemons_of(7) == DAEMONS.splitlines()


@pytest.mark.slurm
def test_a_list_of_nodes_that_cannot_be_read_is_named(site: Site) -> None:
    site.use_gekkofwd()
    done = site.prolog(1, "ionode:2", "")
    assert done.returncode == 1
    assert "finds no nodes in ''" in done.stderr
    assert site.files() == set()


@pytest.mark.promise("hooks-killed")
@pytest.mark.slurm
def test_twenty_prologs_at_once_share_nothing(site: Site) -> None:
    site.use_gekkofwd("".join(f"io{number} tcp://io{number}\n" for number in range(30)))
    with ThreadPoolExecutor(20) as threads:
        done = list(threads.map(lambda job: site.prolog(job, "ionode:2"), range(1, 21)))
    started = [job for job, each in enumerate(done, start=1) if each.returncode == 0]
    assert len(started) == 15
    given_out = [daemon for job in started for daemon in site.daemons_of(job)]
    assert len(set(given_out)) == len(given_out) == 30


def test_without_a_folder_tasks_are_told_nothing(site: Site) -> None:
    site.configure(SITE_SCRIPT="")
    assert site.tells_tasks(7, JOB_LICENSES="ionode:4", ION_COUNT="3") == {}


@pytest.mark.parametrize(
    "environment",
    [
        {"JOB_LICENSES": "ionode:99"},
        {"ION_COUNT": "99", "JOB_LICENSES": "ionode:99"},
        {"ION_COUNT": "99"},
        {"JOB_ID_HET_GROUP_0": "7", "JOB_ID_HET_GROUP_1": "../jobs/8", "JOB_LICENSES": "ionode:9"},
    ],
)
def test_nothing_in_a_users_environment_changes_what_tasks_are_told(
    site: Site, environment: dict[str, str]
) -> None:
    site.use_script()
    site.prolog(7, "ionode:4")
    mine = site.folder / "mine.conf"
    mine.write_text(f"JOBS_FOLDER={site.folder}; echo export OWNED=1\n")
    (site.folder / "7.count").write_text("99\n")
    commands = site.folder / "bin"
    commands.mkdir()
    for name in ("awk", "scontrol", "grep", "tr", "cat"):
        write_program(commands / name, "#!/bin/sh\necho export OWNED=1\n")
    # bash passes functions to other programs in variables with such names.
    functions = {f"BASH_FUNC_{name}%%": "() { started=99; }" for name in ("read", "echo", "awk")}
    told = site.tells_tasks(
        7,
        IONCAST_HOOKS_CONF=str(mine),
        PATH=f"{commands}:/usr/bin:/bin",
        BASH_ENV=str(mine),
        **functions,
        **environment,
    )
    assert told == {"ION_COUNT": "4"}


def test_the_number_at_the_start_counts_more_than_the_environment(site: Site) -> None:
    site.use_script()
    site.prolog(7, "ionode:4")
    assert site.tells_tasks(7, JOB_LICENSES="ionode:2") == {"ION_COUNT": "4"}


def test_a_job_whose_io_nodes_were_taken_while_it_waited_is_told_so(site: Site) -> None:
    site.use_script()
    assert site.tells_tasks(7, ION_COUNT="4") == {"ION_COUNT": "0"}
    assert site.tells_tasks(7) == {}


def test_tasks_start_where_there_are_no_settings(site: Site) -> None:
    assert site.tells_tasks(7, JOB_LICENSES="ionode:4") == {}


@pytest.mark.promise("hooks-start-script-fails")
@pytest.mark.promise("hooks-start-script-fails-without-io-nodes")
def test_broken_settings_end_no_task_and_no_job_without_licences(site: Site) -> None:
    site.conf.write_text("SITE_SCRIPT='\n(")
    assert site.tells_tasks(7, JOB_LICENSES="ionode:4") == {}
    assert site.prolog(7, "").returncode == 0
    for hook in (site.prolog, site.epilog):
        done = hook(7, "ionode:4")
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1] == f"ioncast: job 7: cannot read {site.conf}"


def test_the_last_line_of_the_settings_may_be_false(site: Site) -> None:
    site.use_script()
    with site.conf.open("a") as file:
        file.write('[ -n "$X" ] && export X\n')
    assert site.prolog(7, "ionode:4").returncode == 0
    assert site.tells_tasks(7) == {"ION_COUNT": "4"}
    assert site.epilog(7, "").returncode == 0
    assert site.calls() == ["start 7 4 n[1-4]", "end 7 4 n[1-4]"]


def test_the_settings_lie_beside_the_hooks(site: Site, tmp_path: Path) -> None:
    installed = tmp_path / "of this site"
    shutil.copytree(HOOKS, installed)
    site.use_script()
    shutil.move(site.conf, installed / "hooks.conf")
    for hook in ("prolog", "epilog"):
        subprocess.run(
            [f"/bin/{site.shell}", installed / f"{hook}_slurmctld.sh"],
            env={"SLURM_JOB_ID": "7", "SLURM_JOB_LICENSES": "ionode:4"},
            check=True,
        )
    assert site.calls() == ["start 7 4 ", "end 7 4 "]


def test_half_installed_hooks_end_no_task(tmp_path: Path) -> None:
    shutil.copy(HOOKS / "task_prolog.sh", tmp_path)
    assert subprocess.run([tmp_path / "task_prolog.sh"], check=False).returncode == 0


@settings(max_examples=examples(20), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(1, 10**9))
def test_a_job_inside_of_a_het_job_has_its_own_number(site: Site, job: int) -> None:
    site.use_script()
    site.prolog(job, "ionode:4")
    of_parent = {"JOB_ID_HET_GROUP_0": "0", "JOB_NODELIST_HET_GROUP_0": "n1"}
    assert site.tells_tasks(job, **of_parent) == {"ION_COUNT": "4"}


# --- Called by Slurm ---


@dataclass(frozen=True)
class RealSite:
    """A cluster with the hooks, and a site's script that notes each of its calls."""

    slurm: Cluster

    @property
    def jobs(self) -> Path:
        return self.slurm.folder / "jobs-of-hooks"

    def output(self, name: str) -> Path:
        return self.slurm.folder / "output" / name

    def calls_of(self, job: int) -> list[str]:
        lines = (self.slurm.folder / "calls").read_text().splitlines()
        return [line for line in lines if line.split()[1] == str(job)]

    def finish(self, job: int) -> dict[str, str]:
        """Wait until the job and its epilog have ended."""
        found = self.slurm.wait_for(job, "COMPLETED", "FAILED", "CANCELLED")
        assert found["JobState"] == "COMPLETED"
        return found


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealSite]:
    root = tmp_path_factory.mktemp("hooks") / "slurm"
    root.mkdir()
    hooks = Path(shutil.copytree(HOOKS, root / "hooks"))
    write_program(
        root / "site.sh",
        f'#!/bin/sh\n[ $1 = start ] || sleep 0.5\necho "$@" >>{root}/calls\n'
        f"[ ! -e {root}/broken ]\n",
    )
    (root / "calls").touch()
    (root / "daemons").write_text(DAEMONS)
    (root / "jobs-of-hooks").mkdir()
    # slurmctld runs its hooks as its own user, which must be able to write here.
    for name in ("calls", "jobs-of-hooks"):
        shutil.chown(root / name, "slurm")
    (root / "output").mkdir()
    (root / "output").chmod(0o777)
    (hooks / "hooks.conf").write_text(
        f"SITE_SCRIPT={root}/site.sh\nGEKKOFWD_DAEMONS={root}/daemons\n"
        f"JOBS_FOLDER={root}/jobs-of-hooks\nexport SLURM_CONF={root}/slurm.conf\n"
    )
    lines = [
        f"PrologSlurmctld={hooks}/prolog_slurmctld.sh",
        f"EpilogSlurmctld={hooks}/epilog_slurmctld.sh",
        f"TaskProlog={hooks}/task_prolog.sh",
    ]
    with cluster(root, lines=lines) as slurm:
        yield RealSite(slurm)


TELL = 'echo "$ION_COUNT $(wc -l <"$LIBGKFS_HOSTS_FILE") $(cat "$LIBGKFS_FORWARDING_MAP_FILE")"'


@pytest.mark.slurm
def test_a_batch_job_has_its_io_nodes_and_so_have_its_steps(real: RealSite) -> None:
    script = f"#!/bin/sh\n{TELL}\nsrun -n1 -N1 sh -c '{TELL}'\n"
    job = real.slurm.submit(
        "-N2", "-L", "ionode:2", "-o", str(real.output("batch")), script=script, user="nobody"
    )
    nodes = real.finish(job)["NodeList"]
    names = real.slurm.run("scontrol", "show", "hostnames", nodes).stdout.split()
    told = f"2 2 {names[0]} 0\n{names[1]} 1\n"
    assert real.output("batch").read_text() == told * 2
    assert real.calls_of(job) == [f"start {job} 2 {nodes}", f"end {job} 2 {nodes}"]
    assert not list(real.jobs.glob(f"{job}.*"))


@pytest.mark.slurm
@pytest.mark.parametrize("command", [["srun"], ["salloc", "-Q"]])
def test_interactive_jobs_have_their_io_nodes(real: RealSite, command: list[str]) -> None:
    step = [] if command == ["srun"] else ["srun"]
    said = real.slurm.run(
        *command, "-L", "ionode:3", *step, "sh", "-c", "echo $ION_COUNT", user="nobody"
    )
    assert said.stdout == "3\n"


@pytest.mark.slurm
def test_tasks_are_told_what_their_job_has_whatever_their_environment_says(real: RealSite) -> None:
    mine = real.output("mine.conf")
    mine.write_text("echo export ION_COUNT=99\n")
    environment = f"ALL,IONCAST_HOOKS_CONF={mine},SLURM_JOB_LICENSES=ionode:99,ION_COUNT=99"
    said = real.slurm.run(
        *("srun", "-L", "ionode:3", f"--export={environment}", "sh", "-c", "echo $ION_COUNT"),
        user="nobody",
    )
    assert said.stdout == "3\n"


@pytest.mark.promise("hooks-killed")
@pytest.mark.slurm
def test_io_nodes_of_a_job_that_slurm_does_not_know_go_to_the_next_one(real: RealSite) -> None:
    (real.jobs / "999999.hosts").write_text(DAEMONS)
    script = '#!/bin/sh\necho "$ION_NODES"\n'
    job = real.slurm.submit("-L", "ionode:2", "-o", str(real.output("lost")), script=script)
    assert real.finish(job)["Restarts"] == "0"
    # Jobs of other tests, whose epilogs run, may still have some.
    assert len(real.output("lost").read_text().split(",")) == 2
    assert not (real.jobs / "999999.hosts").exists()


@pytest.mark.slurm
def test_licences_that_overflow_switch_nothing(real: RealSite) -> None:
    script = f"#!/bin/sh\n{TELL}\n"
    job = real.slurm.submit(
        *("-L", "ionode:4294967297", "-N1", "-o", str(real.output("overflow"))), script=script
    )
    real.finish(job)
    assert real.calls_of(job) == []


@pytest.mark.slurm
def test_a_job_without_licences_has_nothing_to_do_with_it(real: RealSite) -> None:
    job = real.slurm.submit(
        "-o", str(real.output("none")), script="#!/bin/sh\necho ${ION_COUNT-none}\n"
    )
    real.finish(job)
    assert real.output("none").read_text() == "none\n"
    assert real.calls_of(job) == []


@pytest.mark.slurm
def test_each_task_of_an_array_has_its_own(real: RealSite) -> None:
    script = f"#!/bin/sh\n{TELL}\n"
    first = real.slurm.submit(
        "--array=1-3", "-L", "ionode:2", "-o", f"{real.output('array')}.%a", script=script
    )
    calls = real.slurm.folder / "calls"
    real.slurm.wait(
        lambda: len(re.findall(rf"end ({first}|{first + 1}|{first + 2}) ", calls.read_text())) == 3,
        "ends of the array",
    )
    for task in (1, 2, 3):
        assert real.output(f"array.{task}").read_text().startswith("2 2 ")


@pytest.mark.promise("slurm-heterogeneous-job")
@pytest.mark.slurm
def test_only_the_first_component_of_a_het_job_has_io_nodes(real: RealSite) -> None:
    script = (
        "#!/bin/sh\n#SBATCH -n1 -L ionode:2\n#SBATCH hetjob\n#SBATCH -n1\n"
        # As the plugin sets it for the script.
        "export ION_COUNT=2\n"
        "srun --het-group=0,1 -l sh -c 'echo $ION_COUNT'\n"
        "srun --het-group=1 sh -c 'echo alone: $ION_COUNT'\n"
    )
    path = real.slurm.folder / "het.sh"
    path.write_text(script)
    job = real.slurm.run("sbatch", "--parsable", "-o", str(real.output("het")), str(path))
    number = int(job.stdout)
    for part in (number, number + 1):
        real.finish(part)
    assert sorted(real.output("het").read_text().splitlines()) == ["0: 2", "1: 0", "alone: 0"]
    assert [line.split()[2] for line in real.calls_of(number)] == ["2", "2"]
    assert real.calls_of(number + 1) == []


@pytest.mark.slurm
def test_io_nodes_go_to_the_next_job_only_after_the_last_ones_end(real: RealSite) -> None:
    # `end` takes half a second; a job that starts before it ends would find no free daemons.
    jobs = [real.slurm.submit("-L", f"ionode:{POOL}") for _ in range(3)]
    for job in jobs:
        assert real.finish(job)["Restarts"] == "0"
    calls = [line.split()[:2] for job in jobs for line in real.calls_of(job)]
    assert calls == [[when, str(job)] for job in jobs for when in ("start", "end")]


@pytest.mark.promise("hooks-slurmctld-restarts")
@pytest.mark.slurm
def test_a_running_job_keeps_its_daemons_when_slurmctld_restarts(real: RealSite) -> None:
    began, go = real.output("began"), real.output("go")
    script = f"#!/bin/sh\ntouch {began}\nwhile [ ! -e {go} ]; do sleep 0.1; done\n"
    job = real.slurm.submit("-L", "ionode:2", script=script)
    real.slurm.wait(began.exists, "job that runs")
    before = (real.jobs / f"{job}.hosts").read_text()
    real.slurm.stop("slurmctld")
    real.slurm.start("slurmctld")
    assert (real.jobs / f"{job}.hosts").read_text() == before
    go.touch()
    real.finish(job)
    assert not list(real.jobs.glob(f"{job}.*"))


@pytest.mark.promise("hooks-job-put-back")
@pytest.mark.slurm
def test_a_job_that_is_put_back_into_the_queue_ends_before_it_starts_again(real: RealSite) -> None:
    # `end` takes half a second; it must not remove the files of the second run.
    began, go = real.output("again"), real.output("go-again")
    script = f"#!/bin/sh\n{TELL} >>{began}\nwhile [ ! -e {go} ]; do sleep 0.1; done\n"
    job = real.slurm.submit("-L", "ionode:2", "--requeue", script=script)
    real.slurm.wait(lambda: began.exists() and began.read_text(), "job that runs")
    real.slurm.run("scontrol", "requeue", str(job))
    # Slurm would wait two minutes. slurmd launches no job that it killed in the same second.
    soon = ("scontrol", "update", f"JobId={job}", "StartTime=now+3")
    real.slurm.wait(lambda: real.slurm.run(*soon, check=False).returncode == 0, "new start")
    real.slurm.wait(lambda: len(began.read_text().splitlines()) == 2, "job that runs again")
    assert {path.name for path in real.jobs.glob(f"{job}.*")} == {
        f"{job}.{kind}" for kind in ("count", "hosts", "map")
    }
    go.touch()
    real.finish(job)
    assert [line.split()[0] for line in real.calls_of(job)] == ["start", "end"] * 2
    assert [line.split()[:2] for line in began.read_text().splitlines()] == [["2", "2"]] * 2
    assert not list(real.jobs.glob(f"{job}.*"))


@pytest.mark.promise("hooks-start-script-fails")
@pytest.mark.slurm
def test_a_job_waits_where_the_sites_script_fails_and_nothing_is_left(real: RealSite) -> None:
    (real.slurm.folder / "broken").touch()
    try:
        job = real.slurm.submit("-L", "ionode:2")
        real.slurm.wait(lambda: real.slurm.job(job)["Restarts"] == "1", "requeue")
        found = real.slurm.wait_for(job, "PENDING")
        assert found["Reason"] in {"BeginTime", "None"}
        assert [line.split()[0] for line in real.calls_of(job)] == ["start", "end"]
        assert not list(real.jobs.glob(f"{job}.*"))
        done = real.slurm.run("srun", "-L", "ionode:2", "echo", "began", check=False)
        assert done.returncode != 0
        assert done.stdout == ""
    finally:
        (real.slurm.folder / "broken").unlink()
        real.slurm.run("scancel", "-u", "root")
