"""Every error is a problem document that quotes nothing, even for bytes that are not HTTP."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import closing

import pytest
from flask import Flask
from gunicorn.http.errors import InvalidHeader

from ioncast.service.decide.worker import SharingWorker
from ioncast.service.web import security_headers
from tests.support.serving import PATIENCE_S, Answer, Served, running, wait_for

TYPE = "application/problem+json"
# Longer than a request line or a header may be.
LONG = b"secret" * 1500


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("problems")
    with running(folder, "--db", str(folder / "db.sqlite"), "--workers", "1") as service:
        yield service


def exchanged(served: Served, request: bytes, *, to_web: bool) -> bytes:
    with closing(socket.socket(socket.AF_UNIX)) as client:
        client.settimeout(PATIENCE_S)
        client.connect(str(served.socket if to_web else served.decisions))
        client.sendall(request)
        return b"".join(iter(lambda: client.recv(1 << 16), b""))


def sent(served: Served, request: bytes, *, to_web: bool = False) -> Answer:
    """The only answer to some bytes, at the socket for decisions; the service hangs up after it.

    On a busy machine the client may be too slow to send all bytes. The service hangs up without
    an answer then, so the bytes are sent again.
    """
    found: bytes = wait_for(lambda: exchanged(served, request, to_web=to_web), "answer")
    assert found.count(b"HTTP/1.1 ") == 1
    head, _, body = found.partition(b"\r\n\r\n")
    status, _, headers = head.partition(b"\r\n")
    said = dict(line.split(": ", 1) for line in headers.decode().splitlines())
    assert int(said["Content-Length"]) == len(body)
    return Answer(int(status.split()[1]), said, body)


def chunked(path: bytes, kind: bytes, body: bytes) -> bytes:
    head = b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head % (path, kind) + body


FORM = b"multipart/form-data; boundary=x"
NOT_HTTP = [
    pytest.param(b"GET /?%s HTTP/1.1\r\nHost: x\r\n\r\n" % LONG, 414, id="long URI"),
    pytest.param(b"GET /%s HTTP/1.1\r\n" % (LONG * 50), 431, id="head without end"),
    pytest.param(b"GET / HTTP/1.1\r\nX-A: %s\r\n\r\n" % LONG, 431, id="long header"),
    pytest.param(b"GET / HTTP/1.1\r\n%s\r\n" % (b"X-A: 1\r\n" * 200), 431, id="many headers"),
    pytest.param(b"secret\r\n\r\n", 400, id="request line"),
    pytest.param(b"GET /secret HTTP/secret\r\n\r\n", 400, id="version"),
    pytest.param(b"GET /secret HTTP/1.1\r\nsecret\r\n\r\n", 400, id="header"),
    pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\nExpect: secret\r\n\r\n", 417, id="expectation"),
    pytest.param(b"GET / HTTP/1.1\r\nTransfer-Encoding: secret\r\n\r\n", 501, id="coding"),
]
DAMAGED_BODIES = [
    pytest.param(
        chunked(b"/v1/allocations", b"application/json", b"secret\r\n"), id="chunk of JSON"
    ),
    pytest.param(chunked(b"/v1/predictions", FORM, b"secret\r\n"), id="chunk of a form"),
    pytest.param(chunked(b"/predict", FORM, b"4\r\n--x\rsecret"), id="chunk for a page"),
]


@pytest.mark.serving
@pytest.mark.parametrize(("request_", "status"), NOT_HTTP)
def test_bytes_that_are_not_http_are_answered_with_a_problem_document(
    served: Served, request_: bytes, status: int
) -> None:
    decider = served.decider()
    answer = sent(served, request_)
    assert (answer.status, answer.headers["Content-Type"]) == (status, TYPE)
    assert answer.json["status"] == status
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert b"secret" not in answer.body
    assert "secret" not in str(answer.headers)
    assert served.decider() == decider


@pytest.mark.serving
@pytest.mark.parametrize("request_", DAMAGED_BODIES)
def test_a_body_that_is_not_http_is_answered_with_a_problem_document(
    served: Served, request_: bytes
) -> None:
    request_ = request_.replace(b"Host: x", b"Host: x\r\nConnection: close")
    answer = sent(served, request_, to_web=True)
    assert (answer.status, answer.headers["Content-Type"]) == (400, TYPE)
    assert b"secret" not in answer.body


@pytest.mark.serving
def test_answers_that_bypass_the_application_have_all_its_headers(served: Served) -> None:
    headers = sent(served, b"secret\r\n\r\n").headers
    assert dict(security_headers.FOR_PROGRAMS).keys() <= headers.keys()
    assert headers["Cache-Control"] == "no-store"
    assert headers["Connection"] == "close"


@pytest.mark.serving
def test_an_answered_request_is_not_answered_again_for_its_body(served: Served) -> None:
    request = chunked(b"/v1/decisions", b"application/json", b"secret\r\n")
    assert sent(served, request).status == 401


@pytest.mark.parametrize(
    ("method", "path", "kind"),
    [
        ("GET", "/v1/measurements?system=nowhere", "not-found"),
        ("GET", "/v1/systems?limit=x", "unusable-input"),
        ("POST", "/v1/coverage", "unsupported-media-type"),
        ("POST", "/v1/systems", "token-needed"),
        ("DELETE", "/v1/systems", "method-not-allowed"),
        ("GET", "/v1/nowhere", "not-found"),
    ],
)
def test_the_type_of_a_problem_is_for_programs(
    app: Flask, method: str, path: str, kind: str
) -> None:
    answer = app.test_client().open(path, method=method)
    assert json.loads(answer.data)["type"] == f"urn:ioncast:{kind}"


@pytest.mark.parametrize(
    ("path", "view"), [("/v1/systems", "benchmarks.list_systems"), ("/", "pages.overview")]
)
def test_a_defect_is_a_problem_document_without_its_details(
    app: Flask, caplog: pytest.LogCaptureFixture, path: str, view: str
) -> None:
    def fail() -> None:
        raise RuntimeError("secret /path")

    app.view_functions[view] = fail
    client = app.test_client()
    answer = client.get(path)
    assert (answer.status_code, answer.mimetype) == (500, TYPE)
    assert json.loads(answer.data)["title"] == "Internal error"
    shown = client.get(path, headers={"Accept": "text/html"})
    assert shown.status_code == 500
    assert not any(
        word in each.text for word in ("secret", "Traceback") for each in (answer, shown)
    )
    assert "secret /path" in caplog.text


def test_an_answer_that_cannot_be_sent_is_a_defect_of_the_service() -> None:
    sender, receiver = socket.socketpair()
    with sender, receiver:
        worker = SharingWorker.__new__(SharingWorker)
        worker.handle_error(object(), sender, None, InvalidHeader("secret"))
        found = receiver.recv(1 << 16)
    assert found.startswith(b"HTTP/1.1 500 ")
    assert b"secret" not in found
