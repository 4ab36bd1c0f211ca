"""The codes that Drishti reports for logs, as tests/ioncast/insights/drishti_codes.csv has them.

    python benchmarks/drishti_codes.py PYTHON FOLDER > FILE

PYTHON is the Python of an environment with drishti-io. Drishti reads each log below FOLDER in a
process of its own, without `sacct`, so that its codes do not depend on the jobs of this machine.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from tests.support.log_bytes import without_zeros  # noqa: E402

# Drishti writes its CSV file last, and some logs end it before. The list has the codes until then.
PROGRAM = """
import sys
from drishti.includes import config
from drishti.reporter import main
try:
    main()
finally:
    print("CODES", *sorted(set(config.csv_report)), file=sys.stderr)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("python", metavar="PYTHON", help="the Python of drishti-io")
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="the folder of the logs")
    arguments = parser.parse_args()
    rows = csv.writer(sys.stdout, lineterminator="\n")
    rows.writerow(("log", "codes", "error"))
    for log in sorted(arguments.folder.rglob("*.darshan")):
        rows.writerow((log.relative_to(arguments.folder), *codes(arguments.python, log)))


def codes(python: str, log: Path) -> Iterator[str]:
    """The codes, and the error that ended Drishti or an empty text."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "a.darshan"
        copy.write_bytes(without_zeros(log.read_bytes()))
        run = subprocess.run(
            [python, "-W", "ignore", "-c", PROGRAM, "--csv", str(copy)],
            capture_output=True,
            check=False,
            cwd=folder,
            env={"PATH": ""},
            errors="replace",
            text=True,
        )
    lines = run.stderr.splitlines()
    [found] = (line for line in lines if line.startswith("CODES"))
    yield ";".join(found.split()[1:])
    yield lines[-1] if run.returncode else ""


if __name__ == "__main__":
    main()
