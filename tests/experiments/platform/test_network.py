from __future__ import annotations

from experiments.platform.description import read_description
from experiments.platform.network import batches


def test_every_link_but_the_administrators_is_shaped_at_both_ends() -> None:
    description = read_description()
    lines = [
        (batch.namespace, line)
        for batch in batches(description)
        if batch.program == "tc"
        for line in batch.text.splitlines()
    ]
    shaped = {
        (f"testbed-{node}{number}", "e0", rate): (f"p-{node}{number}", rate)
        for node, count, rate in (("cn", 8, "100mbit"), ("io", 8, "480mbit"), ("pf", 4, "400mbit"))
        for number in range(count)
    }
    words = [(where, *line.split()) for where, line in lines]
    found = {(where, each[3], each[7]) for where, *each in words}
    ports = {("testbed-sw", port, rate) for port, rate in shaped.values()}
    assert found == {*shaped, *ports}
