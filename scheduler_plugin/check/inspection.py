"""The whole check: ask the sources in an order in which each is known when it is needed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from scheduler_plugin.check import (
    controller,
    hooks,
    judging,
    plugin,
    rights,
    service,
    watch_and_arbiter,
    written_files,
)
from scheduler_plugin.check.asking_sources import gathered
from scheduler_plugin.check.controller import Controller
from scheduler_plugin.check.plugin import Plugin
from scheduler_plugin.check.row_values import MissingSource, Row, fail, unknown, warn
from scheduler_plugin.file_rights import Rule
from scheduler_plugin.settings import SiteSettings
from scheduler_plugin.token_files import read_token

# The settings of the plugin with addresses of the service.
_ADDRESSES = ("address", "second_address")
_NO_SLURM = "run this command on slurmctld's machine, while slurmctld runs"


@dataclass
class _Found:
    """All that was gathered, by source; a source that told nothing is a `MissingSource`."""

    files: dict[watch_and_arbiter.Part, str]
    values: dict[str, Any] = field(default_factory=dict)

    def ask(self, **sources: Any) -> None:
        self.values |= gathered(sources)

    def settings(self) -> Iterator[tuple[watch_and_arbiter.Part, SiteSettings]]:
        """The parts whose settings can be used."""
        for part in self.files:
            if isinstance(found := self.values[part], SiteSettings):
                yield part, found

    @property
    def controller(self) -> Controller | MissingSource:
        found: Controller | MissingSource = self.values["controller"]
        return found

    @property
    def plugin(self) -> Plugin | MissingSource:
        found: Plugin | MissingSource = self.values.get(
            "plugin", MissingSource("slurmctld does not answer")
        )
        return found


def inspect(files: dict[watch_and_arbiter.Part, str]) -> list[Row]:
    """Look at everything and judge it."""
    found = _Found(files)
    found.ask(
        controller=controller.gather_controller,
        **{
            part: partial(watch_and_arbiter.gather_settings, path, part)
            for part, path in files.items()
        },
    )
    _ask_about_slurm(found)
    _ask_about_parts(found)
    _ask_about_service(found)
    now_s = time.time()
    return [
        *_controller_rows(found),
        *_part_rows(found, now_s),
        *_service_rows(found, now_s),
        *_file_rows(found, now_s),
        *_rights_rows(found),
    ]


def _ask_about_slurm(found: _Found) -> None:
    slurm = found.controller
    if isinstance(slurm, MissingSource):
        return
    sources: dict[str, Any] = {
        "plugin": partial(plugin.gather_plugin, slurm.folder, slurm.user),
        "loaded": partial(controller.gather_loaded_line, Path(slurm.log)) if slurm.log else str,
        "in_file": partial(controller.setting_in_file, slurm.folder / "slurm.conf", "Licenses"),
        "slurmdbd.conf": partial(
            controller.setting_in_file, slurm.folder / "slurmdbd.conf", "AuthAltParameters"
        ),
    }
    for name in plugin.FILES[:2]:
        sources[name] = partial(plugin.gather_text, slurm.folder / name)
    for name, path in _own_hooks(slurm).items():
        place = path.with_name("hooks.conf")
        sources[name] = partial(hooks.gather_hook, path, slurm.user)
        sources["hooks.conf"] = partial(hooks.gather_hook_settings, place, slurm.user)
    found.ask(**sources)


def _own_hooks(slurm: Controller) -> dict[str, Path]:
    """The hooks of ioncast that slurm.conf names, by their settings."""
    named = {name: hooks.hook_paths(slurm.of(name), file) for name, file in hooks.HOOKS.items()}
    return {name: Path(path) for name, (path, is_own) in named.items() if is_own}


def _ask_about_parts(found: _Found) -> None:
    slurm = found.controller
    has_slurmdbd = isinstance(slurm, Controller) and slurm.has_slurmdbd
    sources: dict[str, Any] = {}
    for part, settings in found.settings():
        sources[f"{part} jwt"] = partial(watch_and_arbiter.gather_slurm_token, settings)
        sources[f"{part} rest"] = partial(
            watch_and_arbiter.gather_rest, settings, has_slurmdbd=has_slurmdbd
        )
        if has_slurmdbd:
            sources[f"{part} level"] = partial(
                controller.gather_admin_level, settings.slurmrestd.user
            )
        sources[f"{part} token"] = partial(read_token, settings.service.token_file)
    if isinstance(found.plugin, Plugin) and (path := found.plugin.of("token_file")):
        sources["plugin token"] = partial(read_token, path)
    found.ask(**sources)


def _ask_about_service(found: _Found) -> None:
    tokens = {part: found.values.get(f"{part} token") for part in (*found.files, "plugin")}
    sources: dict[str, Any] = {}
    if isinstance(found.plugin, Plugin):
        tokens["plugin"] = tokens["plugin"] or found.plugin.of("token")
        slurm = found.controller
        user = slurm.user if isinstance(slurm, Controller) else "root"
        token = _text(tokens["plugin"])
        for name in _ADDRESSES:
            if address := found.plugin.of(name):
                sources[name] = partial(service.gather_answer, address, token, user)
    for part, settings in found.settings():
        address = settings.service.address
        sources["service"] = partial(service.gather_service, address, _text(tokens[part]))
        for name in (part, "plugin"):
            if token := _text(tokens[name]):
                sources[f"{name} rights"] = partial(service.gather_rights, address, token)
        sources |= _files_of(part, settings)
    found.ask(**sources)


def _text(value: str | MissingSource | None) -> str:
    return value if isinstance(value, str) else ""


def _files_of(part: watch_and_arbiter.Part, settings: SiteSettings) -> dict[str, Any]:
    """The files that a part writes or reads."""
    sources: dict[str, Any] = {}
    metrics = settings.watch.metrics if part == "watch" else settings.arbitrate.metrics
    if metrics is not None:
        sources[f"{part} version"] = partial(
            watch_and_arbiter.gather_running_version, Path(metrics)
        )
    if part == "arbiter":
        path = Path(settings.arbitrate.heartbeat)
        return {**sources, "heartbeat": partial(written_files.gather_heartbeat, path)}
    if settings.darshan is not None:
        sources["darshan"] = partial(written_files.gather_darshan, settings.darshan, date.today())
    if settings.watch.limits:
        sources["limits"] = partial(written_files.gather_limits, Path(settings.watch.limits))
    return sources


def _rules(found: _Found) -> Iterator[Rule]:
    """The rules for the rights of all files that settings name or manuals make."""
    yield from rights.RULES_ANYWHERE
    for part, path in found.files.items():
        yield from rights.rules_of_part(path, found.values[part])
    slurm, lua = found.controller, found.plugin
    if isinstance(slurm, MissingSource):
        return
    yield from rights.rules_of_slurm(slurm, _text(found.values["slurmdbd.conf"]))
    yield from rights.rules_of_hooks(
        slurm.user, list(_own_hooks(slurm).values()), found.values.get("hooks.conf")
    )
    if isinstance(lua, Plugin):
        yield from rights.rules_of_plugin(slurm, lua)


def _rights_rows(found: _Found) -> list[Row]:
    """Look at the rights of all files at once, and judge them."""
    sources = {rule.path: partial(rights.gather_rights, rule) for rule in _rules(found)}
    keys = found.values.get("slurmdbd.conf")
    unread = {"slurmdbd.conf": keys} if isinstance(keys, MissingSource) else {}
    return list(rights.rights_rows({**gathered(sources), **unread}))


def _controller_rows(found: _Found) -> Iterator[Row]:
    slurm, lua = found.controller, found.plugin
    if isinstance(slurm, MissingSource):
        yield fail("slurmctld", slurm.reason, _NO_SLURM)
        return
    yield from judging.plugin_rows(slurm, lua, found.values["loaded"])
    yield from judging.file_rows(
        {name: found.values[name] for name in plugin.FILES[:2]},
        {name: plugin.gather_text(plugin.SHIPPED / name) for name in plugin.FILES[:2]},
    )
    if isinstance(lua, MissingSource):
        return
    licences: dict[str, str] = {part: settings.licence.name for part, settings in found.settings()}
    yield from judging.licence_rows(slurm, lua, licences, _text(found.values["in_file"]))
    yield from _hook_rows(found, slurm, lua)


def _hook_rows(found: _Found, slurm: Controller, lua: Plugin) -> Iterator[Row]:
    is_arbitrated = "arbitrate" in lua.modes
    for name, file in hooks.HOOKS.items():
        if slurm.of(name):
            yield hooks.hook_row(name, slurm.of(name), found.values.get(name))
        elif lua.gives_licences and (name != "TaskProlog" or is_arbitrated):
            yield fail(name, "it is not set", f"set {name}=/etc/ioncast/hooks/{file} in slurm.conf")
        elif lua.gives_licences:
            yield warn(
                name,
                "it is not set: srun and salloc get no ION_COUNT",
                f"set {name}=/etc/ioncast/hooks/{file} in slurm.conf",
            )
    if "hooks.conf" in found.values:
        yield hooks.settings_row(
            found.values["hooks.conf"], slurm.user, lua.licence, is_arbitrated=is_arbitrated
        )


def _part_rows(found: _Found, now_s: float) -> Iterator[Row]:
    slurm = found.controller
    for part in found.files:
        settings = found.values[part]
        if isinstance(settings, MissingSource):
            yield unknown(f"{part}: settings", settings)
            continue
        user = settings.slurmrestd.user
        if isinstance(slurm, Controller):
            token = found.values[f"{part} jwt"]
            yield watch_and_arbiter.slurm_token_row(part, user, token, slurm.user, now_s)
            level = found.values.get(f"{part} level")
            yield watch_and_arbiter.rights_row(part, user, level, slurm.private)
        yield from watch_and_arbiter.rest_rows(part, found.values[f"{part} rest"])
        if f"{part} version" in found.values:
            running = found.values[f"{part} version"]
            yield watch_and_arbiter.version_row(part, running, version("ioncast"))
        rest = found.values[f"{part} rest"]
        is_known = isinstance(rest, watch_and_arbiter.Rest) and not isinstance(
            rest.limits, MissingSource | None
        )
        if part == "watch" and is_known and isinstance(found.plugin, Plugin):
            yield judging.limits_row(rest.limits, found.plugin)
    if "watch" not in found.files:
        yield warn("watch", "it is not set up: no job fills the history", "docs/slurm.md, step 2")
    if "arbiter" not in found.files and "arbitrate" in _modes(found):
        yield fail(
            "arbiter",
            "it is not set up, and a mode in ioncast_settings.lua is arbitrate",
            "set it up (docs/slurm.md, Arbitration), or change the mode",
        )


def _modes(found: _Found) -> frozenset[str]:
    return found.plugin.modes if isinstance(found.plugin, Plugin) else frozenset()


def _service_rows(found: _Found, now_s: float) -> Iterator[Row]:
    lua, slurm = found.plugin, found.controller
    systems: dict[str, str] = {part: settings.system for part, settings in found.settings()}
    has_token = False
    if isinstance(lua, Plugin):
        has_token = bool(lua.of("token") or lua.of("token_file"))
        if lua.of("system"):
            systems["plugin"] = lua.of("system")
        for name in _ADDRESSES:
            if name in found.values:
                yield service.answer_row(
                    name, lua.of(name), found.values[name], has_token=has_token
                )
    if "service" in found.values:
        private = slurm.private if isinstance(slurm, Controller) else frozenset[str]()
        yield from service.service_rows(
            found.values["service"], systems, version("ioncast"), private
        )
    for part in (*found.files, *(["plugin"] if has_token else [])):
        token = found.values.get(f"{part} token")
        rights = found.values.get(f"{part} rights", token)
        if isinstance(rights, dict | MissingSource):
            yield watch_and_arbiter.role_row(part, rights, now_s)


def _file_rows(found: _Found, now_s: float) -> Iterator[Row]:
    lua = found.plugin
    for part, settings in found.settings():
        if part == "arbiter" and "arbitrate" in _modes(found) and isinstance(lua, Plugin):
            yield written_files.heartbeat_row(
                found.values["heartbeat"], now_s, lua.of("heartbeat"), settings.arbitrate.heartbeat
            )
        if part == "watch":
            limits = settings.watch.limits or ""
            if isinstance(lua, Plugin) and (limits or lua.of("limits")):
                yield written_files.limits_row(
                    found.values.get("limits", MissingSource("the watch writes no file")),
                    now_s,
                    lua.licence,
                    lua.of("limits"),
                    limits,
                )
            yield written_files.darshan_row(found.values["darshan"])
