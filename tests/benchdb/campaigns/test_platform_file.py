from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchdb.campaigns.platform_file import (
    Platform,
    Programs,
    SlurmJobSettings,
    Switch,
    fill,
    read_platform,
)
from ioncast_base.errors import InputError
from tests.conftest import PROJECT

GOOD = """\
system = "mysite"
io_nodes = [
    0,
    4,
]
nodes = 16
processes_per_node = 8
test_directory = "/scratch/{io_nodes}"
node_directory = "/nodes/{node}/{io_nodes}"
free_space_limit = "20g"
launch = "srun -N {nodes} -n {tasks}"

[io_nodes_switch]
environment = {COUNT = "{io_nodes}"}
before = "start {io_nodes} > ${HOME}/log"
after = "stop"

[programs]
ior = "/opt/ior"

[slurm]
directives = ["--licenses=ionode:{io_nodes}"]
poll_seconds = 5
"""


def read(folder: Path, text: str) -> Platform:
    path = folder / "p.toml"
    path.write_text(text, encoding="utf-8")
    return read_platform(path)


def test_a_platform_has_the_values_of_its_file(tmp_path: Path) -> None:
    assert read(tmp_path, GOOD) == Platform(
        system="mysite",
        io_nodes=(0, 4),
        nodes=16,
        processes_per_node=8,
        test_directory="/scratch/{io_nodes}",
        node_directory="/nodes/{node}/{io_nodes}",
        free_space_limit="20g",
        launch="srun -N {nodes} -n {tasks}",
        io_nodes_switch=Switch(
            environment={"COUNT": "{io_nodes}"},
            before="start {io_nodes} > ${HOME}/log",
            after="stop",
        ),
        programs=Programs(ior="/opt/ior"),
        slurm=SlurmJobSettings(directives=("--licenses=ionode:{io_nodes}",), poll_seconds=5),
    )


def test_keys_that_are_left_out_have_defaults(tmp_path: Path) -> None:
    platform = read(
        tmp_path,
        'system = "x"\nio_nodes = [0]\nnodes = 1\nprocesses_per_node = 2\n'
        'test_directory = "/tmp"\nlaunch = ""\n',
    )
    assert platform.free_space_limit == 1 << 30
    assert platform.same_failures_limit == 3
    assert platform.slurm is None
    assert platform.node_directories(1, io_nodes=0) == ()
    assert platform.programs.get("ior") is None
    assert platform.io_nodes_switch == Switch(environment={}, before="", after="")


