"""The plugin: its files and settings beside slurm.conf, its licences, its use by slurmctld."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from ioncast_base.errors import InputError
from scheduler_plugin.check.asking_sources import (
    MissingSource,
    Row,
    fail,
    ok,
    said_by,
    search_path,
    unknown,
    warn,
)
from scheduler_plugin.check.controller import Controller, read_loaded_line, setting_in_file
from scheduler_plugin.settings import LicenceSettings
from scheduler_plugin.slurm.licences import licence_count

FILES = ("job_submit.lua", "ioncast.lua", "ioncast_settings.lua")
SHIPPED = Path(__file__).resolve().parents[1] / "lua"
STEP_1 = "install the plugin (docs/slurm.md, step 1)"
_SOCKET = " lua_socket="
_INTERPRETERS = ("lua", "lua5.4", "lua5.3", "lua5.2", "lua5.1")
_ESCAPE = re.compile(r"\\x([0-9a-f]{2})")
# Each line has a kind, a name and a value. The plugin itself checks the settings and complains.
_PROGRAM = r"""
local folder = arg[1] .. "/"
local function line(...)
    local parts = { ... }
    for i, part in ipairs(parts) do
        parts[i] = tostring(part):sub(1, 2000):gsub("[%c\\]", function(character)
            return string.format("\\x%02x", character:byte())
        end)
    end
    io.stdout:write(table.concat(parts, "\t"), "\n")
end
local function told(kind)
    return function(form, ...) line(kind, "", string.format(form, ...)) end
end
local settings = dofile(folder .. "ioncast_settings.lua")
local slurm = { log_info = told("info"), log_error = told("error") }
dofile(folder .. "ioncast.lua").new(settings, slurm)
local function each(kind, values)
    for name, value in pairs(type(values) == "table" and values or {}) do
        if type(value) ~= "table" then line(kind, name, value) end
    end
end
each("setting", settings)
local partitions = type(settings) == "table" and settings.partitions
for _, partition in pairs(type(partitions) == "table" and partitions or {}) do
    each("partition", partition)
end
"""


@dataclass(frozen=True)
class Plugin:
    """The plugin's settings.

    Attributes
    ----------
    is_as_slurmctld : bool
        Whether they were read with the rights of slurmctld; other users cannot read its token.
    """

    settings: Mapping[str, str]
    modes: frozenset[str]
    pools: tuple[int, ...]
    complaints: tuple[str, ...]
    loaded: str
    is_as_slurmctld: bool = True

    def of(self, setting: str) -> str:
        """A setting; empty if it is not set."""
        return self.settings.get(setting, "")

    @property
    def licence(self) -> str:
        """The licence that stands for an I/O node."""
        return self.of("licence") or LicenceSettings().name

    @property
    def gives_licences(self) -> bool:
        """Whether jobs get licences."""
        return bool(self.modes & {"on", "arbitrate"})

    @property
    def has_token(self) -> bool:
        """Whether questions have a token."""
        return bool(self.of("token") or self.of("token_file"))

    @property
    def is_arbitrated(self) -> bool:
        """Whether the arbiter decides about jobs."""
        return "arbitrate" in self.modes

    @property
    def pool(self) -> int:
        """The largest pool of I/O nodes."""
        return max(self.pools, default=0)


def ask_plugin(folder: Path, user: str) -> Plugin:
    """Let Lua run the settings, as the user of slurmctld."""
    path = search_path()
    interpreter = next((name for name in _INTERPRETERS if shutil.which(name, path=path)), None)
    if interpreter is None:
        raise InputError(
            "no Lua interpreter is installed here, which reads the plugin's settings",
            remedy="install one, such as Debian's lua5.1 (on EL: lua)",
        )
    plugin = read_plugin(said_by(interpreter, "-", str(folder), user=user, told=_PROGRAM))
    return replace(plugin, is_as_slurmctld=os.geteuid() == 0)


def read_plugin(text: str) -> Plugin:
    """Read the lines of the Lua program."""
    rows = [line.split("\t") for line in text.splitlines() if line.count("\t") == 2]
    settings = {name: _plain(value) for kind, name, value in rows if kind == "setting"}
    partitions = [(name, _plain(value)) for kind, name, value in rows if kind == "partition"]
    values = [*settings.items(), *partitions]
    said = [(kind, _plain(value)) for kind, _, value in rows if kind in {"info", "error"}]
    return Plugin(
        settings,
        frozenset(value for name, value in values if name == "mode") or frozenset(["off"]),
        tuple(int(float(value)) for name, value in values if name == "pool" and _is_number(value)),
        tuple(value.removeprefix("ioncast: ") for kind, value in said if kind == "error"),
        next((value.partition("loaded: ")[2] for kind, value in said if kind == "info"), ""),
    )


def installed_text(path: Path) -> str:
    """The text of an installed file."""
    return path.read_text(encoding="utf-8", errors="replace")


def _plain(value: str) -> str:
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)), value)


def _is_number(value: str) -> bool:
    return re.fullmatch(r"\d{1,10}(\.0)?", value) is not None


def use_rows(slurm: Controller) -> Iterator[Row]:
    """Judge whether slurmctld uses the plugin."""
    if "lua" in slurm.of("JobSubmitPlugins").split(","):
        yield ok("slurmctld", f"Slurm {slurm.of('SLURM_VERSION')} runs job_submit.lua")
    else:
        advice = "set JobSubmitPlugins=lua in slurm.conf"
        yield fail("slurmctld", "it runs no job_submit.lua", advice)


def settings_rows(slurm: Controller, plugin: Plugin) -> Iterator[Row]:
    """Judge the settings by the plugin's own words."""
    complaints = "; ".join(plugin.complaints)[:500]
    if complaints and not plugin.is_as_slurmctld:
        raise MissingSource(complaints, needs_root=True)
    if complaints:
        yield fail("settings", complaints, f"correct {slurm.folder}/ioncast_settings.lua")
    else:
        yield ok("settings", plugin.loaded.partition(_SOCKET)[0])


