from __future__ import annotations

import csv
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchdb.measurements.curves import Curve
from ior_configs import IorConfig
from predictor.matching.configurations import configuration
from predictor.matching.nearest import distance, match, ratios
from summario.phases.extract import extract_phases
from summario.phases.values import Part, Phase
from summario.reading.log import read_log

KIB, MIB = 1 << 10, 1 << 20
IOR = Path(__file__).parents[2] / "summario" / "fixtures" / "ior"
MakePhase = Callable[..., Phase]
MakeCurve = Callable[..., Curve]


@pytest.mark.parametrize(
    ("parts", "told", "line"),
    [
        ((64, 64 * MIB), {}, "mpiexec -n 16 ior -a POSIX -w -b 4m -t 1m"),
        ((64, 64 * MIB), {"operation": "read"}, "mpiexec -n 16 ior -a POSIX -r -b 4m -t 1m"),
        (
            (64, 64 * MIB),
            {"spatiality": "sequential"},
            "mpiexec -n 16 ior -a POSIX -w -b 1m -t 1m -s 4",
        ),
        ((64, 64 * MIB), {"spatiality": "random"}, "mpiexec -n 16 ior -a POSIX -w -z -b 4m -t 1m"),
        (
            (64, 64 * MIB),
            {"api": "MPIIO", "spatiality": "unknown"},
            "mpiexec -n 16 ior -a MPIIO -w -b 4m -t 1m",
        ),
        (
            (64, 64 * MIB),
            {"api": "MPIIO", "spatiality": "unknown", "order": "sequential"},
            "mpiexec -n 16 ior -a MPIIO -w -b 1m -t 1m -s 4",
        ),
        (
            (64, 64 * MIB),
            {"api": "MPIIO", "spatiality": "unknown", "order": "random"},
            "mpiexec -n 16 ior -a MPIIO -w -z -b 4m -t 1m",
        ),
        # Without a known order, as if it were contiguous.
        (
            (64, 64 * MIB),
            {"api": "MPIIO", "spatiality": "unknown", "order": None},
            "mpiexec -n 16 ior -a MPIIO -w -b 4m -t 1m",
        ),
        # Each process has a block, or the processes' requests interleave.
        (
            (64, 64 * MIB),
            {"api": "MPIIO", "spatiality": "collective"},
            "mpiexec -n 16 ior -a MPIIO -w -c -b 4m -t 1m",
        ),
        (
            (64, 64 * MIB),
            {"api": "MPIIO", "spatiality": "collective", "order": "sequential"},
            "mpiexec -n 16 ior -a MPIIO -w -c -b 1m -t 1m -s 4",
        ),
        # fsync at the end, and after each write.
        ((64, 64 * MIB), {"fsync": "end"}, "mpiexec -n 16 ior -a POSIX -w -e -b 4m -t 1m"),
        ((64, 64 * MIB), {"fsync": "each"}, "mpiexec -n 16 ior -a POSIX -w -Y -b 4m -t 1m"),
        (
            (64, 64 * MIB),
            {"fsync": None, "operation": "read"},
            "mpiexec -n 16 ior -a POSIX -r -b 4m -t 1m",
        ),
        # One process for each file.
        ((64, 64 * MIB), {"file_access": "unique"}, "mpiexec -n 16 ior -a POSIX -w -F -b 4m -t 1m"),
        (
            (64, 64 * MIB),
            {"file_access": "unique", "n_files": 4},
            "mpiexec -n 4 ior -a POSIX -w -F -b 16m -t 1m",
        ),
        # With more files than processes, each process has several files, one after the other.
        (
            (64, 64 * MIB),
            {"file_access": "unique", "n_files": 64},
            "mpiexec -n 16 ior -a POSIX -w -F -m -i 4 -b 1m -t 1m",
        ),
        ((192, 192 * MIB), {"n_files": 3}, "mpiexec -n 16 ior -a POSIX -w -m -i 3 -b 4m -t 1m"),
        # Blocks of several requests.
        (
            (336, 336 * MIB),
            {"spatiality": "sequential", "block_requests": 3.0},
            "mpiexec -n 16 ior -a POSIX -w -b 3m -t 1m -s 7",
        ),
        (
            (512, 512 * MIB),
            {"block_requests": 8.0},
            "mpiexec -n 16 ior -a POSIX -w -b 8m -t 1m -s 4",
        ),
        # Two orders, or blocks in random order: the spatiality tells which benchmarks may stand in.
        (
            (64, 64 * MIB),
            {"spatiality": "random", "block_requests": 4.0},
            "mpiexec -n 16 ior -a POSIX -w -z -b 4m -t 1m",
        ),
        # The processes that use the file, not those of the job.
        (
            (64, 64 * MIB),
            {"mode_processes": 8, "nprocs": 24, "processes": 8},
            "mpiexec -n 8 ior -a POSIX -w -b 8m -t 1m",
        ),
        # IOR has no stdio engine.
        (
            (64, 64 * MIB),
            {"api": "STDIO", "file_access": "unique"},
            "mpiexec -n 16 ior -a POSIX -w -F -b 4m -t 1m",
        ),
        # A size is the nearest multiple of 8 bytes.
        ((1600, 1600 * 47008), {}, "mpiexec -n 16 ior -a POSIX -w -b 4700800 -t 47008"),
        ((16, 16 * 1001), {}, "mpiexec -n 16 ior -a POSIX -w -b 1000 -t 1000"),
        ((16, 16 * 1007), {}, "mpiexec -n 16 ior -a POSIX -w -b 1008 -t 1008"),
        ((16, 16 * 3), {}, "mpiexec -n 16 ior -a POSIX -w -b 8 -t 8"),
        # A block is the nearest number of whole transfers, at least one.
        ((56, 56 * MIB), {}, "mpiexec -n 16 ior -a POSIX -w -b 4m -t 1m"),
        ((52, 52 * MIB), {}, "mpiexec -n 16 ior -a POSIX -w -b 3m -t 1m"),
        ((1, 24 * MIB), {}, "mpiexec -n 16 ior -a POSIX -w -b 24m -t 24m"),
        (
            (1, 24 * MIB),
            {"spatiality": "sequential"},
            "mpiexec -n 16 ior -a POSIX -w -b 24m -t 24m",
        ),
        # Shuffled runs have at least two transfers.
        ((16, 16 * MIB), {"spatiality": "random"}, "mpiexec -n 16 ior -a POSIX -w -z -b 2m -t 1m"),
    ],
)
def test_a_phase_in_iors_terms(
    a_phase: MakePhase, parts: tuple[int, int], told: dict[str, Any], line: str
) -> None:
    phase = a_phase(parts, **told)
    assert configuration(phase, phase.parts[0]) == IorConfig.from_command_line(line)


