"""The words of all checks fit together, the documents repeat them, and a site adds checks."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from ioncast.insights.checks.registry import all_advice, own_checks, site_checks
from ioncast.insights.checks.settings import read_thresholds
from ioncast.insights.checks.values import LEVELS, Check, Thresholds
from ioncast.insights.findings.text import LIBRARY_NAMES
from tests.support.command import run_ioncast
from tests.support.records import posix_record, write_log

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECT = Path(__file__).parents[4]
SAMPLE = PROJECT / "ioncast/insights/checks/checks.toml"
PAGE = (PROJECT / "docs/checks.md").read_text(encoding="utf-8")
CHECKS = {check.code: check for check in own_checks()}


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_the_words_of_a_check_are_complete(check: Check) -> None:
    assert list(check.levels) == sorted(check.levels, key=LEVELS.index)
    assert check.title
    assert not check.title.endswith(".")
    assert "{" not in check.condition.format_map(vars(Thresholds()))
    assert "" in check.sentences
    for words in check.sentences.values():
        # The formats add the full stop, or more words.
        assert not words.template.endswith(".")
    if set(check.levels) <= {"HIGH", "WARN"}:
        assert all(words.advice for words in check.sentences.values())


def test_every_advice_is_given_by_a_check() -> None:
    given = {
        advice.key
        for check in own_checks()
        for words in check.sentences.values()
        for advice in words.advice
    }
    assert given == set(all_advice())


def test_snippets_are_for_known_libraries() -> None:
    for advice in all_advice().values():
        assert not advice.sentence.endswith(".")
        assert advice.snippets.keys() <= LIBRARY_NAMES.keys()


def test_the_sample_of_settings_has_all_thresholds_with_their_defaults() -> None:
    assert read_thresholds(SAMPLE) == Thresholds()
    names = [field.name for field in fields(Thresholds)]
    assert list(tomllib.loads(SAMPLE.read_text(encoding="utf-8"))) == names


def test_the_page_of_the_checks_and_the_sample_of_settings_are_current() -> None:
    program = [sys.executable, PROJECT / "docs/make_checks.py", "--check"]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.fail(done.stderr.strip(), pytrace=False)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the package of docs/checks.md, as pip installs it."""
    [code] = re.findall(r"(?s)`site_checks.py`:\n\n```python\n(.*?)```", PAGE)
    [project] = re.findall(r"(?s)`pyproject.toml`:\n\n```toml\n(.*?)```", PAGE)
    offered = tomllib.loads(project)["project"]["entry-points"]["ioncast.checks"]
    folder = tmp_path / "installed"
    info = folder / "site_checks-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / "site_checks.py").write_text(code, encoding="utf-8")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: site-checks\nVersion: 1.0\n")
    offer(folder, offered)
    monkeypatch.syspath_prepend(folder)
    site_checks.cache_clear()
    yield folder
    site_checks.cache_clear()
    sys.modules.pop("site_checks", None)


def offer(folder: Path, points: dict[str, str]) -> None:
    lines = [f"{name} = {place}" for name, place in points.items()]
    text = "\n".join(["[ioncast.checks]", *lines, ""])
    (folder / "site_checks-1.0.dist-info/entry_points.txt").write_text(text, encoding="utf-8")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    records = [posix_record("/home/me/f", WRITES=1, BYTES_WRITTEN=2048, F_WRITE_TIME=40)]
    return write_log(tmp_path / "app.darshan", records, nprocs=1)


def test_a_site_adds_the_check_of_the_documents(site: Path, log: Path) -> None:
    shown = run_ioncast("check", log)
    assert shown.stderr == ""
    assert (
        "MAJOR    Files below /home: at most 40 s, 40% of the run time\n"
        "WARN  SITE1 1 file below /home with 2 KiB\n"
        "           2 KiB: /home/me/f\n"
    ) in shown.stdout
    assert "           | lfs setstripe --stripe-count -1 /scratch/$USER/run\n" in shown.stdout
    assert "SITE1" in run_ioncast("check", "--list").stdout
    assert "SITE1" in run_ioncast("check", log, "--format", "sarif").stdout


@pytest.mark.parametrize(
    ("change", "warning"),
    [
        (
            (
                "return None\n    numbers",
                "return None\n    raise RuntimeError('disk\\n full')\n    numbers",
            ),
            "check SITE1 of the site failed: 'RuntimeError: disk\\n full'",
        ),
        (
            ('{"files": count, "bytes"', '{"file": count, "bytes"'),
            "check SITE1 of the site failed: KeyError: 'files'",
        ),
        (
            ('"WARN", numbers', '"BAD", numbers'),
            "check SITE1 of the site failed: ValueError: 'BAD' is not one of its levels, WARN",
        ),
        (
            ("int(bytes_at_home.sum())", "bytes_at_home.sum()"),
            "check SITE1 of the site failed: TypeError: the number 'bytes' is of type int64;"
            " it must be int, float or str",
        ),
        (
            ('"bytes": int(', '"ratio": float("nan"), "bytes": int('),
            "check SITE1 of the site failed: ValueError: the number 'ratio' is not finite",
        ),
        (
            ("case.times.seconds * is_home", "is_home"),
            "check SITE1 of the site failed: ValueError: at_stake has the shape (1,), not (3, 1)",
        ),
        (
            ("case.times.seconds * is_home", "-case.times.seconds"),
            "check SITE1 of the site failed: ValueError: at_stake has numbers that are negative or"
            " not finite",
        ),
        (
            ("return Finding(", "return repr("),
            "check SITE1 of the site failed: TypeError: repr() takes no keyword arguments",
        ),
        (
            ("    numbers =", "    return 'x'\n    numbers ="),
            "check SITE1 of the site failed: TypeError: it returned str, not Finding, Unknown or"
            " None",
        ),
        (
            ("import numpy", "import no_such_package"),
            "check home of the site is left out: ModuleNotFoundError: No module named"
            " 'no_such_package'",
        ),
        (
            ("HOME = Check(", "HOME = dict("),
            "check home of the site is left out: site_checks:HOME is not a Check",
        ),
        (
            ('code="SITE1"', 'code="P06"'),
            "check home of the site is left out: the code P06 is taken; give it another code",
        ),
        (
            ('condition="the run', 'condition="the {user}'),
            "check home of the site is left out: its condition cannot be written: KeyError: 'user'",
        ),
    ],
)
def test_a_broken_check_of_a_site_is_a_warning_beside_the_others(
    change: tuple[str, str], warning: str, site: Path, log: Path
) -> None:
    module = site / "site_checks.py"
    text = module.read_text(encoding="utf-8")
    assert change[0] in text
    module.write_text(text.replace(*change), encoding="utf-8")
    answer = run_ioncast("check", log)
    assert answer.returncode == 0
    [line] = answer.stderr.splitlines()
    assert warning in line
    assert "P01" in answer.stdout


def test_a_missing_check_of_a_site_is_a_warning(site: Path, log: Path) -> None:
    offer(site, {"home": "site_checks:HOME", "away": "site_checks:AWAY"})
    answer = run_ioncast("check", log)
    assert "check away of the site is left out: AttributeError" in answer.stderr
    assert "SITE1" in answer.stdout
