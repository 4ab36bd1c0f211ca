"""Phases in a frame are the same as in the log, or those that somebody made of them."""

from __future__ import annotations

from pathlib import Path

import pytest

import ioncast
from ioncast.python.phase_frames import frame_of_phases, phases_of_frame

PROJECT = Path(__file__).resolve().parents[3]
TESTBED = PROJECT / "experiments" / "data" / "testbed"
HACC = TESTBED / "logs" / "hacc-io-ionodes0.darshan"
PROGRAMS = PROJECT / "tests/summario/fixtures/programs"
MIB = 1 << 20

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def test_a_frame_that_nobody_edited_has_the_phases_of_the_logs() -> None:
    result = ioncast.phases([TESTBED / "logs", PROGRAMS])
    phases = [phase for extraction in result.details for phase in extraction.phases]
    assert len(phases) > 24
    assert list(phases_of_frame(result.frame)) == phases
    # A part of the rows, too, and rows whose columns have another order.
    part = result.frame.iloc[3:5, ::-1]
    assert list(phases_of_frame(part)) == phases[3:5]
    assert phases_of_frame(frame_of_phases([])) == ()


def test_another_request_size_changes_the_ior_run_and_nothing_else() -> None:
    frame = ioncast.phases(HACC).frame
    frame.loc[0, "request_bytes"] = 64 << 10
    [phase] = phases_of_frame(frame)
    assert phase.bytes == 463453184
    [row] = ioncast.match(frame, nodes=8).frame.to_dict("records")
    # 28,965,824 bytes of a process are 442 requests of 64 KiB.
    assert row["ior"] == "mpiexec -n 16 ior -a POSIX -w -F -b 28288k -t 64k"
    assert (row["processes"], row["nodes"], row["requests"]) == (16, 8, 16 * 442)


def test_a_request_is_not_larger_than_the_bytes_of_a_process() -> None:
    frame = ioncast.phases(HACC).frame.assign(request_bytes=1 << 40)
    [phase] = phases_of_frame(frame)
    assert phase.requests == 16


def test_more_bytes_are_more_requests_of_the_same_sizes() -> None:
    frame = ioncast.phases(HACC).frame
    frame["bytes"] *= 2
    [phase] = phases_of_frame(frame)
    assert [(part.requests, part.request_bytes) for part in phase.parts] == [
        *((32, 24 * MIB), (224, 400_000), (32, 800_000), (32, 200_000))
    ]


def test_another_number_of_requests_gives_all_the_same_size() -> None:
    frame = ioncast.phases(HACC).frame.assign(requests=32)
    [phase] = phases_of_frame(frame)
    [part] = phase.parts
    assert (part.requests, part.bytes) == (32, 463453184)


@pytest.mark.slow
def test_a_plan_that_was_measured_is_predicted_as_it_was_measured(database: Path) -> None:
    """The pattern w-fpp-contig-64k: 16 processes write 1 MiB each in requests of 64 KiB."""
    result = ioncast.phases(HACC)
    result.frame.loc[0, ["bytes", "request_bytes"]] = [16 * MIB, 64 << 10]
    result.frame.loc[0, "fsync"] = "end"
    found = ioncast.predict(result, "testbed", nodes=8, db=database)
    # The means in the README of the testbed.
    means = {0: 37.9, 1: 25.3, 2: 47.1, 4: 53.6, 8: 57.4}
    predicted = found.frame.set_index("io_nodes")["bandwidth_mib_s"].to_dict()
    assert predicted == pytest.approx(means, rel=0.05)
    assert set(found.frame["basis"]) == {"measured"}
    assert found.details.own_run is None
    assert "predicted mean" in found.plot().svg
