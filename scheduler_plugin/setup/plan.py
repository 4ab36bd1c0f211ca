"""The plan of a setup: users, folders and files, from a few answers and Slurm's settings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ioncast_base.errors import InputError
from scheduler_plugin.check import hooks, plugin
from scheduler_plugin.check.controller import Controller
from scheduler_plugin.settings import LicenceSettings
from scheduler_plugin.slurm.licences import licence_count

DEPLOY = Path(__file__).resolve().parents[1] / "deploy"
SLURMRESTD = "unix:/run/slurmrestd/slurmrestd.sock"
_SETTINGS = "/etc/ioncast"
_UNITS = "/etc/systemd/system"
# The packages put units here (packaging/lay-out).
PACKAGED_UNITS = "/usr/lib/systemd/system"
_WATCH = "ioncast-watch"
_RENEW, _JWT = f"{_SETTINGS}/renew-slurm-token", f"{_SETTINGS}/watch/slurm.jwt"
_JWT_KEY = "jwt.key"
# From this version of Slurm on slurmrestd offers all its interfaces by itself.
_ALL_INTERFACES = (23, 2)
# From this version of Slurm on slurmrestd ends at its start if it offers slurmdbd and slurm.conf
# has none.
_NEEDS_SLURMDBD = (24, 5)
_TEXT = re.compile(r'[^"\\\x00-\x1f\x7f]{1,200}')


@dataclass(frozen=True)
class Answers:
    """The answers of an admin.

    Attributes
    ----------
    system : str
        The system's name in ioncast.
    pool : int
        The number of I/O nodes.
    darshan : str
        The folder of Darshan's logs.
    slurmrestd : str
        The address of slurmrestd. With `SLURMRESTD` the plan contains it and the key of tokens.
    """

    system: str
    pool: int
    darshan: str
    slurmrestd: str = SLURMRESTD

    def __post_init__(self) -> None:
        # These texts go into files of TOML and Lua, between quotes.
        texts = {
            "--system": self.system,
            "--darshan": self.darshan,
            "--slurmrestd": self.slurmrestd,
        }
        for option, text in texts.items():
            if not _TEXT.fullmatch(text):
                what = f"{text!r} contains a quote, a backslash or a control character"
                raise InputError(what, where=option)
        if not self.darshan.startswith("/"):
            raise InputError(f"{self.darshan!r} is not a full path", where="--darshan")


@dataclass(frozen=True)
class WantedFile:
    """A file that the setup makes.

    Attributes
    ----------
    content : bytes
        Empty for a secret.
    client, role : str
        For a token of ioncast: its name and its role.
    is_secret : bool
        Whether the content is made at random when the file is missing; an existing one counts.
    """

    path: str
    content: bytes = b""
    owner: str = "root"
    group: str = "root"
    mode: int = 0o644
    is_secret: bool = False
    client: str = ""
    role: str = ""


@dataclass(frozen=True)
class SetupPlan:
    """A setup in the order in which it is done; `by_hand` are the commands that remain."""

    sysusers: str
    tmpfiles: str
    files: tuple[WantedFile, ...]
    by_hand: tuple[str, ...]


def setup_plan(
    answers: Answers, slurm: Controller, slurm_group: str, *, has_packaged_units: bool
) -> SetupPlan:
    """Plan the setup of the plugin, the hooks and the watch, up to shadow mode.

    Parameters
    ----------
    slurm_group : str
        The group of SlurmUser, whose members may ask the service for decisions.
    has_packaged_units : bool
        Whether a package has installed the units.
    """
    files = (
        *_files_of_watch(answers, has_packaged_units=has_packaged_units),
        *(_files_of_slurmrestd(slurm) if _is_ours(answers) else ()),
        *_files_of_plugin(answers, slurm),
        *_files_of_hooks(),
    )
    return SetupPlan(
        _sysusers(answers, slurm_group),
        _shipped("tmpfiles.conf"),
        files,
        tuple(_by_hand(answers, slurm, slurm_group)),
    )


def _is_ours(answers: Answers) -> bool:
    return answers.slurmrestd == SLURMRESTD


def _shipped(name: str) -> str:
    return (DEPLOY / name).read_text()


def _changed(text: str, old: str, new: str) -> str:
    """Replace a line of a shipped file."""
    before, found, after = text.partition(f"{old}\n")
    if not found:
        raise AssertionError(f"the shipped file has no line {old!r}")
    return f"{before}{new}\n{after}"


def _sysusers(answers: Answers, slurm_group: str) -> str:
    """The users and their groups, in the form of systemd-sysusers."""
    lines = []
    if _is_ours(answers):
        lines.append('u slurmrestd - "slurmrestd" /nonexistent /usr/sbin/nologin')
        lines += [f"m {user} slurmrestd" for user in (_WATCH, "ioncast-arbiter")]
    if slurm_group != "root":
        lines.append(f"m ioncast {slurm_group}")
    return _shipped("sysusers.conf") + "".join(f"{line}\n" for line in lines)


def _files_of_watch(answers: Answers, *, has_packaged_units: bool) -> Iterator[WantedFile]:
    token = f"{_SETTINGS}/watch/ioncast.token"
    settings = _changed(_shipped("watch.toml"), 'system = "mysite"', f'system = "{answers.system}"')
    settings = _changed(settings, f'address = "{SLURMRESTD}"', f'address = "{answers.slurmrestd}"')
    settings = _changed(settings, 'folder = "/var/log/darshan"', f'folder = "{answers.darshan}"')
    cron = f"17 * * * * root {_RENEW} {_WATCH} {_JWT}\n"
    yield WantedFile(_RENEW, _shipped("renew-slurm-token").encode(), mode=0o755)
    yield WantedFile(f"{_SETTINGS}/watch.toml", settings.encode())
    yield WantedFile(f"/etc/cron.d/{_WATCH}", cron.encode())
    yield WantedFile(
        token, group=_WATCH, mode=0o640, is_secret=True, client="watch", role="scheduler"
    )
    if not has_packaged_units:
        for name in (f"{_WATCH}.service", "ioncast-arbiter.service"):
            yield WantedFile(f"{_UNITS}/{name}", _shipped(name).encode())


def _files_of_slurmrestd(slurm: Controller) -> Iterator[WantedFile]:
    text = _shipped("slurmrestd.conf")
    [command] = re.findall(r"^ExecStart=.+$", text, re.MULTILINE)
    wanted = command
    version = _version(slurm)
    if version >= _NEEDS_SLURMDBD and not slurm.has_slurmdbd:
        wanted = re.sub(r" -s \S+", " -s slurmctld", command)
    elif version >= _ALL_INTERFACES:
        wanted = re.sub(r" -s \S+", "", command)
    elif not slurm.has_slurmdbd:
        wanted = re.sub(r",openapi/dbv\S+", "", command)
    content = _changed(text, command, wanted)
    yield WantedFile(f"{_UNITS}/slurmrestd.service.d/ioncast.conf", content.encode())
    if _has_no_key(slurm):
        yield WantedFile(str(slurm.folder / _JWT_KEY), owner=slurm.user, mode=0o600, is_secret=True)


def _version(slurm: Controller) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", slurm.of("SLURM_VERSION"))[:2])


def _files_of_plugin(answers: Answers, slurm: Controller) -> Iterator[WantedFile]:
    for name in plugin.FILES:
        text = (plugin.SHIPPED / name).read_text()
        if name == "ioncast_settings.lua":
            text = _changed(text, '    system = "mysite",', f'    system = "{answers.system}",')
            text = _changed(text, "    pool = 8,", f"    pool = {answers.pool},")
            old = 'token_file = "/etc/slurm/ioncast.token"'
            new = f'token_file = "{slurm.folder}/ioncast.token"'
            text = _changed(text, f"    {old},", f"    {new},")
        yield WantedFile(str(slurm.folder / name), text.encode())
    yield WantedFile(
        f"{slurm.folder}/ioncast.token",
        owner=slurm.user,
        mode=0o600,
        is_secret=True,
        client="plugin",
        role="scheduler",
    )


def _files_of_hooks() -> Iterator[WantedFile]:
    for path in sorted(hooks.SHIPPED.iterdir()):
        if path.is_file():
            mode = 0o644 if path.suffix == ".conf" else 0o755
            yield WantedFile(f"{_SETTINGS}/hooks/{path.name}", path.read_bytes(), mode=mode)


def _by_hand(answers: Answers, slurm: Controller, slurm_group: str) -> Iterator[str]:
    """The changes of Slurm's own files, and the commands that start the parts."""
    file = slurm.folder / "slurm.conf"
    keys, lines = [], []
    if _is_ours(answers) and _has_no_key(slurm):
        keys = ["AuthAltTypes=auth/jwt", f"AuthAltParameters=jwt_key={slurm.folder / _JWT_KEY}"]
    if "lua" not in slurm.of("JobSubmitPlugins").split(","):
        lines.append("JobSubmitPlugins=lua")
    if not licence_count(slurm.of("Licenses"), LicenceSettings().name):
        lines.append(f"Licenses={LicenceSettings().name}:{answers.pool}")
    missing = []
    for line in (*keys, *lines):
        setting, _, value = line.partition("=")
        if old := slurm.of(setting):
            yield f"# in {file}, extend the line {setting}={old} to {setting}={old},{value}"
        else:
            missing.append(line)
    if missing:
        yield from _appended(missing, file)
    if keys and slurm.has_slurmdbd:
        yield from _appended(keys, slurm.folder / "slurmdbd.conf")
    if slurm_group not in {"slurm", "root"}:
        line = f'decisions_group = "{slurm_group}"'
        yield f"sed -i 's/^decisions_group = .*/{line}/' {_SETTINGS}/service.toml"
    own = ["slurmrestd", "ioncast"] if _is_ours(answers) else ["ioncast"]
    of_slurm = ["slurmdbd", "slurmctld"] if slurm.has_slurmdbd else ["slurmctld"]
    yield f"systemctl restart {' '.join([*of_slurm, *own])}"
    yield f"{_RENEW} {_WATCH} {_JWT}"
    yield f"systemctl enable --now {' '.join([*own, _WATCH])}"
    yield "ioncast slurm check"


def _appended(lines: list[str], file: Path) -> Iterator[str]:
    """The commands that append lines; a last line without its end gets it first."""
    try:
        lacks_newline = not file.read_bytes().endswith(b"\n")
    except OSError:
        lacks_newline = False
    if lacks_newline:
        yield f"echo >> {file}"
    yield f"printf '%s\\n' {' '.join(lines)} >> {file}"


def _has_no_key(slurm: Controller) -> bool:
    return "jwt_key=" not in slurm.of("AuthAltParameters")
