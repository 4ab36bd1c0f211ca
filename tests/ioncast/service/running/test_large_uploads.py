"""A request with more large files than a process may open by default."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchdb.store.database import opened_database, transaction
from ioncast.service.store.tokens import add_token
from ioncast.service.web.http.uploads import MOST_LOGS
from tests.support.serving import running

pytestmark = [pytest.mark.serving, pytest.mark.slow]

# Werkzeug writes parts of more than 500 KB to files.
_LARGE_BYTES = 520_000


def test_hundreds_of_large_parts_are_read_with_few_allowed_files(tmp_path: Path) -> None:
    location = str(tmp_path / "bench.sqlite")
    with opened_database(location) as engine, transaction(engine, write=True) as connection:
        token = add_token(connection, "watch", "scheduler")
    part = (
        b'--edge\r\nContent-Disposition: form-data; name="log"; filename="a.darshan"\r\n\r\n'
        + bytes(_LARGE_BYTES)
        + b"\r\n"
    )
    system = b'--edge\r\nContent-Disposition: form-data; name="system"\r\n\r\nmn4\r\n'
    headers = {
        "Authorization": f"Bearer {token}",
        "Content-Type": "multipart/form-data; boundary=edge",
    }
    count = min(MOST_LOGS, (250 << 20) // _LARGE_BYTES)
    with running(tmp_path, "--db", location, under=("prlimit", "--nofile=256:")) as served:
        body = system + part * count + b"--edge--\r\n"
        answer = served.ask("/v1/traces", method="POST", body=body, headers=headers)
    assert answer.status == 422
    assert "a.darshan: not a Darshan log" in answer.body.decode()
