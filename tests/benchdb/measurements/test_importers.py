from __future__ import annotations

import csv
import io
import random
import re
import statistics
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from benchdb.measurements.curves import curves
from benchdb.measurements.exports import EXPORT_COLUMNS
from benchdb.measurements.importers import ImportOptions, ResultFile, read_measurements
from benchdb.measurements.storing import Measurement, store
from benchdb.store.database import transaction
from ioncast_base.errors import InputError
from ior_configs import IorConfig

IOR_OUTPUTS = Path(__file__).parents[2] / "ior_configs" / "fixtures"
KIB, MIB = 1 << 10, 1 << 20

IOR_CSV = (
    "access,bw(MiB/s),IOPS,Latency,block(KiB),xfer(KiB),open(s),wr/rd(s),close(s),total(s),numTasks,iter\n"
    "write,662.5639,662.7435,0.0054,16384.0000,1024.0000,0.0047,0.3863,0.3714,0.3864,16,0\n"
)
RANK_CSV = (
    "access,rank,runtime-with-openclose,runtime,throughput-withopenclose,throughput\n"
    "write,0,1.0000000000e+00,1.0000000000e+00,1.6777216000e+07,1.6777216000e+07\n"
    "write,1,2.0000000000e+00,1.0000000000e+00,8.3886080000e+06,1.6777216000e+07\n"
)
FORGE_COLUMNS = (
    "forwarders;clients;processes;layout;spatiality;odirect;stonewall;request;total;operation;"
    "time;transfered;bandwidth"
)
OURS = "io_nodes,bandwidth_mib_s,command\n4,66.6,ior -a POSIX -w -F -b 4m -t 1m\n"
OURS_WITH_CONFIGURATION = (
    "system,api,operation,file_per_process,transfer_size,block_size,segments,tasks,nodes,odirect,"
    "io_nodes,repetition,bandwidth_mib_s,bytes,time_s,engine,used,note\n"
    "there,POSIX,read,0,65536,65536,32,16,8,1,2,0,19.75,33554432,1.62,forge,0,odd\n"
)


def forge(*rows: dict[str, object], population: bool = False) -> str:
    usual = {
        "forwarders": 2,
        "clients": 8,
        "processes": 96,
        "layout": 1,
        "spatiality": 0,
        "odirect": 1,
        "stonewall": 60,
        "request": 512,
        "total": 9216,
        "operation": "write",
        "time": 61.5,
        "transfered": 4096.5,
        "bandwidth": 66.609756,
    }
    lines = [";".join(str(value) for value in (usual | row).values()) for row in rows]
    header = FORGE_COLUMNS + (";population" if population else "")
    return "\n".join([header, *lines, ""])


def read(text: str, **told: object) -> list[Measurement]:
    return read_measurements(ResultFile("file", text), ImportOptions(**told))[1]  # type: ignore[arg-type]


def refusal(text: str, **told: object) -> str:
    with pytest.raises(InputError) as caught:
        read(text, **told)
    line = str(caught.value)
    assert "\n" not in line
    return line


@pytest.mark.parametrize(
    ("text", "name", "told"),
    [
        ((IOR_OUTPUTS / "wr-shared.json").read_text(), "ior", {"io_nodes": 1}),
        ((IOR_OUTPUTS / "wr-shared.txt").read_text(), "ior", {"io_nodes": 1}),
        ((IOR_OUTPUTS / "wr-shared-dxt.txt").read_text(), "ior", {"io_nodes": 1}),
        (IOR_CSV, "ior", {"io_nodes": 1, "command": "ior -w -b 16m -t 1m"}),
        (RANK_CSV, "ior", {"io_nodes": 1, "command": "ior -w -b 16m -t 1m"}),
        (forge({}), "forge-csv", {}),
        (forge({"x": "A"}, population=True), "forge-csv", {}),
        (OURS, "ioncast-csv", {}),
        (OURS_WITH_CONFIGURATION, "ioncast-csv", {}),
        (",".join(EXPORT_COLUMNS) + OURS_WITH_CONFIGURATION[:0], None, {}),
    ],
    ids=[
        "ior json",
        "ior text",
        "ior verbose text",
        "ior csv",
        "ior csv of ranks",
        "forge",
        "forge with populations",
        "own csv with commands",
        "own csv with configurations",
        "own csv with its header only",
    ],
)
def test_the_format_is_recognised_by_the_content(
    text: str, name: str | None, told: dict[str, object]
) -> None:
    if name is None:
        refusal(text)
        return
    found, rows = read_measurements(ResultFile("no-suffix", text), ImportOptions(**told))  # type: ignore[arg-type]
    assert found == name
    assert rows