@pytest.mark.parametrize(("nodes", "expected"), [(None, None), (1, 1), (8, 8), (16, 16), (99, 16)])
def test_nodes_are_the_jobs_and_no_more_than_the_processes(
    a_phase: MakePhase, nodes: int | None, expected: int | None
) -> None:
    phase = a_phase()
    assert configuration(phase, phase.parts[0], nodes).nodes == expected


def test_each_part_of_a_mixed_phase_is_a_configuration_of_its_own(shared_data: Path) -> None:
    log = read_log(shared_data / "runs" / "logs" / "hacc-posix-fpp-64x100k.darshan")
    [phase] = extract_phases(log)
    found = {configuration(phase, part, 8).command_line(launcher=True) for part in phase.parts}
    # HACC-IO writes a header of 24 MiB, and for each particle seven values of 4 bytes, one of 8
    # and one of 2.
    assert found == {
        "mpiexec -n 64 ior -a POSIX -w -F -b 24m -t 24m",
        "mpiexec -n 64 ior -a POSIX -w -F -b 2800000 -t 400000",
        "mpiexec -n 64 ior -a POSIX -w -F -b 800000 -t 800000",
        "mpiexec -n 64 ior -a POSIX -w -F -b 200000 -t 200000",
    }


def test_an_fsync_that_is_not_known_stays_so(a_phase: MakePhase) -> None:
    phase = a_phase(fsync=None)
    assert configuration(phase, phase.parts[0]).fsync is None


