"""burst_buffer.lua in two versions of Lua, and in a real Slurm."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.support.slurm import Cluster, cluster, version

PLUGIN = Path(__file__).resolve().parents[3] / "scheduler_plugin"
SCRIPT = (PLUGIN / "lua" / "burst_buffer.lua").read_text()
SUCCESS, ERROR = 0, -1
# `req_fxns` in src/plugins/burst_buffer/lua/burst_buffer_lua.c of Slurm 21.08 and 24.05.
REQUIRED = {
    "slurm_bb_job_process",
    "slurm_bb_pools",
    "slurm_bb_job_teardown",
    "slurm_bb_setup",
    "slurm_bb_data_in",
    "slurm_bb_real_size",
    "slurm_bb_paths",
    "slurm_bb_pre_run",
    "slurm_bb_post_run",
    "slurm_bb_data_out",
    "slurm_bb_get_status",
    "slurm_bb_test_data_in",
    "slurm_bb_test_data_out",
}


def with_hooks(folder: Path | str) -> str:
    assert 'local HOOKS = ""' in SCRIPT
    return SCRIPT.replace('local HOOKS = ""', f'local HOOKS = "{folder}"')


def write_program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def write_hooks(folder: Path) -> None:
    """Write hooks that note their calls, and fail if a file tells them to."""
    for hook in ("prolog_slurmctld.sh", "epilog_slurmctld.sh"):
        write_program(
            folder / hook,
            f'#!/bin/sh\necho "{hook[:6]} $SLURM_JOB_ID $SLURM_JOB_LICENSES $SLURM_JOB_NODELIST"'
            f" >>{folder}/calls\n"
            f"[ ! -e {folder}/broken ] || {{ echo no such; echo switch; exit 3; }}\n",
        )
    # As squeue lists an array whose last task is waiting.
    write_program(folder / "squeue", "#!/bin/sh\necho '13 n3\n12 n[1-2]\n14 '\n")


class Plugin:
    """Slurm as the script sees it, in a folder with settings and the script of job 12."""

    def __init__(self, version: str, folder: Path) -> None:
        self.folder = folder
        self.lines: list[str] = []
        self.lua = import_module(f"lupa.{version}").LuaRuntime(unpack_returned_tuples=True)
        self.lua.globals().slurm = self.lua.table_from(
            {
                "SUCCESS": SUCCESS,
                "ERROR": ERROR,
                "log_info": lambda form, text: self.lines.append(form.replace("%s", text)),
            }
        )
        # lupa's Lua has no io.popen.
        self.lua.globals().io.popen = self.popen
        self.set("return { pool = 8 }")
        (folder / "job.12").mkdir()

    @property
    def script(self) -> str:
        return str(self.folder / "job.12" / "script")

    def set(self, text: str) -> None:
        (self.folder / "ioncast_settings.lua").write_text(text)

    def popen(self, command: str) -> Any:
        said = subprocess.run(
            ["/bin/sh", "-c", command],
            env={"PATH": f"{self.folder}:/usr/bin:/bin"},
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        ).stdout
        return self.lua.table_from({"read": lambda _, what: said, "close": lambda _: True})

    def load(self, text: str = SCRIPT) -> None:
        path = self.folder / "burst_buffer.lua"
        path.write_text(text)
        self.lua.globals().dofile(str(path))

    def call(self, stage: str, *arguments: str) -> tuple[int, str | None]:
        answer: Any = self.lua.globals()[f"slurm_bb_{stage}"](*arguments)
        code, text = answer if isinstance(answer, tuple) else (answer, None)
        return int(code), text

    def set_up(self, pool: str = "ionode", size: str = "4") -> tuple[int, str | None]:
        return self.call("setup", "12", "1000", "1000", pool, size, self.script)

    def environment(self) -> str:
        path = self.folder / "path"
        path.write_text("")
        assert self.call("paths", "12", self.script, str(path)) == (SUCCESS, None)
        return path.read_text()


@pytest.fixture(params=["lua51", "lua54"])
def plugin(request: pytest.FixtureRequest, tmp_path: Path) -> Plugin:
    return Plugin(request.param, tmp_path)


def test_each_function_that_slurm_asks_for_is_there(plugin: Plugin) -> None:
    plugin.load()
    names = {name for name in plugin.lua.globals() if str(name).startswith("slurm_bb_")}
    assert names == REQUIRED


@pytest.mark.parametrize(
    ("text", "name", "size"),
    [
        ("return { pool = 8 }", "ionode", 8),
        ('return { pool = 8.0, licence = "fwd" }', "fwd", 8),
        ("return { pool = 0 }", "ionode", 0),
    ],
)
def test_the_pool_is_that_of_the_settings(plugin: Plugin, text: str, name: str, size: int) -> None:
    plugin.set(text)
    plugin.load()
    code, pools = plugin.call("pools")
    assert code == SUCCESS
    assert pools is not None
    assert json.loads(pools) == {"pools": [{"id": name, "quantity": size, "granularity": 1}]}
    assert ".0" not in pools
    assert plugin.call("get_status", "0", "0") == (SUCCESS, f"{name}: {size} I/O nodes\n")


@pytest.mark.parametrize(
    "text",
    [
        "return {",
        "return 8",
        "error('no')",
        "return {}",
        "return { pool = 1.5 }",
        "return { pool = -1 }",
    ],
)
def test_broken_settings_are_said_and_break_nothing(plugin: Plugin, text: str) -> None:
    plugin.set(text)
    plugin.load()
    code, problem = plugin.call("pools")
    assert code == ERROR
    assert problem is not None
    assert "ioncast_settings.lua" in problem
    assert plugin.lines == [f"ioncast: {problem}"]
    assert plugin.call("get_status", "0", "0") == (SUCCESS, f"{problem}\n")


def test_changed_settings_count_at_once(plugin: Plugin) -> None:
    plugin.load()
    plugin.set("return { pool = 9 }")
    assert '"quantity":9' in (plugin.call("pools")[1] or "")


def test_a_job_is_told_its_io_nodes(plugin: Plugin) -> None:
    plugin.load()
    assert plugin.set_up() == (SUCCESS, None)
    assert plugin.environment() == "ION_COUNT=4\nIONCAST_BURST_BUFFER_OF=12\n"


def test_a_job_that_names_no_pool_is_left_alone(plugin: Plugin) -> None:
    write_hooks(plugin.folder)
    plugin.load(with_hooks(plugin.folder))
    assert plugin.set_up(pool="(null)", size="0") == (SUCCESS, None)
    assert plugin.environment() == ""
    assert plugin.call("pre_run", "12", plugin.script) == (SUCCESS, None)
    assert not (plugin.folder / "calls").exists()


def test_a_number_that_cannot_be_kept_is_said(plugin: Plugin) -> None:
    plugin.load()
    (plugin.folder / "job.12").rmdir()
    code, problem = plugin.set_up()
    assert code == ERROR
    assert problem == f"cannot write {plugin.folder}/job.12/ionodes.12"


def test_a_job_starts_where_the_file_with_its_number_is_damaged(plugin: Plugin) -> None:
    plugin.load()
    plugin.set_up()
    (plugin.folder / "job.12" / "ionodes.12").write_text("ion")
    assert plugin.environment() == ""


def test_the_other_stages_do_nothing(plugin: Plugin) -> None:
    plugin.load()
    assert plugin.call("job_process", plugin.script) == (SUCCESS, None)
    for stage in ("data_in", "test_data_in", "post_run", "data_out", "test_data_out"):
        assert plugin.call(stage, "12", plugin.script) == (SUCCESS, None)
    assert plugin.call("real_size", "12") == (SUCCESS, None)
    assert plugin.call("pre_run", "12", plugin.script) == (SUCCESS, None)
    assert plugin.call("job_teardown", "12", plugin.script, "false") == (SUCCESS, None)


def test_hooks_are_called_as_slurmctld_would(plugin: Plugin) -> None:
    write_hooks(plugin.folder)
    plugin.load(with_hooks(plugin.folder))
    # The settings are not needed any more for a job that has its I/O nodes.
    plugin.set("return {")
    plugin.set_up()
    assert plugin.call("pre_run", "12", plugin.script) == (SUCCESS, None)
    assert plugin.call("job_teardown", "12", plugin.script, "false") == (SUCCESS, None)
    calls = (plugin.folder / "calls").read_text().splitlines()
    assert calls == ["prolog 12 ionode:4 n[1-2]", "epilog 12 ionode:4 n[1-2]"]


def test_what_a_failing_hook_says_is_the_reason(plugin: Plugin) -> None:
    write_hooks(plugin.folder)
    (plugin.folder / "broken").touch()
    plugin.load(with_hooks(plugin.folder))
    plugin.set_up()
    assert plugin.call("pre_run", "12", plugin.script) == (ERROR, "no such; switch")
    assert plugin.lines == ["ioncast: job 12: prolog_slurmctld.sh failed: no such; switch"]


def test_a_hook_that_is_missing_is_a_failure(plugin: Plugin) -> None:
    plugin.load(with_hooks("/no/o'clock"))
    plugin.set_up()
    code, said = plugin.call("pre_run", "12", plugin.script)
    assert code == ERROR
    assert said is not None
    assert "/no/o'clock/prolog_slurmctld.sh" in said


# --- In Slurm ---


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    root = tmp_path_factory.mktemp("burst-buffer") / "slurm"
    root.mkdir()
    hooks = Path(shutil.copytree(PLUGIN / "hooks", root / "hooks"))
    (hooks / "hooks.conf").write_text(f"SITE_SCRIPT={root}/switch\n")
    # The hooks of compute nodes. Their JOBS_FOLDER is empty, as if no hook wrote counts.
    of_nodes = Path(shutil.copytree(PLUGIN / "hooks", root / "hooks-of-nodes"))
    (root / "empty").mkdir()
    (of_nodes / "hooks.conf").write_text(f"JOBS_FOLDER={root}/empty\n")
    broken = f"[ ! -e {root}/broken ] || {{ echo no such switch; exit 3; }}"
    write_program(root / "switch", f'#!/bin/sh\necho "$@" >>{root}/calls\n{broken}\n')
    (root / "calls").touch()
    # slurmctld runs its hooks as its own user, which must be able to write here.
    shutil.chown(root / "calls", "slurm")
    (root / "output").mkdir()
    (root / "output").chmod(0o777)
    files = {"burst_buffer.lua": with_hooks(hooks), "ioncast_settings.lua": "return { pool = 8 }"}
    lines = ["BurstBufferType=burst_buffer/lua", f"TaskProlog={of_nodes}/task_prolog.sh"]
    with cluster(root, files=files, lines=lines) as found:
        yield found


def request(size: int) -> tuple[str, str]:
    return "--bb", f"#BB_LUA pool=ionode capacity={size}"


def output(slurm: Cluster, name: str) -> Path:
    return slurm.folder / "output" / name


def calls_of(slurm: Cluster, job: int) -> list[str]:
    lines = (slurm.folder / "calls").read_text().splitlines()
    return [line for line in lines if line.split()[1] == str(job)]


def await_calls(slurm: Cluster, job: int, *calls: str) -> None:
    slurm.wait(lambda: calls_of(slurm, job) == list(calls), f"{calls}")


def pool_of(slurm: Cluster) -> str:
    lines = slurm.run("scontrol", "show", "burst").stdout.splitlines()
    pools = [line.split("Granularity=1 ")[1] for line in lines if "PoolName[0]=ionode" in line]
    return "".join(pools)


def await_pool(slurm: Cluster, free: int) -> None:
    expected = f"TotalSpace=8 FreeSpace={free} UsedSpace={8 - free}"
    slurm.wait(lambda: pool_of(slurm) == expected, f"pool with {free} I/O nodes free")


@pytest.mark.slurm
def test_the_pool_is_there(slurm: Cluster) -> None:
    await_pool(slurm, 8)
    said = slurm.run("scontrol", "show", "bbstat").stdout
    assert said.strip() == "ionode: 8 I/O nodes"


@pytest.mark.slurm
def test_jobs_wait_for_io_nodes_and_know_how_many_they_have(slurm: Cluster) -> None:
    go = output(slurm, "go")
    script = (
        "#!/bin/sh\necho batch $ION_COUNT\nsrun -n1 sh -c 'echo step $ION_COUNT'\n"
        f"while [ ! -e {go} ]; do sleep 0.1; done\n"
    )
    out = ("-o", f"{output(slurm, '%j')}")
    first = slurm.submit(*request(5), *out, script=script, user="nobody")
    slurm.wait_for(first, "RUNNING")
    second = slurm.submit(*request(4), *out, script=script, user="nobody")
    slurm.wait(lambda: slurm.job(second)["Reason"] == "BurstBufferResources", "job that waits")
    assert slurm.job(first)["BurstBuffer"] == "#BB_LUA"
    await_pool(slurm, 3)
    go.touch()
    for job, size in ((first, 5), (second, 4)):
        node = slurm.wait_for(job, "COMPLETED")["NodeList"]
        assert output(slurm, str(job)).read_text() == f"batch {size}\nstep {size}\n"
        await_calls(slurm, job, f"start {job} {size} {node}", f"end {job} {size} {node}")
    await_pool(slurm, 8)


@pytest.mark.slurm
@pytest.mark.parametrize(
    ("command", "step"), [(["srun"], []), (["salloc", "-Q"], []), (["salloc", "-Q"], ["srun"])]
)
def test_interactive_jobs_know_how_many_they_have(
    slurm: Cluster, command: list[str], step: list[str]
) -> None:
    said = slurm.run(*command, *request(3), *step, "sh", "-c", "echo $ION_COUNT", user="nobody")
    assert said.stdout == "3\n"


@pytest.mark.slurm
def test_each_task_of_an_array_has_its_own(slurm: Cluster) -> None:
    script = "#!/bin/sh\necho $ION_COUNT\nsleep 0.5\n"
    first = slurm.submit(
        "--array=1-3", *request(2), "-o", str(output(slurm, "%a")), script=script, user="nobody"
    )
    jobs = range(first, first + 3)
    slurm.wait(lambda: all(len(calls_of(slurm, job)) == 2 for job in jobs), "ends of the array")
    counts = {output(slurm, str(task)).read_text() for task in (1, 2, 3)}
    # Newer versions call slurm_bb_paths with a file in a folder that does not exist yet.
    assert counts == {"2\n"} if version() < (24, 5) else counts <= {"2\n", "\n"}
    for job in jobs:
        begin, end = calls_of(slurm, job)
        assert begin.startswith(f"start {job} 2 n")
        assert end.startswith(f"end {job} 2 n")


@pytest.mark.slurm
def test_io_nodes_of_a_running_job_are_its_own_when_slurmctld_restarts(slurm: Cluster) -> None:
    began, go = output(slurm, "began"), output(slurm, "go-on")
    script = f"#!/bin/sh\ntouch {began}\nwhile [ ! -e {go} ]; do sleep 0.1; done\n"
    job = slurm.submit(*request(6), script=script, user="nobody")
    slurm.wait(began.exists, "job that runs")
    node = slurm.job(job)["NodeList"]
    slurm.stop("slurmctld")
    slurm.start("slurmctld")
    await_pool(slurm, 2)
    go.touch()
    await_calls(slurm, job, f"start {job} 6 {node}", f"end {job} 6 {node}")
    await_pool(slurm, 8)


@pytest.mark.slurm
def test_a_job_that_names_no_pool_runs(slurm: Cluster) -> None:
    out = output(slurm, "none")
    script = "#!/bin/sh\necho ${ION_COUNT-none}\n"
    job = slurm.submit("--bb", "#BB_LUA", "-o", str(out), script=script, user="nobody")
    slurm.wait_for(job, "COMPLETED")
    assert out.read_text() == "none\n"
    assert calls_of(slurm, job) == []


@pytest.mark.slurm
def test_a_job_that_is_cancelled_while_it_waits_gives_its_io_nodes_back(slurm: Cluster) -> None:
    job = slurm.submit(*request(8), "--begin=now+60", user="nobody")
    slurm.run("scancel", str(job))
    slurm.wait_for(job, "CANCELLED")
    await_pool(slurm, 8)


@pytest.mark.slurm
def test_roots_jobs_cannot_have_them(slurm: Cluster) -> None:
    with pytest.raises(subprocess.CalledProcessError) as refused:
        slurm.submit(*request(1))
    assert "root can not allocate burst buffers" in refused.value.stderr


@pytest.mark.slurm
def test_a_job_waits_where_a_hook_fails_and_says_why(slurm: Cluster) -> None:
    broken = slurm.folder / "broken"
    broken.touch()
    try:
        job = slurm.submit(*request(1), user="nobody")
        slurm.wait(lambda: len(calls_of(slurm, job)) == 2, "end after the failure")
        assert slurm.wait_for(job, "PENDING")
        told = slurm.run("scontrol", "show", "job", str(job)).stdout
        assert "burst_buffer/lua: pre_run: no such switch; ioncast: job" in told
    finally:
        broken.unlink()
        slurm.run("scancel", str(job))