def test_an_output_of_ior_gives_a_measurement_for_each_operation() -> None:
    rows = read((IOR_OUTPUTS / "wr-shared.json").read_text(), io_nodes=4, nodes=8)
    assert [(r.config.operation, r.io_nodes, r.bandwidth_mib_s, r.bytes) for r in rows] == [
        ("write", 4, 662.5639, 256 * MIB),
        ("read", 4, 9784.4161, 256 * MIB),
    ]
    assert {r.config.nodes for r in rows} == {8}
    assert {(r.engine, r.engine_version, r.used) for r in rows} == {("ior", "4.0.0", True)}
    assert all(r.config == r.config.pattern() for r in rows)
    assert rows[0].command is not None
    assert "-b 16m -t 1m" in rows[0].command


def test_every_repetition_in_an_output_of_ior_is_a_measurement() -> None:
    rows = read((IOR_OUTPUTS / "periodic-a.json").read_text(), io_nodes=0)
    assert len(rows) == 8
    assert len({row.config for row in rows}) == 1


def test_ior_csv_gets_its_configuration_from_the_command() -> None:
    [row] = read(IOR_CSV, io_nodes=2, nodes=8, command="ior -w -b 16m -t 1m")
    assert row.config == IorConfig(
        write=True, block_size=16 * MIB, transfer_size=MIB, tasks=16, nodes=8
    )
    assert row.bandwidth_mib_s == 662.5639


@pytest.mark.parametrize(
    "text",
    [(IOR_OUTPUTS / "wr-shared.json").read_text(), (IOR_OUTPUTS / "wr-shared.txt").read_text()],
)
def test_an_output_of_ior_needs_the_number_of_io_nodes(text: str) -> None:
    assert "--io-nodes" in refusal(text)


@pytest.mark.parametrize("text", [OURS, OURS_WITH_CONFIGURATION, forge({})])
@pytest.mark.parametrize("io_nodes", [0, 4])
def test_io_nodes_in_a_file_override_the_option(text: str, io_nodes: int) -> None:
    assert read(text, io_nodes=io_nodes) == read(text)


def test_own_rows_by_command() -> None:
    [row] = read(OURS, tasks=16, nodes=8)
    assert row == Measurement(
        IorConfig(
            write=True,
            file_per_process=True,
            block_size=4 * MIB,
            transfer_size=MIB,
            tasks=16,
            nodes=8,
        ),
        4,
        66.6,
        command="ior -a POSIX -w -F -b 4m -t 1m",
    )


@pytest.mark.parametrize("launch", ["xrun -a 8 ", "mpirun ", ""])
def test_commands_with_unknown_numbers_of_processes_are_not_pooled(launch: str) -> None:
    header, first = "io_nodes,bandwidth_mib_s,command\n", "4,66.6,xrun -a 4 ior -w\n"
    second = f"4,9.5,{launch}ior -w\n"
    assert "unknown numbers of processes" in refusal(header + first + second)
    assert len(read(header + first + second, tasks=8)) == 2
    assert len(read(header + first + first)) == 2


