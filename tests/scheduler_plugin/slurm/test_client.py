"""The client of slurmrestd with servers that answer like it: versions, errors and deadlines."""

from __future__ import annotations

import base64
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ioncast_base.errors import InputError
from scheduler_plugin.slurm import (
    JobChange,
    Slurm,
    SlurmAnswerError,
    SlurmError,
    SlurmRefusedError,
    SlurmUnreachableError,
)
from scheduler_plugin.slurm.refusals import refusal
from tests.scheduler_plugin.slurm.changing import change
from tests.scheduler_plugin.slurm.recorded import VERSIONS, Slurmrestd, recorded, served

_PATIENCE_S = 0.4


@pytest.fixture
def slurmrestd() -> Slurmrestd:
    """A slurmrestd of Slurm 25.05."""
    return Slurmrestd(("0.0.40", "0.0.41", "0.0.42", "0.0.43"))


@pytest.fixture
def slurm(slurmrestd: Slurmrestd, tmp_path: Path) -> Iterator[Slurm]:
    with served(slurmrestd, tmp_path / "rest.sock") as address:
        yield Slurm(address, "ada", lambda: "token")


# Versions


def test_the_newest_version_that_both_know_is_taken(slurm: Slurm, slurmrestd: Slurmrestd) -> None:
    assert slurm.version == "0.0.43"
    assert slurmrestd.paths() == ["/slurm/v0.0.44/ping", "/slurm/v0.0.43/ping"]


def test_a_version_newer_than_ours_is_not_asked_for(slurm: Slurm, slurmrestd: Slurmrestd) -> None:
    slurmrestd.versions = ("0.0.43", "0.0.44", "0.0.45")
    assert slurm.version == "0.0.44"


def test_the_version_is_remembered(slurm: Slurm, slurmrestd: Slurmrestd) -> None:
    slurm.jobs()
    slurmrestd.asked.clear()
    slurm.jobs()
    assert slurmrestd.paths() == ["/slurm/v0.0.43/jobs"]


def test_after_an_upgrade_the_version_is_found_anew(slurm: Slurm, slurmrestd: Slurmrestd) -> None:
    slurmrestd.versions = ("0.0.39",)
    before = slurm.jobs()
    slurmrestd.versions = ("0.0.41", "0.0.42", "0.0.43", "0.0.44")
    assert slurm.jobs() == before
    assert slurm.version == "0.0.44"


def test_an_upgrade_between_two_requests_changes_a_job_once(
    slurm: Slurm, slurmrestd: Slurmrestd
) -> None:
    change(slurm, 101, begins_s=1)
    slurmrestd.versions = ("0.0.44",)
    slurmrestd.asked.clear()
    change(slurm, 101, begins_s=1)
    posted = [path for method, path, _, _ in slurmrestd.asked if method == "POST"]
    assert posted == ["/slurm/v0.0.43/job/101", "/slurm/v0.0.44/job/101"]


def test_a_slurmrestd_with_no_version_of_ours_is_said_to_be_so(
    slurm: Slurm, slurmrestd: Slurmrestd
) -> None:
    slurmrestd.versions = ("0.0.37",)
    with pytest.raises(SlurmAnswerError, match=r"no version .* 0\.0\.38 to 0\.0\.44"):
        slurm.jobs()


def test_a_version_is_not_taken_from_a_failure(slurm: Slurm, slurmrestd: Slurmrestd) -> None:
    slurmrestd.instead["ping"] = (502, _errors(1800), 0.0)
    with pytest.raises(SlurmUnreachableError):
        slurm.jobs()
    del slurmrestd.instead["ping"]
    assert slurm.version == "0.0.43"


def test_without_slurmdbd_its_jobs_are_refused_in_plain_words(
    slurm: Slurm, slurmrestd: Slurmrestd
) -> None:
    slurmrestd.has_accounting = False
    with pytest.raises(SlurmAnswerError, match="does not offer /slurmdb/"):
        slurm.ended_jobs(0, 1)
    assert slurm.version == "0.0.43"


# Requests


def test_the_token_is_asked_for_anew(slurmrestd: Slurmrestd) -> None:
    tokens = iter(f"token{number}" for number in range(9))
    with served(slurmrestd) as address:
        slurm = Slurm(address, "ada", lambda: next(tokens))
        slurm.jobs()
        slurm.jobs()
    headers = [headers for _, _, headers, _ in slurmrestd.asked]
    assert {each["X-SLURM-USER-NAME"] for each in headers} == {"ada"}
    used = [each["X-SLURM-USER-TOKEN"] for each in headers]
    assert used[-1] != used[-2]


