from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.platform import requirements
from experiments.platform.description import Storage
from experiments.platform.emulator import down, find, up
from ioncast_base.errors import InputError, IoncastError
from tests.support.emulated import emulated, small


def test_only_root_can_use_a_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    for command in (lambda: up(small("refused")), lambda: down("refused"), lambda: find("refused")):
        with pytest.raises(IoncastError, match="only root"):
            command()


@pytest.mark.platform
def test_storage_that_the_machine_cannot_hold_is_rejected(name: str) -> None:
    storage = Storage.model_validate({"servers": 2, "memory": "900t"})
    said = f"^platform {name}: its storage may hold 900 TiB, .* only .*; .*`storage.memory`"
    with pytest.raises(InputError, match=said), emulated(small(name, storage=storage)):
        pass


def test_the_package_of_a_missing_program_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(requirements, "system_path", lambda: str(tmp_path))
    with pytest.raises(IoncastError, match=r"tc.*cannot be found.*glusterfs-server.*iproute2"):
        up(small("refused"))


@pytest.mark.platform
def test_a_machine_without_fuse_is_an_error(name: str) -> None:
    hidden = 'mount --bind /dev/null /dev/fuse && exec "$@"'
    up_command = [sys.executable, "-m", "ioncast", "platform", "up", "--name", name]
    command = ["unshare", "--mount", "sh", "-c", hidden, "sh", *up_command]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("ioncast: /dev/fuse: FUSE cannot be used here")
    assert len(done.stderr.splitlines()) == 1
