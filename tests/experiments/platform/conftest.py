from __future__ import annotations

from collections.abc import Iterator

import pytest

from experiments.platform.emulated import Emulated
from tests.support.emulated import emulated, leftovers, small, unique_name
from tests.support.services import use


@pytest.fixture(scope="session")
def platform() -> Iterator[Emulated]:
    """A small platform that is up for all tests."""
    with emulated(small(unique_name())) as found:
        yield found


@pytest.fixture
def name() -> Iterator[str]:
    """A name for a platform; the test fails if something of the platform is left at its end."""
    use("platform")
    chosen = unique_name()
    yield chosen
    assert leftovers(chosen) == []
