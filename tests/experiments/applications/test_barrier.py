from __future__ import annotations

import socket
import threading
from pathlib import Path

from experiments.applications.barrier import barrier

_PATIENCE_S = 120


def _connected(path: Path) -> socket.socket:
    peer = socket.socket(socket.AF_UNIX)
    peer.settimeout(_PATIENCE_S)
    peer.connect(str(path))
    return peer


def test_no_process_goes_on_before_all_have_come(tmp_path: Path) -> None:
    path = tmp_path / "barrier"
    with barrier(path, 2), _connected(path) as first, _connected(path) as second:
        for _ in range(3):
            first.sendall(b".")
            first.settimeout(0.05)
            try:
                early = first.recv(1)
            except TimeoutError:
                early = None
            assert early is None
            first.settimeout(_PATIENCE_S)

            second.sendall(b".")

            assert (first.recv(1), second.recv(1)) == (b".", b".")


def test_the_barrier_hangs_up_on_all_when_one_hangs_up(tmp_path: Path) -> None:
    path = tmp_path / "barrier"
    with barrier(path, 2), _connected(path) as left:
        _connected(path).close()
        left.sendall(b".")

        assert left.recv(1) == b""


def test_the_end_does_not_wait_for_a_process_that_is_stuck_elsewhere(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as stuck:

        def meet_once() -> None:
            with barrier(tmp_path / "barrier", 1):
                stuck.connect(str(tmp_path / "barrier"))
                stuck.sendall(b".")
                assert stuck.recv(1) == b"."

        meeting = threading.Thread(target=meet_once, daemon=True)
        meeting.start()
        meeting.join(_PATIENCE_S)

        assert not meeting.is_alive()


def test_processes_of_two_programs_begin_together_and_then_go_on_alone(tmp_path: Path) -> None:
    start = threading.Barrier(2)
    one, other = tmp_path / "one", tmp_path / "other"
    with barrier(one, 1, start), barrier(other, 1, start), _connected(one) as first:
        first.sendall(b".")
        with _connected(other) as second:
            second.sendall(b".")
            assert (first.recv(1), second.recv(1)) == (b".", b".")
            first.sendall(b".")
            assert first.recv(1) == b"."


def test_a_program_that_ends_before_the_start_lets_no_other_wait(tmp_path: Path) -> None:
    start = threading.Barrier(2)
    one = tmp_path / "one"
    with barrier(one, 1, start), _connected(one) as first:
        first.sendall(b".")
        with barrier(tmp_path / "other", 1, start):
            pass
        assert first.recv(1) == b""


def test_a_barrier_that_no_process_came_to_ends(tmp_path: Path) -> None:
    before = set(threading.enumerate())

    with barrier(tmp_path / "barrier", 2):
        pass

    assert set(threading.enumerate()) <= before
