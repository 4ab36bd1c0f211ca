"""The time by which the watch works: that of the wall clock, without its jumps."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from ioncast_base.clock import ClockCheck

_LOG = logging.getLogger("ioncast.watch")
_HOUR_S = 3600.0


class SteadyTime:
    """A Unix time that follows a jump of more than an hour only an hour later.

    With a wall clock that is years ahead for a second, all logs would seem late and all data old.

    Parameters
    ----------
    wall_clock, boot_clock : callable
        Return the Unix time, and the seconds since boot.
    """

    def __init__(
        self,
        wall_clock: Callable[[], float] = time.time,
        boot_clock: Callable[[], float] = lambda: time.clock_gettime(time.CLOCK_BOOTTIME),
    ) -> None:
        self._clocks = wall_clock, boot_clock
        self._check = ClockCheck.begin(wall_clock(), boot_clock())
        # Unix time at boot.
        self._booted_s = self._check.wall_s - self._check.boot_s

    def __call__(self) -> float:
        """The Unix time."""
        wall_clock, boot_clock = self._clocks
        self._check = check = self._check.step(wall_clock(), boot_clock())
        booted_s = check.wall_s - check.boot_s
        if abs(booted_s - self._booted_s) <= _HOUR_S or check.steady_s >= _HOUR_S:
            self._booted_s = booted_s
        elif not check.steady_s:
            _LOG.warning(
                "the clock jumped by %.1f hours; the watch follows it if it stays so for an hour",
                (booted_s - self._booted_s) / _HOUR_S,
            )
        return check.boot_s + self._booted_s

    @property
    def may_forget(self) -> bool:
        """Whether data may be deleted by age: not within a day of a jump."""
        return self._check.is_steady or not self._check.has_jumped

    def wall_s(self) -> float:
        """The time of the wall clock, for programs that compare it with the wall clock."""
        return self._clocks[0]()
