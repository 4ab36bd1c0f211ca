"""The hooks that slurm.conf names, and the folder that they share with compute nodes."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

from ioncast_base.io_node_names import is_name
from scheduler_plugin.check.asking_sources import Row, can, fail, ok, warn
from scheduler_plugin.check.controller import Controller
from scheduler_plugin.check.plugin import Plugin, installed_text
from scheduler_plugin.hook_settings import INSTALL, HookSettings
from scheduler_plugin.settings import SiteSettings

SHIPPED = Path(__file__).resolve().parents[1] / "hooks"
# The settings in slurm.conf, and the hook that each names.
HOOKS = {
    "PrologSlurmctld": "prolog_slurmctld.sh",
    "EpilogSlurmctld": "epilog_slurmctld.sh",
    "TaskProlog": "task_prolog.sh",
}
# The hooks read or run these files beside them.
SHARED = ("io_nodes.sh", "name_io_nodes.sh", "choose_io_nodes.awk")
_READABLE = stat.S_IROTH | stat.S_IXOTH


def own_hooks(slurm: Controller) -> dict[str, Path]:
    """The hooks of ioncast that slurm.conf names, by their settings."""
    own = {
        name: next((path for path in _paths(slurm, name) if Path(path).name == file), "")
        for name, file in HOOKS.items()
    }
    return {name: Path(path) for name, path in own.items() if path}


def _paths(slurm: Controller, setting: str) -> list[str]:
    """From Slurm 24.05 on the setting may be a list."""
    return [path.strip() for path in slurm.of(setting).split(",")]


def hook_rows(slurm: Controller, plugin: Plugin, setting: str) -> Iterator[Row]:
    """Look at a hook."""
    name, path = HOOKS[setting], own_hooks(slurm).get(setting)
    if not slurm.of(setting):
        yield from _absent_rows(plugin, setting)
    elif path is None:
        advice = f"let it call ioncast's {name}, or name that"
        yield warn(setting, f"{_paths(slurm, setting)[0]} is not ioncast's", advice)
    else:
        yield _installed_row(setting, path, slurm.user)


def _absent_rows(plugin: Plugin, setting: str) -> Iterator[Row]:
    advice = f"set {setting}=/etc/ioncast/hooks/{HOOKS[setting]} in slurm.conf"
    if not plugin.gives_licences:
        return
    if setting != "TaskProlog" or plugin.is_arbitrated:
        yield fail(setting, "it is not set", advice)
    else:
        yield warn(setting, "it is not set: srun and salloc get no ION_COUNT", advice)


def _installed_row(setting: str, path: Path, user: str) -> Row:
    pairs = [(path.with_name(name), name) for name in (path.name, *SHARED)]
    is_shipped = all(installed_text(file) == installed_text(SHIPPED / name) for file, name in pairs)
    if not can(user, "x", path):
        return fail(setting, f"SlurmUser cannot run {path}", f"chmod 755 {path}")
    if not is_shipped:
        return warn(setting, f"{path} is of another version, or was changed", INSTALL)
    return ok(setting, str(path))


def settings_rows(settings: HookSettings, user: str, plugin: Plugin) -> Iterator[Row]:
    """Look at the script and the folder that hooks.conf names."""
    subject, (licence, folder, script, *_) = "hooks.conf", settings
    if licence != plugin.licence:
        text = f"LICENCE is {licence!r}, and the plugin gives {plugin.licence!r}"
        yield fail(subject, text, "set the same name in both")
    elif script and not can(user, "x", script):
        yield fail(subject, f"SlurmUser cannot run SITE_SCRIPT {script}", "chmod 755 it")
    elif folder:
        yield _folder_row(subject, user, settings)
    else:
        advice = "set JOBS_FOLDER, a folder that all nodes see and only SlurmUser writes"
        if plugin.is_arbitrated:
            yield fail(subject, "JOBS_FOLDER is empty, and the arbiter needs it", advice)
        else:
            yield warn(subject, "JOBS_FOLDER is empty: srun and salloc get no ION_COUNT", advice)


def names_rows(settings: HookSettings, slurm: Controller) -> Iterator[Row]:
    """Compare the names of I/O nodes with Slurm's number of licences."""
    names, licences = len(set(settings.io_nodes)), slurm.total(settings.licence)
    jobs = settings.jobs_per_io_node
    shared = f" for {jobs} jobs each" if jobs > 1 else ""
    text = f"{names} names{shared}, and Slurm has {licences} {settings.licence}"
    if not names:
        return
    if not settings.folder:
        advice = "set JOBS_FOLDER, where the hooks note the names"
        yield fail("IO_NODES", "no job gets names without JOBS_FOLDER", advice)
    elif names * jobs < licences:
        advice = f"name more I/O nodes in hooks.conf, or set Licenses={settings.licence}:N to less"
        yield warn("IO_NODES", f"{text}: some jobs get fewer names", f"{advice} in slurm.conf")
    elif names * jobs > licences:
        advice = f"set Licenses={settings.licence}:{names * jobs} in slurm.conf"
        yield warn("IO_NODES", f"{text}: some I/O nodes are never used", advice)
    else:
        yield ok("IO_NODES", text)


def history_rows(settings: HookSettings, watch: SiteSettings) -> Iterator[Row]:
    """Look whether the watch sends the names of I/O nodes to the service."""
    subject, folder = "watch: names of I/O nodes", watch.watch.jobs_folder
    wrong = [name for name in settings.io_nodes if not is_name(name)]
    if not settings.io_nodes or not settings.folder:
        return
    if wrong:
        text = f"the service takes no name such as {wrong[0]!r}"
        advice = "use at most 64 letters, digits and ._:- for each name in IO_NODES"
        yield warn(subject, text, advice)
    elif folder != settings.folder:
        text = f"the watch reads {folder or 'no history'}, and the hooks write to {settings.folder}"
        advice = "set `jobs_folder` in watch.toml to JOBS_FOLDER, so that slow I/O nodes are found"
        yield warn(subject, text, advice)
    else:
        yield ok(subject, f"the watch sends them from {folder}")


def _folder_row(subject: str, user: str, settings: HookSettings) -> Row:
    folder, make = settings.folder, f"install -d -m 755 -o {user} {settings.folder}"
    if not Path(folder).is_dir():
        return fail(subject, f"JOBS_FOLDER {folder} is not a folder", make)
    if not can(user, "w", folder):
        return fail(subject, f"{user} cannot write to JOBS_FOLDER {folder}", make)
    if Path(folder).stat().st_mode & _READABLE != _READABLE:
        return fail(subject, f"users cannot read JOBS_FOLDER {folder}, as TaskProlog does", make)
    return ok(subject, f"LICENCE={settings.licence} JOBS_FOLDER={folder}")
