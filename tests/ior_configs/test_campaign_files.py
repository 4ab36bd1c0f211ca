from __future__ import annotations

import csv
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchdb.measurements.importers import ResultFile, read_measurements
from ioncast_base.errors import InputError
from ioncast_base.times import parse_duration
from ior_configs import IorConfig, MdtestConfig
from ior_configs.campaign_files import (
    Campaign,
    bundled_campaigns,
    campaign_text,
    parse_campaign,
    read_campaign,
    to_toml,
)
from tests.conftest import PROJECT

MIB = 1 << 20

HEAD = """\
name = "p"
description = "d"
repetitions = 3
seed = 1
"""
GRID = """
[[grid]]
operation = ["write", "read"]
file_access = "shared"
transfer_size = ["4k", "1m"]
bytes_per_process = "4m"
"""
CONFIGURATION = """
# From a log
[[configuration]]
command = "mpiexec -n 16 ior -w -F -b 24m -t 24m"
nodes = 8
"""


def parsed(text: str, *, nodes: int = 2, processes_per_node: int = 4) -> Campaign:
    return parse_campaign(text, where="c.toml", nodes=nodes, processes_per_node=processes_per_node)


def configurations(table: str, **machine: int) -> tuple[IorConfig, ...]:
    return parsed(HEAD + table, **machine).configurations


def error_of(text: str) -> str:
    with pytest.raises(InputError) as caught:
        parsed(text)
    return str(caught.value)


def grid(**values: str) -> str:
    keys = {
        "operation": '"write"',
        "file_access": '"shared"',
        "transfer_size": '"1m"',
        "bytes_per_process": '"4m"',
    } | values
    return "[[grid]]\n" + "".join(f"{key} = {value}\n" for key, value in keys.items() if value)


def command(text: str) -> str:
    return f"[[configuration]]\ncommand = {text!r}\n"


def test_a_campaign_is_what_its_file_says() -> None:
    campaign = parsed(HEAD + 'spread = "1h30m"\n' + GRID + CONFIGURATION)
    assert (campaign.name, campaign.description) == ("p", "d")
    assert (campaign.repetitions, campaign.seed, campaign.spread_s) == (3, 1, 5400)
    assert len(campaign.configurations) == 5
    assert campaign.configurations[-1] == replace(
        IorConfig.from_command_line("mpiexec -n 16 ior -w -F -b 24m -t 24m"), nodes=8
    )


@pytest.mark.parametrize(
    ("table", "line", "nodes"),
    [
        (grid(), "mpiexec -n 8 ior -w -b 4m -t 1m", 2),
        (grid(operation='"read"'), "mpiexec -n 8 ior -r -b 4m -t 1m", 2),
        (grid(file_access='"unique"'), "mpiexec -n 8 ior -w -F -b 4m -t 1m", 2),
        (grid(layout='"1d-strided"'), "mpiexec -n 8 ior -w -b 1m -t 1m -s 4", 2),
        (grid(layout='"random"'), "mpiexec -n 8 ior -w -z -b 4m -t 1m", 2),
        (
            grid(api='"MPIIO"', collective="true"),
            "mpiexec -n 8 ior -a MPIIO -w -c -b 4m -t 1m",
            2,
        ),
        (grid(fsync="true"), "mpiexec -n 8 ior -w -e -b 4m -t 1m", 2),
        (grid(fsync="false"), "mpiexec -n 8 ior -w -b 4m -t 1m", 2),
        (grid(fsync='"none"'), "mpiexec -n 8 ior -w -b 4m -t 1m", 2),
        (grid(fsync='"end"'), "mpiexec -n 8 ior -w -e -b 4m -t 1m", 2),
        (grid(fsync='"each"'), "mpiexec -n 8 ior -w -Y -b 4m -t 1m", 2),
        (grid(odirect="true"), "mpiexec -n 8 ior -w --posix.odirect -b 4m -t 1m", 2),
        (grid(reorder_tasks="true"), "mpiexec -n 8 ior -w -C -b 4m -t 1m", 2),
        (grid(nodes="3"), "mpiexec -n 12 ior -w -b 4m -t 1m", 3),
        (grid(processes_per_node="1"), "mpiexec -n 2 ior -w -b 4m -t 1m", 2),
        (grid(processes="5"), "mpiexec -n 5 ior -w -b 4m -t 1m", 2),
        (grid(processes="5", nodes="5"), "mpiexec -n 5 ior -w -b 4m -t 1m", 5),
        (
            grid(bytes_per_process="", total_bytes='"8m"'),
            "mpiexec -n 8 ior -w -b 1m -t 1m",
            2,
        ),
        (
            grid(bytes_per_process="", total_bytes='"20m"', processes="8"),
            "mpiexec -n 8 ior -w -b 2m -t 1m",
            2,
        ),
        (
            grid(bytes_per_process="", total_bytes='"1m"'),
            "mpiexec -n 8 ior -w -b 1m -t 1m",
            2,
        ),
        (command("ior -w -b 4m -t 1m"), "mpiexec -n 8 ior -w -b 4m -t 1m", 2),
        (command("srun -n 6 -N 3 ior -w -b 4m -t 1m"), "mpiexec -n 6 ior -w -b 4m -t 1m", 3),
        (command("ior -w -b 4m -t 1m") + "tasks = 3", "mpiexec -n 3 ior -w -b 4m -t 1m", 1),
    ],
)
def test_a_table_becomes_an_ior_run(table: str, line: str, nodes: int) -> None:
    expected = replace(IorConfig.from_command_line(line), nodes=nodes)
    assert configurations(table) == (expected,)