def test_warnings_are_said_and_stand_in_the_notes() -> None:
    said: list[str] = []
    [row] = read(
        (IOR_OUTPUTS / "zero-bandwidth-write.txt").read_text(), io_nodes=0, warn=said.append
    )
    assert (row.config.operation, row.bandwidth_mib_s) == ("read", 9000.0)
    assert "page cache" in said[0]
    assert said[1:] == [
        "left out write of repetition 0: its bandwidth is 0.000000",
    ]
    assert row.note == "; ".join(said)


LIVE_FSYNC = [("fsync-each", "each"), ("fsync-end", "end"), ("fsync-none", "none")]


@pytest.mark.parametrize(("name", "fsync"), LIVE_FSYNC)
def test_the_command_in_an_output_says_when_ior_called_fsync(
    name: str, fsync: str, shared_data: Path
) -> None:
    [row] = read((shared_data / "live" / f"{name}.txt").read_text(), io_nodes=0)
    assert row.config.fsync == fsync


def test_runs_with_and_without_an_fsync_after_each_write_are_two_cells(
    shared_data: Path, database: Engine
) -> None:
    text = (shared_data / "live" / "fsync-each.txt").read_text()
    for name, content in (("with", text), ("without", text.replace(" -Y ", " "))):
        with transaction(database, write=True) as connection:
            store(
                connection,
                system="live",
                file=name,
                content=content.encode(),
                file_format="ior",
                rows=read(content, io_nodes=0),
            )
    with transaction(database) as connection:
        found = {c.config.fsync: c.bandwidths_mib_s for c in curves(connection, "live")}
    assert found == {"each": {0: (95.23,)}, "none": {0: (95.23,)}}


def own(columns: dict[str, str]) -> str:
    """A file with the configuration in columns, and more columns."""
    header, row = OURS_WITH_CONFIGURATION.replace("read", "write").splitlines()
    more = [",".join(["", *cells]) for cells in (columns, columns.values())]
    return f"{header}{more[0]}\n{row}{more[1]}\n"


RUN = "mpiexec -n 16 ior -w -b 64k -t 64k -s 32"


@pytest.mark.parametrize(
    ("columns", "fsync", "conditions"),
    [
        # Exports.
        ({"fsync": "end", "conditions": ""}, "end", ()),
        ({"fsync": "each", "conditions": "-M 75% -l random"}, "each", ("-M 75%", "-l random")),
        ({"fsync": "", "conditions": "", "command": f"{RUN} -e"}, None, ()),
        # Tables of one's own.
        ({}, None, ()),
        ({"fsync": "each"}, "each", ()),
    ],
)
def test_fsync_and_conditions_come_from_columns(
    columns: dict[str, str], fsync: str | None, conditions: tuple[str, ...]
) -> None:
    [row] = read(own(columns))
    assert (row.config.fsync, row.config.conditions) == (fsync, conditions)


@pytest.mark.parametrize(
    ("cell", "fsync"), [("", "end"), ("none", "none"), ("each", "each"), ("unknown", None)]
)
def test_a_column_beside_the_command_may_say_when_fsync_was_called(
    cell: str, fsync: str | None
) -> None:
    [row] = read(f"io_nodes,bandwidth_mib_s,command,fsync\n4,66.6,ior -w -e,{cell}\n")
    assert row.config.fsync == fsync


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"fsync": "maybe", "conditions": ""}, "'maybe' is not none, end or each"),
        ({"fsync": "1"}, "'1' is not none, end or each"),
        ({"fsync": "none", "conditions": "-w"}, "'-w' is not a condition"),
        ({"fsync": "none", "conditions": "-M '75%"}, "cannot be split"),
    ],
)
def test_an_unknown_fsync_or_condition_is_an_error(columns: dict[str, str], said: str) -> None:
    assert said in refusal(own(columns))


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("-f script", "IOR read options from a script (-f)"),
        ("--dryRun", "with --dryRun IOR does no I/O"),
        (f"-a MPIIO -U {'h' * 300}", "are too long for the database"),
    ],
)
def test_a_run_whose_conditions_cannot_be_stored_is_not_used(option: str, reason: str) -> None:
    [row] = read(f"io_nodes,bandwidth_mib_s,command,note\n4,66.6,ior -w {option},odd\n")
    assert not row.used
    assert row.note is not None
    assert reason in row.note
    assert row.note.endswith("; odd")
    assert row.config.conditions == ()


