"""The time line as values: causes, and what the database keeps."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from experiments.applications.darshan_writer import Dxt, Record, write_log
from ioncast.insights.checks.registry import run_checks
from ioncast.insights.checks.values import Case
from ioncast.insights.facts.gathering import FACT_MODULES, facts_of
from ioncast.named_requests import named_requests, paths_of, requests_of
from ioncast.timelines.requests import TimedRequests, timed_requests
from ioncast.timelines.timeline import NamedCause, from_record, timeline_of, to_record
from ioncast_base.kinds import APIS
from summario.reading.log import read_log
from summario.runs.logs_of_run import run_of
from tests.summario.requests.test_trace_phases import Request, table

MIB = 1 << 20
FIXTURES = Path(__file__).resolve().parents[2] / "summario" / "fixtures"


def writes(*requests: Request) -> TimedRequests:
    return TimedRequests(table(requests), 4, None)


# The main phase of 4 seconds, in which four ranks write 4 GiB.
MAIN = [(rank, "write", 1024 * MIB, 0.0, 4.0) for rank in range(4)]


def test_json_keeps_a_time_line() -> None:
    requests = writes(*MAIN, (1, "read", 7, 5.0, 6.25))
    made = timeline_of(
        requests, causes={NamedCause("P05", "Many small reads"): requests.operations.length == 7}
    )
    read = from_record(json.loads(json.dumps(to_record(made))))
    assert to_record(read) == to_record(made)
    assert (read.requests, read.causes, read.phases) == (5, made.causes, made.phases)
    [reads] = [each.spans for each in read.spans if each.operation == "read"]
    assert (reads.row.tolist(), reads.end_seconds.tolist()) == ([1], [6.25])
    assert [each.spans.named.tolist() for each in read.spans] == [[1], [0] * 4]


def test_a_heat_map_has_neither_phases_nor_trailing_writes() -> None:
    requests = TimedRequests(table([*MAIN, (0, "write", 10, 4.0, 9.0)]), 4, 0.1)
    made = timeline_of(requests)
    assert (made.phases, made.trailing) == ((), None)


def test_a_cause_names_its_small_requests_and_its_stragglers(shared_data: Path) -> None:
    logs = shared_data / "darshan-logs"
    for path, code in (
        (logs / "nonmpi_dxt_anonymized/nonmpi_dxt_anonymized.darshan", "P06"),
        (logs / "release_logs/mpi-io-test-ppc64-3.1.6.darshan", "D03"),
    ):
        run = run_of([read_log(path, modules=FACT_MODULES)])
        checked = run_checks(Case(facts_of(run)))
        found = timed_requests(run)
        assert found is not None
        operations, names = found.operations, paths_of(run)
        named = named_requests(checked, operations, run, 5)
        [mask] = [mask for cause, mask in named.items() if cause.code == code]
        assert mask.any()
        [finding] = [each for each in checked.findings if each.check.code == code]
        if code == "D03":
            expected = np.isin(operations.rank, finding.finding.ranks)
        else:
            paths = {file.path for file in finding.finding.files}
            in_files = np.array([names[each] in paths for each in operations.file_id.tolist()])
            expected = in_files & (operations.length < MIB) & (operations.operation == 1)
            expected &= operations.api == APIS.index("POSIX")
        assert mask.tolist() == expected.tolist()


@pytest.mark.slow
def test_pauses_between_bursts_stay_visible_where_many_ranks_share_a_screen() -> None:
    """128 ranks write in ten bursts of a second, with requests of a millisecond."""
    bursts = [
        (rank, "write", MIB, 10 * burst + n * 0.01, 10 * burst + n * 0.01 + 0.001)
        for burst in range(10)
        for rank in range(128)
        for n in range(100)
    ]
    made = timeline_of(TimedRequests(table(bursts), 128, None), most=800)
    [drawn] = made.spans
    assert len(drawn.spans) <= 800
    # Each row has a span for each burst at least, and none is longer than a burst.
    assert np.bincount(drawn.spans.row).min() >= 10
    lengths = drawn.spans.end_seconds - drawn.spans.start_seconds
    assert lengths.max() < 1 + 2 * drawn.spans.bin_seconds < 2
    assert made.units_of_a_row == 2


def test_the_longest_phases_are_kept_in_their_order() -> None:
    requests = writes(*((0, "write", MIB, 100.0 * n, 100.0 * n + 1 + n % 3) for n in range(9)))
    made = timeline_of(requests, most_phases=3)
    assert [phase.start_seconds for phase in made.phases] == [200, 500, 800]
    assert made.more_phases == 6


def test_of_a_part_of_a_run_no_writes_trail() -> None:
    requests = writes(*MAIN, (0, "write", 4096, 4.0, 9.0))
    assert timeline_of(requests).trailing is not None
    assert timeline_of(requests, is_whole=False).trailing is None


def test_checks_of_a_layer_name_requests_of_this_layer(tmp_path: Path) -> None:
    """Small writes through MPI-IO become as many of POSIX; a second file has large ones."""
    records, traces = [], []
    for file, size, count, bins in (("/a", 1024, 3000, "1K_10K"), ("/b", 64 * MIB, 2, "10M_100M")):
        for module, prefix, dxt in (
            ("POSIX", "POSIX", "DXT_POSIX"),
            ("MPI-IO", "MPIIO", "DXT_MPIIO"),
        ):
            histogram = f"{prefix}_SIZE_WRITE_{'AGG_' if prefix == 'MPIIO' else ''}{bins}"
            counters = {
                "POSIX_WRITES" if prefix == "POSIX" else "MPIIO_INDEP_WRITES": count,
                f"{prefix}_BYTES_WRITTEN": count * size,
                f"{prefix}_ACCESS1_ACCESS": size,
                f"{prefix}_ACCESS1_COUNT": count,
                histogram: count,
            }
            times = {
                f"{prefix}_F_WRITE_START_TIMESTAMP": 1.0,
                f"{prefix}_F_WRITE_END_TIMESTAMP": 7.0,
                f"{prefix}_F_WRITE_TIME": 6.0,
            }
            records.append(Record(module, file, 0, counters, times))
            step = 6.0 / count
            requests = [(n * size, size, 1 + n * step, 1 + (n + 0.9) * step) for n in range(count)]
            traces.append(Dxt(dxt, file, 0, "n1", requests))
    log = write_log(tmp_path / "app.darshan", nprocs=2, records=records, dxt=traces)
    run = run_of([read_log(log, modules=FACT_MODULES)])
    case = Case(facts_of(run))
    found = requests_of(run, case)
    assert found is not None
    named = named_requests(run_checks(case), found.operations, run, 5)
    [mask] = [mask for cause, mask in named.items() if cause.code == "P06"]
    assert np.count_nonzero(mask) == 3000
    assert set(found.operations.api[mask].tolist()) == {APIS.index("POSIX")}