def commands(shared_data: Path) -> list[tuple[str, int, str]]:
    """The logs, processes and commands of `live`; mdtest has no IOR command."""
    with (shared_data / "live" / "manifest.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [
        (row["name"], int(row["processes"]), row["command"])
        for row in rows
        if row["command"].startswith("ior ")
    ]


def test_every_command_comes_back_with_its_order_fsync_and_collective_flags(
    shared_data: Path,
) -> None:
    found = commands(shared_data)
    assert len(found) == 14
    for name, processes, line in found:
        command = replace(IorConfig.from_command_line(line), tasks=processes)
        phases = extract_phases(read_log(shared_data / "live" / f"{name}.darshan"))
        assert {phase.operation for phase in phases} == set(command.operation.split("+")), name
        for phase in phases:
            for part in phase.parts:
                asked = command.for_operation(phase.operation)
                assert facts(configuration(phase, part)) == facts(asked), name


def test_blocks_and_files_come_back_unless_two_phase_io_hides_them() -> None:
    with (IOR / "manifest.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["name"].startswith(("blocks", "files"))]
    hidden = {"blocks-4-cb2": None, "blocks-12-cb2": "contiguous"}
    for row in rows:
        command = replace(IorConfig.from_command_line(row["command"]), tasks=4)
        for phase in extract_phases(read_log(IOR / f"{row['name']}.darshan")):
            [part] = phase.parts
            found = configuration(phase, part)
            if row["name"] in hidden:
                assert (phase.order, phase.block_requests) == (hidden[row["name"]], None)
                continue
            asked = command.for_operation(phase.operation)
            assert facts(found) == facts(asked), row["name"]
            files = (found.repetitions, found.multi_file)
            assert files == (asked.repetitions, asked.multi_file), row["name"]


@pytest.mark.slow
def test_every_log_that_ior_made_gives_the_command_that_made_it(shared_data: Path) -> None:
    runs = shared_data / "runs"
    with (runs / "manifest.csv").open(newline="") as file:
        made_by_ior = [row for row in csv.DictReader(file) if " ior " in row["command"]]
    assert len(made_by_ior) >= 25
    for row in made_by_ior:
        command = IorConfig.from_command_line(row["command"])
        phases = extract_phases(read_log(runs / row["log"]))
        operations = {phase.operation for phase in phases}
        assert operations == set(command.operation.split("+")), row["name"]
        assert len(phases) == int(row["phases_by_rule"]), row["name"]
        for phase in phases:
            [part] = phase.parts
            found = configuration(phase, part)
            asked = command.for_operation(phase.operation)
            known = phase.order is not None
            assert facts(found, layout=known) == facts(asked, layout=known), row["name"]


def facts(config: IorConfig, *, layout: bool = True) -> dict[str, object]:
    """Options of IOR that a log shows; the layout only if the log tells the order of requests."""
    told = {
        "tasks": config.tasks,
        "api": config.api,
        "operation": config.operation,
        "-F": config.file_per_process,
        "-c": config.collective,
        "-t": config.transfer_size,
        "bytes per process": config.bytes_per_process,
        "fsync": config.fsync if config.write else None,
    }
    if layout:
        told |= {"-z": config.random_offsets, "-b": config.block_size, "-s": config.segments}
    return told


@st.composite
def phases(draw: st.DrawFn) -> Phase:
    requests = draw(st.integers(1, 2**30))
    moved = draw(st.integers(0, 2**60))
    api = draw(st.sampled_from(["POSIX", "MPIIO", "STDIO"]))
    kinds = ["collective", "unknown"] if api == "MPIIO" else ["contiguous", "sequential", "random"]
    return Phase(
        job=1,
        start_seconds=0.0,
        end_seconds=1.0,
        operation=draw(st.sampled_from(["read", "write"])),
        rank=None,
        processes=draw(st.integers(1, 2**20)),
        nprocs=draw(st.none() | st.integers(1, 2**20)),
        bytes=moved,
        io_time_seconds=1.0,
        api=api,
        requests=requests,
        spatiality=draw(st.sampled_from(kinds)),
        file_access=draw(st.sampled_from(["shared", "unique"])),
        n_files=draw(st.integers(0, 2**20)),
        mode_processes=draw(st.integers(0, 2**20)),
        parts=(Part(requests, moved),),
        block_requests=draw(st.none() | st.floats(1, 2**30)),
    )


@given(phase=phases(), nodes=st.none() | st.integers(1, 2**20))
@settings(deadline=None)
def test_any_phase_is_a_run_that_every_ior_accepts(phase: Phase, nodes: int | None) -> None:
    config = configuration(phase, phase.parts[0], nodes)
    assert config.problems() == []
    assert config.operation == phase.operation
    assert config.file_per_process == (phase.file_access == "unique")
    assert config.collective == (phase.spatiality == "collective")
    assert bool(config.random_offsets) == (phase.spatiality == "random")
    assert config.tasks is not None
    assert config.tasks >= 1
    if phase.file_access == "unique" and phase.nprocs:
        assert config.tasks <= phase.nprocs
    assert config.nodes is None or config.nodes <= config.tasks
    assert IorConfig.from_command_line(config.command_line(launcher=True)).tasks == config.tasks


@given(phase=phases())
@settings(deadline=None)
def test_rounding_moves_no_size_by_more_than_it_must(phase: Phase) -> None:
    [part] = phase.parts
    config = configuration(phase, part)
    assert config.tasks is not None
    assert abs(config.transfer_size - max(part.request_bytes, 8)) <= max(4, 1e-12 * part.bytes)
    per_process = part.bytes / config.tasks
    at_least = config.transfer_size * (2 if phase.spatiality == "random" else 1)
    if per_process >= at_least:
        rounding = config.transfer_size / 2 + 1e-9 * per_process
        # The number of requests in each block and file is rounded, and the number of both.
        moved = config.bytes_per_process * config.repetitions
        rounding = max(rounding, config.block_size / 2 * (1 + config.repetitions))
        assert abs(moved - per_process) <= rounding


CONFIG = IorConfig(write=True, block_size=4 * MIB, transfer_size=MIB, tasks=16, nodes=8)


def changed(**told: Any) -> IorConfig:
    values = {name: getattr(CONFIG, name) for name in ("write", "tasks", "nodes")}
    values |= {"block_size": CONFIG.block_size, "transfer_size": CONFIG.transfer_size}
    return IorConfig(**(values | told))


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({}, 0.0),
        ({"transfer_size": 2 * MIB}, math.log(2)),
        ({"transfer_size": 256 * KIB}, math.log(4)),
        ({"block_size": 16 * MIB}, math.log(4)),
        ({"block_size": 2 * MIB, "segments": 2}, 0.0),
        ({"tasks": 32, "nodes": 16}, math.log(2)),
        ({"nodes": 16}, math.log(2)),
        ({"tasks": 32}, math.sqrt(2) * math.log(2)),
        ({"tasks": 32, "nodes": 16, "transfer_size": 2 * MIB}, math.sqrt(2) * math.log(2)),
        ({"tasks": 32, "nodes": 16, "block_size": 16 * MIB}, math.hypot(math.log(2), math.log(4))),
        ({"odirect": True}, 0.0),
        ({"fsync": "end"}, 0.0),
    ],
)
def test_the_distance_is_euclidean_in_logarithms(told: dict[str, Any], expected: float) -> None:
    assert distance(CONFIG, changed(**told)) == pytest.approx(expected)
    assert distance(changed(**told), CONFIG) == pytest.approx(expected)


