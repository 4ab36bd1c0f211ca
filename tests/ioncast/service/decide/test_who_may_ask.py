"""The socket for decisions belongs to the group of the scheduler, if the service can give it."""

from __future__ import annotations

import grp
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.serving import start, stop, wait_for
from tests.support.slurm import SERVICE_USER, as_user, open_to_all

pytestmark = [pytest.mark.serving, pytest.mark.root]

SCHEDULER, GROUP = "daemon", "daemon"
CONNECT = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"


def may_connect(user: str, place: Path) -> bool:
    command = [*as_user(user), sys.executable, "-c", CONNECT, place]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 or "PermissionError" in done.stderr, done.stderr
    return done.returncode == 0


@pytest.mark.promise("service-greedy-peer")
@pytest.mark.parametrize(
    ("group", "is_member", "who"),
    [
        (GROUP, True, f"the group {GROUP}"),
        (GROUP, False, f"every user: this user cannot give it to the group {GROUP}: Operation not"),
        ("no-such-group", True, "every user: there is no group no-such-group\n"),
    ],
    ids=["a member", "not a member", "no group"],
)
def test_only_its_group_may_ask_where_the_service_can_give_it_the_socket(
    tmp_path: Path, group: str, is_member: bool, who: str
) -> None:
    open_to_all(tmp_path)
    shutil.chown(tmp_path, SERVICE_USER)
    groups = ["--groups", str(grp.getgrnam(GROUP).gr_gid)] if is_member else ["--clear-groups"]
    under = [each for each in as_user(SERVICE_USER) if each != "--clear-groups"] + groups
    served = start(
        tmp_path,
        *("--db", str(tmp_path / "db.sqlite"), "--workers", "1"),
        under=under,
        environment={"IONCAST_DECISIONS_GROUP": group, "TMPDIR": str(tmp_path)},
    )
    try:
        wait_for(lambda: "interface on" in served.log.read_text(), "start")
        line = f"ioncast: decisions on unix:{served.decisions}, open to {who}"
        assert line in served.log.read_text()
        is_open = who.startswith("every user")
        assert may_connect(SCHEDULER, served.decisions)
        assert may_connect("root", served.decisions)
        assert may_connect("nobody", served.decisions) == is_open
        assert may_connect("nobody", served.socket)
    finally:
        stop(served)
