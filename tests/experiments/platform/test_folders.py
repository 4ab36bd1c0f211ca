from __future__ import annotations

import os
from pathlib import Path

import pytest

from experiments.platform import folders
from experiments.platform.emulator import down, find
from ioncast_base.errors import IoncastError
from tests.support.emulated import emulated, small


def test_only_folders_that_can_be_platforms_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "PLATFORMS", tmp_path)
    (tmp_path / "file").touch()
    for folder in ("one", "not one", ".hidden"):
        (tmp_path / folder).mkdir()
    assert folders.names() == ["one"]


@pytest.mark.platform
@pytest.mark.parametrize("foreign", ["a group's", "another user's", "a link", "a file"])
def test_a_folder_of_platforms_that_others_can_use_is_rejected(
    name: str, foreign: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "platforms"
    folder.mkdir(mode=0o700)
    if foreign == "a group's":
        folder.chmod(0o770)
    elif foreign == "another user's":
        os.chown(folder, 65534, 65534)
    elif foreign == "a link":
        folder.rename(tmp_path / "elsewhere")
        folder.symlink_to(tmp_path / "elsewhere")
    else:
        folder.rmdir()
        folder.touch(mode=0o600)
    monkeypatch.setattr(folders, "PLATFORMS", folder)
    said = "platforms: must be a directory that only root can use"
    with pytest.raises(IoncastError, match=said), emulated(small(name)):
        pass
    for command in (down, find):
        with pytest.raises(IoncastError, match=said):
            command(name)
