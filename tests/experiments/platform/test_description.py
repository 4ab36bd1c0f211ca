from __future__ import annotations

from pathlib import Path

import pytest

from experiments.platform.description import Description, read_description
from ioncast_base.errors import InputError
from tests.support.emulated import small

PROJECT = Path(__file__).resolve().parents[3]
BUNDLED = PROJECT / "experiments" / "platform" / "testbed.toml"


def written(folder: Path, old: str, new: str) -> Path:
    """Write the bundled description with one change."""
    text = BUNDLED.read_text(encoding="utf-8")
    assert old in text
    file = folder / "changed.toml"
    file.write_text(text.replace(old, new), encoding="utf-8")
    return file


def test_the_bundled_platform_is_the_one_that_the_shipped_data_were_measured_on() -> None:
    # experiments/data/testbed/README.md: the numbers of nodes, and the rates of their links.
    found = read_description()
    assert found.io_nodes == (0, 1, 2, 4, 8)
    assert (found.compute_nodes.count, found.compute_nodes.processes) == (8, 2)
    assert (found.storage.servers, found.storage.replicas) == (4, 2)
    assert found.storage.cache == 512 * 1024**2
    assert found.links.model_dump() == {
        "compute_nodes": "100mbit",
        "io_nodes": "480mbit",
        "storage": "400mbit",
        "burst": "256kb",
    }


@pytest.mark.parametrize(
    ("io_nodes", "chosen"),
    [
        (1, [0, 0, 0, 0, 0, 0, 0, 0]),
        (2, [0, 0, 0, 0, 1, 1, 1, 1]),
        (4, [0, 0, 1, 1, 2, 2, 3, 3]),
        (8, [0, 1, 2, 3, 4, 5, 6, 7]),
    ],
)
def test_neighbours_share_an_io_node(io_nodes: int, chosen: list[int]) -> None:
    assert [read_description().io_node(io_nodes, node) for node in range(8)] == chosen


def test_a_mapping_gives_each_compute_node_its_io_node(tmp_path: Path) -> None:
    file = written(tmp_path, "[links]", "[mapping]\n2 = [0, 1, 0, 1, 0, 1, 0, 1]\n\n[links]")
    found = read_description(file)
    assert [found.io_node(2, node) for node in range(8)] == [0, 1, 0, 1, 0, 1, 0, 1]
    assert [found.io_node(4, node) for node in range(8)] == [0, 0, 1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[links]", "[mapping]\n2 = [0, 1]\n[links]", "lists 2 I/O nodes for 8 compute nodes"),
        ("[links]", "[mapping]\n2 = [0,0,0,0,0,0,0,2]\n[links]", "numbers from 0 to 1"),
        ("[links]", "[mapping]\n3 = [0,0,0,0,0,0,0,2]\n[links]", "`mapping.3`"),
        ("[links]", "[mapping]\n0 = [0,0,0,0,0,0,0,0]\n[links]", "`mapping.0`"),
        ('"100mbit"', '"100"', "'100' is not the rate of a link"),
        ('"256kb"', '"256"', "'256' is not a burst"),
        ("replicas = 2", "replicas = 3", "4 servers cannot be in groups of 3 replicas"),
        ('"testbed"', '"../testbed"', "'../testbed' cannot be the name of a platform"),
        ('"testbed"', '"test bed"', "'test bed' cannot be the name of a platform"),
        ("count = 8", "count = 251", "at most 250"),
        ("[0, 1, 2, 4, 8]", "[0, 1, 1]", "1 is listed twice"),
        ('memory = "4g"\n', "", "key `storage.memory` is missing"),
        ('memory = "4g"', 'memory = "0"', "must be greater than 0"),
        ("[links]", "[link]", "did you mean `links`?"),
    ],
)
def test_a_wrong_description_is_an_error_of_one_line(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    with pytest.raises(InputError) as raised:
        read_description(written(tmp_path, old, new))
    assert said in str(raised.value)
    assert str(raised.value).startswith(f"{tmp_path / 'changed.toml'}:")
    assert "\n" not in str(raised.value)


def test_a_description_is_the_same_after_it_was_stored(tmp_path: Path) -> None:
    file = written(tmp_path, "[links]", "[mapping]\n1 = [0,0,0,0,0,0,0,0]\n[links]")
    for description in (read_description(file), small("other")):
        stored = description.model_dump_json()
        assert Description.model_validate_json(stored) == description
