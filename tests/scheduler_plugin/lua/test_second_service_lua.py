"""ioncast.lua with a second service, which answers if the first one does not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scheduler_plugin.lua.test_job_submit_lua import SETTINGS, WITH_TOKEN, Controller, fields
from tests.scheduler_plugin.lua.test_job_submit_lua import controller as controller  # noqa: PLC0414
from tests.scheduler_plugin.standin import WHY, response

FIRST, SECOND = "/run/ioncast/ioncast.sock", "10.0.0.2"
BOTH = {"second_address": f"{SECOND}:8420"}
NO_FIRST, NO_SECOND = f"no answer from unix:{FIRST}: ", f"no answer from {SECOND}:8420: "
NOT_ASKED = "not asked, because the last questions failed"


def asked_at(controller: Controller, submit: Any) -> list[str]:
    """The services that are asked about another job."""
    before = len(controller.asked_at)
    controller.submit_to(submit)
    return controller.asked_at[before:]


def why(controller: Controller) -> str:
    return fields(controller.lines[-1])["why"]


def test_only_the_first_is_asked_while_it_answers(controller: Controller) -> None:
    assert controller.submit(**BOTH)["licenses"] == "ionode:4"
    assert controller.asked_at == [FIRST]
    assert why(controller) == WHY


def test_the_second_decides_if_the_first_refuses(controller: Controller) -> None:
    controller.down = {FIRST}
    assert controller.submit(**BOTH, **WITH_TOKEN)["licenses"] == "ionode:4"
    assert controller.asked_at == [FIRST, SECOND]
    assert why(controller) == f"{WHY}; {NO_FIRST}connection refused"
    [request] = controller.requests
    assert request.startswith(b"POST /v1/decisions HTTP/1.0\r\nHost: 10.0.0.2:8420\r\n")
    assert controller.open_connections == 0


@pytest.mark.parametrize("status", ["401 UNAUTHORIZED", "500 ERROR", "503 UNAVAILABLE"])
def test_the_second_is_asked_after_an_error_of_the_first(
    controller: Controller, status: str
) -> None:
    controller.answer = response("no", status)
    controller.submit(**BOTH)
    assert controller.asked_at == [FIRST, SECOND]
    assert why(controller).startswith(f"{NO_FIRST}HTTP status {status[:3]}")


def test_an_answer_without_a_number_is_an_answer(controller: Controller) -> None:
    controller.answer = response("", "204 NO CONTENT")
    assert controller.submit(**BOTH, default=1)["licenses"] == "ionode:1"
    assert controller.asked_at == [FIRST]


@pytest.mark.promise("slurm-both-services")
def test_without_an_answer_of_both_a_job_gets_the_default(controller: Controller) -> None:
    controller.down = {FIRST, SECOND}
    assert controller.submit(**BOTH, default=2)["licenses"] == "ionode:2"
    assert why(controller) == (f"{NO_FIRST}connection refused; {NO_SECOND}connection refused")


def test_a_first_that_hangs_leaves_half_of_the_time_to_the_second(controller: Controller) -> None:
    controller.hung = {FIRST}
    controller.takes["connect"] = 0.01
    assert controller.submit(**BOTH, deadline_ms=100)["licenses"] == "ionode:4"
    assert controller.timeouts == pytest.approx([0.05, 0.04, 0.04, 0.05, 0.04, 0.04])
    assert why(controller) == f"{WHY}; {NO_FIRST}timeout"


@pytest.mark.promise("slurm-both-services")
def test_both_together_take_no_longer_than_the_deadline(controller: Controller) -> None:
    controller.hung = {FIRST, SECOND}
    submit = controller.start(**BOTH, deadline_ms=70)
    for _ in range(5):
        began = controller.now
        controller.submit_to(submit)
        assert controller.now - began < 0.0701
    assert why(controller) == f"{NO_FIRST}{NOT_ASKED}; {NO_SECOND}{NOT_ASKED}"


def test_after_two_failures_of_the_first_only_the_second_is_asked_for_a_while(
    controller: Controller,
) -> None:
    controller.hung = {FIRST}
    submit = controller.start(**BOTH, pause_s=5)
    assert [asked_at(controller, submit) for _ in range(4)] == [
        [FIRST, SECOND],
        [FIRST, SECOND],
        [SECOND],
        [SECOND],
    ]
    assert why(controller) == f"{WHY}; {NO_FIRST}{NOT_ASKED}"
    # The second alone has all the time.
    assert controller.timeouts[-1] == pytest.approx(0.05)
    controller.now += 5.1
    # One question is sent as a test, and fails.
    assert [asked_at(controller, submit) for _ in range(2)] == [[FIRST, SECOND], [SECOND]]
    controller.now += 5.1
    controller.hung = set()
    assert [asked_at(controller, submit) for _ in range(2)] == [[FIRST], [FIRST]]


def test_the_first_has_all_the_time_while_the_second_is_not_asked(controller: Controller) -> None:
    controller.down, controller.hung = {FIRST}, {SECOND}
    submit = controller.start(**BOTH, pause_s=5, failures=1)
    assert asked_at(controller, submit) == [FIRST, SECOND]
    # The pause of the first is over, and that of the second not yet.
    controller.now = 1005.02
    controller.down = set()
    assert asked_at(controller, submit) == [FIRST]
    assert controller.timeouts[-3] == pytest.approx(0.05)


def test_one_users_slow_script_is_not_sent_to_the_second_too(controller: Controller) -> None:
    controller.hung = {FIRST}
    controller.submit(**BOTH, **WITH_TOKEN)
    assert [request.split(b" ")[0] for request in controller.requests] == [b"POST", b"GET"]


def test_two_that_were_not_found_are_named_when_lua_socket_is_missing(
    controller: Controller,
) -> None:
    controller.lua.execute("package.path, package.cpath = '', ''")
    controller.submit_to(controller.start(has_sockets=False, **BOTH))
    missing = "lua-socket is not installed"
    assert why(controller) == f"{NO_FIRST}{missing}; {NO_SECOND}{missing}"


def test_old_settings_have_no_second_service(controller: Controller) -> None:
    assert "second_address" not in SETTINGS
    controller.down = {FIRST}
    controller.submit()
    assert controller.asked_at == [FIRST]
