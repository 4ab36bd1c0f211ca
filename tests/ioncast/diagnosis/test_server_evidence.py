"""Servers that others kept busy: planted runs on planted servers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pytest

from ioncast.diagnosis.diagnosing import Diagnosis
from ioncast.diagnosis.diagnosis_texts import text_of
from ioncast.diagnosis.server_evidence import Reason, ServerEvidence, evidence_finder
from ioncast.diagnosis.verdict import RunFacts, UsualBandwidth, judge
from ioncast.warehouse.engine import Ask, asking
from ioncast.warehouse.queries import Query
from ioncast.warehouse.schema import SCHEMAS
from tests.support.examples import examples

MIB, US = 1 << 20, 1_000_000
# A Monday; the samples begin 3 hours before.
BEGIN = 1_700_000_000
STEP = 5
HOURS = 3
SERVERS = (3, 4)
Rows = dict[str, list[dict[str, Any]]]


@contextmanager
def store(rows: Rows) -> Iterator[Ask]:
    with asking(
        {
            name: pa.Table.from_pylist(rows.get(name, []), schema=schema)
            for name, schema in SCHEMAS.items()
        }
    ) as ask:
        yield ask


def log_rows(
    log: str = "a",
    *,
    start: float = BEGIN + 0.5,
    period: tuple[float, float] = (1.0, 61.0),
    mib: float = 600.0,
    servers: tuple[int, ...] = SERVERS,
    program: str = "app",
    job_id: int | None = None,
    system: str = "tetra",
) -> Rows:
    """A run that writes a file evenly over its servers; it starts at a part of a second."""
    first, last = period
    return {
        "jobs": [
            {
                "log": log,
                "system": system,
                "job_id": job_id,
                "user_id": 7,
                "program": program,
                "start_us": round(start * US),
                "run_seconds": last + 5.0,
            }
        ],
        "files": [
            {
                "log": log,
                "file": f"file-{log}",
                "api": "POSIX",
                "is_highest": True,
                "processes": 4,
                "written_bytes": int(mib * MIB),
                "read_bytes": 0,
                "read_seconds": 0.0,
                "write_seconds": 4 * (last - first),
                "metadata_seconds": 0.0,
                "slowest_seconds": last - first,
                "mean_seconds": last - first,
                "first_write_seconds": first,
                "last_write_seconds": last,
            }
        ],
        "file_osts": [
            {"log": log, "file": f"file-{log}", "server": server, "share": 1 / len(servers)}
            for server in servers
        ],
        "phases": [{"log": log, "start_seconds": first, "end_seconds": last}],
    }


def sample_rows(
    mib_s: Callable[[int, np.ndarray], np.ndarray],
    *,
    step: int = STEP,
    servers: tuple[int, ...] = SERVERS,
    end: int = 600,
    hours: int = HOURS,
) -> Rows:
    """Samples from hours before a run until some seconds after its start."""
    starts = np.arange(BEGIN - hours * 3600, BEGIN + end, step)
    return {
        "server_samples": [
            {
                "system": "tetra",
                "kind": "OST",
                "server": str(server),
                "time_start_us": int(start) * US,
                "time_end_us": (int(start) + step) * US,
                "read_bytes": 0,
                "written_bytes": int(rate * step * MIB),
            }
            for server in servers
            for start, rate in zip(starts, mib_s(server, starts), strict=True)
        ]
    }


def own_mib_s(
    starts: np.ndarray, step: int = STEP, late_s: float = 0.0, seconds: float = 60.0
) -> np.ndarray:
    """The run of `log_rows` moves 5 MiB/s on each of its servers from second 1.5 to 61.5."""
    first, last = BEGIN + 1.5 + late_s, BEGIN + 1.5 + seconds + late_s
    return 5 * (np.minimum(starts + step, last) - np.maximum(starts, first)).clip(0) / step


def weather(seed: int, starts: np.ndarray) -> np.ndarray:
    return np.random.default_rng(seed).gamma(2.0, 5.0, len(starts))


def joined(*rows: Rows) -> Rows:
    tables: Rows = {}
    for each in rows:
        for name, of_table in each.items():
            tables.setdefault(name, []).extend(of_table)
    return tables


def evidence(*rows: Rows, log: str = "a", **settings: Any) -> ServerEvidence:
    with store(joined(*rows)) as ask:
        [found] = evidence_finder(ask, **settings)(log)
    return found


def with_burst(server: int, starts: np.ndarray) -> np.ndarray:
    """Others move 200 MiB/s on OST 4 while the run writes."""
    is_during = (starts >= BEGIN) & (starts < BEGIN + 70)
    return weather(server, starts) + own_mib_s(starts) + 200 * (is_during & (server == 4))


def quiet(server: int, starts: np.ndarray) -> np.ndarray:
    return weather(server, starts) + own_mib_s(starts)


def small(server: int, starts: np.ndarray) -> np.ndarray:
    """The run moves a tenth of its bytes, on servers that are not busy by chance."""
    return weather(server + 9, starts) + own_mib_s(starts) / 10


def test_a_server_that_others_use_far_more_than_usual_is_busy() -> None:
    found = evidence(log_rows(), sample_rows(with_burst))
    assert (found.answer, found.reason, found.server) == ("busy", None, 4)
    # 200 MiB/s and the usual 10 MiB/s, on average, without the run's own 5 MiB/s.
    assert found.others_mib_s == pytest.approx(210, rel=0.05)
    assert found.usual_mib_s is not None and 10 < found.usual_mib_s < 20
    assert (found.seconds, found.start_us) == (60.0, round((BEGIN + 1.5) * US))
    assert found.by == ()


def test_usual_traffic_of_others_is_not_busy() -> None:
    found = evidence(log_rows(mib=60.0), sample_rows(small))
    assert (found.answer, found.reason) == ("not busy", None)


def test_idle_servers_that_move_only_own_bytes_are_not_busy() -> None:
    found = evidence(log_rows(), sample_rows(lambda _, starts: own_mib_s(starts)))
    assert (found.answer, found.reason) == ("not busy", None)
    assert found.coverage == pytest.approx(1.0, abs=0.01)


def traced_rows(start_seconds: float) -> Rows:
    """The run of `log_rows` with a trace of one request, which is on OST 4."""
    rows = log_rows()
    alike = {"log": "a", "id": 0, "start_seconds": start_seconds, "end_seconds": 61.0}
    rows["jobs"][0]["has_requests"] = True
    rows["requests"] = [{**alike, "api": "POSIX", "operation": "write", "file": "file-a"}]
    rows["request_servers"] = [
        {**alike, "server_kind": "OST", "server": 4, "bytes": 600 * MIB, "own_times": False}
    ]
    return rows


def test_own_bytes_are_those_of_the_trace_at_each_server() -> None:
    """The trace has all 600 MiB on OST 4, although the layout has half of them on OST 3."""

    def moved(server: int, starts: np.ndarray) -> np.ndarray:
        return 2 * own_mib_s(starts) * (server == 4)

    found = evidence(traced_rows(1.0), sample_rows(moved))
    assert (found.answer, found.others_mib_s) == ("not busy", pytest.approx(0, abs=0.01))
    assert found.coverage == pytest.approx(1.0, abs=0.01)
    untraced = evidence(log_rows(), sample_rows(moved))
    # Half of 10 MiB/s, in 70 s instead of 60 s.
    assert (untraced.server, untraced.others_mib_s) == (4, pytest.approx(5 * 60 / 70, abs=0.4))


@pytest.mark.slow
def test_a_trace_with_impossible_times_gives_way_to_the_layout() -> None:
    samples = sample_rows(lambda _, starts: own_mib_s(starts))
    for start_seconds in (np.nan, -1.0, 62.0):
        found = evidence(traced_rows(start_seconds), samples)
        assert (found.answer, found.coverage) == ("not busy", pytest.approx(1.0, abs=0.01))


@pytest.mark.parametrize(
    ("missing", "seconds"),
    [
        (("slowest_seconds",), 60.0),
        (("slowest_seconds", "mean_seconds"), 0.0),
        (("write_seconds",), 0.0),
        (("last_write_seconds",), None),
        (("first_write_seconds",), None),
    ],
)
def test_a_file_with_unknown_times_has_no_seconds_or_no_period(
    missing: tuple[str, ...], seconds: float | None
) -> None:
    rows = log_rows()
    rows["files"][0].update(dict.fromkeys(missing))
    with store(joined(rows, sample_rows(with_burst))) as ask:
        found = evidence_finder(ask)("a")
    expected = [] if seconds is None else [seconds]
    assert [each.seconds for each in found] == expected
    assert all(each.answer == "busy" for each in found)


@pytest.mark.slow
def test_a_period_shorter_than_two_samples_is_too_coarse() -> None:
    for length, expected in ((9.0, "too coarse"), (10.5, None)):
        found = evidence(log_rows(period=(1.0, 1.0 + length)), sample_rows(with_burst))
        assert (found.answer == "unknown", found.reason) == (expected is not None, expected)


@pytest.mark.slow
def test_servers_without_samples_are_unknown_but_a_busy_one_counts() -> None:
    assert evidence(log_rows()).reason == "no samples"
    only_three = sample_rows(small, servers=(3,))
    found = evidence(log_rows(mib=60.0), only_three)
    assert (found.answer, found.reason) == ("unknown", "no samples")
    gap = sample_rows(with_burst)
    rows = gap["server_samples"]
    is_of_run = [row["time_start_us"] >= BEGIN * US and row["server"] == "3" for row in rows]
    gap["server_samples"] = [row for row, left in zip(rows, is_of_run, strict=True) if not left]
    assert evidence(log_rows(), gap).answer == "busy"


def test_a_server_without_any_samples_does_not_hide_a_busy_one() -> None:
    found = evidence(log_rows(), sample_rows(with_burst, servers=(4,)))
    assert (found.answer, found.reason, found.server) == ("busy", None, 4)
    # The 95 % quantile of OST 4 alone.
    assert found.usual_mib_s is not None and 10 < found.usual_mib_s < 20


def test_all_samples_of_a_window_count_however_long_they_are() -> None:
    """The window of a write ends up to two samples after the last request."""
    step, seconds = 300, 600.0
    # The last 298.5 s of the window are a sample that begins 298.5 s after the last request.
    run = log_rows(period=(1.0, 1.0 + seconds), mib=6.0 * seconds / 60)
    found = evidence(
        run,
        sample_rows(
            lambda server, t: weather(server, t) + own_mib_s(t, step, seconds=seconds) / 100,
            step=step,
            end=3000,
            hours=24,
        ),
    )
    assert (found.answer, found.reason) == ("not busy", None)


def test_missing_samples_leave_a_quiet_server_unknown() -> None:
    gap = sample_rows(small)
    rows = gap["server_samples"]
    is_of_run = [row["time_start_us"] >= BEGIN * US and row["server"] == "3" for row in rows]
    gap["server_samples"] = [row for row, left in zip(rows, is_of_run, strict=True) if not left]
    assert evidence(log_rows(mib=60.0), gap).reason == "no samples"


def test_a_file_without_a_layout_has_no_servers() -> None:
    rows = log_rows()
    rows["file_osts"] = []
    assert evidence(rows, sample_rows(quiet)).reason == "servers not known"


def test_more_own_bytes_than_servers_moved_mean_a_wrong_clock() -> None:
    found = evidence(log_rows(mib=6000.0), sample_rows(lambda _, starts: own_mib_s(starts)))
    assert (found.answer, found.reason) == ("unknown", "clock")


def test_others_below_own_bytes_cannot_be_told() -> None:
    # Own bytes are 50 MiB/s, of which the servers saw 80 MiB/s: neither nearly all nor few.
    def half(server: int, starts: np.ndarray) -> np.ndarray:
        return weather(server, starts) + own_mib_s(starts) * 16

    found = evidence(log_rows(mib=6000.0), sample_rows(half))
    assert (found.answer, found.reason) == ("unknown", "own bytes too large")


def test_fewer_than_twenty_windows_are_too_few() -> None:
    rows = sample_rows(with_burst)
    rows["server_samples"] = [
        row for row in rows["server_samples"] if row["time_start_us"] >= (BEGIN - 1200) * US
    ]
    assert evidence(log_rows(), rows).reason == "too few windows"


@pytest.mark.slow
def test_windows_in_which_the_program_ran_do_not_count() -> None:
    """Runs of the program with 300 MiB/s all the time would hide that others are busy."""

    def loud(server: int, starts: np.ndarray) -> np.ndarray:
        return with_burst(server, starts) + 300 * ((starts < BEGIN - 60) & (starts > BEGIN - 9000))

    before = log_rows("b", start=BEGIN - 9000.5, period=(0.0, 8950.0))
    assert evidence(log_rows(), before, sample_rows(loud)).answer == "busy"
    assert evidence(log_rows(), sample_rows(loud)).answer == "not busy"


@pytest.mark.slow
def test_a_log_that_explains_the_others_bytes_is_named() -> None:
    # 200 MiB/s on OST 4 for 70 s.
    other = log_rows(
        "b", start=BEGIN + 0.25, period=(0.0, 70.0), mib=14_000, servers=(4,), program="other"
    )
    assert evidence(log_rows(), other, sample_rows(with_burst)).by == ("b",)
    small = log_rows("b", period=(0.0, 70.0), mib=1_000, servers=(4,), program="other")
    assert evidence(log_rows(), small, sample_rows(with_burst)).by == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("job_id", "system", "is_own"),
    [(5, "tetra", True), (6, "tetra", False), (None, "tetra", False), (5, "octo", False)],
)
def test_bytes_of_all_logs_of_the_job_are_its_own(
    job_id: int | None, system: str, is_own: bool
) -> None:
    """Another log moves the 200 MiB/s on OST 4."""

    def moved(server: int, starts: np.ndarray) -> np.ndarray:
        is_during = (starts >= BEGIN) & (starts < BEGIN + 70)
        return small(server, starts) + 200 * (is_during & (server == 4))

    of_log = {"start": BEGIN + 0.25, "period": (0.0, 70.0), "mib": 14_000, "servers": (4,)}
    other = log_rows("b", program="other", job_id=job_id, system=system, **of_log)
    found = evidence(log_rows(mib=60.0, job_id=5), other, sample_rows(moved))
    assert found.answer == ("not busy" if is_own else "busy")
    assert found.by == (("b",) if system == "tetra" and not is_own else ())


def test_a_log_of_the_same_job_is_not_named() -> None:
    half = {"start": BEGIN + 0.25, "period": (0.0, 70.0), "mib": 7_000, "servers": (4,)}
    step = log_rows("b", program="other", job_id=5, **half)
    other = log_rows("c", program="other", job_id=6, **half)
    found = evidence(log_rows(job_id=5), step, other, sample_rows(with_burst))
    assert (found.reason, found.by) == (None, ("c",))


def many_runs(runs: int, ahead_s: int) -> Rows:
    """Runs each 10 minutes with servers whose clock is ahead, and an hour of other traffic."""
    starts = [BEGIN - 600 * number + 0.5 for number in range(runs)]

    def moved(_: int, times: np.ndarray) -> np.ndarray:
        return sum(
            (own_mib_s(times, late_s=start - BEGIN - 0.5 + ahead_s) for start in starts),
            np.zeros(len(times)),
        )

    logs = (log_rows(f"r{number}", start=start) for number, start in enumerate(starts))
    return joined(*logs, sample_rows(moved))


@pytest.mark.slow
def test_a_clock_that_is_ahead_in_ten_runs_is_found_and_corrected() -> None:
    found = evidence(many_runs(10, 12), log="r0")
    uncorrected = evidence(many_runs(9, 12), log="r0")
    assert found.clock_ahead_seconds == pytest.approx(12, abs=1)
    assert found.coverage is not None and uncorrected.coverage is not None
    assert found.coverage == pytest.approx(1.0, abs=0.02)
    assert uncorrected.coverage > 1.05


@pytest.mark.slow
def test_a_clock_within_a_sample_is_not_corrected_and_few_runs_tell_nothing() -> None:
    for runs, ahead, expected in ((10, 3, 0), (9, 12, None)):
        assert evidence(many_runs(runs, ahead), log="r0").clock_ahead_seconds == expected


def test_the_evidence_says_that_a_clock_was_corrected() -> None:
    found = evidence(log_rows(), sample_rows(small))
    for ahead_s, words in ((12, "ahead"), (-7, "behind"), (0, None), (None, None)):
        facts = RunFacts(
            *(600 * MIB, 10.0, UsualBandwidth("history", 20.0, 10.0, 40.0, 9), True),
            servers=(replace(found, clock_ahead_seconds=ahead_s),),
        )
        diagnosis = Diagnosis("a", None, "tetra", "app", 1, 4, 0, facts, judge(facts))
        said = text_of(diagnosis)
        assert ("the servers' clock was" in said) == bool(words)
        assert words is None or f"{abs(ahead_s or 0)} s {words}" in said


@pytest.mark.slow
def test_runs_near_several_logs_are_read_once() -> None:
    asked: Counter[str] = Counter()

    with store(many_runs(10, 12)) as ask:

        def counted(query: Query, values: Mapping[str, Any]) -> pa.Table:
            asked[query.name] += 1
            return ask(query, values)

        find = evidence_finder(counted)
        find("r0")
        assert asked["server-samples"] == asked["file-periods"] == 10
        find("r1")
        find("r2")
    # Each of the two logs itself, and r0, which is near.
    assert asked["server-samples"] == asked["file-periods"] == 13


def test_short_periods_with_a_doubtful_clock_are_unknown() -> None:
    first, last = 1.0, 16.0
    run = log_rows(period=(first, last), mib=150.0)

    def late(_: int, starts: np.ndarray) -> np.ndarray:
        ends = np.minimum(starts + STEP, BEGIN + 0.5 + last + 10)
        return 5 * (ends - np.maximum(starts, BEGIN + 0.5 + first + 10)).clip(0) / STEP

    assert evidence(run, sample_rows(late)).reason == "clock"


@pytest.mark.slow
def test_idle_servers_are_busy_in_at_most_a_twentieth_of_runs() -> None:
    """The servers have the same weather before and during each run, so busy is chance."""
    number, gap_s = examples(200), 200
    rows = sample_rows(weather, end=number * gap_s)
    for run in range(number):
        start = BEGIN + run * gap_s + 0.5
        of_run = log_rows(f"r{run}", start=start, period=(1.0, 61.0), mib=1.0, program=f"p{run}")
        for name, of_table in of_run.items():
            rows.setdefault(name, []).extend(of_table)
    with store(rows) as ask:
        find = evidence_finder(ask)
        answers = [found.answer for run in range(number) for found in find(f"r{run}")]
    assert answers.count("not busy") + answers.count("busy") == number
    # More than this many of independent 5 % tests happen once in a thousand times.
    assert answers.count("busy") <= 0.05 * number + 3.1 * (0.05 * 0.95 * number) ** 0.5


def test_the_page_explains_each_reason() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "servers.md").read_text(encoding="utf-8")
    for reason in get_args(Reason):
        assert f"| unknown: {reason} |" in page


# The compute nodes of the run send to the I/O nodes 3 and 4; another node is beside each of them.
PLACEMENT = {"n1": 3, "n2": 4, "n3": 3, "n4": 4}
NODES = {"io_nodes": PLACEMENT}


def on_nodes(log: str = "a", nodes: tuple[str, ...] = ("n1", "n2"), **of_log: Any) -> Rows:
    """The run of `log_rows` without OSTs; each node writes the same bytes, evenly."""
    rows = log_rows(log, **of_log)
    [file] = rows["files"]
    rows["jobs"][0]["has_requests"] = True
    rows["file_osts"] = []
    rows["requests"] = [
        {
            "log": log,
            "id": number,
            "api": "POSIX",
            "operation": "write",
            "node": node,
            "file": file["file"],
            "length_bytes": file["written_bytes"] // len(nodes),
            "start_seconds": file["first_write_seconds"],
            "end_seconds": file["last_write_seconds"],
        }
        for number, node in enumerate(nodes)
    ]
    return rows


def io_node_samples(mib_s: Callable[[int, np.ndarray], np.ndarray], **of_samples: Any) -> Rows:
    rows = sample_rows(mib_s, **of_samples)
    for row in rows["server_samples"]:
        row["kind"] = "ION"
    return rows


def test_an_io_node_that_others_use_far_more_than_usual_is_busy() -> None:
    found = evidence(on_nodes(), io_node_samples(with_burst), **NODES)
    assert (found.answer, found.server_kind, found.server) == ("busy", "ION", 4)
    # 200 MiB/s and the usual 10 MiB/s, on average, without the run's own 5 MiB/s.
    assert found.others_mib_s == pytest.approx(210, rel=0.05)
    assert found.usual_mib_s is not None and 10 < found.usual_mib_s < 20
    # Without a placement, nobody knows the I/O nodes of the run.
    assert evidence(on_nodes(), io_node_samples(with_burst)).reason == "servers not known"


def test_io_nodes_that_move_only_own_bytes_are_not_busy() -> None:
    idle = io_node_samples(lambda _, starts: own_mib_s(starts))
    found = evidence(on_nodes(), idle, **NODES)
    assert (found.answer, found.server_kind) == ("not busy", "ION")
    assert found.coverage == pytest.approx(1.0, abs=0.01)


def test_a_busy_io_node_that_the_run_does_not_use_does_not_count() -> None:
    def burst_elsewhere(server: int, starts: np.ndarray) -> np.ndarray:
        is_during = (starts >= BEGIN) & (starts < BEGIN + 70)
        return small(server, starts) + 200 * (is_during & (server == 4))

    found = evidence(on_nodes(nodes=("n1",), mib=30.0), io_node_samples(burst_elsewhere), **NODES)
    assert (found.answer, found.server) == ("not busy", 3)


def test_a_short_period_is_too_coarse_for_io_nodes_too() -> None:
    run = on_nodes(period=(1.0, 1.0 + 2 * STEP - 0.5))
    assert evidence(run, io_node_samples(with_burst), **NODES).reason == "too coarse"


def test_samples_of_osts_count_where_io_nodes_have_none() -> None:
    run = on_nodes(mib=60.0)
    run["file_osts"] = log_rows()["file_osts"]
    found = evidence(run, sample_rows(with_burst), **NODES)
    assert (found.answer, found.server_kind) == ("busy", "OST")
    both = evidence(run, sample_rows(with_burst), io_node_samples(small), **NODES)
    assert (both.answer, both.server_kind) == ("not busy", "ION")


def test_without_the_nodes_of_all_logs_of_the_job_the_io_nodes_are_not_known() -> None:
    samples = io_node_samples(with_burst)
    assert evidence(log_rows(), samples, **NODES).server_kind == "OST"
    step = log_rows("b", program="other", job_id=5)
    assert evidence(on_nodes(job_id=5), step, samples, **NODES).server_kind == "OST"
    elsewhere = {"io_nodes": {"n9": 3}}
    assert evidence(on_nodes(), samples, **elsewhere).server_kind == "OST"


@pytest.mark.slow
def test_a_job_on_the_same_io_node_is_named() -> None:
    # 200 MiB/s on I/O node 4 for 70 s.
    beside = {"start": BEGIN + 0.25, "period": (0.0, 70.0), "mib": 14_000, "program": "other"}
    samples = io_node_samples(with_burst)
    other = on_nodes("b", nodes=("n4",), **beside)
    assert evidence(on_nodes(), other, samples, **NODES).by == ("b",)
    apart = on_nodes("b", nodes=("n3",), **beside)
    assert evidence(on_nodes(), apart, samples, **NODES).by == ()


def test_the_words_name_an_io_node() -> None:
    found = evidence(on_nodes(), io_node_samples(with_burst), **NODES)
    facts = RunFacts(
        *(600 * MIB, 10.0, UsualBandwidth("history", 20.0, 10.0, 40.0, 9), True), servers=(found,)
    )
    diagnosis = Diagnosis("a", None, "tetra", "app", 1, 4, 0, facts, judge(facts))
    assert ": I/O node 4 was busy, others moved " in text_of(diagnosis)
