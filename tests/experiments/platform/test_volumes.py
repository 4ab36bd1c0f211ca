from __future__ import annotations

import re
from pathlib import Path

from experiments.platform.description import Description, Storage, read_description
from experiments.platform.volumes import (
    administrator_volume,
    client_volume,
    direct_volume,
    forwarding_volume,
    storage_volume,
)


def kinds(text: str) -> list[str]:
    """Kinds of the translators of a volume file, from the bottom up."""
    return re.findall(r"^  type (.*)$", text, re.MULTILINE)


def stored(**changes: object) -> Description:
    description = read_description()
    storage = Storage.model_validate({"servers": 4, "memory": "1g", **changes})
    return description.model_copy(update={"storage": storage})


def test_an_io_node_is_a_client_of_the_storage_and_a_server_itself() -> None:
    found = forwarding_volume(read_description(), 3)
    top = ["performance/io-threads", "protocol/server"]
    assert kinds(found) == [*kinds(direct_volume(read_description())), *top]
    # It has its own address and the addresses of all storage servers.
    assert "bind-address 10.71.2.4\n" in found
    assert [f"remote-host 10.71.3.{number}\n" in found for number in range(1, 5)] == [True] * 4


def test_a_compute_node_knows_its_io_node_and_nothing_else() -> None:
    found = client_volume(read_description(), 3)
    assert kinds(found) == ["protocol/client"]
    assert re.findall(r"10\.[0-9.]+", found) == ["10.71.2.4"]


def test_servers_in_pairs_are_replicas_of_each_other() -> None:
    found = kinds(direct_volume(stored(replicas=2)))
    assert found == [
        *["protocol/client"] * 4,
        *["cluster/replicate"] * 2,
        "cluster/distribute",
    ]


def test_without_replicas_files_are_distributed_only() -> None:
    found = kinds(direct_volume(stored()))
    assert found == [*["protocol/client"] * 4, "cluster/distribute"]


def test_one_group_of_replicas_needs_no_distribution() -> None:
    assert kinds(direct_volume(stored(servers=2, replicas=2)))[-1] == "cluster/replicate"
    assert kinds(direct_volume(stored(servers=1))) == ["protocol/client"]


def test_clients_of_the_storage_have_the_cache_but_not_the_administrator() -> None:
    description = stored(cache="64m")
    assert "cache-size 67108864\n" in direct_volume(description)
    assert "performance/io-cache" in kinds(forwarding_volume(description, 0))
    assert "performance/io-cache" not in kinds(administrator_volume(description))


def test_a_storage_server_exports_its_directory() -> None:
    found = storage_volume(read_description(), 1, Path("/some/where"))
    assert "option directory /some/where\n" in found
    assert kinds(found)[0] == "storage/posix"
    assert kinds(found)[-1] == "protocol/server"