def test_forge_never_calls_fsync() -> None:
    [row] = read(forge({}))
    assert row.config.fsync == "none"


def test_own_rows_by_configuration() -> None:
    [row] = read(OURS_WITH_CONFIGURATION)
    assert row == Measurement(
        IorConfig(
            read=True,
            transfer_size=64 * KIB,
            block_size=64 * KIB,
            segments=32,
            tasks=16,
            nodes=8,
            odirect=True,
            fsync=None,
        ),
        2,
        19.75,
        bytes=32 * MIB,
        time_s=1.62,
        engine="forge",
        used=False,
        note="odd",
    )


def test_a_column_says_which_operation_of_a_command_was_measured() -> None:
    rows = read(
        "io_nodes,operation,bandwidth_mib_s,command\n0,write,1,ior -w -r\n0,read,2,ior -w -r\n"
    )
    assert [(row.config.operation, row.bandwidth_mib_s) for row in rows] == [
        ("write", 1.0),
        ("read", 2.0),
    ]


def test_columns_of_tasks_and_nodes_override_the_command() -> None:
    [row] = read("io_nodes,tasks,nodes,bandwidth_mib_s,command\n0,16,8,1,mpiexec -n 4 ior -w\n")
    assert (row.config.tasks, row.config.nodes) == (16, 8)


@pytest.mark.parametrize(
    ("layout", "spatiality", "request_kib", "file_access", "spatial", "block", "segments"),
    [
        (0, 0, 4096, "unique", "contiguous", 96 * MIB, 1),
        (1, 0, 4096, "shared", "contiguous", 96 * MIB, 1),
        (1, 1, 512, "shared", "1d-strided", 512 * KIB, 192),
        (1, 1, 32, "shared", "1d-strided", 32 * KIB, 3072),
    ],
)
def test_forge_columns_in_iors_terms(
    layout: int,
    spatiality: int,
    request_kib: int,
    file_access: str,
    spatial: str,
    block: int,
    segments: int,
) -> None:
    # 9216 MiB for 96 processes are 96 MiB for each.
    row = {"layout": layout, "spatiality": spatiality, "request": request_kib}
    [found] = read(forge(row))
    config = found.config
    assert (config.file_access, config.layout) == (file_access, spatial)
    assert (config.transfer_size, config.block_size, config.segments) == (
        request_kib * KIB,
        block,
        segments,
    )
    assert (config.tasks, config.nodes, config.odirect, config.api) == (96, 8, True, "POSIX")
    assert (config.operation, config.collective, config.random_offsets) == ("write", False, 0)


def test_forge_measurements() -> None:
    rows = read(forge({"forwarders": 0}, {"forwarders": 8, "bandwidth": 7.5}))
    assert [(r.io_nodes, r.bandwidth_mib_s, r.bytes, r.time_s) for r in rows] == [
        (0, 66.609756, 4096 * MIB + MIB // 2, 61.5),
        (8, 7.5, 4096 * MIB + MIB // 2, 61.5),
    ]
    assert {row.engine for row in rows} == {"forge"}


def test_rows_of_another_population_are_stored_but_not_used() -> None:
    rows = read(forge({"x": "A"}, {"x": "B"}, population=True))
    assert [row.used for row in rows] == [True, False]
    assert rows[0].note is None
    assert "B" in (rows[1].note or "")


def rows_of(path: Path, delimiter: str = ";") -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file, delimiter=delimiter))


