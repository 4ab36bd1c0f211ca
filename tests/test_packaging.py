from __future__ import annotations

import configparser
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from ioncast.service.running.command import PARTS

PROJECT = Path(__file__).resolve().parents[1]
PACKAGES = (
    "ioncast",
    "ioncast_base",
    "summario",
    "ior_configs",
    "benchdb",
    "predictor",
    "scheduler_plugin",
)


def files_of(folder: Path) -> set[str]:
    """List all files of the packages but READMEs, also in linked folders."""
    return {
        os.path.relpath(Path(place, name), folder)
        for package in PACKAGES
        for place, _, names in os.walk(folder / package, followlinks=True)
        for name in names
        if "__pycache__" not in place and name != "README.md"
    }


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the content of a wheel in a folder."""
    pytest.importorskip("setuptools")
    folder = tmp_path_factory.mktemp("built")
    command = ("egg_info", "--egg-base", folder, "build_py", "--build-lib", folder / "lib")
    subprocess.run(
        [sys.executable, "-c", "import setuptools; setuptools.setup()", "--quiet", *command],
        cwd=PROJECT,
        check=True,
        capture_output=True,
    )
    return folder / "lib"


@pytest.mark.slow
def test_a_wheel_has_every_file_of_the_packages(built: Path) -> None:
    assert files_of(built) == files_of(PROJECT)


def test_a_wheel_has_no_experiments(built: Path) -> None:
    assert {path.name for path in built.iterdir()} == set(PACKAGES)


def test_a_wheel_has_the_data_of_the_demonstration_as_they_are(built: Path) -> None:
    source = PROJECT / "experiments" / "data" / "testbed"
    target = built / "ioncast" / "service" / "running" / "testbed"
    for path in source.rglob("*"):
        if path.is_file():
            copy = target / path.relative_to(source)
            assert not copy.is_symlink()
            assert copy.read_bytes() == path.read_bytes()


def test_the_pinned_libraries_are_those_that_a_package_needs() -> None:
    options = configparser.ConfigParser()
    options.read(PROJECT / "setup.cfg")
    extras = options["options.extras_require"]
    needed = [
        Requirement(line)
        for text in (
            options["options"]["install_requires"],
            *(extras[name] for name in ("service", "slurm", "postgresql")),
        )
        for line in text.split("\n")
        if line and not line.startswith("ioncast[")
    ]
    text = (PROJECT / "packaging" / "requirements.txt").read_text()
    pinned = [Requirement(line) for line in re.findall(r"^(\w.*?) \\$", text, re.MULTILINE)]
    assert text.count("--hash=sha256:") >= len(pinned)
    for python in ("3.10", "3.11", "3.12", "3.13"):
        machine = {"python_version": python, "python_full_version": f"{python}.0"}
        chosen = {
            each.name.lower(): each
            for each in pinned
            if each.marker is None or each.marker.evaluate(machine)
        }
        for each in needed:
            if each.marker is None or each.marker.evaluate(machine):
                [version] = [one.version for one in chosen[each.name.lower()].specifier]
                assert each.specifier.contains(version), f"Python {python}: {each}, {version}"


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """A repository with version 0.1.0 in setup.cfg and a dated entry, without a tag."""
    folder = tmp_path / "packaging"
    folder.mkdir()
    shutil.copy(PROJECT / "packaging" / "check-release", folder)
    (tmp_path / "setup.cfg").write_text("[metadata]\nname = ioncast\nversion = 0.1.0\n")
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 0.1.0 (2026-12-01)\n\nText.\n")
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    return tmp_path


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "tag.gpgsign=false")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def commit(folder: Path) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--no-gpg-sign", "--message", "a")


def complaint(folder: Path) -> str:
    """The line of check-release; empty if it accepts the release."""
    command = ["packaging/check-release"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == bool(done.stderr)
    return done.stderr


def test_a_release_needs_the_tag_of_its_version(release: Path) -> None:
    assert "has no tag v0.1.0" in complaint(release)
    git(release, "tag", "v0.1.0")
    assert complaint(release) == ""
    (release / "new").touch()
    assert "not committed" in complaint(release)
    commit(release)
    assert "has no tag v0.1.0" in complaint(release)


@pytest.mark.parametrize(
    "entry", ["0.1.0 (unreleased)", "0.2.0 (2026-12-01)", "0x1.0 (2026-12-01)"]
)
def test_a_release_needs_a_dated_entry_of_its_version(release: Path, entry: str) -> None:
    (release / "CHANGELOG.md").write_text(f"# Changelog\n\n## {entry}\n")
    commit(release)
    git(release, "tag", "v0.1.0")
    assert f"is '{entry}', expected is '0.1.0 (YYYY-MM-DD)'" in complaint(release)


def test_deb_and_rpm_make_the_same_units_and_users() -> None:
    lay_out = (PROJECT / "packaging" / "lay-out").read_text()
    spec = (PROJECT / "packaging" / "ioncast.spec").read_text()
    units = set(re.findall(r"[\w@-]+\.service\b", lay_out))
    assert units == set(re.findall(r"^%\{_unitdir\}/(.+)$", spec, re.MULTILINE))
    deploys = ("ioncast/service/running/deploy", "scheduler_plugin/deploy")
    users = {
        user
        for folder in deploys
        for user in re.findall(
            r"^u (\S+)", (PROJECT / folder / "sysusers.conf").read_text(), re.MULTILINE
        )
    }
    of_units = {
        user
        for folder in deploys
        for unit in (PROJECT / folder).glob("*.service")
        for user in re.findall(r"^User=(.+)$", unit.read_text(), re.MULTILINE)
    }
    purged = (PROJECT / "packaging" / "debian" / "postrm").read_text()
    assert users == of_units
    assert set(re.findall(r"for user in (.+);", purged)[0].split()) == users


@pytest.mark.parametrize("name", ["debian/postinst", "ioncast.spec"])
def test_an_upgrade_waits_for_each_part_before_it_restarts_what_asks_them(name: str) -> None:
    text = (PROJECT / "packaging" / name).read_text()
    steps = (
        r"\n *systemctl try-restart ioncast \|\|",
        r'for part in (.+); do\n +systemctl start "ioncast@\$part" \|\|',
        r"\bioncast-watch ioncast-arbiter\b",
    )
    [parts] = re.findall(".*?".join(steps), text, re.DOTALL)
    assert set(parts.split()) == set(PARTS)
    assert "ioncast@$part does not start" in text or '|| tell "ioncast@$part"' in text


@pytest.mark.parametrize("name", ["debian/prerm", "ioncast.spec"])
def test_a_removal_waits_until_all_parts_have_ended(name: str) -> None:
    text = (PROJECT / "packaging" / name).read_text()
    assert re.search(r"disable --now.+?\n +systemctl stop 'ioncast@\*'.*?\nfi\n", text, re.DOTALL)
