"""`ioncast slurm check`: whether everything beside Slurm is set up right, as rows in order."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import date
from functools import partial
from pathlib import Path

import click

from ioncast_base.command_options import format_option, in_colour
from scheduler_plugin.check import hooks, plugin, rights, service, watch_and_arbiter
from scheduler_plugin.check.asking_sources import (
    MissingSource,
    Row,
    SiteCheck,
    exit_code,
    fail,
    gathered,
    rows_of,
    started,
    warn,
)
from scheduler_plugin.check.controller import Controller, ask_controller, setting_in_file
from scheduler_plugin.check.plugin import Plugin
from scheduler_plugin.check.row_lines import lines_of
from scheduler_plugin.check.watch_and_arbiter import LOOK, Part
from scheduler_plugin.hook_settings import INSTALL, HookSettings, read_hook_settings
from scheduler_plugin.settings import SiteSettings

_NO_SLURM = "run this command on slurmctld's machine, while slurmctld runs"
_PLACES: dict[Part, str] = {
    "watch": "/etc/ioncast/watch.toml",
    "arbiter": "/etc/ioncast/arbiter.toml",
}


@click.command(
    "check",
    epilog="""\b
Examples:
  ioncast slurm check
  ioncast slurm check --watch watch.toml --arbiter arbiter.toml
  ioncast slurm check --format json