def loaded_rows(slurm: Controller, plugin: Plugin | None) -> Iterator[Row]:
    """Look in slurmctld's log for the settings that it uses, and for lua-socket."""
    reload = f"touch {slurm.folder}/job_submit.lua"
    used, _, lua_socket = (read_loaded_line(Path(slurm.log)) if slurm.log else "").partition(
        _SOCKET
    )
    if not used:
        yield warn(
            "loaded settings",
            f"slurmctld's log ({slurm.log or 'of the system'}) has no line about them",
            f"{reload}, submit a job, and look for 'ioncast: loaded:' there",
        )
        return
    if plugin is not None:
        yield _used_row(used, plugin, reload)
    if lua_socket.startswith("yes"):
        yield ok("lua-socket", "slurmctld has it")
    else:
        yield fail(
            "lua-socket",
            "slurmctld does not have it, so no decision is asked for",
            f"install lua-socket (docs/slurm.md, step 1), then {reload}",
        )


def _used_row(used: str, plugin: Plugin, reload: str) -> Row:
    subject = "loaded settings"
    if used == plugin.loaded.partition(_SOCKET)[0]:
        return ok(subject, "slurmctld uses those in the file")
    if plugin.is_as_slurmctld:
        return fail(subject, f"slurmctld uses older ones: {used}", reload)
    reason = f"slurmctld uses {used}, and its token cannot be read"
    return unknown(subject, MissingSource(reason, needs_root=True), reload)


def file_rows(folder: Path, name: str) -> Iterator[Row]:
    """Compare a file of the plugin with that of this version."""
    text = installed_text(folder / name)
    if text == installed_text(SHIPPED / name):
        yield ok(name, "that of this version")
    elif name == "ioncast.lua":
        yield warn(name, "it is of another version, or was changed", STEP_1)
    elif "ioncast.lua" in text:
        yield ok(name, "the site's own, which loads ioncast.lua")
    else:
        yield fail(name, "it does not load ioncast.lua", "see the top of ioncast.lua for the lines")


def licence_rows(slurm: Controller, plugin: Plugin, others: Mapping[str, str]) -> Iterator[Row]:
    """Judge the number of licences; `others` are the names of the licence in other settings."""
    subject, licence, total = "licences", plugin.licence, slurm.total(plugin.licence)
    for part, name in others.items():
        if name != licence:
            yield fail(
                subject,
                f"the plugin gives {licence!r}, and the {part} reads {name!r}",
                "set the same name in ioncast_settings.lua and in [licence] of its settings",
            )
    yield _total_row(subject, total, plugin)
    # Other rows judge whether the file can be read.
    with suppress(OSError):
        count = licence_count(setting_in_file(slurm.folder / "slurm.conf", "Licenses"), licence)
        if count is not None and count != total:
            text = f"slurm.conf says {licence}:{count}, and slurmctld uses {total}"
            yield warn(subject, text, "scontrol reconfigure")


def _total_row(subject: str, total: int, plugin: Plugin) -> Row:
    licence, pool = plugin.licence, plugin.pool
    if not total and not plugin.gives_licences:
        return ok(subject, f"Slurm has no licence {licence}, and the mode does not need it yet")
    if not total:
        return fail(
            subject,
            f"Slurm has no licence {licence} and rejects jobs that get it",
            f"set Licenses={licence}:{pool} in slurm.conf, and restart slurmctld",
        )
    if pool > total:
        return fail(
            subject,
            f"the pool is {pool}, and Slurm has {total} {licence}: it rejects jobs with more",
            f"set pool to at most {total} in ioncast_settings.lua, or Licenses={licence}:{pool}",
        )
    return ok(subject, f"Slurm has {total} {licence}, and the pool is {pool}")
