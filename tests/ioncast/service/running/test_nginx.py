"""The sample configuration of nginx, under a real nginx without TLS."""

from __future__ import annotations

import contextlib
import gzip
import http.client
import json
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing
from importlib.resources import files
from pathlib import Path

import pytest

from ioncast_base.pages.rendering import STYLE
from tests.support.services import PATH
from tests.support.serving import PATIENCE_S, Served, free_port, running, wait_for

pytestmark = pytest.mark.nginx

SAMPLE = Path(str(files("ioncast.service.running"))) / "deploy" / "nginx.conf"


def configuration(folder: Path, port: int, upstream: Path) -> str:
    """The sample for one port without TLS, with all files of nginx in a folder."""
    text = SAMPLE.read_text(encoding="utf-8")
    text = text[: text.rindex("\nserver {")]
    text = re.sub(r"^ *(ssl_\w+|listen \[::\]).*;\n", "", text, flags=re.MULTILINE)
    text = text.replace("listen 443 ssl;", f"listen 127.0.0.1:{port};")
    text = text.replace("unix:/run/ioncast/ioncast.sock", f"unix:{upstream}")
    text = text.replace("/var/log/nginx", str(folder))
    places = [f"{name}_temp_path {folder}/{name};" for name in ("client_body", "proxy", "fastcgi")]
    places += [f"{name}_temp_path {folder}/{name};" for name in ("uwsgi", "scgi")]
    # A client that sends nothing for so long is given up.
    text = re.sub(r"(client_\w+_timeout) \w+;", rf"\1 {SILENCE_S}s;", text)
    own = f"user root; pid {folder}/pid; daemon off; error_log stderr; events {{}}"
    return f"{own} http {{ {' '.join(places)}\n{text}\n}}"


SILENCE_S = 2
THREADS = 4
# More clients than threads.
MANY = 12
UPLOAD = (
    b"POST /v1/predictions HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n"
    b"Content-Type: multipart/form-data; boundary=x\r\n\r\n--x\r\n"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("nginx")


@pytest.fixture(scope="module")
def port(folder: Path) -> Iterator[int]:
    """The port of a running nginx."""
    program = shutil.which("nginx", path=PATH)
    assert program is not None
    port, file = free_port(), folder / "nginx.conf"
    file.write_text(configuration(folder, port, folder / "ioncast.sock"), encoding="utf-8")
    with (folder / "nginx.log").open("wb") as log:
        process = subprocess.Popen(
            [program, "-p", folder, "-e", "stderr", "-c", file], stdout=log, stderr=log
        )
    try:
        wait_for(lambda: ask(port, "GET")[0], "nginx")
        yield port
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def ask(
    port: int, method: str, target: str = "/v1/style.css", **headers: str
) -> tuple[int, http.client.HTTPMessage, bytes]:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)) as connection:
        connection.request(method, target, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()


def assert_problem(port: int, expected: int, method: str = "GET", **headers: str) -> None:
    status, told, body = ask(port, method, **headers)
    assert status == expected, body
    assert told["Content-Type"] == "application/problem+json"
    document = json.loads(body)
    assert document["status"] == expected
    assert document["type"].startswith("urn:ioncast:")
    assert document["title"]
    assert document["detail"]


@pytest.mark.promise("service-behind-nginx")
def test_a_request_that_is_too_large_is_a_problem_document(port: int) -> None:
    assert_problem(port, 413, "POST", **{"Content-Length": str(300 << 20)})


@pytest.mark.promise("service-behind-nginx")
def test_a_service_that_does_not_answer_is_a_problem_document(port: int) -> None:
    assert_problem(port, 503)
    assert int(ask(port, "GET")[1]["Retry-After"]) > 0


def test_the_log_leaves_out_only_addresses_of_kept_results(folder: Path, port: int) -> None:
    hidden = ["/kept/secret", "/kept/secret/delete", "/login?next=/kept/secret"]
    hidden += ["/login?next=%2Fkept%2Fsecret"]
    told = ["/v1/decisions?system=a&x=kept", "/v1/decisions?system=/kept/", "/predict?login?kept"]
    told += ["/keptalong", "/login?next=/jobs", "/last"]
    for target in hidden + told:
        ask(port, "GET", target)
    log = folder / "access.log"
    wait_for(lambda: "/last" in log.read_text(), "the access log")
    found = re.findall(r'"GET (\S+) HTTP', log.read_text())
    assert [target for target in found if target != "/v1/style.css"] == told


@pytest.fixture(scope="module")
def served(folder: Path, port: int) -> Iterator[Served]:
    """A service behind nginx, which answers the tests from here on."""
    told = ("--db", str(folder / "bench.sqlite"), "--threads", str(THREADS))
    with running(folder, *told) as served:
        assert served.socket == folder / "ioncast.sock"
        yield served


@pytest.mark.serving
@pytest.mark.usefixtures("served")
def test_errors_of_the_service_are_its_own_and_its_style_is_compressed(port: int) -> None:
    assert_problem(port, 404)
    assert b"/docs lists all operations" in ask(port, "GET")[2]
    zipped = {"Accept-Encoding": "gzip"}
    _, told, style = ask(port, "GET", "/assets/style.css", **zipped)
    assert told["Content-Encoding"] == "gzip"
    assert gzip.decompress(style) == STYLE.read_bytes()
    assert ask(port, "GET", "/login", **zipped)[1]["Content-Encoding"] is None


@pytest.mark.serving
@pytest.mark.usefixtures("served")
@pytest.mark.promise("service-no-free-threads")
@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-A", id="half a head"),
        pytest.param(UPLOAD, id="half an upload"),
    ],
)
def test_slow_clients_take_no_thread_of_the_service(port: int, sent: bytes) -> None:
    with contextlib.ExitStack() as stack:
        clients = [
            stack.enter_context(socket.create_connection(("127.0.0.1", port), PATIENCE_S))
            for _ in range(MANY)
        ]
        for client in clients:
            client.sendall(sent)
        for _ in range(5):
            assert ask(port, "GET", "/healthz")[0] == 200
        # All of them are given up, and had no answer of the service.
        for client in clients:
            assert b"200 OK" not in b"".join(iter(lambda client=client: client.recv(4096), b""))
        assert ask(port, "GET", "/healthz")[0] == 200
