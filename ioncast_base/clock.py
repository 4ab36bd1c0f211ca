"""Jumps of the wall clock: how far it moved, compared with the clock that counts since boot."""

from __future__ import annotations

from dataclasses import dataclass

_DAY_S = 86_400.0
# Corrections of a clock that runs too fast or too slow are smaller.
_JUMP_S = 3600.0


@dataclass(frozen=True)
class ClockCheck:
    """The result of comparing the wall clock with the boot clock at each step of a process.

    Nobody can set the boot clock (`time.CLOCK_BOOTTIME`). It also counts while the machine sleeps.
    If the clocks differ by an hour more or less than at the step before, the wall clock jumped.
    Delete by age only with a time that was given to `step`, because the next one may be wrong.

    `wall_s` is in Unix time. `boot_s` and `steady_since_s` count from boot, to the last step and
    to the last jump, or to the first step, whose wall clock may be wrong without a jump.

    Examples
    --------
    >>> check = ClockCheck.begin(1.8e9, 100.0).step(1.8e9 + 60, 160.0)
    >>> check.has_jumped, check.is_steady
    (False, False)
    >>> check.step(1.9e9, 161.0).has_jumped
    True
    """

    wall_s: float
    boot_s: float
    steady_since_s: float
    has_jumped: bool

    @classmethod
    def begin(cls, wall_s: float, boot_s: float) -> ClockCheck:
        """Compare the clocks for the first time."""
        return cls(wall_s, boot_s, steady_since_s=boot_s, has_jumped=False)

    @property
    def steady_s(self) -> float:
        """Seconds without a jump, up to the last step."""
        return self.boot_s - self.steady_since_s

    @property
    def is_steady(self) -> bool:
        """Whether the wall clock did not jump for a day."""
        return self.steady_s >= _DAY_S

    def step(self, wall_s: float, boot_s: float) -> ClockCheck:
        """Compare the clocks again, with times that were read one right after the other."""
        moved_s = (wall_s - self.wall_s) - (boot_s - self.boot_s)
        if abs(moved_s) > _JUMP_S:
            return ClockCheck(wall_s, boot_s, steady_since_s=boot_s, has_jumped=True)
        return ClockCheck(wall_s, boot_s, self.steady_since_s, self.has_jumped)