@pytest.mark.parametrize("token", ["", "two\nlines", "tokén", "tab\t"])
def test_an_unusable_token_is_neither_sent_nor_printed(token: str, slurmrestd: Slurmrestd) -> None:
    with served(slurmrestd) as address:
        slurm = Slurm(address, "ada", lambda: token)
        with pytest.raises(SlurmRefusedError, match="not one line of printable") as caught:
            slurm.jobs()
    assert slurmrestd.asked == []
    assert not token or token not in str(caught.value)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_change_says_only_what_is_to_be_changed(version: str) -> None:
    slurmrestd = Slurmrestd((version,))
    with served(slurmrestd) as address:
        slurm = Slurm(address, "ada", lambda: "token")
        change(slurm, 101, licenses="ionode:2")
        change(slurm, 102, licenses="")
    posted = [(path, body) for method, path, _, body in slurmrestd.asked if method == "POST"]
    assert posted == [
        (f"/slurm/v{version}/job/101", {"licenses": "ionode:2"}),
        (f"/slurm/v{version}/job/102", {"licenses": ""}),
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_begin_time_and_licences_change_in_one_request(version: str) -> None:
    slurmrestd = Slurmrestd((version,))
    with served(slurmrestd) as address:
        slurm = Slurm(address, "ada", lambda: "token")
        assert slurm.version == version
        slurmrestd.asked.clear()
        change(slurm, 102, licenses="ionode:2", begins_s=1790000300)
    # From 0.0.39 on Slurm reads times as numbers; 0.0.38 reads a number as a date.
    begin_time = "uts1790000300" if version == "0.0.38" else 1790000300
    [(method, path, _, body)] = slurmrestd.asked
    assert (method, path) == ("POST", f"/slurm/v{version}/job/102")
    assert body == {"licenses": "ionode:2", "begin_time": begin_time}


@pytest.mark.slow
def test_each_of_many_changes_is_made_and_noted_once(slurmrestd: Slurmrestd) -> None:
    noted: list[int] = []
    with served(slurmrestd) as address:
        slurm = Slurm(address, "ada", lambda: "token")
        slurm.change_all(
            [JobChange(101, begins_s=number) for number in range(100)],
            lambda change, error: noted.append(change.begins_s or 0),
        )
    bodies = [body for method, _, _, body in slurmrestd.asked if method == "POST"]
    assert sorted(body["begin_time"] for body in bodies) == sorted(noted) == list(range(100))


def test_a_rejected_change_does_not_end_the_others(slurm: Slurm, slurmrestd: Slurmrestd) -> None:
    slurmrestd.instead["job/103"] = (500, _errors(2073), 0.0)
    noted: dict[int, SlurmAnswerError | None] = {}
    changes = [JobChange(number, begins_s=1) for number in (101, 103, 102)]
    slurm.change_all(changes, lambda change, error: noted.update({change.job_id: error}))
    assert noted.keys() == {101, 102, 103}
    assert noted[101] is noted[102] is None
    assert noted[103] is not None


def test_a_token_that_is_refused_ends_all_changes(slurm: Slurm, slurmrestd: Slurmrestd) -> None:
    slurmrestd.instead["job/101"] = (500, _errors(6005), 0.0)
    with pytest.raises(SlurmRefusedError):
        slurm.change_all([JobChange(101, begins_s=1)] * 1000, lambda *_: None)
    assert sum(method == "POST" for method, *_ in slurmrestd.asked) < 1000


@pytest.mark.parametrize("version", VERSIONS)
def test_licences_of_a_job_that_runs_are_not_changed(version: str) -> None:
    slurmrestd = Slurmrestd((version,))
    with served(slurmrestd) as address:
        slurm = Slurm(address, "ada", lambda: "token")
        with pytest.raises(SlurmAnswerError, match="job 103 is RUNNING"):
            change(slurm, 103, licenses="ionode:4")
    assert all(method == "GET" for method, *_ in slurmrestd.asked)


def test_jobs_of_slurmdbd_are_asked_for_by_unix_time(slurm: Slurm, slurmrestd: Slurmrestd) -> None:
    slurm.ended_jobs(1790000000, 1790000100)
    asked = "/slurmdb/v0.0.43/jobs?start_time=uts1790000000&end_time=uts1790000100"
    assert slurmrestd.paths()[-1] == asked


def test_no_jobs_of_slurmdbd_are_an_empty_list(slurm: Slurm, slurmrestd: Slurmrestd) -> None:
    # Slurm 22.05 has an error beside the empty list.
    slurmrestd.instead["jobs"] = (200, _errors(9003), 0.0)
    assert slurm.ended_jobs(1790000000, 1790000100) == []


# Errors


def _errors(*numbers: int) -> str:
    words = "words of Slurm"
    told = [{"error_number": number, "error": words, "description": "more"} for number in numbers]
    return json.dumps({"errors": told, "jobs": []})


@pytest.mark.parametrize(
    ("status", "number", "kind"),
    [
        (511, 1007, SlurmRefusedError),  # Slurm 24.11 and newer.
        (500, 1007, SlurmRefusedError),
        (401, 6001, SlurmRefusedError),
        (500, 2010, SlurmRefusedError),  # Another user's job.
        (500, 2002, SlurmRefusedError),
        (502, 1800, SlurmUnreachableError),
        (500, 1800, SlurmUnreachableError),
        (504, 5004, SlurmUnreachableError),
        (500, 7000, SlurmUnreachableError),  # slurmdbd does not answer.
        (500, 2029, SlurmUnreachableError),  # A backup controller in standby.
        (500, 2048, SlurmAnswerError),  # Licences that do not exist.
        (200, 9001, SlurmAnswerError),  # A part of the request failed.
        (400, 9002, SlurmAnswerError),
        (422, 9000, SlurmAnswerError),
    ],
)
def test_errors_of_slurm_are_told_apart(
    slurm: Slurm, slurmrestd: Slurmrestd, status: int, number: int, kind: type[SlurmError]
) -> None:
    slurmrestd.instead["jobs"] = (status, _errors(number), 0.0)
    with pytest.raises(SlurmError) as caught:
        slurm.jobs()
    assert type(caught.value) is kind
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("what", ["jobs", "qos", "associations"])
def test_a_bad_token_is_not_a_slurmdbd_that_is_away(
    slurm: Slurm, slurmrestd: Slurmrestd, what: str
) -> None:
    # The answers of slurmrestd 24.11.5 to the token `not.a.token`, and to a slurmdbd that is away.
    slurmrestd.instead[what] = (500, _errors(7000), 0.0)
    asked = (
        partial(slurm.limits, "ionode", 8) if what != "jobs" else partial(slurm.ended_jobs, 0, 1)
    )
    with pytest.raises(SlurmUnreachableError, match="slurmdbd"):
        asked()
    slurmrestd.instead["licenses"] = (511, _errors(1007), 0.0)
    with pytest.raises(SlurmRefusedError, match="the token is not accepted"):
        asked()


@pytest.mark.parametrize("number", [-1, 1000])
@pytest.mark.parametrize(
    ("took_s", "kind"), [(0.1, SlurmRefusedError), (9.0, SlurmUnreachableError)]
)
def test_an_error_without_words_is_the_controllers_where_it_took_a_while(
    number: int, took_s: float, kind: type[SlurmError]
) -> None:
    # Slurm 22.05 to 24.05; 1000 for a change. slurmrestd tries for 9 s to reach slurmctld.
    found = refusal("address", "token", took_s, 500, [{"error_number": number, "error": "words"}])
    assert type(found) is kind


@pytest.mark.parametrize("number", [-1, 1007, 7000])
def test_a_token_that_ended_is_said_to_have(slurmrestd: Slurmrestd, number: int) -> None:
    # 23.11 uses the token for slurmdbd first, and reports that it cannot reach the database.
    claims = base64.urlsafe_b64encode(b'{"exp": 1790000000, "sun": "ada"}').decode().strip("=")
    slurmrestd.instead["jobs"] = (500, _errors(number), 0.0)
    with served(slurmrestd) as address:
        slurm = Slurm(address, "ada", lambda: f"head.{claims}.signature")
        with pytest.raises(SlurmRefusedError, match="the token expired at 2026-09-21T14:13:20Z"):
            slurm.jobs()


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, "Authentication failure", SlurmRefusedError),
        (500, "Authentication does not apply to request", SlurmRefusedError),  # Slurm 25.11.0.
        (502, "<html>Bad Gateway</html>", SlurmUnreachableError),
        (503, "", SlurmUnreachableError),
        (200, "<html>It works!</html>", SlurmAnswerError),
        (200, "", SlurmAnswerError),
        (200, "[]", SlurmAnswerError),
        (200, "[" * 100_000, SlurmAnswerError),
        (200, '{"jobs": [', SlurmAnswerError),
        (200, "{}", SlurmAnswerError),
        (200, '{"jobs": null}', SlurmAnswerError),
        (200, '{"jobs": [null]}', SlurmAnswerError),
        (200, '{"jobs": [{"job_id": 1}]}', SlurmAnswerError),
        (200, '{"jobs": [{"job_id": 1, "job_state": "RUNNING"}]}', SlurmAnswerError),
        (200, '{"jobs": [{"job_id": "one", "job_state": ["RUNNING"]}]}', SlurmAnswerError),
        (200, '{"jobs": [{"job_id": 1, "job_state": []}]}', SlurmAnswerError),
        (200, '{"errors": ["a text"], "jobs": []}', SlurmAnswerError),
        (200, '{"errors": 5, "jobs": []}', SlurmAnswerError),
        (500, '{"errors": [], "jobs": []}', SlurmAnswerError),
    ],
)
def test_answers_that_are_none_are_refused(
    slurm: Slurm, slurmrestd: Slurmrestd, status: int, body: str, kind: type[SlurmError]
) -> None:
    slurmrestd.instead["jobs"] = (status, body, 0.0)
    with pytest.raises(SlurmError) as caught:
        slurm.jobs()
    assert type(caught.value) is kind
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_tasks_that_22_05_changed_are_no_errors() -> None:
    # Slurm lists the changed tasks of an array as errors without a number.
    told = {"errors": [{"description": "job array update failed", "source": "_parse_job_list"}]}
    slurmrestd = Slurmrestd(("0.0.38",), instead={})
    with served(slurmrestd) as address:
        slurm = Slurm(address, "ada", lambda: "token")
        assert slurm.version == "0.0.38"
        slurmrestd.instead["job/101"] = (200, json.dumps(told), 0.0)
        change(slurm, 101, begins_s=1)