@pytest.mark.parametrize(
    ("direct", "forwarded", "patterns"),
    [
        ("marenostrum-4-gpfs.csv", "marenostrum-4.csv", 149),
        ("santos-dumont-lustre.csv", "santos-dumont.csv", 20),
    ],
)
def test_published_measurements_are_read_completely(
    shared_data: Path, direct: str, forwarded: str, patterns: int
) -> None:
    configs = {}
    for name, io_nodes in ((direct, {0}), (forwarded, {1, 2, 4, 8})):
        path = shared_data / "forge" / name
        lines = rows_of(path)
        rows = read(path.read_text())
        assert len(rows) == len(lines)
        assert {row.io_nodes for row in rows} == io_nodes
        assert [row.bandwidth_mib_s for row in rows] == [float(li["bandwidth"]) for li in lines]
        assert [row.used for row in rows] == [li.get("population", "A") == "A" for li in lines]
        moved = [(row.bytes or 0) / MIB / (row.time_s or 1) for row in rows]
        assert moved == pytest.approx([row.bandwidth_mib_s for row in rows], rel=1e-4)
        configs[name] = {row.config for row in rows}
        keys = ("processes", "clients", "layout", "spatiality", "request")
        assert len({tuple(li[key] for key in keys) for li in lines}) == patterns
        assert len(configs[name]) == patterns
    assert configs[direct] == configs[forwarded]


def test_the_second_population_is_in_the_direct_accesses_only(shared_data: Path) -> None:
    unused = {
        path.name: sum(not row.used for row in read(path.read_text()))
        for path in (shared_data / "forge").glob("*.csv")
    }
    marked = sum(
        row["population"] == "B" for row in rows_of(shared_data / "forge/marenostrum-4-gpfs.csv")
    )
    assert marked > 0
    assert {name for name, count in unused.items() if count} == {"marenostrum-4-gpfs.csv"}
    assert unused["marenostrum-4-gpfs.csv"] == marked


def table_of_means(readme: str) -> dict[tuple[str, int], tuple[str, int]]:
    """The README's table of benchmarks: mean and number of runs by pattern and I/O nodes."""
    benchmarks = readme.partition("Applications:")[0]
    columns = (0, 1, 2, 4, 8)
    found = {}
    for line in benchmarks.splitlines():
        name, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        matches = [re.fullmatch(r"([\d.]+) \(\d+ %, (\d+)\)", cell) for cell in cells]
        if matches and all(matches):
            for io_nodes, match in zip(columns, matches, strict=True):
                assert match is not None
                found[name, io_nodes] = (match[1], int(match[2]))
    return found


def test_the_testbeds_benchmarks_have_the_means_of_its_readme(shared_data: Path) -> None:
    testbed = shared_data / "testbed"
    path = testbed / "benchmarks.csv"
    lines = rows_of(path, ",")
    rows = read(path.read_text(), tasks=16, nodes=8)
    assert len(rows) == len(lines) == 440
    cells: dict[tuple[IorConfig, int], list[float]] = defaultdict(list)
    names: dict[IorConfig, str] = {}
    for line, row in zip(lines, rows, strict=True):
        assert names.setdefault(row.config, line["name"]) == line["name"]
        cells[row.config, row.io_nodes].append(row.bandwidth_mib_s)
    assert {(config.tasks, config.nodes) for config in names} == {(16, 8)}
    means = {
        (names[config], n): (f"{statistics.fmean(values):.1f}", len(values))
        for (config, n), values in cells.items()
    }
    table = table_of_means((testbed / "README.md").read_text())
    assert len(table) == 15 * 5
    assert means == table


def test_the_csv_of_the_testbed_agrees_with_the_outputs_of_ior(shared_data: Path) -> None:
    testbed = shared_data / "testbed"
    path = testbed / "benchmarks.csv"
    from_csv = read(path.read_text(), tasks=16, nodes=8)
    for line, row in zip(rows_of(path, ","), from_csv, strict=True):
        name = f"{line['name']}.n{line['io_nodes']}.r{line['repetition']}.json"
        text = (testbed / "ior_json" / name).read_text()
        [own] = read(text, io_nodes=int(line["io_nodes"]), nodes=8)
        assert (own.config, own.io_nodes) == (row.config, row.io_nodes), name
        assert own.bandwidth_mib_s == row.bandwidth_mib_s, name
        assert own.bytes == row.bytes, name


