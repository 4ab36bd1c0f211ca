"""An address that the service cannot listen at is an error in one line, before anything starts."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ioncast.service.running.binding import check_binds
from ioncast_base.errors import InputError


@pytest.fixture
def taken() -> Iterator[str]:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def refusal(bind: str) -> str:
    with pytest.raises(InputError) as raised:
        check_binds([bind])
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_free_places_stay_free(tmp_path: Path) -> None:
    free = ["127.0.0.1:0", "localhost:0", f"unix:{tmp_path}/s"]
    check_binds(free)
    check_binds(free)
    assert list(tmp_path.iterdir()) == []


def test_a_port_that_is_taken_is_named(taken: str) -> None:
    assert refusal(taken) == (
        f"{taken}: the service cannot listen there: Address already in use;"
        " stop the program that listens there, or choose another address with --bind or"
        " --decisions-bind"
    )


def test_an_address_is_for_decisions_or_for_everything(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the service cannot listen there twice"):
        check_binds([f"unix:{tmp_path}/s", "127.0.0.1:0", f"unix:{tmp_path}/s"])


def test_an_address_that_contains_another_one_is_named() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
    everywhere = "0.0.0.0"  # noqa: S104 - nothing listens there
    for binds in (["127.0.0.1", everywhere], [everywhere, "127.0.0.1"]):
        with pytest.raises(InputError, match="Address already in use"):
            check_binds([f"{host}:{port}" for host in binds])


def test_an_address_of_another_machine_is_refused() -> None:
    # RFC 5737: no machine has this address.
    assert "Cannot assign requested address; give an address of this" in refusal("192.0.2.1:8420")


def test_an_unknown_host_is_refused() -> None:
    # RFC 6761: this name never has an address.
    assert refusal("host.invalid:8420").startswith("host.invalid:8420: the service cannot listen")


def test_a_socket_in_a_folder_that_is_missing_is_refused(tmp_path: Path) -> None:
    assert "No such file or directory; create its folder" in refusal(f"unix:{tmp_path}/no/s")


def test_a_file_is_kept(tmp_path: Path) -> None:
    place = tmp_path / "notes"
    place.write_text("kept")
    assert "this is a file, not a socket" in refusal(f"unix:{place}")
    assert place.read_text() == "kept"


def test_a_path_that_is_too_long_is_refused(tmp_path: Path) -> None:
    assert "too long" in refusal(f"unix:{tmp_path}/{'s' * 200}")


def test_the_socket_of_a_running_service_is_left_to_it(tmp_path: Path) -> None:
    place = str(tmp_path / "s")
    with closing(socket.socket(socket.AF_UNIX)) as server:
        server.bind(place)
        server.listen()
        assert "Address already in use" in refusal(f"unix:{place}")
        with closing(socket.socket(socket.AF_UNIX)) as client:
            client.connect(place)


def test_a_socket_that_a_killed_service_left_is_replaced(tmp_path: Path) -> None:
    place = tmp_path / "s"
    with closing(socket.socket(socket.AF_UNIX)) as server:
        server.bind(str(place))
    check_binds([f"unix:{place}"])
