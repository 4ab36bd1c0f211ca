"""Processes of the service are killed and stopped at random, one after the other."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import time
from pathlib import Path

import pytest
from sqlalchemy import select

from benchdb.store.database import opened_database, transaction
from ioncast.service.store.tables import decisions
from ioncast.service.store.tokens import add_token
from tests.support.examples import SEED, examples
from tests.support.posting import Posting, stored
from tests.support.serving import Asking, running, wait_for

pytestmark = [pytest.mark.serving, pytest.mark.slow]

HACC = "/v1/decisions?system=testbed&executable=hacc_io_write_posix_fpp&user=demo&tasks=16"
# The signals follow each other faster than some processes start.
LONGEST_PAUSE_S = 5.0
ASKING_THREADS = 2


@pytest.mark.promise("service-web")
@pytest.mark.promise("service-keeper")
@pytest.mark.promise("service-process-for-decisions")
@pytest.mark.promise("service-process-stopped")
def test_random_kills_and_stops_lose_nothing(tmp_path: Path, demo_on_sqlite: Path) -> None:
    location = str(shutil.copy(demo_on_sqlite, tmp_path / "bench.sqlite"))
    with opened_database(location) as database, transaction(database, write=True) as connection:
        token = add_token(connection, "an administrator", "admin")
    chance = random.Random(SEED)
    # With its low priority the process that reads uploads may take minutes to start.
    patient = {"IONCAST_UPLOAD_S": "600", "IONCAST_REQUESTS_PER_MINUTE": "1000000"}
    with running(tmp_path, "--db", location, environment=patient) as served:
        served.wait_until_prepared(HACC)
        signals = examples(60, part=0.1)
        with Posting(served, token, "soak") as posting:
            posting.wait_until_accepted()
            with Asking(served.decide, HACC, ASKING_THREADS) as asked:
                for _ in range(signals):
                    number = chance.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGSTOP))
                    with contextlib.suppress(ProcessLookupError, IndexError):
                        os.kill(chance.choice(served.processes()), number)
                    time.sleep(chance.uniform(0, LONGEST_PAUSE_S))
                asked.wait_until_answered()
            posting.wait_until_accepted()
        # Only questions that the victims were answering have no answer.
        assert len(asked.refused) <= ASKING_THREADS * signals, asked.refused
        assert not asked.unprepared, asked.unprepared
        assert asked.counts == {8}

        def are_stored() -> bool:
            with opened_database(location) as database, transaction(database) as connection:
                return set(asked.numbers) <= set(connection.scalars(select(decisions.c.id)))

        wait_for(are_stored, "stored decisions")
        assert not posting.wrong, posting.wrong
        assert stored(served, posting) == posting.ids