def test_sizes_are_written_as_for_ior(tmp_path: Path) -> None:
    assert read(tmp_path, GOOD).free_space_limit == 20 << 30


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('system = "mysite"\n', "", "1: key `system` is missing; add it, such as `system = "),
        ("nodes = 16\n", "", "1: key `nodes` is missing; add it, such as `nodes = 16`: the number"),
        ("io_nodes = [", "ionodes = [", "2: key `ionodes` is unknown; did you mean `io_nodes`?"),
        ("ior =", "iorr =", "19: key `programs.iorr` is unknown; did you mean `ior`?"),
        ("[io_nodes_switch]", "[switch]", "13: key `switch` is unknown"),
        ('"mysite"', "5", "1: key `system`: must be a text in quotes, not 5"),
        ('"mysite"', '""', "1: key `system`: must not be empty"),
        ('"mysite"', '"my\\nsite"', "1: key `system`: must be one line of visible characters"),
        ('"mysite"', f'"{"x" * 201}"', "1: key `system`: must not be longer than 200 characters"),
        ("    4,", "    0,", "2: key `io_nodes`: 0 is listed twice"),
        ("    4,", "    -4,", "2: key `io_nodes`, entry 2: must be at least 0, not -4"),
        ("    4,", "    4.5,", "2: key `io_nodes`, entry 2: must be a whole number, not 4.5"),
        ("    4,", "    nan,", "2: key `io_nodes`, entry 2: must be a whole number, not NaN"),
        ("    0,\n    4,\n", "", "2: key `io_nodes`: must not be empty"),
        ("[\n    0,\n    4,\n]", "4", "2: key `io_nodes`: must be a list in brackets, not 4"),
        ("nodes = 16", "nodes = 0", "6: key `nodes`: must be at least 1, not 0"),
        ("nodes = 16", "nodes = -1", "6: key `nodes`: must be at least 1, not -1"),
        ("nodes = 16", "nodes = inf", "6: key `nodes`: must be a whole number, not Infinity"),
        ("nodes = 16", 'nodes = "16"', '6: key `nodes`: must be a whole number, not "16"'),
        ("nodes = 16", "nodes = true", "6: key `nodes`: must be a whole number, not true"),
        ("nodes = 16", "nodes = 16\nnodes = 8", "7: a key is given twice"),
        ('"/scratch/{io_nodes}"', '"scratch"', "8: key `test_directory`: must be an absolute"),
        ('"/scratch/{io_nodes}"', '"/my scratch"', "8: key `test_directory`: '/my scratch' has"),
        ("/{io_nodes}", "/{tasks}", "8: key `test_directory`: the placeholder {tasks} is unknown"),
        ('"/nodes', '"nodes', "9: key `node_directory`: must be an absolute path, not"),
        ("/{node}", "/n", "9: key `node_directory`: has no {node}, so all compute nodes"),
        ("/{node}", "/{n}", "9: key `node_directory`: the placeholder {n} is unknown; the"),
        ('"20g"', '"20gb"', "10: key `free_space_limit`: '20gb' is not a size"),
        ('"20g"', '"-1"', "10: key `free_space_limit`: '-1' is not a size"),
        ('"20g"', "20", "10: key `free_space_limit`: must be a text in quotes, not 20"),
        ('"20g"', "20g", "10: a value is followed by something else"),
        ("{tasks}", "{task}", "11: key `launch`: the placeholder {task} is unknown; the pl"),
        ("-n {tasks}", "-n {tasks}\\n", "11: key `launch`: must be one line of visible"),
        ("{COUNT", '{"a b"', "14: 'a b' is not the name of an environment variable"),
        ('"{io_nodes}"}', "4}", "14: key `io_nodes_switch.environment.COUNT`: must be a text"),
        ("start {io_nodes}", "start {n}", "15: key `io_nodes_switch.before`: the placeholder {n}"),
        ('"stop"', '"st\\u0000op"', "16: key `io_nodes_switch.after`: must not contain"),
        ('["--l', '["l', "22: key `slurm.directives`, entry 1: 'licenses=ionode:{io_nodes}' is"),
        ("ionode:{io_nodes}", "{x}", "22: key `slurm.directives`, entry 1: the placeholder {x}"),
        ("[slurm]", "slurm = 1\n[q]", "21: key `programs.slurm` is unknown"),
        (GOOD, "", "1: key `system` is missing"),
    ],
)
def test_an_error_is_one_line_that_names_the_line_of_the_file(
    tmp_path: Path, old: str, new: str, expected: str
) -> None:
    assert old in GOOD
    with pytest.raises(InputError) as caught:
        read(tmp_path, GOOD.replace(old, new, 1))
    assert str(caught.value).startswith(f"{tmp_path}/p.toml:{expected}")


def test_a_binary_file_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_bytes(bytes(range(256)))
    with pytest.raises(InputError, match=r"p\.toml: this is not text in UTF-8"):
        read_platform(path)


def test_io_nodes_that_change_nothing_are_rejected(tmp_path: Path) -> None:
    same = re.sub(r"/?{io_nodes}", "", GOOD)
    with pytest.raises(InputError, match="no setting in the file contains"):
        read(tmp_path, same)
    assert read(tmp_path, same.replace("    4,\n", "")).io_nodes == (0,)


