"""A fidelity is 1 for the same I/O, and lower for other I/O, with the reason in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predictor.verification.facts import PhaseFacts, facts_of
from predictor.verification.fidelity import Fidelity, compare
from summario.phases.extract import extract_run
from summario.reading.log import read_log
from summario.runs.logs_of_run import run_of

FIXTURES = Path(__file__).parent / "fixtures"
# IOR 4.0.0 under Darshan 3.5.0 with 4 processes, 4 MiB each: `-a POSIX -w -b 4m -t 64k` is the
# plain one, the others have one option more or one other.
VARIATIONS = FIXTURES / "variations"
# The commands of `live`, run once more on another day.
AGAIN = FIXTURES / "again"
PLAIN = PhaseFacts(bytes=1 << 20, requests=16, processes=4)


def facts(log: Path) -> list[PhaseFacts]:
    run = run_of([read_log(log)])
    return facts_of(run, extract_run(run).phases)


def compared(one: Path, other: Path) -> list[Fidelity]:
    return [compare(*pair) for pair in zip(facts(one), facts(other), strict=True)]


@pytest.mark.parametrize("name", sorted(path.stem for path in AGAIN.glob("*.darshan")))
def test_the_log_of_the_same_command_agrees(name: str, shared_data: Path) -> None:
    for found in compared(shared_data / f"live/{name}.darshan", AGAIN / f"{name}.darshan"):
        assert found.value > 0.95
        assert found.differences == []


def test_a_log_with_a_trace_agrees_with_one_without(shared_data: Path) -> None:
    traced = sorted((shared_data / "runs/logs").glob("*-dxt.darshan"))
    assert traced
    for log in traced:
        plain = log.with_name(log.name.replace("-dxt", ""))
        for found in compared(plain, log):
            assert found.value > 0.95, (log.name, found.differences)


@pytest.mark.parametrize(
    ("variation", "below", "sentence"),
    [
        (
            "strided",
            0.6,
            "100% of the phase's requests begin where the request before them ends, 0% of the"
            " benchmark's",
        ),
        (
            "random",
            0.6,
            "100% of the phase's requests begin at or after the end of the request before them,"
            " 54% of the benchmark's",
        ),
        (
            "fsync-each",
            0.2,
            "the phase calls no fsync, the benchmark fsync after each write",
        ),
        ("fsync-end", 0.6, "the phase calls no fsync, the benchmark fsync once at the end"),
        ("larger-requests", 0.4, "a request of the phase moves 64 KiB, a request of the benchmark"),
        ("half", 0.8, "the phase moves 16 MiB, the benchmark 8 MiB"),
    ],
)
def test_other_io_has_a_low_fidelity_with_its_reason(
    variation: str, below: float, sentence: str
) -> None:
    [found] = compared(VARIATIONS / "plain.darshan", VARIATIONS / f"{variation}.darshan")
    assert found.value < below
    assert any(sentence in each for each in found.differences)


def test_blocks_and_interleaved_collective_requests_differ_in_the_order_below_mpiio() -> None:
    names = ("collective.darshan", "collective-strided.darshan")
    [found] = compared(*(VARIATIONS / name for name in names))
    assert found.value < 0.6
    assert [each.name for each in found.aspects if each.differs] == ["consecutive requests"]


@pytest.mark.parametrize(
    ("one", "other", "below"), [("each", "end", 0.2), ("each", "none", 0.2), ("end", "none", 0.6)]
)
def test_another_fsync_has_a_low_fidelity(one: str, other: str, below: float) -> None:
    phase, benchmark = (PhaseFacts(1 << 20, 16, 4, fsync=fsync) for fsync in (one, other))
    for found in (compare(phase, benchmark), compare(benchmark, phase)):
        assert found.value < below
        assert "fsync" in found.differences[0]


def test_an_unknown_property_is_not_compared() -> None:
    known = PhaseFacts(
        1 << 20, 16, 4, fsync="each", consecutive=1.0, unaligned=0.5, block_bytes=4096
    )
    assert compare(PLAIN, known).value == compare(known, PLAIN).value == 1


def test_alignment_to_blocks_of_another_size_is_not_compared() -> None:
    local = PhaseFacts(1 << 20, 16, 4, unaligned=0.0, block_bytes=4096)
    lustre = PhaseFacts(1 << 20, 16, 4, unaligned=1.0, block_bytes=1 << 20)
    assert compare(local, lustre).value == 1
    assert compare(local, PhaseFacts(1 << 20, 16, 4, unaligned=1.0, block_bytes=4096)).value < 0.8


amounts = st.integers(1, 1 << 50)
shares = st.none() | st.floats(0, 1)
some_facts = st.builds(
    PhaseFacts,
    bytes=amounts,
    requests=amounts,
    processes=st.integers(1, 1 << 20),
    collective=shares,
    below=st.none() | st.floats(0, 1e9),
    aggregators=st.none() | st.integers(0, 1 << 20),
    consecutive=shares,
    sequential=shares,
    gap_bytes=st.none() | amounts,
    unaligned=shares,
    fsync=st.sampled_from([None, "none", "end", "each"]),
    opens=st.none() | st.floats(0, 1e9),
    deviation_of_bytes=st.none() | st.floats(0, 1e9),
    metadata=shares,
    busy=shares,
    evenness=shares,
)


@given(some_facts, some_facts)
def test_a_fidelity_is_between_0_and_1_and_the_same_in_both_directions(
    one: PhaseFacts, other: PhaseFacts
) -> None:
    found = compare(one, other)
    assert 0 < found.value <= 1
    assert found.value == pytest.approx(compare(other, one).value)
    assert compare(one, one).value == 1
    assert all(0 < each.agreement <= 1 for each in found.aspects)
