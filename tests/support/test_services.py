"""A test must be marked with the services that it uses; without a service it is skipped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import services
from tests.support.emulated import emulated, small
from tests.support.postgresql import running_server
from tests.support.serving import start
from tests.support.slurm import cluster


@pytest.fixture
def item(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.Item]:
    """Mark this test with a service that is missing."""
    missing = services.Service("a service", lambda: "it is not installed")
    monkeypatch.setitem(services.SERVICES, "postgresql", missing)
    services.problem.cache_clear()
    request.node.add_marker("postgresql")
    yield request.node
    services.problem.cache_clear()


@pytest.mark.parametrize(
    "using",
    [
        lambda folder: cluster(folder).__enter__(),
        lambda folder: running_server().__enter__(),
        lambda folder: emulated(small("unmarked")).__enter__(),
        start,
    ],
    ids=["slurm", "postgresql", "platform", "serving"],
)
def test_a_test_without_its_marker_fails(
    using: object, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    name = request.node.callspec.id
    with pytest.raises(pytest.fail.Exception, match=f"mark this test with `pytest.mark.{name}`"):
        using(tmp_path)  # type: ignore[operator]


def test_a_test_whose_service_is_missing_is_skipped(
    item: pytest.Item, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="postgresql: it is not installed"):
        services.require(item)


def test_in_ci_a_test_whose_service_is_missing_fails(
    item: pytest.Item, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="postgresql: it is not installed"):
        services.require(item)


def test_a_second_run_cannot_close_the_folder_of_this_one(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    assert not any(part.startswith("pytest-of-") for part in tmp_path_factory.getbasetemp().parts)
