"""Random submissions among faults fare as in plain Slurm, no job is held for ever, no daemon dies.

Two clusters get the same submissions. One of them has ioncast as docs/slurm.md installs it, with
all modes in partitions of their own: plugin, service, watch and arbiter, each with its own user.
`IONCAST_TEST_SEED` and the numbers in a failure repeat its submissions.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from scheduler_plugin.slurm import Slurm
from scheduler_plugin.token_files import read_token
from tests.scheduler_plugin.random_jobs.faults import (
    FAULTS,
    FAULTS_OF_LIMITS,
    Fault,
    slurmctld_restarted,
)
from tests.scheduler_plugin.random_jobs.site import USER, Site, both
from tests.scheduler_plugin.random_jobs.submissions import (
    MODES,
    PROGRAM,
    Submission,
    submission,
)
from tests.scheduler_plugin.random_jobs.submitting import Client, Fared, Jobs
from tests.support.examples import SEED, examples
from tests.support.serving import wait_for
from tests.support.slurm import WATCH_USER

pytestmark = [pytest.mark.slurm, pytest.mark.serving]

# A hundred in `make test`.
SUBMISSIONS = examples(3000, part=2 / 9)
IN_A_ROUND = 6
PATIENCE_S = 300.0


@dataclass
class Pair:
    """The same user on both clusters.

    Attributes
    ----------
    strange : list of str
        Submissions that one cluster accepted and the other rejected.
    compared : set of int
        Numbers of the submissions that must fare alike.
    """

    site: Site
    plain: Client
    with_ioncast: Client
    strange: list[str] = field(default_factory=list)
    compared: set[int] = field(default_factory=set)
    accepted: int = 0

    def round(self, numbers: range, fault: Fault) -> None:
        """Submit half of the jobs before a fault, and half of them during it."""
        given = {number: made_up(number) for number in numbers}
        with ThreadPoolExecutor(4) as pool:
            fared = {n: pool.submit(self._submit, n, given[n]) for n in numbers[::2]}
            if fault is slurmctld_restarted:
                # A client that has no answer yet cannot know whether its job was accepted.
                _wait(fared)
            with fault(self.site, random.Random(f"{SEED}-{numbers}")):
                fared |= {n: pool.submit(self._submit, n, given[n]) for n in numbers[1::2]}
                _wait(fared)
        for number, future in fared.items():
            is_limited = fault in FAULTS_OF_LIMITS and given[number].has_limited_qos
            if not given[number].is_immediate and not is_limited:
                self._compare(number, given[number], fault, *future.result())

    def _submit(self, number: int, given: Submission) -> tuple[Fared, Fared]:
        return self.plain.submit(number, given), self.with_ioncast.submit(number, given)

    def _compare(
        self, number: int, given: Submission, fault: Fault, plain: Fared, with_ioncast: Fared
    ) -> None:
        self.compared.add(number)
        self.accepted += plain.is_accepted
        if plain.is_accepted != with_ioncast.is_accepted:
            self.strange.append(
                f"{SEED}-{number} during {fault.__name__}: {given}\n"
                f"plain: {plain}\nwith ioncast: {with_ioncast}"
            )

    def wait_until_jobs_fare_alike(self) -> None:
        """Wait until the same jobs have ended on both clusters, and no more end."""
        before: list[Jobs] = []
        give_up_at = time.monotonic() + PATIENCE_S
        while True:
            now = [Jobs.of(each.cluster) for each in (self.plain, self.with_ioncast)]
            unlike = self._unlike(*now)
            if now == before and not unlike:
                return
            assert time.monotonic() < give_up_at, self._describe(unlike, now)
            if now == before:
                self._cancel_stuck(*now)
            before = now
            time.sleep(1)

    def _unlike(self, plain: Jobs, with_ioncast: Jobs) -> set[int]:
        """Numbers of jobs that fare in different ways, or that nobody but ioncast holds."""
        found = set()
        for number, job_id in self.with_ioncast.ids.items():
            fate = with_ioncast.fate(job_id)
            if number in self.compared and number in self.plain.ids:
                is_unlike = fate != plain.fate(self.plain.ids[number])
            else:
                is_unlike = fate == "held" and not made_up(number).waits_for_its_user
            if is_unlike:
                found.add(number)
        return found

    def _cancel_stuck(self, plain: Jobs, with_ioncast: Jobs) -> None:
        """Cancel the first het job that Slurm cannot start: it keeps nodes idle for it.

        Of several het jobs each may wait for nodes that Slurm keeps for another one, which depends
        on the moments at which they came.
        """
        for number, job_id in self.plain.ids.items():
            other = self.with_ioncast.ids.get(number)
            waits = plain.fate(job_id) == "to do" or (other and with_ioncast.lacks_nodes(other))
            if waits and made_up(number).is_het:
                for client in (self.plain, self.with_ioncast):
                    if number in client.ids:
                        client.cluster.run("scancel", str(client.ids[number]))
                return

    def _describe(self, numbers: set[int], jobs: list[Jobs]) -> str:
        clients = zip((self.plain, self.with_ioncast), jobs, strict=True)
        return "\n".join(
            f"{SEED}-{number}: {made_up(number)}: {all_jobs.states.get(client.ids.get(number, 0))}"
            for client, all_jobs in clients
            for number in sorted(numbers)
        )


def made_up(number: int) -> Submission:
    """The submission of a number; it may depend on those of the rounds before."""
    return submission(SEED, number, number - (number - 1) % IN_A_ROUND if number else 0)


def _wait(fared: dict[int, Future[tuple[Fared, Fared]]]) -> None:
    for future in fared.values():
        future.result()


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    # Other users cannot read pytest's folders.
    with TemporaryDirectory(prefix="random-jobs-") as name, both(Path(name)) as found:
        yield found


def faults(count: int) -> Iterator[Fault]:
    """So many faults: all of them in a random order, and again."""
    chance = random.Random(SEED)
    for begin in range(0, count, len(FAULTS)):
        yield from chance.sample(FAULTS, len(FAULTS))[: count - begin]


@contextmanager
def pair_of(site: Site) -> Iterator[Pair]:
    plain, with_ioncast = (Client(each, site.program) for each in (site.plain, site.with_ioncast))
    try:
        yield Pair(site, plain, with_ioncast)
    finally:
        plain.end()
        with_ioncast.end()


def daemons_live(site: Site) -> None:
    assert "UP" in site.with_ioncast.run("scontrol", "ping").stdout
    processes = {"service": site.service.process} | {
        each.log.stem: each.process for each in (site.watch, site.arbiter)
    }
    assert {name: each.poll() for name, each in processes.items()} == dict.fromkeys(processes)
    for log in (site.service.log, site.watch.log, site.arbiter.log):
        assert "Traceback" not in log.read_text(errors="replace")
    said = (site.folder / "watch.log").read_text(errors="replace")
    assert "not followed" not in said


@pytest.mark.promise("slurm-service-down-hangs")
@pytest.mark.promise("slurm-plugin-or-settings-broken")
@pytest.mark.promise("slurm-limits-file-broken")
@pytest.mark.promise("slurm-arbiter-killed-hangs")
@pytest.mark.promise("slurm-job-submit-lua-broken")
def test_submissions_fare_as_in_plain_slurm_whatever_breaks(site: Site) -> None:
    rounds = [
        range(begin, min(begin + IN_A_ROUND, SUBMISSIONS))
        for begin in range(1, SUBMISSIONS, IN_A_ROUND)
    ]
    with pair_of(site) as pair:
        # Some submissions depend on the first job.
        pair.round(range(1), FAULTS[0])
        for numbers, fault in zip(rounds, faults(len(rounds)), strict=True):
            pair.round(numbers, fault)
        assert not pair.strange, "\n\n".join(pair.strange)
        site.wait_until_working()
        pair.wait_until_jobs_fare_alike()
    assert SUBMISSIONS / 10 < pair.accepted < SUBMISSIONS
    daemons_live(site)
    assert "a job stays as it is" not in site.with_ioncast.controller_log()


def test_after_all_faults_each_mode_decides(site: Site) -> None:
    site.wait_until_working()
    for partition, mode in MODES.items():
        held = " held=yes" if mode == "arbitrate" else ""
        line = re.compile(rf"mode={mode} .* io_nodes=[1-8] source=history .*{held}")
        if mode != "off":
            wait_for(partial(_is_decided, site, partition, line), f"decision in mode {mode}")


def _is_decided(site: Site, partition: str, line: re.Pattern[str]) -> bool:
    """Submit a job of a known program; after a fault the plugin may pause for some seconds."""
    # Slurm does not see that a file changed twice in a second, so it may have damaged settings.
    site.reload()
    slurm, script = site.with_ioncast, f"#!/bin/sh\nsrun {PROGRAM.decode()}\n"
    options = (f"--partition={partition}", "--ntasks=16", "--overcommit")
    before = len(slurm.controller_log())
    slurm.submit(*options, script=script, user=USER)
    added = slurm.controller_log()[before:]
    # Shown if it fails.
    print(added)
    return line.search(added) is not None


def test_the_watch_knows_jobs_with_strange_names(site: Site) -> None:
    # Het jobs that Slurm cannot start keep nodes idle, so that other jobs wait behind them.
    site.with_ioncast.run("scancel", f"--user={USER}")
    job = site.with_ioncast.submit(b"--job-name=\xff", b"--comment=\xfe", user=USER)
    token = read_token(str(site.folder / f"{WATCH_USER}.jwt"))
    with Slurm(f"unix:{site.with_ioncast.rest}", WATCH_USER, lambda: token, PATIENCE_S) as slurm:

        def is_accounted() -> bool:
            now = int(time.time())
            return job in {each.id for each in slurm.ended_jobs(now - 3600, now + 60)}

        wait_for(is_accounted, "job in slurmdbd")