""",
)
@click.option(
    "--watch",
    metavar="FILE.toml",
    type=click.Path(exists=True, dir_okay=False),
    help=f"The settings of the watch; without it {_PLACES['watch']}, if it exists.",
)
@click.option(
    "--arbiter",
    metavar="FILE.toml",
    type=click.Path(exists=True, dir_okay=False),
    help=f"The settings of the arbiter; without it {_PLACES['arbiter']}, if it exists.",
)
@format_option
def check(watch: str | None, arbiter: str | None, output_format: str) -> None:
    """Check plugin, hooks, watch, arbiter and service, and say what to do about each problem.

    Run it as root on slurmctld's machine; another user sees which rows only root can check. It
    changes nothing. Each row is OK, WARN or FAIL. The command exits with 1 if a row is FAIL, and
    with 2 if an option is wrong.
    """
    given: dict[Part, str | None] = {"watch": watch, "arbiter": arbiter}
    files = {part: path or _PLACES[part] for part, path in given.items()}
    rows = inspect({part: path for part, path in files.items() if Path(path).exists()})
    if output_format == "json":
        click.echo(json.dumps([asdict(row) for row in rows], indent=2))
    else:
        click.echo("\n".join(lines_of(rows)), color=in_colour())
    sys.exit(exit_code(rows))


@dataclass(frozen=True)
class Site:
    """The settings that several checks need.

    Attributes
    ----------
    files, settings : mapping
        The file of each part, and its content.
    lua : Plugin or MissingSource or None
        None without slurmctld.
    hook_settings : HookSettings or MissingSource or None
        None without a hook of ioncast.
    """

    files: Mapping[Part, str]
    settings: Mapping[Part, SiteSettings | MissingSource]
    slurm: Controller | MissingSource
    lua: Plugin | MissingSource | None = None
    hook_settings: HookSettings | MissingSource | None = None

    @property
    def parts(self) -> dict[Part, SiteSettings]:
        """The settings that could be read."""
        items = self.settings.items()
        return {part: content for part, content in items if isinstance(content, SiteSettings)}


def inspect(files: Mapping[Part, str]) -> list[Row]:
    """Look at everything and judge it."""
    site = _ask(files)
    checks = (
        *_slurm_checks(site),
        *_part_checks(site),
        *_service_checks(site),
        *_file_checks(site),
    )
    return [*rows_of(*checks), *_rights_rows(site)]


def _ask(files: Mapping[Part, str]) -> Site:
    readers = [partial(watch_and_arbiter.read_part, path, part) for part, path in files.items()]
    slurm, *contents = gathered(ask_controller, *readers)
    settings = dict(zip(files, contents, strict=True))
    if isinstance(slurm, MissingSource):
        return Site(files, settings, slurm)
    sources: list[Callable[[], object]] = [partial(plugin.ask_plugin, slurm.folder, slurm.user)]
    for path in list(hooks.own_hooks(slurm).values())[-1:]:
        sources += [partial(read_hook_settings, path.with_name("hooks.conf"), slurm.user)]
    return Site(files, settings, slurm, *gathered(*sources))


def _slurm_checks(site: Site) -> Iterator[SiteCheck]:
    slurm, lua = site.slurm, site.lua
    if isinstance(slurm, MissingSource):
        yield SiteCheck("", iter, [fail("slurmctld", slurm.what, _NO_SLURM)])
        return
    yield SiteCheck("slurmctld", plugin.use_rows, slurm)
    yield SiteCheck("settings", plugin.settings_rows, slurm, lua, remedy=plugin.STEP_1)
    known = lua if isinstance(lua, Plugin) else None
    yield SiteCheck("loaded settings", plugin.loaded_rows, slurm, known)
    for name in plugin.FILES[:2]:
        yield SiteCheck(name, plugin.file_rows, slurm.folder, name, remedy=plugin.STEP_1)
    if known is None:
        return
    licences = {part: settings.licence.name for part, settings in site.parts.items()}
    yield SiteCheck("licences", plugin.licence_rows, slurm, known, licences)
    for name in hooks.HOOKS:
        yield SiteCheck(name, hooks.hook_rows, slurm, known, name, remedy=INSTALL)
    if site.hook_settings is not None:
        yield SiteCheck("hooks.conf", hooks.settings_rows, site.hook_settings, slurm.user, known)
        yield SiteCheck("", hooks.names_rows, site.hook_settings, slurm)
        if "watch" in site.parts:
            watch = site.parts["watch"]
            yield SiteCheck("", hooks.history_rows, site.hook_settings, watch)


def _part_checks(site: Site) -> Iterator[SiteCheck]:
    for part, settings in site.settings.items():
        yield SiteCheck(f"{part}: settings", lambda _: (), settings)
        if isinstance(settings, SiteSettings):
            yield from _checks_of_part(site, part, settings)
    if "watch" not in site.files:
        text = "it is not set up: no job fills the history"
        yield SiteCheck("", iter, [warn("watch", text, "docs/slurm.md, step 1")])
    if "arbiter" not in site.files and isinstance(site.lua, Plugin) and site.lua.is_arbitrated:
        text = "it is not set up, and a mode in ioncast_settings.lua is arbitrate"
        advice = "set it up (docs/slurm.md, Arbitration), or change the mode"
        yield SiteCheck("", iter, [fail("arbiter", text, advice)])


def _checks_of_part(site: Site, part: Part, settings: SiteSettings) -> Iterator[SiteCheck]:
    slurm, has_slurmdbd = site.slurm, False
    if isinstance(slurm, Controller):
        has_slurmdbd, user = slurm.has_slurmdbd, settings.slurmrestd.user
        tokens = watch_and_arbiter.slurm_token_rows
        yield SiteCheck(f"{part}: token of Slurm", tokens, part, settings.slurmrestd, slurm)
        yield SiteCheck(
            f"{part}: rights in Slurm", watch_and_arbiter.rights_rows, part, user, slurm
        )
    # Two checks need the answer.
    ask = partial(watch_and_arbiter.ask_slurmrestd, part, settings, has_slurmdbd=has_slurmdbd)
    answer = started(ask)
    yield SiteCheck(f"{part}: slurmrestd", watch_and_arbiter.slurmrestd_rows, answer)
    metrics = settings.watch.metrics if part == "watch" else settings.arbitrate.metrics
    if metrics is not None:
        advice = LOOK.format(part)
        versions = watch_and_arbiter.version_rows
        yield SiteCheck(f"{part}: version", versions, part, metrics, remedy=advice)
    if part == "watch" and isinstance(site.lua, Plugin):
        yield SiteCheck("", watch_and_arbiter.slurm_limits_rows, site.lua, answer)


def _service_checks(site: Site) -> Iterator[SiteCheck]:
    lua, start = site.lua, service.START
    systems: dict[str, str] = {part: settings.system for part, settings in site.parts.items()}
    private = site.slurm.private if isinstance(site.slurm, Controller) else frozenset[str]()
    if isinstance(lua, Plugin) and isinstance(site.slurm, Controller):
        systems |= {"plugin": lua.of("system")} if lua.of("system") else {}
        for name in filter(lua.of, ("address", "second_address")):
            user = site.slurm.user
            yield SiteCheck(f"plugin: {name}", service.answer_rows, name, lua, user, remedy=start)
    services = {part: settings.service for part, settings in site.parts.items()}
    for part in list(services)[-1:]:
        inputs = (services[part], systems, private)
        yield SiteCheck("service", service.service_rows, *inputs, remedy=start)
    subject, address = "{}: token of ioncast", ""
    for part, settings in services.items():
        address, file = settings.address, settings.token_file
        yield SiteCheck(subject.format(part), service.role_rows, part, address, file)
    if isinstance(lua, Plugin) and lua.has_token:
        tokens = ("plugin", address, lua.of("token_file"), lua.of("token"))
        yield SiteCheck(subject.format("plugin"), service.role_rows, *tokens)


def _file_checks(site: Site) -> Iterator[SiteCheck]:
    lua, look = site.lua, LOOK.format
    for part, settings in site.parts.items():
        if part == "arbiter" and isinstance(lua, Plugin) and lua.is_arbitrated:
            paths = (lua.of("heartbeat"), settings.arbitrate.heartbeat)
            yield SiteCheck(
                "heartbeat", watch_and_arbiter.heartbeat_rows, *paths, remedy=look(part)
            )
        if part == "watch":
            limits, rows = settings.watch.limits or "", watch_and_arbiter.limits_rows
            if isinstance(lua, Plugin) and (limits or lua.of("limits")):
                yield SiteCheck("file of limits", rows, lua, limits, remedy=look(part))
            inputs = (settings.darshan, date.today())
            advice = "make the folder, or correct `folder` in [darshan] of watch.toml"
            yield SiteCheck(
                "Darshan's folders", watch_and_arbiter.darshan_rows, *inputs, remedy=advice
            )


def _rights_rows(site: Site) -> Iterator[Row]:
    rules, unread, keys = [*rights.RULES_ANYWHERE], [], ""
    for part, path in site.files.items():
        rules += rights.rules_of_part(path, site.parts.get(part))
    if isinstance(site.slurm, Controller):
        file = site.slurm.folder / "slurmdbd.conf"
        [keys] = gathered(partial(setting_in_file, file, "AuthAltParameters"))
        if isinstance(keys, MissingSource):
            unread, keys = [keys], ""
        rules += rights.rules_of_slurm(site.slurm, keys)
        rules += rights.rules_of_hooks(site.slurm, site.hook_settings)
        if isinstance(site.lua, Plugin):
            rules += rights.rules_of_plugin(site.slurm, site.lua)
    return rights.rights_rows(rules, unread)
