"""Both libraries that decompress zlib's streams."""

from __future__ import annotations

import pytest

from summario.reading import inflate


@pytest.fixture(params=["zlib", "zlib_ng.zlib_ng"])
def either_zlib(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading decompresses with Python's zlib, then with zlib-ng."""
    library = pytest.importorskip(request.param)
    monkeypatch.setattr(inflate, "zlib", library)
    monkeypatch.setitem(inflate._DECOMPRESSORS, 0, library.decompressobj)
