"""Folders of the measured data that come with ioncast."""

from __future__ import annotations

from pathlib import Path

from ioncast.service import running

# All data sets; this folder is not part of an installation.
DATA = Path(__file__).parent / "data"
# A link to DATA / "testbed", and a copy of it in an installation.
TESTBED = Path(running.__file__).parent / "testbed"
