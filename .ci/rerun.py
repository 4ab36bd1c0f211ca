"""Run pytest. A few tests that fail run again, alone; those that then pass are named at the end.

    python .ci/rerun.py OPTIONS-OF-PYTEST

The names of all such tests are added to the file IONCAST_FLAKY, which several runs may share.
"""

from __future__ import annotations

import os
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

# More failures are not bad luck, unless all are in one file, whose tests may share a service.
MOST = 10


class Failures:
    """A plugin that notes the failed tests of a run, and names flaky tests before its last line.

    Attributes
    ----------
    names : list of str
        The tests that failed.
    is_whole : bool
        Whether all files were collected, and no worker was lost.
    """

    def __init__(self, flaky: Path, failed_before: list[str]) -> None:
        self.names: list[str] = []
        self.is_whole = True
        self._flaky = flaky
        self._failed_before = failed_before

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note a file that cannot be collected."""
        self.is_whole &= not report.failed

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failed test. The test of a worker that was lost has no step."""
        if report.failed:
            self.names.append(report.nodeid)
            self.is_whole &= report.when in {"setup", "call", "teardown"}

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name the tests that failed and now passed, of this run and of earlier ones."""
        with self._flaky.open("a") as file:
            file.writelines(f"{name}\n" for name in self._failed_before if name not in self.names)
        if names := self._flaky.read_text():
            terminalreporter.section("FLAKY: these tests failed, and passed when they ran alone")
            terminalreporter.write(names)


def first_run(options: list[str], flaky: Path) -> tuple[int, list[str], bool]:
    """Run all tests; return the exit code, the tests that failed, and whether the run was whole."""
    failures = Failures(flaky, [])
    code = pytest.main(options, plugins=[failures])
    return int(code), list(dict.fromkeys(failures.names)), failures.is_whole


def main(options: list[str], flaky: Path) -> int:
    """Run all tests, and those that failed once more; return the exit code of the last run."""
    # A second run in the same process would find the modules and services of the first one.
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as process:
        code, names, is_whole = process.submit(first_run, options, flaky).result()
    are_few = len(names) <= MOST or len({name.split("::")[0] for name in names}) == 1
    if code != pytest.ExitCode.TESTS_FAILED or not is_whole or not are_few:
        return code
    print(f"\n{len(names)} failed tests run once more, alone", flush=True)
    alone = [option for option in options if not option.startswith("--cov")]
    return int(pytest.main([*alone, "-n", "0", *names], plugins=[Failures(flaky, names)]))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        shared = os.environ.get("IONCAST_FLAKY")
        file = Path(shared) if shared else Path(folder) / "flaky"
        file.touch()
        sys.exit(main(sys.argv[1:], file))
