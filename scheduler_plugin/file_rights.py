"""Rights of files: who can change a file or replace it, and whether everybody can read it."""

from __future__ import annotations

import errno
import grp
import os
import pwd
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

# As many as the kernel follows.
_MOST_LINKS = 40
_ACL = "system.posix_acl_access"


@dataclass(frozen=True)
class Rule:
    """The rights that a file may have.

    Attributes
    ----------
    writers : frozenset of str
        The users who may change it; root always may.
    is_secret : bool
        Whether only its owner and its group may read it.
    has_writing_group : bool
        Whether its group may write into it; not into its folder.
    """

    path: str
    writers: frozenset[str] = frozenset()
    is_secret: bool = False
    has_writing_group: bool = False


@dataclass(frozen=True)
class Entry:
    """A folder or a link on the way to a file, or the file itself.

    Attributes
    ----------
    mode : int
        Its kind and its rights, as in `st_mode`. With an ACL the rights of the group are the most
        that any user or group in the ACL has.
    has_acl : bool
        Whether it has an ACL.
    """

    path: str
    owner: str
    group: str
    mode: int
    has_acl: bool = False


@dataclass(frozen=True)
class RightsProblem:
    """A right that somebody should not have on a file, folder or link, and the advice."""

    path: str
    found: str
    remedy: str


def entries_on_the_way(path: str) -> tuple[Entry, ...]:
    """Look at a file and at all folders and links on the way to it, from the root on.

    Parameters
    ----------
    path : str
        The file. Links are followed, so the last entry is their target.
    """
    names = list(reversed(Path(path).absolute().parts))
    folder = Path("/")
    found: list[Entry] = []
    links = 0
    while names:
        name = names.pop()
        # A folder is never a link here, so the folder above is the parent of its path.
        place = folder.parent if name == ".." else folder / name
        found.append(_entry(place))
        if not stat.S_ISLNK(found[-1].mode):
            folder = place
            continue
        links += 1
        if links > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        names += reversed(place.readlink().parts)
    return tuple(found)


def _entry(path: Path) -> Entry:
    """Look at one file, folder or link."""
    info = path.lstat()
    has_acl = False
    if not stat.S_ISLNK(info.st_mode):
        try:
            has_acl = bool(os.getxattr(path, _ACL))
        except OSError:
            # There is no ACL, or the file system has none.
            has_acl = False
    owner, group = user_name(info.st_uid), _group_name(info.st_gid)
    return Entry(str(path), owner, group, info.st_mode, has_acl)


def user_name(number: int) -> str:
    """The name of a user; the number itself if it has none."""
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _group_name(number: int) -> str:
    """The name of a group; the number itself if it has none."""
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)


def rights_problems(rule: Rule, entries: Sequence[Entry]) -> Iterator[RightsProblem]:
    """Judge a file and all folders and links on the way to it.

    In a sticky folder such as /tmp everybody may write, but replace only what belongs to him.
    Therefore such a folder is safe if all entries on the way belong to writers.
    """
    writers = rule.writers | {"root"}
    *way, file = entries
    for entry in way:
        is_harmless = stat.S_ISLNK(entry.mode) or entry.mode & stat.S_ISVTX
        wrong = 0 if is_harmless else entry.mode & (stat.S_IWGRP | stat.S_IWOTH)
        if wrong or entry.owner not in writers:
            yield _changeable(entry, writers, f" and so replace {rule.path}")
    if not stat.S_ISREG(file.mode) and not stat.S_ISDIR(file.mode):
        yield RightsProblem(
            file.path,
            f"{_shown(file)} is not a regular file: who opens it may wait for ever",
            "remove it, and make the file again",
        )
        return
    may_group_write = rule.has_writing_group and not file.has_acl
    wrong = file.mode & (stat.S_IWOTH if may_group_write else stat.S_IWGRP | stat.S_IWOTH)
    if wrong or file.owner not in writers:
        yield _changeable(file, writers, "")
    if rule.is_secret and file.mode & stat.S_IROTH:
        yield RightsProblem(
            file.path,
            f"everybody can read {_shown(file)}",
            f"chmod o-r {file.path}, and make a new secret: somebody may know this one",
        )
    elif rule.is_secret and file.has_acl and file.mode & stat.S_IRGRP:
        yield RightsProblem(
            file.path,
            f"an ACL may let others read {_shown(file)}",
            f"setfacl --remove-all {file.path}",
        )


def _changeable(entry: Entry, writers: frozenset[str], consequence: str) -> RightsProblem:
    """Say that others can change an entry, and how to prevent it."""
    names = " and ".join(sorted(writers, key=lambda name: (name != "root", name)))
    remedy = f"chmod go-w {entry.path}"
    if entry.owner not in writers:
        remedy = f"chown --no-dereference root {entry.path}; {remedy}"
    found = f"others than {names} can change {_shown(entry)}{consequence}"
    return RightsProblem(entry.path, found, remedy)


def _shown(entry: Entry) -> str:
    """Name an entry with its rights."""
    rights = f"{entry.owner}:{entry.group}, mode {stat.S_IMODE(entry.mode):o}"
    return f"{entry.path} ({rights}{', with an ACL' if entry.has_acl else ''})"
