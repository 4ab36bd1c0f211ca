"""Rights of files: every way in which somebody else could change a file is found.

Other users really try it: the kernel says whether they can.
"""

from __future__ import annotations

import os
import shutil
import stat
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from pwd import getpwnam
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_plugin.file_rights import Entry, Rule, entries_on_the_way, rights_problems
from tests.support.examples import examples

# Users that every Debian has. All groups in these tests are those of the attacker.
WRITER, ATTACKER, STRANGER = "games", "daemon", "nobody"
# Tries to write into the last of its files and folders, and to put others in their places. The
# owner of a file may give himself each right.
ATTACK = """
for each; do chmod u+rwx "$each" 2>/dev/null; last=$each; done
printf evil | dd of="$last" conv=notrunc,nocreat status=none 2>/dev/null && exit
for each; do
    mv "$each" "$each.old" 2>/dev/null || continue
    mkdir -p "${last%/*}" && printf evil >"$last"
    exit
done
"""


@dataclass(frozen=True)
class Made:
    """The owner and the mode of a file or folder."""

    owner: str
    mode: int


@pytest.fixture(scope="module")
def open_folder() -> Iterator[Path]:
    # Other users cannot read pytest's folders.
    with TemporaryDirectory(prefix="rights-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def made(path: Path, rights: Made, *, is_folder: bool) -> None:
    """Make a file or a folder."""
    if is_folder:
        path.mkdir()
    else:
        path.write_text("good")
    shutil.chown(path, rights.owner, getpwnam(ATTACKER).pw_gid)
    path.chmod(rights.mode)


def can_be_changed(folders: list[Made], file: Made, place: Path) -> bool:
    """Make the folders, one in the other, and the file in them; let others try to change it."""
    paths = []
    with TemporaryDirectory(dir=place) as name:
        path = Path(name)
        path.chmod(0o755)
        for number, rights in enumerate([*folders, file]):
            path /= str(number)
            made(path, rights, is_folder=number < len(folders))
            paths.append(path)
        for user in (ATTACKER, STRANGER):
            command = ["sh", "-c", ATTACK, "sh", *paths]
            group = getpwnam(user).pw_gid
            subprocess.run(command, user=user, group=group, extra_groups=[], cwd="/", check=False)
        return path.read_text() != "good"


good = st.sampled_from(["root", WRITER])
bad = st.just(ATTACKER)
good_folders = st.builds(Made, good, st.sampled_from([0o555, 0o755, 0o1777]))
bad_folders = st.builds(Made, bad, st.sampled_from([0o555, 0o755, 0o1777]))
open_folders = st.builds(Made, good, st.sampled_from([0o775, 0o757]))
good_files = st.builds(Made, good, st.sampled_from([0o400, 0o644]))
bad_files = st.builds(Made, bad, st.sampled_from([0o400, 0o644]))
open_files = st.builds(Made, good, st.sampled_from([0o664, 0o646]))


@pytest.mark.promise("slurm-file-rights")
@pytest.mark.root
@settings(max_examples=examples(400))
@given(
    folders=st.lists(good_folders | bad_folders | open_folders, max_size=3),
    file=good_files | bad_files | open_files,
)
def test_a_file_is_safe_if_and_only_if_nobody_else_can_change_it(
    open_folder: Path, folders: list[Made], file: Made
) -> None:
    kinds = [stat.S_IFDIR] * len(folders) + [stat.S_IFREG]
    entries = [
        Entry(f"/{number}", each.owner, ATTACKER, kind | each.mode)
        for number, (each, kind) in enumerate(zip([*folders, file], kinds, strict=True))
    ]
    found = list(rights_problems(Rule("/f", frozenset([WRITER])), entries))
    assert bool(found) == can_be_changed(folders, file, open_folder)


def problems_of(path: Path, **rule: bool) -> list[str]:
    """The paths of all problems with a file that only root may change."""
    entries = entries_on_the_way(str(path))
    return [problem.path for problem in rights_problems(Rule(str(path), **rule), entries)]


@pytest.mark.root
@pytest.mark.parametrize(
    ("mode", "is_open"), [(0o600, False), (0o640, False), (0o604, True), (0o644, True)]
)
def test_a_secret_is_for_its_owner_and_its_group(tmp_path: Path, mode: int, is_open: bool) -> None:
    path = tmp_path / "token"
    path.touch()
    path.chmod(mode)
    assert problems_of(path, is_secret=True) == [str(path)] * is_open
    assert problems_of(path) == []


@pytest.mark.root
@pytest.mark.parametrize(
    ("mode", "is_safe"), [(0o644, True), (0o664, True), (0o666, False), (0o646, False)]
)
def test_a_group_may_write_into_a_file_but_not_into_its_folder(
    tmp_path: Path, mode: int, is_safe: bool
) -> None:
    path = tmp_path / "limits"
    path.touch()
    path.chmod(mode)
    assert problems_of(path, has_writing_group=True) == [str(path)] * (not is_safe)
    tmp_path.chmod(0o775)
    assert str(tmp_path) in problems_of(path, has_writing_group=True)


@pytest.mark.promise("slurm-file-rights")
@pytest.mark.root
def test_folders_of_a_link_and_of_its_target_count(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    (tmp_path / "c" / "file").touch()
    (tmp_path / "b" / "second").symlink_to("../c/file")
    (tmp_path / "a" / "first").symlink_to(tmp_path / "b" / "second")
    first = tmp_path / "a" / "first"
    assert problems_of(first) == []
    for name in ("a", "b", "c"):
        (tmp_path / name).chmod(0o777)
        assert problems_of(first) == [str(tmp_path / name)]
        (tmp_path / name).chmod(0o755)
    (tmp_path / "c" / "file").chmod(0o666)
    assert problems_of(first) == [str(tmp_path / "c" / "file")]


@pytest.mark.root
def test_a_link_of_somebody_else_in_a_sticky_folder_is_found(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    (tmp_path / "file").touch()
    link = tmp_path / "link"
    link.symlink_to("file")
    assert problems_of(link) == []
    os.chown(link, getpwnam(ATTACKER).pw_uid, -1, follow_symlinks=False)
    assert problems_of(link) == [str(link)]


@pytest.mark.root
def test_a_linked_folder_is_judged_and_not_the_link_alone(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs").chmod(0o1777)
    (tmp_path / "here").symlink_to(".")
    (tmp_path / "link").symlink_to("here/jobs/../jobs")
    assert problems_of(tmp_path / "link") == [str(tmp_path / "jobs")]


@pytest.mark.root
def test_a_pipe_in_the_place_of_a_file_is_found(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "heartbeat", 0o644)
    assert problems_of(tmp_path / "heartbeat") == [str(tmp_path / "heartbeat")]


@pytest.mark.root
def test_rights_that_an_acl_gives_are_found(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.touch()
    path.chmod(0o640)
    assert problems_of(path, is_secret=True) == []
    # Version 2; then tag, rights and user of each entry: owner, a user, group, mask, others.
    entries = ((1, 6, 0xFFFFFFFF), (2, 4, getpwnam(ATTACKER).pw_uid), (4, 4, 0xFFFFFFFF))
    entries += ((0x10, 4, 0xFFFFFFFF), (0x20, 0, 0xFFFFFFFF))
    acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    try:
        os.setxattr(path, "system.posix_acl_access", acl)
    except OSError:
        pytest.skip("this file system has no ACLs")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert problems_of(path, is_secret=True) == [str(path)]


def test_links_without_an_end_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic links"):
        entries_on_the_way(str(tmp_path / "a"))