def test_a_value_that_one_side_does_not_know_is_not_compared() -> None:
    assert distance(changed(nodes=None), changed(nodes=2)) == 0
    assert distance(changed(nodes=None, tasks=32), CONFIG) == pytest.approx(math.log(2))
    assert distance(changed(nodes=None, tasks=None), changed(tasks=64, nodes=64)) == 0


sized = st.builds(
    lambda transfer, count, tasks, nodes: changed(
        transfer_size=8 * transfer,
        block_size=8 * transfer * count,
        tasks=tasks,
        nodes=min(nodes, tasks),
    ),
    st.integers(1, 2**20),
    st.integers(1, 2**10),
    st.integers(1, 2**10),
    st.integers(1, 2**10),
)


@given(one=sized, other=sized, third=sized)
@settings(deadline=None)
def test_the_distance_is_a_distance(one: IorConfig, other: IorConfig, third: IorConfig) -> None:
    assert distance(one, one) == 0
    assert distance(one, other) == pytest.approx(distance(other, one))
    assert distance(one, third) <= distance(one, other) + distance(other, third) + 1e-9
    same = (one.tasks, one.nodes, one.transfer_size, one.block_size) == (
        other.tasks,
        other.nodes,
        other.transfer_size,
        other.block_size,
    )
    assert (distance(one, other) == 0) == same


