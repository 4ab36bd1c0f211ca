"""OSTs on which files are slow: the correlation of pytokio's darshan_bad_ost, and its limits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ioncast.insights.facts.slow_osts import SlowOst, slow_osts
from tests.support.checking import check_log


@pytest.fixture
def logs() -> Path:
    """PyDarshan's folder, which has the two logs."""
    darshan = pytest.importorskip("darshan", reason="PyDarshan has no wheel for this Python")
    return Path(darshan.__file__).parent


def found(bandwidth: list[float], osts: list[int], probability: float = 0.01) -> list[SlowOst]:
    """The slow OSTs of files with one stripe each."""
    files = np.arange(len(osts))
    return slow_osts(
        np.array(bandwidth),
        files,
        np.array(osts),
        np.ones(len(osts)),
        most_correlation=-0.5,
        most_probability=probability,
    )


def test_the_ost_of_the_slow_files_is_named() -> None:
    """Of 20 files, five on OST 7 have a tenth of the bandwidth of the others: r is -1."""
    [slow] = found([100.0] * 15 + [10.0] * 5, [0, 1, 2] * 5 + [7] * 5)
    assert slow.ost == 7
    assert slow.correlation == pytest.approx(-1)
    assert slow.files.tolist() == [15, 16, 17, 18, 19]


def test_the_correlation_is_pearsons() -> None:
    rng = np.random.default_rng(1)
    osts = rng.integers(0, 4, 200)
    bandwidth = rng.normal(100, 30, 200) - 80 * (osts == 2)
    [slow] = found(bandwidth.tolist(), osts.tolist())
    assert slow.correlation == pytest.approx(np.corrcoef(bandwidth, osts == 2)[0, 1])


@pytest.mark.parametrize(
    ("bandwidth", "osts"),
    [
        ([100.0] * 16 + [10.0] * 4, [0] * 16 + [7] * 4),
        ([100.0] * 4 + [10.0] * 16, [0] * 4 + [7] * 16),
        ([100.0] * 20, [0] * 10 + [7] * 10),
        ([], []),
    ],
    ids=["four on it", "four elsewhere", "all alike", "no files"],
)
def test_too_little_is_known_of_other_osts(bandwidth: list[float], osts: list[int]) -> None:
    assert found(bandwidth, osts) == []


def test_chance_is_corrected_for_the_number_of_osts() -> None:
    """r is -0.6 of 20 files: p is .005 for one OST, and .02 for four of them."""
    rng = np.random.default_rng(3)
    osts = [0, 1, 2, 3] * 5
    on = np.array(osts) == 3
    noise = rng.normal(size=20)
    for each in (0, 1, 2, 3):
        member = np.array(osts) == each
        noise[member] -= noise[member].mean()
    noise /= noise.std()
    spread = on.std()
    bandwidth = -0.6 * (on - on.mean()) / spread + np.sqrt(1 - 0.36) * noise
    assert found(bandwidth.tolist(), osts) == []
    [slow] = found(bandwidth.tolist(), osts, probability=0.05)
    assert slow.correlation == pytest.approx(-0.6)
    assert slow.probability == pytest.approx(0.02, rel=0.3)


def test_the_bad_ost_of_a_genuine_log_is_found(logs: Path) -> None:
    """PyDarshan brings the log, whose files on OST 14 take 275 to 778 s and others 11 s."""
    checked = check_log(logs / "examples/example_logs/sample-badost.darshan")
    [slow] = [each for each in checked.findings if each.check.code == "I09"]
    assert slow.finding.numbers["ost"] == 14
    assert slow.finding.numbers["correlation"] == pytest.approx(-0.70, abs=0.005)
    assert slow.finding.numbers["files"] == 85
    [processes] = [each for each in checked.findings if each.check.code == "I08"]
    assert processes.finding.numbers["count"] == 85
    assert processes.sentence.endswith("their files are on OST 14")
    assert checked.causes[0].name == "unequal processes"


def test_good_osts_of_a_genuine_log_are_not_named(logs: Path) -> None:
    good = logs / "tests/input/sample-goodost.darshan"
    assert "I09" not in [each.check.code for each in check_log(good).findings]