def test_a_grid_is_every_combination_of_its_lists() -> None:
    found = configurations(
        grid(
            operation='["write", "read"]',
            transfer_size='["64k", "1m"]',
            nodes="[1, 2, 4]",
            fsync='[true, "none", "each"]',
        )
    )
    assert {(c.operation, c.transfer_size, c.nodes, c.fsync) for c in found} == {
        (operation, size, nodes, fsync)
        for operation in ("write", "read")
        for size in (64 << 10, MIB)
        for nodes in (1, 2, 4)
        for fsync in ("none", "end", "each")
    }
    assert len(found) == 36


def test_a_command_that_writes_and_reads_is_two_configurations() -> None:
    found = configurations(command("mpiexec -n 4 ior -b 4m -t 1m"))
    assert [config.operation for config in found] == ["write", "read"]


def test_one_process_may_write_a_strided_file() -> None:
    (config,) = configurations(grid(layout='"1d-strided"'), nodes=1, processes_per_node=1)
    assert (config.segments, config.tasks) == (4, 1)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("seed = 1\n", "", "c.toml:1: key `seed` is missing; add it, such as `seed = 1`"),
        ("repetitions = 3", "repetitions = 0", "c.toml:3: key `repetitions`: must be greater"),
        ("repetitions = 3", "repetitions = nan", "c.toml:3: key `repetitions`: must be a whole"),
        ("repetitions = 3", "repetition = 3", "c.toml:3: key `repetition` is unknown; did you"),
        ("seed = 1", "seed = -1", "c.toml:4: key `seed`: must be at least 0, not -1"),
        ("seed = 1", "seed = 1\nseed = 2", "c.toml:5: a key is given twice"),
        (
            "seed = 1",
            'seed = 1\nspread = "2 weeks"',
            "c.toml:5: key `spread`: '2 weeks' is not a duration",
        ),
        ('"p"', '" p"', "c.toml:1: key `name`: must be one line of visible characters"),
        ('"p"', '""', "c.toml:1: key `name`: must not be empty"),
        ("[[grid]]", "[grid]", "c.toml:6: key `grid`: must be a list of tables; write its header"),
        ('"4m"', '"4x"', "c.toml:10: key `grid.bytes_per_process`: '4x' is not a size"),
        ('"4m"', '"-4m"', "c.toml:10: key `grid.bytes_per_process`: '-4m' is not a size"),
        ('"4m"', '"0"', "c.toml:10: key `grid.bytes_per_process`: a size must be greater than 0"),
        ('"4m"', "4m", "c.toml:10: a value is followed by something else"),
        ('"4m"', "4", "c.toml:10: key `grid.bytes_per_process`: must be a text in quotes, not 4"),
        ('"1m"', '"1mb"', "c.toml:9: key `grid.transfer_size`, entry 2: '1mb' is not a size"),
        ('"1m"', '"4k"', 'c.toml:9: key `grid.transfer_size`: "4k" is listed twice'),
        ('"1m"', '"4096"', "c.toml:6: mpiexec -n 8 ior -a POSIX -w -b 4m -t 4k on 2 nodes is in"),
        ('"4k", "1m"', "", "c.toml:9: key `grid.transfer_size`: must not be empty"),
        ('"shared"', '"share"', "c.toml:8: key `grid.file_access`: must be one of 'shared' or"),
        ('"4m"', '"512k"', 'c.toml:6: operation "write", transfer_size "1m": 524288 bytes per'),
        (
            '"shared"',
            '"unique"\nlayout = "1d-strided"',
            'c.toml:6: operation "write", transfer_size "4k": IOR cannot skip within',
        ),
        (
            '"shared"',
            '"shared"\nlayout = "random"\nreorder_tasks = true',
            'c.toml:6: operation "write", transfer_size "4k": -z and -C exclude each other',
        ),
        (
            'bytes_per_process = "4m"',
            'bytes_per_process = "1m"\nlayout = "random"',
            'c.toml:6: operation "write", transfer_size "1m": -z shuffles within a block',
        ),
        (
            'bytes_per_process = "4m"',
            'bytes_per_process = "4m"\nprocesses = 4\nnodes = 5',
            'c.toml:6: operation "write", transfer_size "4k": 5 nodes are more than 4 tasks',
        ),
        ('bytes_per_process = "4m"', "", "c.toml:6: this grid has neither of the keys"),
        ("bytes_per_process", 'total_bytes = "4m"\nbytes_per_process', "c.toml:6: this grid has"),
        (
            "bytes_per_process",
            "processes = 1\nprocesses_per_node = 1\nbytes_per_process",
            "c.toml:6: this grid has both of the keys `processes` and `processes_per_node`",
        ),
        ("ior -w", "iorx -w", "c.toml:13: there is no ior in the command line"),
        ("ior -w", "ior -w -o /x -i 3", "c.toml:13: the command has options that control the run"),
        ("-b 24m", "-b 25m", "c.toml:13: the block size 26214400 must be a multiple"),
        ("nodes = 8", "nodes = 32", "c.toml:13: 32 nodes are more than 16 tasks"),
        ("nodes = 8", "tasks = 8", "c.toml:13: key `tasks` is 8, but the command says 16"),
        ("nodes = 8", "nodes = 8" + CONFIGURATION, "c.toml:17: mpiexec -n 16 ior"),
        (GRID + CONFIGURATION, "", "c.toml:1: the campaign has no runs"),
    ],
)
def test_an_error_is_one_line_and_names_the_line_of_the_file(
    old: str, new: str, expected: str
) -> None:
    good = HEAD + GRID + CONFIGURATION
    assert old in good
    assert error_of(good.replace(old, new, 1)).startswith(expected)