def test_the_same_configuration_is_an_exact_match(a_phase: MakePhase, a_curve: MakeCurve) -> None:
    phase, same = a_phase(), a_curve()
    found = match(phase, phase.parts[0], [a_curve(tasks=32), same, a_curve(nodes=4)], 8)
    assert (found.kind, found.curve, found.distance) == ("exact", same, 0)
    assert found.wanted == same.config
    assert found.ratios == {}


def test_the_nearest_stands_in_and_its_distance_is_said(
    a_phase: MakePhase, a_curve: MakeCurve
) -> None:
    phase = a_phase()
    near = a_curve(transfer_size=2 * MIB)
    far = a_curve(transfer_size=4 * MIB)
    found = match(phase, phase.parts[0], [far, near], 8)
    assert (found.kind, found.curve) == ("interpolated", near)
    assert found.distance == pytest.approx(math.log(2))
    assert found.ratios == {"request size": 2.0}


@pytest.mark.parametrize(
    "told",
    [
        {"read": True},
        {"api": "MPIIO"},
        {"file_per_process": True},
        {"block_size": MIB, "segments": 4},
        {"random_offsets": 1},
        {"api": "MPIIO", "collective": True},
        {"api": "HDF5"},
        {"write": True, "read": True},
    ],
    ids=str,
)
def test_a_benchmark_of_another_kind_is_never_taken(
    a_phase: MakePhase, a_curve: MakeCurve, told: dict[str, Any]
) -> None:
    if told.get("write"):
        curve = a_curve()
        curve = Curve(1, IorConfig(tasks=16, nodes=8), "ior", {0: (1.0,)})
    else:
        curve = a_curve(**told)
    phase = a_phase()
    found = match(phase, phase.parts[0], [curve], 8)
    assert (found.kind, found.curve, found.distance) == ("unknown", None, None)
    assert found.wanted == configuration(phase, phase.parts[0], 8)


def test_collective_and_independent_are_two_kinds(a_phase: MakePhase, a_curve: MakeCurve) -> None:
    collective = a_curve(api="MPIIO", collective=True)
    independent = a_curve(api="MPIIO")
    for spatiality, curve in (("collective", collective), ("unknown", independent)):
        phase = a_phase(api="MPIIO", spatiality=spatiality)
        found = match(phase, phase.parts[0], [collective, independent], 8)
        assert (found.kind, found.curve) == ("exact", curve)


def test_a_phase_of_stdio_is_matched_to_posix(a_phase: MakePhase, a_curve: MakeCurve) -> None:
    phase = a_phase(api="STDIO")
    assert match(phase, phase.parts[0], [a_curve()], 8).kind == "exact"


@pytest.mark.parametrize("told", [{"odirect": True}, {"reorder_tasks": True}])
def test_options_that_counters_do_not_show_do_not_count_in_a_match(
    a_phase: MakePhase, a_curve: MakeCurve, told: dict[str, bool]
) -> None:
    phase, curve = a_phase(), a_curve(**told)
    found = match(phase, phase.parts[0], [curve], 8)
    assert (found.kind, found.curve, found.distance) == ("exact", curve, 0)


@pytest.mark.parametrize("direct_first", [False, True])
def test_of_equally_near_ones_that_without_o_direct_is_taken(
    a_phase: MakePhase, a_curve: MakeCurve, direct_first: bool
) -> None:
    phase = a_phase()
    direct = a_curve(dict.fromkeys((0, 1, 2, 4, 8), (1.0,)), odirect=True, id=1)
    buffered = a_curve({0: (1.0,), 1: (2.0,)}, id=2)
    curves = [direct, buffered] if direct_first else [buffered, direct]
    assert match(phase, phase.parts[0], curves, 8).curve is buffered


