"""The rights that the files of Slurm and of ioncast may have: one rule for each, and the rows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain

from scheduler_plugin.check.asking_sources import (
    AGAIN,
    MissingSource,
    Row,
    fail,
    gathered,
    ok,
    unknown,
)
from scheduler_plugin.check.controller import Controller
from scheduler_plugin.check.hooks import SHARED, own_hooks
from scheduler_plugin.check.plugin import FILES, Plugin
from scheduler_plugin.file_rights import RightsProblem, Rule, entries_on_the_way, rights_problems
from scheduler_plugin.hook_settings import HookSettings
from scheduler_plugin.settings import SiteSettings

_SUBJECT = "rights"
# root runs or reads these, or starts programs as they say (docs/slurm.md, docs/service.md).
_UNITS = (
    "ioncast.service",
    "ioncast@.service",
    "ioncast-watch.service",
    "ioncast-arbiter.service",
)
# `systemctl edit ioncast@web` makes a file for this part.
_PARTS = ("ioncast@decisions.service", "ioncast@web.service", "ioncast@background.service")
_UNIT_FOLDERS = ("/etc/systemd/system", "/usr/lib/systemd/system")
_OF_ROOT = (
    "/etc/ioncast/renew-slurm-token",
    "/etc/ioncast/service.toml",
    "/etc/cron.d/ioncast-watch",
    "/etc/cron.d/ioncast-arbiter",
    *(f"{folder}/{unit}" for folder in _UNIT_FOLDERS for unit in _UNITS),
    *(f"/etc/systemd/system/{unit}.d/override.conf" for unit in (*_UNITS, *_PARTS)),
    "/etc/systemd/system/slurmrestd.service.d/ioncast.conf",
)
RULES_ANYWHERE = (
    *(Rule(path) for path in _OF_ROOT),
    Rule("/etc/ioncast/environment", is_secret=True),
    Rule("/etc/munge/munge.key", frozenset(["munge"]), is_secret=True),
)


def rules_of_slurm(slurm: Controller, of_slurmdbd: str) -> Iterator[Rule]:
    """The rules for Slurm's settings and keys."""
    writers = frozenset([slurm.user])
    yield Rule(f"{slurm.folder}/slurm.conf", writers)
    yield Rule(f"{slurm.folder}/slurmdbd.conf", writers, is_secret=True)
    # Slurm takes this key if slurm.conf names no other.
    yield Rule(f"{slurm.of('StateSaveLocation')}/jwt_hs256.key", writers, is_secret=True)
    for parameter in f"{slurm.of('AuthAltParameters')},{of_slurmdbd}".split(","):
        name, _, path = parameter.strip().partition("=")
        # The keys in jwks are public, but whoever can change them can make tokens.
        if path and name.lower() in {"jwt_key", "jwks"}:
            yield Rule(path, writers, is_secret=name.lower() == "jwt_key")


def rules_of_plugin(slurm: Controller, plugin: Plugin) -> Iterator[Rule]:
    """The rules for the files that slurmctld reads for the plugin."""
    writers = frozenset([slurm.user])
    for name in FILES:
        is_secret = name == FILES[2] and bool(plugin.of("token"))
        yield Rule(f"{slurm.folder}/{name}", writers, is_secret=is_secret)
    if path := plugin.of("token_file"):
        yield Rule(path, writers, is_secret=True)
    # The watch and the arbiter write into these files, but must not own them or their folders:
    # slurmctld would wait for the owner of a lease, and for a pipe in the place of a file.
    for name in ("limits", "heartbeat"):
        if path := plugin.of(name):
            yield Rule(path, writers, has_writing_group=True)


def rules_of_hooks(
    slurm: Controller, settings: HookSettings | MissingSource | None
) -> Iterator[Rule]:
    """The rules for ioncast's hooks, which SlurmUser runs, and for all that they read."""
    writers = frozenset([slurm.user])
    for hook in own_hooks(slurm).values():
        for name in (hook.name, *SHARED, "hooks.conf"):
            yield Rule(str(hook.with_name(name)), writers)
    if isinstance(settings, HookSettings):
        for path in filter(None, (settings.script, settings.folder)):
            yield Rule(path, writers)
        # The arbiter writes into this file, as into its heartbeat.
        if settings.placement:
            yield Rule(settings.placement, writers, has_writing_group=True)


def rules_of_part(path: str, settings: SiteSettings | None) -> Iterator[Rule]:
    """The rules for the settings of a part, in the file `path`, and for files that they name."""
    yield Rule(path)
    if settings:
        for token in (settings.slurmrestd.token_file, settings.service.token_file):
            yield Rule(token, is_secret=True)
        # A shell of the arbiter runs hooks.conf. For the one beside the hooks, the later rule in
        # `rules_of_hooks` allows SlurmUser too.
        for file in filter(None, (settings.arbitrate.hooks, settings.arbitrate.disturbances)):
            yield Rule(file)


def problems_of(rule: Rule) -> tuple[RightsProblem, ...] | None:
    """The problems of a file; None if it is missing, which other rows judge."""
    try:
        entries = entries_on_the_way(rule.path)
    except FileNotFoundError:
        return None
    # `systemctl mask` makes a unit a link to this.
    if entries[-1].path == os.devnull:
        return None
    return tuple(rights_problems(rule, entries))


def rights_rows(rules: Iterable[Rule], unread: Sequence[MissingSource]) -> Iterator[Row]:
    """One row for each problem; a folder on the way to several files has one row.

    `unread` are sources of rules.
    """
    by_path = {rule.path: rule for rule in rules}
    looks = gathered(*(partial(problems_of, rule) for rule in by_path.values()))
    for look in (*looks, *unread):
        if isinstance(look, MissingSource):
            yield unknown(_SUBJECT, look, AGAIN)
    seen = [look for look in looks if isinstance(look, tuple)]
    problems: dict[tuple[str, str], RightsProblem] = {}
    for problem in chain(*seen):
        problems.setdefault((problem.path, problem.remedy), problem)
    for problem in problems.values():
        yield fail(_SUBJECT, problem.found, problem.remedy)
    if not problems:
        text = f"nobody else can change or read {len(seen)} files of Slurm and ioncast"
        yield ok(_SUBJECT, text)