@pytest.mark.parametrize("source", ["lapto", "/nowhere/x.toml", "laptop.toml", "", "x" * 5000])
def test_a_missing_campaign_is_one_line(source: str) -> None:
    with pytest.raises(InputError) as caught:
        read_campaign(source, nodes=1, processes_per_node=1)
    assert caught.value.where is not None


def test_a_misspelled_name_gets_the_names_of_the_bundled_campaigns() -> None:
    with pytest.raises(InputError, match="bundled campaigns are forge, forwarding, laptop, rr9366"):
        read_campaign("lapto", nodes=1, processes_per_node=1)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("30m", 1800), ("2h", 7200), ("7d", 604_800), ("1h30m", 5400), ("1d1s", 86_401)],
)
def test_a_duration_is_numbers_with_units(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "2", "2w", "-2h", "1.5h", "30m1h", "1h 30m", "0s", "h", "nan", "9" * 30 + "s"]
)
def test_other_texts_are_not_durations(text: str) -> None:
    with pytest.raises(InputError, match="is not a duration"):
        parse_duration(text)


LINES = st.text(min_size=1, max_size=30).filter(lambda t: t == t.strip() and t.isprintable())


@st.composite
def patterns(draw: st.DrawFn) -> IorConfig:
    transfer = 8 * draw(st.integers(1, 1 << 20))
    unique = draw(st.booleans())
    random = draw(st.integers(0, 2))
    write = draw(st.booleans())
    tasks = draw(st.integers(1, 5000))
    return IorConfig(
        api=draw(st.sampled_from(["POSIX", "MPIIO", "HDF5"])) if not random else "POSIX",
        write=write,
        read=not write,
        file_per_process=unique,
        collective=draw(st.booleans()),
        random_offsets=random,
        transfer_size=transfer,
        block_size=transfer * draw(st.integers(2, 1000)),
        segments=draw(st.integers(1, 1000)),
        fsync=draw(st.sampled_from(["none", "end", "each"])),
        conditions=draw(st.sampled_from([(), ("-Z",), ("-M 75%", "-l random")])),
        odirect=draw(st.booleans()),
        intra_test_barriers=draw(st.booleans()),
        reorder_tasks=draw(st.booleans()) and (unique or not random),
        tasks=tasks,
        nodes=draw(st.integers(1, tasks)),
    )