def test_real_outputs_of_other_sites_are_measurements_or_one_clear_error(
    shared_data: Path,
) -> None:
    usable = 0
    for path in sorted((shared_data / "ior-outputs").glob("*.txt")):
        try:
            rows = read(path.read_text(errors="replace"), io_nodes=0)
        except InputError as error:
            assert "\n" not in str(error)
            continue
        usable += 1
        assert all(row.bandwidth_mib_s > 0 for row in rows)
    assert usable > 0


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "-inf", "", "x", "1,5", "1e400"])
def test_a_bandwidth_must_be_a_positive_number(value: str) -> None:
    assert "file:2" in refusal(f'io_nodes,bandwidth_mib_s,command\n0,"{value}",ior -w\n')
    assert "file:2" in refusal(forge({"bandwidth": value}))


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("forwarders", "-1"),
        ("forwarders", "1.5"),
        ("forwarders", ""),
        ("forwarders", str(2**63)),
        ("clients", "0"),
        ("clients", "97"),
        ("processes", "0"),
        ("processes", "-4"),
        ("layout", "2"),
        ("spatiality", "yes"),
        ("odirect", ""),
        ("request", "0"),
        ("request", "-1"),
        ("request", str(2**60)),
        ("total", "-1"),
        ("total", "x"),
        ("operation", "append"),
        ("time", "x"),
        ("time", "nan"),
        ("time", "inf"),
        ("time", "-1"),
        ("transfered", "inf"),
        ("transfered", "nan"),
        ("transfered", "-1"),
        ("transfered", "1e300"),
    ],
)
def test_an_invalid_line_of_forge_is_named(column: str, value: str) -> None:
    assert "file:3:" in refusal(forge({}, {column: value}))


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("io_nodes", "-1"),
        ("io_nodes", "many"),
        ("io_nodes", str(2**63)),
        ("api", ""),
        ("operation", "write+read"),
        ("operation", ""),
        ("file_per_process", "maybe"),
        ("transfer_size", "0"),
        ("transfer_size", "64k"),
        ("transfer_size", "12"),
        ("block_size", "65537"),
        ("segments", "-1"),
        ("tasks", "0"),
        ("nodes", "17"),
        ("bytes", "-1"),
        ("bytes", str(2**63)),
        ("bytes", "1.5"),
        ("time_s", "nan"),
        ("time_s", "inf"),
        ("time_s", "-1"),
        ("used", "2"),
    ],
)
def test_an_invalid_line_of_own_csv_is_named(column: str, value: str) -> None:
    header, line = OURS_WITH_CONFIGURATION.splitlines()
    row = dict(zip(header.split(","), line.split(","), strict=True)) | {column: value}
    text = "\n".join([header, line, ",".join(row.values()), ""])
    assert "file:3:" in refusal(text)


@pytest.mark.parametrize(
    "command", ["", "ls -l", "ior -b 1m -t 3m", "ior -q 'x", "ior --nonsense", "mpiexec -n 4"]
)
def test_a_line_whose_command_is_not_ior_is_named(command: str) -> None:
    text = io.StringIO()
    csv.writer(text).writerows([["io_nodes", "bandwidth_mib_s", "command"], ["0", "1", command]])
    assert "file:2" in refusal(text.getvalue())


@pytest.mark.parametrize("cut", ["4", "4,66.6", "4,66.6,"])
def test_a_line_that_is_cut_off_is_named_and_standard_input_is_not_read(
    cut: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("ior -w -b 1g -t 1m\n"))
    assert "file:3" in refusal(OURS + cut)


def test_a_line_with_more_cells_than_columns_is_named() -> None:
    text = "io_nodes,command,bandwidth_mib_s\n0,ior -w,12,5\n"
    assert "file:2" in refusal(text)
    assert "file:2" in refusal(forge({"more": "1"}))


