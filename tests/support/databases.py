"""The databases that tests run on."""

from __future__ import annotations

import pytest

BOTH_DATABASES = ("sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql))