@pytest.mark.parametrize(
    ("text", "ior", "fio"),
    [
        ('before = "start {io_nodes}"', True, True),
        ('launch = "on {io_nodes}"', True, False),
        ('test_directory = "/scratch/{io_nodes}"', True, True),
        ('test_directory = "/scratch/{io_nodes}"\nnode_directory = "/nodes/{node}"', True, False),
        ('node_directory = "/nodes/{node}/{io_nodes}"', False, True),
    ],
)
def test_each_engine_uses_its_own_settings_for_io_nodes(
    tmp_path: Path, text: str, ior: bool, fio: bool
) -> None:
    keys = {"system": '"x"', "io_nodes": "[0, 4]", "nodes": "2", "processes_per_node": "2"}
    keys |= {"test_directory": '"/scratch"', "launch": '""'}
    given = "".join(f"{k} = {v}\n" for k, v in keys.items() if not text.startswith(k))
    table = "[io_nodes_switch]\n" if text.startswith("before") else ""
    platform = read(tmp_path, f"{given}{table}{text}\n")
    assert platform.tells_io_nodes(launched=True) == ior
    assert platform.tells_io_nodes(launched=False) == fio


NUMBERS = {"tasks": 16, "nodes": 2, "processes_per_node": 8, "io_nodes": 4}


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        ("srun -N{nodes} -n {tasks}", "srun -N2 -n 16"),
        ("{processes_per_node}{io_nodes}", "84"),
        ("echo ${tasks} ${X:-{tasks}}", "echo ${tasks} ${X:-16}"),
        ("awk '{ print }' {a,b} {} {1..3}", "awk '{ print }' {a,b} {} {1..3}"),
        ("%s \\1 {tasks}", "%s \\1 16"),
    ],
)
def test_only_placeholders_are_filled(template: str, filled: str) -> None:
    assert fill(template, **NUMBERS) == filled


@pytest.mark.slow
@given(st.text().filter(lambda text: "{" not in text))
def test_a_text_without_braces_stays_as_it_is(text: str) -> None:
    assert fill(text, **NUMBERS) == text


def test_syntax_of_the_shell_is_left_to_the_shell(tmp_path: Path) -> None:
    before = "X=1; f() { echo ${X} {a,b} {io_nodes}; }; f | awk '{ print $NF }'"
    platform = read(tmp_path, GOOD.replace('"stop"', f'"""{before}"""'))
    command = fill(platform.io_nodes_switch.after, **NUMBERS)
    assert subprocess.check_output(["bash", "-c", command], text=True) == "4\n"


def documented() -> str:
    return (PROJECT / "docs/platform.md").read_text(encoding="utf-8")


def test_the_documented_platform_files_are_valid(tmp_path: Path) -> None:
    found = re.findall(r"```toml\n(.*?)```", documented(), re.DOTALL)
    site, laptop, testbed = (read(tmp_path, text) for text in found)
    assert site.io_nodes == (0, 1, 2, 4, 8)
    assert site.slurm is not None
    assert site.free_space_limit == 200 << 30
    assert laptop.slurm is None
    assert testbed.node_directories(2, io_nodes=4) == (
        "/run/ioncast-platform/testbed/mounts/io4/cn0",
        "/run/ioncast-platform/testbed/mounts/io4/cn1",
    )


def test_the_documented_error_is_the_one_that_is_shown(tmp_path: Path) -> None:
    full = re.findall(r"```toml\n(.*?)```", documented(), re.DOTALL)[0]
    with pytest.raises(InputError) as caught:
        read(tmp_path, full.replace("io_nodes =", "ionodes ="))
    assert str(caught.value).replace(f"{tmp_path}/p", "mysite") in documented()


def test_the_documentation_names_every_key() -> None:
    nested = {"io_nodes_switch": Switch, "programs": Programs, "slurm": SlurmJobSettings}
    for name in Platform.model_fields:
        inner = nested[name].model_fields if name in nested else {}
        for key in [f"{name}.{each}" for each in inner] or [name]:
            assert f"`{key}`" in documented()