@given(
    st.builds(
        Campaign,
        name=LINES,
        description=LINES,
        repetitions=st.integers(1, 100),
        seed=st.integers(0, 2**32 - 1),
        spread_s=st.none() | st.integers(1, 10**8),
        configurations=st.lists(patterns(), min_size=1, max_size=5, unique=True).map(tuple),
    ),
    st.text(),
)
def test_written_campaigns_are_read_back(campaign: Campaign, comment: str) -> None:
    comments = dict.fromkeys(campaign.configurations, comment)
    assert parsed(to_toml(campaign, comments)) == campaign
    assert parsed(to_toml(campaign)) == campaign


FILES = """
[[files]]
files_per_process = [100, 200]
bytes_per_file = ["0", "8k"]
nodes = 4
"""


def test_a_table_of_files_is_every_combination_for_mdtest() -> None:
    campaign = parsed(HEAD + FILES, processes_per_node=3)
    assert campaign.configurations == ()
    assert campaign.files == tuple(
        MdtestConfig(count, size, own_directory=True, tasks=12, nodes=4)
        for count in (100, 200)
        for size in (0, 8192)
    )


def test_written_tables_of_files_are_read_back() -> None:
    campaign = parsed(HEAD + CONFIGURATION + FILES + "own_directory = [false, true]\n")
    assert len(campaign.files) == 8
    assert parsed(to_toml(campaign), nodes=1, processes_per_node=1) == campaign


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("files_per_process = 0", "files_per_process"),
        ("bytes_per_file = 1", "files_per_process"),
        ("files_per_process = 9\nprocesses = 2\nnodes = 3", "3 nodes are more than 2 processes"),
        (
            "files_per_process = 9\nprocesses = 2\nprocesses_per_node = 2",
            "this table has both of the keys `processes` and `processes_per_node`",
        ),
        ("files_per_process = 9\n[[files]]\nfiles_per_process = 9", "is in the campaign already"),
        (
            'files_per_process = 9\nbytes_per_file = "9223372036854775807"',
            "all files together would have more than",
        ),
    ],
    ids=["no file", "no number", "nodes", "processes", "twice", "bytes"],
)
def test_a_wrong_table_of_files_is_one_error_with_its_line(table: str, message: str) -> None:
    text = error_of(f"{HEAD}[[files]]\n{table}\n")
    assert message in text
    assert text.startswith("c.toml:")


def test_comments_stand_above_their_configurations() -> None:
    campaign = parsed(HEAD + CONFIGURATION)
    text = to_toml(campaign, {campaign.configurations[0]: "3 applications\nneed it"})
    assert "# 3 applications\n# need it\n[[configuration]]\ncommand = " in text


@pytest.mark.parametrize("name", ["forge", "forwarding", "laptop", "rr9366"])
def test_a_bundled_campaign_is_read_by_name_and_begins_with_a_comment(name: str) -> None:
    assert bundled_campaigns()[name]
    assert campaign_text(name).startswith("# ")
    campaign = read_campaign(name, nodes=64, processes_per_node=8)
    assert campaign.name == name
    assert parsed(to_toml(campaign)) == campaign


@pytest.mark.parametrize("processes", [1, 2, 3, 4, 8, 16])
def test_the_laptop_campaign_is_small_posix_patterns_on_one_node(processes: int) -> None:
    campaign = read_campaign("laptop", nodes=1, processes_per_node=processes)
    assert campaign.repetitions == 3
    assert len(campaign.configurations) == 6
    for config in campaign.configurations:
        assert (config.api, config.nodes, config.tasks) == ("POSIX", 1, processes)
        assert 32 * MIB <= processes * config.bytes_per_process <= 264 * MIB
        # Without fsync and O_DIRECT the page cache would be measured.
        assert config.fsync == "end" if config.write else config.odirect