def test_an_open_quote_is_an_error_and_hides_no_lines() -> None:
    header, line = OURS_WITH_CONFIGURATION.splitlines()
    cut_off = line.replace(",odd", ',"odd')
    refusal("\n".join([header, cut_off, line, line, ""]))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "   \n\n",
        "\x00\x01\x02\ufffd\ufffd" * 500,
        "io_nodes,bandwidth_mib_s,command\n",
        "io_nodes,bandwidth_mib_s,command",
        "io_nodes,bandwidth_mib_s\n0,1\n",
        "bandwidth_mib_s,command\n1,ior -w\n",
        "io_nodes;bandwidth_mib_s;command\n0;1;ior -w\n",
        FORGE_COLUMNS + "\n",
        FORGE_COLUMNS,
        FORGE_COLUMNS.replace(";transfered", ""),
        FORGE_COLUMNS.replace(";transfered", "") + "\n" + "1;" * 11 + "1\n",
        IOR_CSV.splitlines()[0],
        RANK_CSV.splitlines()[0],
        '{"Version": "4.0.0",',
        "{}",
        "[]",
        "null",
        "io_nodes,bandwidth_mib_s,command\r0,1,ior -w\r",
        forge({}).replace("\n", "\r"),
        "io_nodes,bandwidth_mib_s,command\n0,1," + "x" * 200_000 + "\n",
        "io_nodes,bandwidth_mib_s,command\n0,1,ior\x00 -w\n",
        "io_nodes,bandwidth_mib_s,command\n" + "9" * 5000 + ",1,ior -w\n",
    ],
    ids=lambda text: repr(text[:40]),
)
def test_a_text_that_cannot_be_used_is_one_clear_error(text: str) -> None:
    for told in ({}, {"io_nodes": 1, "command": "ior -w -b 16m -t 1m"}):
        assert refusal(text, **told).startswith("file:")


@pytest.mark.parametrize("text", [OURS, OURS_WITH_CONFIGURATION, forge({}, {"forwarders": 4})])
def test_windows_line_ends_and_blank_lines_do_not_matter(text: str) -> None:
    expected = read(text)
    assert read(text.replace("\n", "\r\n")) == expected
    assert read(text + "\n\n") == expected
    assert read(text.rstrip("\n")) == expected


@pytest.mark.parametrize("name", ["wr-shared.json", "wr-shared.txt"])
def test_windows_line_ends_in_an_output_of_ior_do_not_matter(name: str) -> None:
    text = (IOR_OUTPUTS / name).read_text()
    assert read(text.replace("\n", "\r\n"), io_nodes=1) == read(text, io_nodes=1)


_JUNK = ("", "0", "-", "9" * 20, "nan", "inf", "1e999", ",", ";", "\n", "\r", '"', "'", "\\")
_JUNK += ("\x00", "\ufeff", "\u0663", "x", " ", "=", "%", "{", "}")


def mutate(text: str, seed: int) -> str:
    """Damage a text as files get damaged: with bytes added, removed, repeated or cut off."""
    chance = random.Random(seed)
    for _ in range(chance.randint(1, 4)):
        where = chance.randrange(len(text) + 1)
        until = where + chance.choice([0, 0, 1, 1, 2, 8, 40])
        junk = chance.choice([*_JUNK, text[:where][-30:]])
        text = text[:where] + junk + text[until:]
    return text[: chance.choice([len(text), len(text), chance.randrange(len(text) + 1)])]


_SEEDS = {
    "own csv by command": (OURS * 1 + OURS.splitlines()[1] + "\n", {}),
    "own csv by configuration": (OURS_WITH_CONFIGURATION, {}),
    "forge": (forge({}, {"forwarders": 4}), {}),
    "forge with populations": (forge({"x": "A"}, {"x": "B"}, population=True), {}),
    "ior csv": (IOR_CSV, {"io_nodes": 1, "command": "ior -w -b 16m -t 1m"}),
    "ior csv of ranks": (RANK_CSV, {"io_nodes": 1, "command": "ior -w -b 16m -t 1m"}),
    "ior json": ((IOR_OUTPUTS / "wr-shared.json").read_text(), {"io_nodes": 1}),
    "ior text": ((IOR_OUTPUTS / "wr-shared.txt").read_text(), {"io_nodes": 1}),
}


