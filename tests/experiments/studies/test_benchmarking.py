from __future__ import annotations

from experiments.datasets import DataSet
from experiments.studies.benchmarking import pattern_name, worth_measuring


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
