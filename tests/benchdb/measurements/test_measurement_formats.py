"""Lists of measurements tell an fsync that no option of the command can tell."""

from __future__ import annotations

from dataclasses import replace

from benchdb.measurements.curves import Curve
from benchdb.measurements.measurement_formats import curves_to_text, list_to_json, list_to_text
from ior_configs import IorConfig

KNOWN = Curve(1, IorConfig(write=True, fsync="each", tasks=8), "ior", {0: (1.0,)})
UNKNOWN = replace(KNOWN, id=2, config=replace(KNOWN.config, fsync=None))


def test_a_list_has_a_column_for_fsync() -> None:
    both = [("here", KNOWN), ("here", UNKNOWN)]
    assert [row["fsync"] for row in list_to_json(both)] == ["each", None]
    header, _, known, unknown = list_to_text(both).splitlines()
    start = header.index("fsync")
    assert known[start:].split()[0] == "each"
    assert unknown[start:].split()[0] == "?"


def test_a_curve_says_that_its_fsync_is_not_known() -> None:
    known, unknown = (curves_to_text([("here", curve)]) for curve in (KNOWN, UNKNOWN))
    assert known.startswith("here, ior: mpiexec -n 8 ior -a POSIX -w -Y -b 1m -t 256k\n")
    assert unknown.startswith(
        "here, ior: mpiexec -n 8 ior -a POSIX -w -b 1m -t 256k, fsync not known\n"
    )
