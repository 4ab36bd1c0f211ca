"""Slurm's limits on a licence, as a job meets them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from scheduler_plugin.slurm import Slurm, SlurmAnswerError, SlurmClusterError
from scheduler_plugin.slurm.licence_limits import Association, Limits, limits_of, qos_limit
from tests.scheduler_plugin.slurm.recorded import VERSIONS, Slurmrestd, served

# As `sacctmgr` and slurm.conf said where the answers of 0.0.38 were recorded: partition `capped`
# has the QOS `part`, account `child` belongs to `limited`. In account `everybody` the user `nobody`
# has another association for `capped`, and one on the cluster `other` with a limit of 1.
RECORDED = Limits(
    "ionode",
    8,
    partitions={"capped": 3},
    qos={"part": 3, "small": 2, "deny": 2, "grp": 1},
    accounts={"limited": 4, "child": 4},
    users={("everybody", "nobody"): 5},
    partition_users={("capped", "everybody", "nobody"): 2},
)


@pytest.fixture(params=VERSIONS)
def slurmrestd(request: pytest.FixtureRequest) -> Slurmrestd:
    return Slurmrestd((request.param,))


@pytest.fixture
def slurm(slurmrestd: Slurmrestd, tmp_path: Path) -> Iterator[Slurm]:
    with served(slurmrestd, tmp_path / "rest.sock") as address:
        yield Slurm(address, "ada", lambda: "token", cluster="Test")


def test_all_versions_tell_the_same_limits(slurm: Slurm) -> None:
    assert slurm.limits("ionode", 8) == RECORDED


def test_a_licence_without_limits_has_none(slurm: Slurm) -> None:
    assert slurm.limits("matlab", 2) == Limits("matlab", 2)


def test_the_number_of_licences_is_slurms(slurm: Slurm) -> None:
    assert [slurm.licence_total(name) for name in ("ionode", "matlab", "other")] == [8, 2, 0]


@pytest.mark.parametrize(
    ("cluster", "said"),
    [
        (None, "slurmdbd has the clusters other and test; it is unknown which is this one"),
        ("tset", "slurmdbd has no cluster 'tset', but other and test"),
    ],
)
def test_without_its_name_a_cluster_is_not_confused_with_another_one(
    slurmrestd: Slurmrestd, tmp_path: Path, cluster: str | None, said: str
) -> None:
    with served(slurmrestd, tmp_path / "rest.sock") as address:
        slurm = Slurm(address, "ada", lambda: "token", cluster=cluster)
        with pytest.raises(SlurmClusterError, match=said):
            slurm.limits("ionode", 8)


@pytest.mark.parametrize("what", ["qos", "partitions", "associations"])
@pytest.mark.parametrize("body", ["{}", '{"qos": 3}', '{"QOS": [3], "associations": [{}]}'])
def test_limits_that_cannot_be_read_are_an_error(
    slurm: Slurm, slurmrestd: Slurmrestd, what: str, body: str
) -> None:
    slurmrestd.instead[what] = (200, body, 0.0)
    with pytest.raises(SlurmAnswerError):
        slurm.limits("ionode", 8)


def test_without_accounting_there_are_no_limits(slurm: Slurm, slurmrestd: Slurmrestd) -> None:
    slurmrestd.has_accounting = False
    with pytest.raises(SlurmAnswerError, match="slurmdbd"):
        slurm.limits("ionode", 8)


def row(account: str, parent: str, of_job: int | None, of_group: int | None) -> Association:
    return Association(account, "", "", parent, of_job, of_group)


def test_the_lowest_limit_counts() -> None:
    limits = limits_of(
        "ionode",
        8,
        {"Small": 2, "free": None},
        {"batch": "", "debug": "small", "gone": "unknown"},
        [
            row("root", "", None, 7),
            # slurmdbd gives `physics` the job limit of its parent, but not the group's.
            row("Science", "root", 6, 5),
            row("physics", "science", 6, None),
            row("mad", "mad", None, 3),
            Association("physics", "bob", "", "", 3, None),
            Association("physics", "bob", "debug", "", 1, None),
            Association("physics", "bob", "batch", "", 6, None),
            Association("physics", "eve", "", "", 6, None),
        ],
    )
    assert limits.qos == {"small": 2}
    assert limits.partitions == {"debug": 2}
    assert limits.accounts == {"root": 7, "science": 5, "physics": 5, "mad": 3}
    assert limits.users == {("physics", "bob"): 3}
    assert limits.partition_users == {("debug", "physics", "bob"): 1}
    assert limits.of_job("batch", "free", "other", "bob") == 8
    assert limits.of_job("batch,debug", "", "", "") == 2
    assert limits.of_job("batch", "SMALL", "physics", "eve") == 2
    assert limits.of_job("batch", "", "physics", "bob") == 3
    assert limits.of_job("batch,debug", "", "Physics", "bob") == 1
    assert limits.of_job("", "", "PHYSICS", "eve") == 5


@pytest.mark.parametrize("count", [-1, 4294967294, 2**64 - 1])
def test_a_limit_without_a_number_does_not_limit(count: int) -> None:
    entry = [{"type": "license", "name": "ionode", "count": count}]
    qos = {"limits": {"max": {"tres": {"total": entry, "per": {"job": entry}}}}}
    assert qos_limit(qos, "ionode") is None


def test_limits_of_other_resources_are_left_out() -> None:
    entries = [
        {"type": "cpu", "name": "", "count": 1},
        {"type": "license", "name": "matlab", "count": 1},
        {"type": "license", "name": "ionode@server", "count": 3},
    ]
    qos = {"limits": {"max": {"tres": {"per": {"user": entries, "node": entries[:1]}}}}}
    assert qos_limit(qos, "ionode") == 3