def test_tasks_that_newer_versions_did_not_change_are_errors(
    slurm: Slurm, slurmrestd: Slurmrestd
) -> None:
    results = [
        {"job_id": 105, "error_code": 0, "error": "No error", "why": ""},
        {"job_id": 106, "error_code": 2021, "error": "Job/step already completing", "why": ""},
    ]
    told = {"results": results, "errors": [], "warnings": []}
    slurmrestd.instead["job/105"] = (200, json.dumps(told), 0.0)
    with pytest.raises(SlurmAnswerError, match="already completing"):
        change(slurm, 105, begins_s=1)


def test_a_slurmctld_that_is_down_fails_the_ping(slurm: Slurm, slurmrestd: Slurmrestd) -> None:
    slurm.jobs()
    down = {"pings": [{"hostname": "ctl", "pinged": "DOWN", "responding": False}], "errors": []}
    slurmrestd.instead["ping"] = (200, json.dumps(down), 0.0)
    with pytest.raises(SlurmUnreachableError, match="slurmctld does not answer"):
        slurm.ping()


@pytest.mark.parametrize(
    "address",
    [
        "",
        "unix:",
        "unix:relative.sock",
        "http://",
        "http://host:port",
        "http://host/slurm",
        "ftp://host",
        "host:6820",
    ],
)
def test_an_unusable_address_is_rejected(address: str) -> None:
    with pytest.raises(InputError, match="not an address"):
        Slurm(address, "ada", lambda: "token")