def test_the_forwarding_campaign_has_six_patterns() -> None:
    campaign = read_campaign("forwarding", nodes=8, processes_per_node=2)
    shape = "-a POSIX -w -F -e -b 4m -t 1m", "-a POSIX -w -e -b 2m -t 1m"
    strided = "-a POSIX -w -e -b 128k -t 128k -s 16", "-a POSIX -w -e -b 8k -t 8k -s 64"
    reads = "-a POSIX -r -F -b 4m -t 1m", "-a POSIX -r -b 8k -t 8k -s 128"
    assert [config.command_line(launcher=True) for config in campaign.configurations] == [
        f"mpiexec -n 16 ior {options}" for options in (*shape, *strided, *reads)
    ]
    assert {config.nodes for config in campaign.configurations} == {8}


def test_the_reports_campaign_is_the_phases_of_its_tables() -> None:
    campaign = read_campaign("rr9366", nodes=1, processes_per_node=1)
    # Bytes, requests, processes, nodes: Tables 2 and 5 of RR-9366; HACC-IO's from its Table 8.
    expected = [
        ("shared", "contiguous", 17179869184, 8192, 128, 16),
        ("unique", "contiguous", 34359738368, 8192, 512, 64),
        ("shared", "1d-strided", 3221225472, 6144, 24, 24),
        ("unique", "contiguous", 3221225472, 786432, 24, 24),
        ("unique", "contiguous", 64 * 30 * MIB, 640, 64, 8),
        ("unique", "contiguous", 64 * 24 * MIB, 64, 64, 8),
    ]
    assert [
        (
            config.file_access,
            config.layout,
            config.bytes_per_process * (config.tasks or 0),
            config.requests_per_process * (config.tasks or 0),
            config.tasks,
            config.nodes,
        )
        for config in campaign.configurations
    ] == expected
    assert campaign.repetitions == 5
    assert {config.operation for config in campaign.configurations} == {"write"}


def test_forges_campaign_is_its_189_patterns() -> None:
    found = read_campaign("forge", nodes=1, processes_per_node=1).configurations
    assert len(found) == 189


def test_every_measured_pattern_of_forge_is_in_its_campaign(shared_data: Path) -> None:
    found = read_campaign("forge", nodes=1, processes_per_node=1).configurations
    measured = set()
    for name in ("marenostrum-4.csv", "marenostrum-4-gpfs.csv"):
        path = shared_data / "forge" / name
        _, rows = read_measurements(ResultFile(name, path.read_text(encoding="utf-8")))
        measured |= {row.config for row in rows}
    assert len(measured) == 149
    assert measured <= set(found)


def test_forges_grid_varies_what_its_rows_vary(shared_data: Path) -> None:
    found = read_campaign("forge", nodes=1, processes_per_node=1).configurations
    with (shared_data / "forge/marenostrum-4.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter=";"))
    assert {(c.tasks, c.nodes) for c in found} == {
        (int(row["processes"]), int(row["clients"])) for row in rows
    }
    assert {c.transfer_size for c in found} == {int(row["request"]) << 10 for row in rows}


def documented(page: str) -> list[str]:
    text = (PROJECT / "docs" / page).read_text(encoding="utf-8")
    return re.findall(r"```toml\n(.*?)```", text, re.DOTALL)


def test_the_documented_campaign_can_be_read() -> None:
    (example,) = documented("campaigns.md")
    campaign = parsed(example)
    assert len(campaign.configurations) == 9
    assert campaign.spread_s == 12 * 3600


@pytest.mark.parametrize("key", re.findall(r"^([a-z_]+) =", GRID + HEAD, re.MULTILINE))
def test_the_documentation_names_every_needed_key(key: str) -> None:
    assert f"`{key}`" in (PROJECT / "docs/campaigns.md").read_text(encoding="utf-8")


def test_the_documentation_names_every_bundled_campaign() -> None:
    page = (PROJECT / "docs/campaigns.md").read_text(encoding="utf-8")
    assert all(f"| `{name}` |" in page for name in bundled_campaigns())


def test_the_bytes_of_applications_stay_with_their_configuration() -> None:
    table = CONFIGURATION.rstrip() + "\napplication_bytes = 3000000000\n"
    campaign = parsed(HEAD + GRID + table)
    [moved] = campaign.application_bytes.items()
    assert moved == (campaign.configurations[-1], 3_000_000_000)
    assert parsed(to_toml(campaign)).application_bytes == campaign.application_bytes


def test_applications_that_move_no_bytes_are_an_error() -> None:
    said = error_of(HEAD + CONFIGURATION.rstrip() + "\napplication_bytes = 0\n")
    assert said.startswith("c.toml:")
    assert "application_bytes" in said
