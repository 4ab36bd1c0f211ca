"""The hooks that slurm.conf names, and the folder that they share with compute nodes."""

from __future__ import annotations

import stat
from dataclasses import dataclass
from pathlib import Path

from ioncast_base.errors import InputError
from scheduler_plugin.check.asking_sources import can, said_by
from scheduler_plugin.check.plugin import gather_text
from scheduler_plugin.check.row_values import MissingSource, Row, fail, ok, unknown, warn

SHIPPED = Path(__file__).resolve().parents[1] / "hooks"
# The settings in slurm.conf, and the hook that each names.
HOOKS = {
    "PrologSlurmctld": "prolog_slurmctld.sh",
    "EpilogSlurmctld": "epilog_slurmctld.sh",
    "TaskProlog": "task_prolog.sh",
}
_SHARED = "io_nodes.sh"
_READABLE = stat.S_IROTH | stat.S_IXOTH
_INSTALL = "install -D -t /etc/ioncast/hooks scheduler_plugin/hooks/* (all but hooks.conf)"
_VALUES = ("LICENCE", "JOBS_FOLDER", "SITE_SCRIPT")
_READ = 'LICENCE=ionode; . "$1"; printf "%s\\n" ' + " ".join(f'"${name}"' for name in _VALUES)


@dataclass(frozen=True)
class Hook:
    """An installed hook."""

    is_shipped: bool
    is_runnable: bool


@dataclass(frozen=True)
class HookSettings:
    """The values in hooks.conf, and the state of the script and of the folder."""

    licence: str
    folder: str
    script: str
    is_runnable: bool = True
    is_folder: bool = True
    is_writable: bool = True
    is_readable: bool = True


def hook_paths(value: str, name: str) -> tuple[str, bool]:
    """The path of a hook in slurm.conf, and whether it is ioncast's own.

    From Slurm 24.05 on the setting may be a list.
    """
    paths = [path.strip() for path in value.split(",")]
    own = next((path for path in paths if Path(path).name == name), None)
    return own or paths[0], own is not None


def gather_hook(path: Path, user: str) -> Hook:
    """Look at a hook of ioncast."""
    pairs = [(path, path.name), (path.with_name(_SHARED), _SHARED)]
    return Hook(
        all(gather_text(file) == gather_text(SHIPPED / name) for file, name in pairs),
        can(user, "x", path),
    )


def gather_hook_settings(path: Path, user: str) -> HookSettings:
    """Let a shell read hooks.conf as SlurmUser, and look at JOBS_FOLDER."""
    if not path.is_file():
        raise InputError("this file is missing", where=str(path), remedy=_INSTALL)
    said = said_by("/bin/sh", "-c", _READ, "sh", str(path), user=user).splitlines()
    licence, folder, script = [*said, "", "", ""][:3]
    place = Path(folder)
    is_folder = bool(folder) and place.is_dir()
    return HookSettings(
        licence,
        folder,
        script,
        not script or can(user, "x", script),
        is_folder,
        is_folder and can(user, "w", place),
        is_folder and place.stat().st_mode & _READABLE == _READABLE,
    )


def hook_row(setting: str, value: str, hook: Hook | MissingSource | None) -> Row:
    """Judge a hook; None if slurm.conf names a script of the site."""
    name = HOOKS[setting]
    path = hook_paths(value, name)[0]
    if hook is None:
        return warn(
            setting, f"{path} is not ioncast's", f"let it call ioncast's {name}, or name that"
        )
    if isinstance(hook, MissingSource):
        return unknown(setting, hook, _INSTALL)
    if not hook.is_runnable:
        return fail(setting, f"SlurmUser cannot run {path}", f"chmod 755 {path}")
    if not hook.is_shipped:
        return warn(setting, f"{path} is of another version, or was changed", _INSTALL)
    return ok(setting, path)


def settings_row(
    found: HookSettings | MissingSource, user: str, licence: str, *, is_arbitrated: bool
) -> Row:
    """Judge hooks.conf and JOBS_FOLDER."""
    subject = "hooks.conf"
    if isinstance(found, MissingSource):
        return unknown(subject, found)
    if found.licence != licence:
        return fail(
            subject,
            f"LICENCE is {found.licence!r}, and the plugin gives {licence!r}",
            "set the same name in both",
        )
    if not found.is_runnable:
        return fail(subject, f"SlurmUser cannot run SITE_SCRIPT {found.script}", "chmod 755 it")
    if not found.folder:
        advice = "set JOBS_FOLDER, a folder that all nodes see and only SlurmUser writes"
        if is_arbitrated:
            return fail(subject, "JOBS_FOLDER is empty, and the arbiter needs it", advice)
        return warn(subject, "JOBS_FOLDER is empty: srun and salloc get no ION_COUNT", advice)
    return _folder_row(subject, found, user)


def _folder_row(subject: str, found: HookSettings, user: str) -> Row:
    folder, make = found.folder, f"install -d -m 755 -o {user} {found.folder}"
    if not found.is_folder:
        return fail(subject, f"JOBS_FOLDER {folder} is not a folder", make)
    if not found.is_writable:
        return fail(subject, f"{user} cannot write to JOBS_FOLDER {folder}", make)
    if not found.is_readable:
        return fail(subject, f"users cannot read JOBS_FOLDER {folder}, as TaskProlog does", make)
    return ok(subject, f"LICENCE={found.licence} JOBS_FOLDER={folder}")
