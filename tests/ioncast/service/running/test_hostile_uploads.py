"""While schedulers ask, damaged logs arrive: no question waits for them, and nothing crashes."""

from __future__ import annotations

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from benchdb.store.database import opened_database, transaction
from ioncast.service.store.tokens import add_token
from tests.support.examples import examples
from tests.support.serving import PATIENT, Answer, Asking, Served, running, wait_for

pytestmark = pytest.mark.serving

TESTBED = Path(__file__).resolve().parents[4] / "experiments" / "data" / "testbed" / "logs"
FIXTURES = Path(__file__).resolve().parents[3] / "summario" / "fixtures"
UPLOADS = examples(500)
# Twice as many as may be read at the same time, so that half of them must send theirs again.
SENDERS = 4
ASKING_THREADS = 2
DECIDE = "/v1/decisions?system=testbed&executable=hacc_io_write_posix_fpp&user=demo&tasks=16"


def damaged(seed: int) -> bytes:
    """Take a genuine log and damage it in one way; some logs stay whole."""
    draw = random.Random(seed)
    logs = sorted([*TESTBED.glob("*.darshan"), *FIXTURES.glob("*.darshan")])
    data = bytearray(draw.choice(logs).read_bytes())
    at = draw.randrange(len(data))
    kind = seed % 6
    if kind == 0:
        del data[at:]
    elif kind == 1:
        data[at] ^= 1 << draw.randrange(8)
    elif kind == 2:
        for _ in range(3):
            data[draw.randrange(min(1328, len(data)))] = draw.randrange(256)
    elif kind == 3:
        data[at : at + 400] = bytes(len(data[at : at + 400]))
    elif kind == 4:
        data[at:at] = draw.randbytes(200)
    return bytes(data)


def form(log: bytes, name: str) -> tuple[bytes, dict[str, str]]:
    """Make a multipart body with a log and its system, and its headers."""
    parts = [
        b'--edge\r\nContent-Disposition: form-data; name="system"\r\n\r\ntestbed\r\n',
        b'--edge\r\nContent-Disposition: form-data; name="log"; filename="%b"\r\n'
        b"Content-Type: application/octet-stream\r\n\r\n" % name.encode(),
        log,
        b"\r\n--edge--\r\n",
    ]
    return b"".join(parts), {"Content-Type": "multipart/form-data; boundary=edge"}


def send(served: Served, path: str, seed: int, token: str) -> Answer:
    """Send a damaged log; if the service is busy, send it again later."""
    body, headers = form(damaged(seed), f"log-{seed}.darshan")
    headers["Authorization"] = f"Bearer {token}"

    def answered() -> Answer | None:
        answer = served.ask(path, method="POST", body=body, headers=headers)
        return None if answer.status == 503 else answer

    found: Answer = wait_for(answered, "answer to an upload")
    return found


@pytest.mark.promise("service-no-free-threads")
def test_hundreds_of_damaged_logs_disturb_nobody(filled_location: str, tmp_path: Path) -> None:
    with (
        opened_database(filled_location) as database,
        transaction(database, write=True) as connection,
    ):
        token = add_token(connection, "a scheduler", "scheduler")
    uploads = tmp_path / "uploads"
    uploads.mkdir()
    environment = PATIENT | {"IONCAST_REQUESTS_PER_MINUTE": "1000000", "TMPDIR": str(uploads)}
    with running(tmp_path, "--db", filled_location, environment=environment) as served:
        wait_for(lambda: served.ask(DECIDE).json["source"] == "history", "prepared answers")
        before = served.web(), served.keeper()
        with (
            Asking(served.ask, DECIDE, ASKING_THREADS) as asking,
            Asking(served.decide, DECIDE, ASKING_THREADS) as asking_there,
            ThreadPoolExecutor(SENDERS) as senders,
        ):
            sent = [
                senders.submit(send, served, path, seed, token)
                for seed, path in zip(
                    range(UPLOADS), ["/v1/traces", "/v1/predictions"] * UPLOADS, strict=False
                )
            ]
            answers = [each.result() for each in sent]
        # Whole logs become runs, so the number may change.
        assert not asking.refused + asking_there.refused
        assert asking_there.numbers
        # On a busy machine, two threads that ask get less done than four that send.
        assert len(asking.numbers) > UPLOADS / 10
        assert (served.web(), served.keeper()) == before
        counts = Counter(answer.status for answer in answers)
        # The service accepts whole logs and harmless damage, and rejects all others.
        assert set(counts) <= {200, 201, 422}, counts
        assert counts[422] > UPLOADS / 4
        for answer in answers:
            if answer.status == 422:
                assert answer.headers["Content-Type"] == "application/problem+json"
                assert answer.json["detail"]
                assert b"/tmp" not in answer.body
                assert b"Traceback" not in answer.body
        assert not list(uploads.iterdir())
