"""slurmctld's view of itself: its configuration, its licences and its log."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from scheduler_plugin.check.asking_sources import said_by
from scheduler_plugin.slurm.licence_limits import is_named

# Slurm 24.11 numbers settings that may have several values: PrologSlurmctld[0].
_SETTING = re.compile(r"^(\w+)(?:\[\d+\])?\s*= (.*)$", re.MULTILINE)
_LICENCE = re.compile(r"^LicenseName=(\S+) Total=(\d+) ", re.MULTILINE)
_USER = re.compile(r"(.+)\(\d+\)")
_LOADED = b"ioncast: loaded: "
_PART_BYTES = 1 << 20
_LINE_BYTES = 1 << 14
# A site with many jobs may write gigabytes in a month.
_SEARCHED_BYTES = 512 << 20


@dataclass(frozen=True)
class Controller:
    """slurmctld, as `scontrol` shows it.

    Attributes
    ----------
    configuration : mapping of str to str
        The settings in use, by their names in lower case; empty for those that are not set.
    """

    configuration: Mapping[str, str]
    totals: Mapping[str, int]

    def of(self, setting: str) -> str:
        """A setting of slurm.conf; empty if it is not set."""
        return self.configuration.get(setting.lower(), "")

    @property
    def folder(self) -> Path:
        """The folder of slurm.conf, and of the plugin's files."""
        return Path(self.of("SLURM_CONF") or "/etc/slurm/slurm.conf").parent

    @property
    def user(self) -> str:
        """SlurmUser."""
        match = _USER.fullmatch(self.of("SlurmUser"))
        return match[1] if match else "root"

    @property
    def log(self) -> str:
        """Path of the log; empty if slurmctld writes to the system's log."""
        return self.of("SlurmctldLogFile")

    @property
    def private(self) -> frozenset[str]:
        """The data that `PrivateData` hides from users."""
        return frozenset(self.of("PrivateData").lower().split(",")) - {"none", ""}

    @property
    def has_slurmdbd(self) -> bool:
        """Whether slurmdbd keeps the accounts."""
        return self.of("AccountingStorageType") == "accounting_storage/slurmdbd"

    def total(self, licence: str) -> int:
        """The number that Slurm has of a licence; 0 if it does not know the licence."""
        return sum(count for name, count in self.totals.items() if is_named(name, licence))


def ask_controller() -> Controller:
    """Ask slurmctld."""
    configuration = read_configuration(said_by("scontrol", "show", "config"))
    licences = said_by("scontrol", "--oneliner", "show", "licenses")
    return Controller(configuration, read_totals(licences))


def read_configuration(text: str) -> dict[str, str]:
    """Read the output of `scontrol show config`; the first of equal names counts."""
    found: dict[str, str] = {}
    for name, value in _SETTING.findall(text):
        found.setdefault(name.lower(), "" if value.strip() in {"(null)", "N/A"} else value.strip())
    return found


def read_totals(text: str) -> dict[str, int]:
    """Read the output of `scontrol --oneliner show licenses`."""
    return {name: int(total) for name, total in _LICENCE.findall(text)}


def setting_in_file(path: Path, setting: str) -> str:
    """A setting in slurm.conf or slurmdbd.conf, which Slurm may not have read.

    It is empty without the setting, and without the file.
    """
    try:
        text = path.read_text(errors="replace")
    except FileNotFoundError:
        return ""
    form = rf"^\s*{setting}\s*=\s*([^#\s]+)"
    found: list[str] = re.findall(form, text, re.MULTILINE | re.IGNORECASE)
    return found[-1] if found else ""


def read_loaded_line(log: Path) -> str:
    """The last line about settings that the plugin loaded, without its beginning; empty if none.

    The log is read from its end, in parts, because it may be of any size.
    """
    with log.open("rb") as file:
        size = file.seek(0, 2)
        after = b""
        for begin in range(size - _PART_BYTES, -_PART_BYTES, -_PART_BYTES):
            file.seek(max(begin, 0))
            part = file.read(_PART_BYTES + min(begin, 0))
            loaded_line = last_loaded(part + after)
            if loaded_line or size - begin > _SEARCHED_BYTES:
                return loaded_line
            after = part[:_LINE_BYTES]
    return ""


def last_loaded(text: bytes) -> str:
    """The last such line in a part of the log; a job's name in it is between quotes."""
    for line in reversed(text.split(b"\n")):
        before, _, loaded = line.partition(_LOADED)
        if loaded and b'"' not in before:
            return loaded.decode(errors="replace").strip()
    return ""