@pytest.mark.parametrize("kind", _SEEDS)
@given(seed=st.integers(0, 2**32))
@settings(deadline=None)
def test_damaged_files_are_measurements_or_one_clear_error(kind: str, seed: int) -> None:
    text, told = _SEEDS[kind]
    check(mutate(text, seed), told)


@given(text=st.text(max_size=300))
@settings(deadline=None)
@example("io_nodes,bandwidth_mib_s,command\n0,1,\n")
def test_any_text_is_measurements_or_one_clear_error(text: str) -> None:
    check(text, {"io_nodes": 1, "command": "ior -w"})
    check(FORGE_COLUMNS + "\n" + text, {})
    check("io_nodes,bandwidth_mib_s,command\n" + text, {})
    check(OURS_WITH_CONFIGURATION.splitlines()[0] + "\n" + text, {})


def check(text: str, told: dict[str, object]) -> None:
    try:
        rows = read(text, **told)
    except InputError as error:
        assert "\n" not in str(error)
        return
    assert rows
    for row in rows:
        assert 0 < row.bandwidth_mib_s < float("inf")
        assert 0 <= row.io_nodes < 2**63
        assert row.config.operation in ("read", "write")
        assert row.bytes is None or 0 <= row.bytes < 2**63
        assert row.time_s is None or 0 <= row.time_s < float("inf")


CONFIG_HEADER, CONFIG_ROW, _ = OURS_WITH_CONFIGURATION.split("\n")


def with_cell(column: str, value: str) -> str:
    names, cells = CONFIG_HEADER.split(","), CONFIG_ROW.split(",")
    cells[names.index(column)] = value
    return f"{CONFIG_HEADER}\n{','.join(cells)}\n"


@pytest.mark.parametrize(
    "column", ["bandwidth_mib_s", "time_s", "io_nodes", "bytes", "tasks", "transfer_size", "used"]
)
@pytest.mark.parametrize("value", ["abc", "9" * 5000 + "x", "9" * 5000])
def test_an_invalid_number_is_named_with_its_column(column: str, value: str) -> None:
    line = refusal(with_cell(column, value))
    assert line.startswith("file:2: ")
    assert len(line) < 200
    assert "limit" not in line
    if value == "abc" or column not in {"bandwidth_mib_s", "time_s"}:
        assert f"{column} is '{value[:40]}', not " in line


def test_zero_segments_are_rejected_and_an_empty_cell_means_one() -> None:
    assert "segments must be positive" in refusal(with_cell("segments", "0"))
    assert read(with_cell("segments", ""))[0].config.segments == 1


@pytest.mark.parametrize(("value", "used"), [("TRUE", True), ("FALSE", False), ("True", True)])
def test_flags_are_read_as_spreadsheets_write_them(value: str, used: bool) -> None:
    assert read(with_cell("used", value))[0].used is used


def test_two_columns_with_one_name_are_rejected() -> None:
    line = refusal("io_nodes,bandwidth_mib_s,command,bandwidth_mib_s\n4,1,ior -w,2\n")
    assert line.startswith("file:1: two columns are named 'bandwidth_mib_s'")


def test_columns_may_have_blanks_around_their_names_or_no_name() -> None:
    [row] = read('io_nodes , "bandwidth_mib_s ",command,,\n4,66.6,ior -w,,\n')
    assert (row.io_nodes, row.bandwidth_mib_s) == (4, 66.6)


def test_a_command_with_invalid_utf_8_is_rejected_with_the_name_of_the_file() -> None:
    line = refusal(IOR_CSV, io_nodes=0, command="ior -w -b 16m -t 1m -o \udcff")
    assert line.startswith("file: command contains ")
