from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from experiments.scheduling.queues import APPLICATIONS, MEAN_RUN_S, poisson_queue
from ioncast.worth.io_curves import IoCurve
from ioncast.worth.policies import POLICIES
from ioncast.worth.queued_jobs import QueuedJob
from ioncast.worth.replay import replay
from ioncast.worth.replayed_machine import Machine
from ioncast.worth.workload import MIB, Workload, workload
from ioncast_base.errors import InputError

SMALL = [IoCurve(f"small {i}", 4, {1: 10.0 + i, 2: 20.0}) for i in range(5)]
LARGE = [IoCurve(f"large {i}", 64, {1: 10.0 + i, 2: 20.0}) for i in range(5)]
MACHINE = Machine(128, 16)


def a_job(application: str = "user app", nodes: int = 4, **told: object) -> QueuedJob:
    return QueuedJob(0.0, 100.0, 200.0, nodes, application)._replace(**told)


def with_io(*jobs: QueuedJob, curves: list[IoCurve] = SMALL, seed: int = 1) -> Workload:
    return workload(jobs, curves, MACHINE, io_share=(0.1, 0.3), seed=seed)


def test_recorded_run_times_hold_with_static_allocation() -> None:
    jobs = poisson_queue(500, load=0.5, machine_nodes=128, seed=3)
    work = workload(jobs, SMALL + LARGE, MACHINE, io_share=(0.1, 0.3), seed=3)
    found = replay(work, MACHINE, POLICIES["static"])
    assert found.end_s - found.start_s == pytest.approx(work.recorded_s)
    share = found.io_s / work.recorded_s
    assert (share >= 0.1 - 1e-9).all()
    assert (share <= 0.3 + 1e-9).all()


def test_jobs_of_one_application_do_the_same_io() -> None:
    names = [f"user{i % 40} app" for i in range(200)]
    work = with_io(*(a_job(name) for name in names))
    same = {name: set() for name in names}
    for name, curve, moved in zip(names, work.curve, work.moved_mib, strict=True):
        same[name].add((int(curve), float(moved)))
    assert all(len(found) == 1 for found in same.values())
    assert set(work.curve.tolist()) == set(range(5))


def test_another_seed_draws_other_io() -> None:
    jobs = [a_job(f"user{i} app") for i in range(50)]
    once, again, other = with_io(*jobs), with_io(*jobs), with_io(*jobs, seed=2)
    assert (once.curve == again.curve).all()
    assert (once.moved_mib == again.moved_mib).all()
    assert (once.curve != other.curve).any()


@pytest.mark.parametrize(
    ("nodes", "near"), [(1, range(5)), (4, range(5)), (15, range(5)), (17, range(5, 10))]
)
def test_a_job_follows_a_curve_of_about_its_size(nodes: int, near: range) -> None:
    # By logarithms, 16 is in the middle between 4 and 64.
    jobs = [a_job(f"user{i} app", nodes) for i in range(50)]
    assert set(with_io(*jobs, curves=SMALL + LARGE).curve.tolist()) == set(near)


def test_curves_of_unknown_size_are_for_all_jobs() -> None:
    unknown = [replace(curve, nodes=None) for curve in LARGE]
    jobs = [a_job(f"user{i} app", 4) for i in range(100)]
    assert set(with_io(*jobs, curves=SMALL + unknown).curve.tolist()) == set(range(10))


def test_known_values_of_a_job_are_not_drawn() -> None:
    # 4 of 128 nodes: one I/O node, 12 MiB/s: 240 MiB take 20 s, so 80 s are left.
    work = with_io(a_job(curve="small 2", bytes=240 * MIB))
    assert work.curve.tolist() == [2]
    assert work.moved_mib.tolist() == [240]
    assert work.compute_s.tolist() == [80]


def test_a_job_whose_bytes_do_not_fit_into_its_run_time_only_does_io() -> None:
    work = with_io(a_job(curve="small 0", bytes=2000 * MIB), a_job())
    assert work.compute_s[0] == 0
    assert work.overlong == 1


def test_an_unknown_curve_is_rejected_by_name() -> None:
    with pytest.raises(InputError, match="no curve 'huge'") as refused:
        with_io(a_job(curve="huge"))
    assert "small 0, small 1" in str(refused.value)


def test_a_job_larger_than_the_machine_is_rejected() -> None:
    with pytest.raises(InputError) as refused:
        with_io(a_job(nodes=300), a_job(nodes=200))
    assert str(refused.value) == (
        "--nodes: a job of the queue has 300 nodes, but the machine has 128; give at least 300"
    )


def test_a_synthetic_queue_has_the_load_that_was_asked_for() -> None:
    jobs = poisson_queue(100_000, load=0.7, machine_nodes=128, seed=1)
    work = sum(job.nodes * job.run_s for job in jobs)
    # The standard error is about 0.5 %.
    assert work / (128 * jobs[-1].submit_s) == pytest.approx(0.7, rel=0.02)


@pytest.mark.slow
def test_a_synthetic_queue_has_exponential_times_and_equally_likely_sizes() -> None:
    jobs = poisson_queue(100_000, load=0.7, machine_nodes=128, seed=1)
    for times in (np.diff([job.submit_s for job in jobs]), np.array([job.run_s for job in jobs])):
        # The mean and the standard deviation of an exponential distribution are the same.
        assert times.std() == pytest.approx(times.mean(), rel=0.02)
    assert np.mean([job.run_s for job in jobs]) == pytest.approx(MEAN_RUN_S, rel=0.02)
    sizes, counts = np.unique([job.nodes for job in jobs], return_counts=True)
    assert sizes.tolist() == [1, 2, 4, 8, 16, 32, 64]
    assert counts / len(jobs) == pytest.approx(1 / 7, rel=0.05)
    assert len({job.application for job in jobs}) == APPLICATIONS


def test_the_smallest_machine_has_a_queue_too() -> None:
    assert {job.nodes for job in poisson_queue(10, load=1, machine_nodes=1, seed=1)} == {1}


def test_the_same_seed_gives_the_same_queue() -> None:
    first, again, other = (
        poisson_queue(100, load=0.7, machine_nodes=128, seed=seed) for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other
