"""Files that one part writes for another: heartbeat, limits, and Darshan's logs."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from ioncast_base.errors import InputError
from scheduler_plugin.arbiter.heartbeat import STOPPED_S
from scheduler_plugin.check.row_values import MissingSource, Row, fail, ok, unknown, warn
from scheduler_plugin.check.watch_and_arbiter import in_words
from scheduler_plugin.collector.limits_file import LONGEST_BYTES
from scheduler_plugin.settings import DarshanSettings

_FIRST = re.compile(r"ioncast-limits\t1\t(\d{1,12})\t([^\t\n]+)\n")
# As in ioncast.lua: the heartbeat of a stopped arbiter, and limits that are too old.
HEARTBEAT_S = 30
LIMITS_S = 86_400
# The watch writes once a minute.
_LATE_S = 600
_WATCH = "look at `systemctl status ioncast-watch` and at its log"


@dataclass(frozen=True)
class LimitsState:
    """The file of Slurm's limits: its time and its licence."""

    written_s: int
    licence: str


@dataclass(frozen=True)
class DarshanState:
    """Darshan's folder of today.

    `mode` has the rights of the folder of today; None if that does not exist.
    """

    today: str
    mode: int | None


def gather_heartbeat(path: Path) -> int:
    """The Unix time in the arbiter's heartbeat."""
    # The second number is the length of a hold in seconds.
    match = re.fullmatch(r"(\d{1,12}) \d{1,12}\n", _beginning(path, 40))
    if match is None:
        raise InputError(
            "there is no time in this file",
            where=str(path),
            remedy="restart ioncast-arbiter",
        )
    return int(match[1])


def gather_limits(path: Path) -> LimitsState:
    """Read the file of Slurm's limits as the plugin does."""
    text = _beginning(path, LONGEST_BYTES)
    first = _FIRST.match(text)
    if first is None or f"\nend\t{first[1]}\n" not in text:
        raise InputError("this file of limits is empty or damaged", where=str(path), remedy=_WATCH)
    return LimitsState(int(first[1]), first[2])


def gather_darshan(settings: DarshanSettings, today: date) -> DarshanState:
    """Look at Darshan's folders."""
    folder = Path(settings.folder)
    with os.scandir(folder) as entries:
        next(entries, None)
    place = folder / today.strftime(settings.layout)
    try:
        mode = place.stat().st_mode
    except FileNotFoundError:
        return DarshanState(str(place), None)
    with os.scandir(place) as entries:
        next(entries, None)
    return DarshanState(str(place), stat.S_IMODE(mode))


def _beginning(path: Path, longest: int) -> str:
    try:
        with path.open("rb") as file:
            return file.read(longest).decode(errors="replace")
    except FileNotFoundError as error:
        raise InputError("this file is missing", where=str(path)) from error


def heartbeat_row(written_s: int | MissingSource, now_s: float, expected: str, path: str) -> Row:
    """Judge the arbiter's heartbeat; `expected` is the plugin's path, `path` the arbiter's."""
    subject, remedy = "heartbeat", "look at `systemctl status ioncast-arbiter` and at its log"
    if expected != path:
        return fail(
            subject,
            f"the plugin reads {expected or 'no file'}, and the arbiter writes {path}",
            "set `heartbeat` in ioncast_settings.lua to the arbiter's file",
        )
    if isinstance(written_s, MissingSource):
        return unknown(subject, written_s, remedy)
    age_s = now_s - written_s
    if written_s == STOPPED_S:
        return fail(subject, "the arbiter does not work: no jobs are held", remedy)
    if abs(age_s) >= HEARTBEAT_S:
        return fail(subject, f"its time is {age_s:.0f} s old: no jobs are held", remedy)
    return ok(subject, f"{path} is up to date")


def limits_row(
    found: LimitsState | MissingSource, now_s: float, licence: str, expected: str, path: str
) -> Row:
    """Judge the file of limits; `expected` is the plugin's path, `path` the watch's."""
    subject = "file of limits"
    if expected != path:
        return fail(
            subject,
            f"the plugin reads {expected or 'no file'}, and the watch writes {path or 'no file'}",
            "set `limits` in ioncast_settings.lua and in watch.toml to the same file",
        )
    if isinstance(found, MissingSource):
        return unknown(subject, found, _WATCH)
    fine = ok(subject, f"{path} is up to date")
    return next(_limits_problems(subject, found, now_s, licence), fine)


def _limits_problems(subject: str, found: LimitsState, now_s: float, licence: str) -> Iterator[Row]:
    age_s = abs(now_s - found.written_s)
    if found.licence != licence:
        yield fail(
            subject,
            f"it is about the licence {found.licence}, and the plugin gives {licence}",
            "set the same name in [licence] of watch.toml and in ioncast_settings.lua",
        )
    if age_s >= LIMITS_S:
        yield fail(subject, f"it is {in_words(age_s)} old, and the plugin does not use it", _WATCH)
    if age_s > _LATE_S:
        yield warn(subject, f"it is {in_words(age_s)} old", _WATCH)


def darshan_row(found: DarshanState | MissingSource) -> Row:
    """Judge Darshan's folders."""
    subject, make = "Darshan's folders", "run darshan-mk-log-dirs.pl, which makes them"
    if isinstance(found, MissingSource):
        return unknown(subject, found, "set [darshan] in watch.toml")
    if found.mode is None:
        return warn(subject, f"{found.today} is missing: no job can write a log today", make)
    if not found.mode & stat.S_IWOTH:
        return warn(subject, f"users cannot write to {found.today} (mode {found.mode:o})", make)
    if not found.mode & stat.S_ISVTX:
        return warn(
            subject,
            f"users can delete the logs of others in {found.today} (mode {found.mode:o})",
            f"chmod +t {found.today}",
        )
    return ok(subject, f"{found.today} has the mode {found.mode:o}")
