"""The plugin beside slurm.conf: its settings as Lua and the plugin itself read them."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ioncast_base.errors import InputError
from scheduler_plugin.check.asking_sources import said_by, search_path
from scheduler_plugin.settings import LicenceSettings

FILES = ("job_submit.lua", "ioncast.lua", "ioncast_settings.lua")
SHIPPED = Path(__file__).resolve().parents[1] / "lua"
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


def gather_plugin(folder: Path, user: str) -> Plugin:
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


def gather_text(path: Path) -> str:
    """The text of an installed file."""
    return path.read_text(encoding="utf-8", errors="replace")


def _plain(value: str) -> str:
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)), value)


def _is_number(value: str) -> bool:
    return re.fullmatch(r"\d{1,10}(\.0)?", value) is not None