def test_of_equally_near_ones_that_with_more_points_is_taken(
    a_phase: MakePhase, a_curve: MakeCurve
) -> None:
    phase = a_phase()
    few = a_curve({0: (1.0,)}, engine="forge", id=1)
    many = a_curve({0: (1.0,), 1: (2.0,)}, id=1)
    for curves in ([few, many], [many, few]):
        assert match(phase, phase.parts[0], curves, 8).curve is many


@pytest.mark.parametrize("unknown", [("nodes",), ("tasks", "nodes")], ids="+".join)
def test_the_very_configuration_is_taken_before_one_that_is_known_in_part(
    a_phase: MakePhase, a_curve: MakeCurve, unknown: tuple[str, ...]
) -> None:
    phase = a_phase()
    in_part = a_curve({0: (1.0,), 1: (1.0,)}, id=1, **dict.fromkeys(unknown))
    very_same = a_curve({0: (1.0,)}, id=2)
    for curves in ([in_part, very_same], [very_same, in_part]):
        assert match(phase, phase.parts[0], curves, 8).curve is very_same


@pytest.mark.parametrize(
    ("of_phase", "other"),
    [
        ({"api": "MPIIO", "spatiality": "unknown"}, {"block_size": MIB, "segments": 4}),
        ({"api": "MPIIO", "spatiality": "unknown"}, {"random_offsets": 1}),
        ({"api": "MPIIO", "spatiality": "collective"}, {"block_size": MIB, "segments": 4}),
    ],
)
def test_the_very_configuration_is_taken_before_one_of_another_layout(
    a_phase: MakePhase, a_curve: MakeCurve, of_phase: dict[str, str], other: dict[str, int]
) -> None:
    phase = a_phase(**of_phase)
    collective = of_phase["spatiality"] == "collective"
    other_layout = a_curve(
        {0: (1.0,), 1: (1.0,)}, api="MPIIO", collective=collective, id=1, **other
    )
    very_same = a_curve({0: (1.0,)}, api="MPIIO", collective=collective, id=2)
    assert very_same.config == configuration(phase, phase.parts[0], 8)
    for curves in ([other_layout, very_same], [very_same, other_layout]):
        assert match(phase, phase.parts[0], curves, 8).curve is very_same


def test_a_phase_matches_the_run_that_it_was_turned_into() -> None:
    """A phase of any kind is an exact match if the run that `ioncast match` prints is measured.

    Only the skips of a process that has the file for itself are nothing that IOR can do.
    """
    for api, spatiality in [
        *(("POSIX", kind) for kind in ("contiguous", "sequential", "random")),
        *(("MPIIO", kind) for kind in ("collective", "unknown")),
        ("STDIO", "contiguous"),
    ]:
        for file_access in ("shared", "unique"):
            for processes, requests in [(1, 1), (1, 8), (4, 4), (4, 32)]:
                phase = Phase(
                    job=1,
                    start_seconds=0.0,
                    end_seconds=1.0,
                    operation="write",
                    rank=None,
                    processes=processes,
                    nprocs=processes,
                    bytes=requests << 20,
                    io_time_seconds=1.0,
                    api=api,
                    requests=requests,
                    spatiality=spatiality,
                    file_access=file_access,
                    n_files=1 if file_access == "shared" else processes,
                    mode_processes=processes if file_access == "shared" else 1,
                    parts=(Part(requests, requests << 20),),
                    fsync="end",
                    order="sequential",
                )
                wanted = configuration(phase, phase.parts[0], 1)
                found = match(phase, phase.parts[0], [Curve(1, wanted, "ior", {0: (1.0,)})], 1)
                skips_alone = wanted.file_access == "unique" and phase.order == "sequential"
                is_exact = not skips_alone or wanted.requests_per_process == 1
                case = (api, spatiality, file_access, processes, requests)
                assert (found.kind == "exact") == is_exact, case


def test_a_stone_walls_bytes_are_not_compared() -> None:
    wanted = IorConfig(write=True, block_size=1 << 20, transfer_size=1 << 20, tasks=4, nodes=1)
    asked = replace(wanted, block_size=1 << 40)
    assert ratios(wanted, asked) == {"bytes per process": 1 << 20}
    assert ratios(wanted, asked, stonewalled=True) == {}
