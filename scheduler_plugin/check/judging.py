"""Rows about the plugin and its licences: slurmctld, the settings and Slurm's limits together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from scheduler_plugin.check.controller import Controller
from scheduler_plugin.check.plugin import FILES, Plugin
from scheduler_plugin.check.row_values import MissingSource, Row, fail, ok, unknown, warn
from scheduler_plugin.slurm.licence_limits import Limits
from scheduler_plugin.slurm.licences import licence_count

_RELOAD = "touch {}/job_submit.lua"
_STEP_3 = "install the plugin (docs/slurm.md, step 3)"
_SOCKET = " lua_socket="


def plugin_rows(
    controller: Controller, plugin: Plugin | MissingSource, loaded: str | MissingSource
) -> Iterator[Row]:
    """Judge the plugin inside slurmctld: whether it is used, its settings, and lua-socket."""
    names = controller.of("JobSubmitPlugins").split(",")
    if "lua" in names:
        yield ok("slurmctld", f"Slurm {controller.of('SLURM_VERSION')} runs job_submit.lua")
    else:
        yield fail(
            "slurmctld", "it runs no job_submit.lua", "set JobSubmitPlugins=lua in slurm.conf"
        )
    if isinstance(plugin, MissingSource):
        yield unknown("settings", plugin, _STEP_3)
    elif plugin.complaints and not plugin.is_as_slurmctld:
        yield unknown(
            "settings", MissingSource("; ".join(plugin.complaints)[:500], needs_root=True)
        )
    elif plugin.complaints:
        said = "; ".join(plugin.complaints)
        yield fail("settings", said[:500], f"correct {controller.folder}/ioncast_settings.lua")
    else:
        yield ok("settings", plugin.loaded.partition(_SOCKET)[0])
    yield from _loaded_rows(controller, plugin, loaded)


def _loaded_rows(
    controller: Controller, plugin: Plugin | MissingSource, loaded: str | MissingSource
) -> Iterator[Row]:
    reload = _RELOAD.format(controller.folder)
    if isinstance(loaded, MissingSource):
        yield unknown("loaded settings", loaded)
        return
    if not loaded:
        yield warn(
            "loaded settings",
            f"slurmctld's log ({controller.log or 'of the system'}) has no line about them",
            f"{reload}, submit a job, and look for 'ioncast: loaded:' there",
        )
        return
    used, _, socket = loaded.partition(_SOCKET)
    if isinstance(plugin, Plugin):
        if used == plugin.loaded.partition(_SOCKET)[0]:
            yield ok("loaded settings", "slurmctld uses those in the file")
        elif not plugin.is_as_slurmctld:
            other = MissingSource(
                f"slurmctld uses {used}, and its token cannot be read", needs_root=True
            )
            yield unknown("loaded settings", other)
        else:
            yield fail("loaded settings", f"slurmctld uses older ones: {used}", reload)
    if socket.startswith("yes"):
        yield ok("lua-socket", "slurmctld has it")
    else:
        yield fail(
            "lua-socket",
            "slurmctld does not have it, so no decision is asked for",
            f"install lua-socket (docs/slurm.md, step 3), then {reload}",
        )


def file_rows(
    installed: Mapping[str, str | MissingSource], shipped: Mapping[str, str]
) -> Iterator[Row]:
    """Compare the plugin's files with those of this version; the settings are the site's own."""
    for name in FILES[:2]:
        text = installed[name]
        if isinstance(text, MissingSource):
            yield unknown(name, text, _STEP_3)
        elif text == shipped[name]:
            yield ok(name, "that of this version")
        elif name == FILES[0] and "ioncast.lua" in text:
            yield ok(name, "the site's own, which loads ioncast.lua")
        elif name == FILES[0]:
            yield fail(
                name, "it does not load ioncast.lua", "see the top of ioncast.lua for the lines"
            )
        else:
            yield warn(name, "it is of another version, or was changed", _STEP_3)


def licence_rows(
    controller: Controller, plugin: Plugin, others: Mapping[str, str], in_file: str
) -> Iterator[Row]:
    """Judge the number of licences."""
    subject, licence = "licences", plugin.licence
    total, pool = controller.total(licence), max(plugin.pools, default=0)
    for part, name in others.items():
        if name != licence:
            yield fail(
                subject,
                f"the plugin gives {licence!r}, and the {part} reads {name!r}",
                "set the same name in ioncast_settings.lua and in [licence] of its settings",
            )
    if not total and not plugin.gives_licences:
        yield ok(subject, f"Slurm has no licence {licence}, and the mode does not need it yet")
    elif not total:
        yield fail(
            subject,
            f"Slurm has no licence {licence} and rejects jobs that get it",
            f"set Licenses={licence}:{pool} in slurm.conf, and restart slurmctld",
        )
    elif pool > total:
        yield fail(
            subject,
            f"the pool is {pool}, and Slurm has {total} {licence}: it rejects jobs with more",
            f"set pool to at most {total} in ioncast_settings.lua, or Licenses={licence}:{pool}",
        )
    else:
        yield ok(subject, f"Slurm has {total} {licence}, and the pool is {pool}")
    count = licence_count(in_file, licence)
    if count is not None and count != total:
        yield warn(
            subject,
            f"slurm.conf says {licence}:{count}, and slurmctld uses {total}",
            "scontrol reconfigure",
        )


def limits_row(limits: Limits, plugin: Plugin) -> Row:
    """Judge whether the plugin knows Slurm's limits on jobs that are below its pool."""
    pool = max(plugin.pools, default=0)
    named = {
        **{f"QOS {name}": limit for name, limit in limits.qos.items()},
        **{f"partition {name}": limit for name, limit in limits.partitions.items()},
        **{f"account {name}": limit for name, limit in limits.accounts.items()},
        **{f"user {name} of {account}": n for (account, name), n in limits.users.items()},
    }
    lower = [f"{name}: {limit}" for name, limit in named.items() if limit < pool]
    if not lower:
        return ok("Slurm's limits", f"all jobs may have {pool} {limits.licence}")
    shown = ", ".join(lower[:5]) + (f" and {len(lower) - 5} more" if len(lower) > 5 else "")
    if plugin.of("limits"):
        return ok("Slurm's limits", f"{shown}; the plugin reads them")
    return fail(
        "Slurm's limits",
        f"{shown}; with more, jobs are rejected or wait for ever",
        "set `limits` in watch.toml and in ioncast_settings.lua",
    )
