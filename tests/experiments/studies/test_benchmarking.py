from __future__ import annotations

from dataclasses import replace

from experiments.datasets import DataSet
from experiments.studies.benchmarking import (
    files_worth_measuring,
    pattern_name,
    worth_measuring,
)
from ior_configs import MdtestConfig
from summario.phases.values import Part, Phase


def test_the_header_and_the_arrays_of_hacc_io_are_worth_a_benchmark(testbed: DataSet) -> None:
    [phase] = testbed.jobs["hacc-io"]
    # Each process writes 24 MiB and seven times 400,000 bytes. The arrays of 800,000 and 200,000
    # bytes are less than a twentieth.
    assert len(phase.parts) == 4
    lines = {config.command_line() for config in worth_measuring([phase], nodes=8)}
    assert lines == {
        "ior -a POSIX -w -F -b 24m -t 24m",
        "ior -a POSIX -w -F -b 2800000 -t 400000",
    }


def test_every_phase_of_a_multiphase_application_is_worth_a_benchmark(testbed: DataSet) -> None:
    phases = testbed.jobs["multiphase"]
    operations = [config.operation for config in worth_measuring(phases, nodes=8)]
    assert operations == ["read", "write", "write"]


def test_different_patterns_have_different_names(testbed: DataSet) -> None:
    configs = {one.measurement.config for one in testbed.benchmarks}
    assert len({pattern_name(config) for config in configs}) == len(configs)


def test_a_phase_of_many_files_is_worth_a_run_of_mdtest() -> None:
    phase = Phase(
        *(1, 0.0, 9.0, "write", None, 16, 16, 30_000_000, 1.0, "POSIX", 3200, "contiguous"),
        "unique",
        n_files=3200,
        mode_processes=1,
        parts=(Part(3200, 30_000_000),),
        metadata_seconds=7.0,
    )
    assert files_worth_measuring([phase, phase], nodes=8)[:1] == [
        MdtestConfig(200, 9375, own_directory=True, tasks=16, nodes=8)
    ]
    others = [
        replace(phase, metadata_seconds=0.5),
        replace(phase, n_files=16),
        replace(phase, file_access="shared"),
    ]
    assert files_worth_measuring(others, nodes=8) == []
