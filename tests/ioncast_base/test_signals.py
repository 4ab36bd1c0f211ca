"""Signals that stop a program are passed on to the program that it runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from ioncast_base import signals


def test_a_signal_from_before_the_program_was_known_reaches_it() -> None:
    with signals.passed_on() as begun:
        os.kill(os.getpid(), signal.SIGTERM)
        program = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        begun(program)
        assert program.wait() == -signal.SIGTERM
    assert program.stdin is not None
    program.stdin.close()