@pytest.mark.parametrize("user", ["", "ada\nX-SLURM-USER-NAME: root", "adä"])
def test_an_unusable_user_name_is_rejected(user: str) -> None:
    with pytest.raises(InputError, match="not a valid user name"):
        Slurm("unix:/run/slurmrestd.sock", user, lambda: "token")


@pytest.mark.parametrize("address", ["unix:/no/such/socket", "http://127.0.0.1:1"])
def test_nobody_there_is_unreachable(address: str) -> None:
    with pytest.raises(SlurmUnreachableError, match="no server answers"):
        Slurm(address, "ada", lambda: "token").jobs()


# Deadlines


def _say_nothing(connection: socket.socket) -> None:
    while connection.recv(65536):
        pass


def _trickle_headers(connection: socket.socket) -> None:
    for letter in b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 1000:
        connection.sendall(bytes([letter]))
        time.sleep(_PATIENCE_S / 8)


def _trickle_body(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    for letter in b" " * 1000:
        connection.sendall(bytes([letter]))
        time.sleep(_PATIENCE_S / 8)


def _hang_up(connection: socket.socket) -> None:
    connection.recv(65536)


def _stop_within_the_body(connection: socket.socket) -> None:
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{")


def _speak_something_else(connection: socket.socket) -> None:
    connection.recv(65536)
    connection.sendall(b"220 mail ready\r\n")


@contextmanager
def _misbehaving(how: Callable[[socket.socket], None]) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                    with connection:
                        how(connection)
                except OSError:
                    return

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("how", [_say_nothing, _trickle_headers, _trickle_body])
def test_a_request_ends_at_its_deadline(how: Callable[[socket.socket], None]) -> None:
    with _misbehaving(how) as address:
        slurm = Slurm(address, "ada", lambda: "token", _PATIENCE_S)
        with pytest.raises(SlurmUnreachableError, match=r"no answer within 0\.4 s"):
            slurm.jobs()


def test_a_server_that_accepts_nobody_is_unreachable() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        address = server.getsockname()
        with socket.create_connection(address), socket.socket() as second:
            second.setblocking(False)
            second.connect_ex(address)
            slurm = Slurm(f"http://127.0.0.1:{address[1]}", "ada", lambda: "t", _PATIENCE_S)
            with pytest.raises(SlurmUnreachableError):
                slurm.jobs()


@pytest.mark.parametrize("how", [_hang_up, _stop_within_the_body, _speak_something_else])
def test_a_cut_answer_is_an_error(how: Callable[[socket.socket], None]) -> None:
    with _misbehaving(how) as address:
        slurm = Slurm(address, "ada", lambda: "token", 5.0)
        with pytest.raises(SlurmError):
            slurm.jobs()


def test_a_question_whose_connection_is_dropped_is_asked_once_more(
    slurm: Slurm, slurmrestd: Slurmrestd
) -> None:
    expected = slurm.jobs()
    slurmrestd.asked.clear()
    slurmrestd.drops = 1
    assert slurm.jobs() == expected
    assert slurmrestd.paths() == ["/slurm/v0.0.43/jobs"] * 2


def test_a_question_that_is_dropped_twice_is_an_error(slurm: Slurm, slurmrestd: Slurmrestd) -> None:
    slurm.jobs()
    slurmrestd.asked.clear()
    slurmrestd.drops = 2
    with pytest.raises(SlurmAnswerError, match="not HTTP"):
        slurm.jobs()
    assert len(slurmrestd.asked) == 2


def test_a_change_whose_connection_is_dropped_is_not_repeated(
    slurm: Slurm, slurmrestd: Slurmrestd
) -> None:
    slurm.jobs()
    slurmrestd.asked.clear()
    slurmrestd.drops = 1
    with pytest.raises(SlurmAnswerError, match="not HTTP"):
        change(slurm, 101, begins_s=1)
    assert [method for method, *_ in slurmrestd.asked].count("POST") == 1


def test_an_answer_too_large_is_not_taken(slurm: Slurm, monkeypatch: pytest.MonkeyPatch) -> None:
    assert slurm.version
    monkeypatch.setattr("scheduler_plugin.slurm.exchange._LARGEST_ANSWER_BYTES", 100)
    with pytest.raises(SlurmAnswerError, match="larger than"):
        slurm.jobs()


@pytest.mark.slow
def test_thousands_of_jobs_with_all_their_fields_are_read(
    slurm: Slurm, slurmrestd: Slurmrestd
) -> None:
    told: dict[str, Any] = json.loads(recorded("0.0.43", "jobs"))
    unread = {f"unread_{number}": {"set": True, "number": number} for number in range(100)}
    told["jobs"] = [job | unread for job in told["jobs"]] * 500
    assert slurm.version
    slurmrestd.instead["jobs"] = (200, json.dumps(told), 0.0)
    assert len(slurm.jobs()) == 3500


@pytest.mark.parametrize("broken", [{"job_state": []}, {"job_id": None}, {"priority": "high"}])
def test_a_job_that_cannot_be_read_hides_no_other_one(
    slurm: Slurm, slurmrestd: Slurmrestd, caplog: pytest.LogCaptureFixture, broken: dict[str, Any]
) -> None:
    every_job = slurm.jobs()
    told = json.loads(recorded("0.0.43", "jobs"))
    told["jobs"][0] |= broken
    slurmrestd.instead["jobs"] = 200, json.dumps(told), 0.0
    for _ in range(3):
        assert slurm.jobs() == every_job[1:]
    [record] = caplog.records
    assert "is left out: the answer's jobs cannot be read" in record.message


def test_jobs_none_of_which_can_be_read_are_an_error(slurm: Slurm, slurmrestd: Slurmrestd) -> None:
    slurmrestd.instead["jobs"] = 200, json.dumps({"jobs": [{"partition": "b"}, 4]}), 0.0
    with pytest.raises(SlurmAnswerError, match="the answer's jobs cannot be read"):
        slurm.jobs()
