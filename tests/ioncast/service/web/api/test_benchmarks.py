"""The benchmark database over HTTP: written as a whole or not at all, read page by page."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from benchdb.store.database import opened_database, transaction
from ioncast.cli import cli
from ioncast.service.settings import Settings

ROOT = Path(__file__).resolve().parents[5]
TESTBED = ROOT / "experiments" / "data" / "testbed" / "benchmarks.csv"
IOR_OUTPUTS = ROOT / "tests" / "ior_configs" / "fixtures"
COMMAND = "mpiexec -n 16 ior -a POSIX -w -F -b 24m -t 24m"
ROW = {"command": COMMAND, "nodes": 8, "io_nodes": 4, "bandwidth_mib_s": 70.5}
CELL = {"io_nodes": 4, "bandwidths_mib_s": [70.5]}
ROLES = ("reader", "scheduler")

Authorised = Callable[[str], dict[str, Any]]
Post = Callable[..., TestResponse]


@pytest.fixture
def post(client: FlaskClient, authorised: Authorised) -> Post:
    """Post with an admin's token."""
    token = authorised("admin")

    def send(place: str, **given: Any) -> TestResponse:
        return client.post(place, **given, **token)

    return send


@pytest.fixture
def testbed(post: Post) -> TestResponse:
    """The answer to sending the testbed's measurements."""
    return send_file(post, TESTBED, system="testbed", tasks=16, nodes=8)


def send_file(post: Post, file: Path | bytes, name: str = "", **fields: object) -> TestResponse:
    content = file.read_bytes() if isinstance(file, Path) else file
    shown = name or (file.name if isinstance(file, Path) else "results")
    form = {key: str(value) for key, value in fields.items()}
    return post("/v1/measurements", data={**form, "file": (io.BytesIO(content), shown)})


def answer(response: TestResponse, status: int = 200) -> dict[str, Any]:
    assert response.status_code == status, response.text
    assert response.json is not None
    found: dict[str, Any] = response.json
    return found


def everything(client: FlaskClient, place: str) -> list[dict[str, Any]]:
    """All items of a list, page after page."""
    items: list[dict[str, Any]] = []
    following: str | None = place
    while following is not None:
        page = answer(client.get(following))
        items += page["items"]
        following = page["next"]
    return items


def asked_of(item: dict[str, Any]) -> dict[str, Any]:
    return {name: item[name] for name in ("command", "tasks", "nodes")}


def wanted(*items: dict[str, Any]) -> dict[str, Any]:
    numbers = sorted({cell["io_nodes"] for item in items for cell in item["cells"]})
    configurations = [asked_of(item) for item in items]
    return {"system": "testbed", "configurations": configurations, "io_nodes": numbers}


def without_times(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out the times, which differ a second later."""
    return [item | {"cells": [cell | {"newest": None} for cell in item["cells"]]} for item in items]


def test_a_file_is_stored_once(testbed: TestResponse, post: Post) -> None:
    found = {"format": "ioncast-csv", "measurements": 440, "configurations": 15}
    assert answer(testbed, 201) == {"stored": True, **found}
    again = send_file(post, TESTBED, "other.csv", system="testbed", tasks=16, nodes=8)
    assert answer(again) == {"stored": False, **found}


def test_a_file_that_contradicts_an_earlier_import_needs_replace(
    testbed: TestResponse, post: Post, client: FlaskClient
) -> None:
    other = {"system": "testbed", "tasks": 32, "nodes": 8}
    said = answer(send_file(post, TESTBED, **other), 422)["detail"]
    assert said.endswith("; correct it with replace")
    answer(send_file(post, TESTBED, replace=True, **other), 201)
    found = everything(client, "/v1/measurements?system=testbed&limit=200")
    assert {row["tasks"] for row in found} == {32}
    assert len(found) == 440


@pytest.mark.slow
def test_measurements_are_those_of_the_file(testbed: TestResponse, client: FlaskClient) -> None:
    expected: dict[tuple[str, int], list[float]] = defaultdict(list)
    with TESTBED.open(encoding="utf-8") as file:
        for line in csv.DictReader(file):
            expected[line["name"], int(line["io_nodes"])].append(float(line["bandwidth_mib_s"]))
    rows = everything(client, "/v1/measurements?system=testbed&limit=7")
    assert len({row["id"] for row in rows}) == len(rows) == 440
    found: dict[tuple[int, int], list[float]] = defaultdict(list)
    for row in rows:
        assert row["repetition"] == len(found[row["configuration_id"], row["io_nodes"]])
        found[row["configuration_id"], row["io_nodes"]].append(row["bandwidth_mib_s"])
    assert sorted(found.values()) == sorted(expected.values())
    curves = everything(client, "/v1/curves?system=testbed&limit=2")
    assert {
        (curve["configuration_id"], cell["io_nodes"]): cell["bandwidths_mib_s"]
        for curve in curves
        for cell in curve["cells"]
    } == dict(found)


def test_the_measurements_of_one_configuration_are_part_of_all(
    testbed: TestResponse, client: FlaskClient
) -> None:
    rows = everything(client, "/v1/measurements?system=testbed&limit=500")
    number = rows[200]["configuration_id"]
    of_one = everything(client, f"/v1/measurements?system=testbed&configuration={number}&limit=9")
    assert of_one == [row for row in rows if row["configuration_id"] == number]
    [curve] = everything(client, f"/v1/curves?system=testbed&configuration={number}")
    assert sum(len(cell["bandwidths_mib_s"]) for cell in curve["cells"]) == len(of_one)


def test_coverage_in_pages_equals_that_of_the_command_line(
    testbed: TestResponse, client: FlaskClient, settings: Settings
) -> None:
    command = ["bench", "coverage", "--system", "testbed", "--format", "json", "--db"]
    printed = CliRunner().invoke(cli, [*command, settings.database or ""]).stdout
    expected = json.loads(printed)
    page = answer(client.get("/v1/coverage?system=testbed&limit=4"))
    assert page["outlier_rule"] == expected["outlier_rule"]
    assert page["stale_after_s"] == expected["stale_after_s"]
    rows = everything(client, "/v1/coverage?system=testbed&limit=4")
    shown = [{"id": row.pop("configuration_id"), "system": "testbed"} | row for row in rows]
    for row in (*shown, *expected["configurations"]):
        for cell in row["cells"]:
            cell["newest"] = (cell["newest"] or "").replace("Z", "+00:00")
    assert shown == expected["configurations"]


def test_an_old_cell_is_stale(testbed: TestResponse, client: FlaskClient) -> None:
    [row] = answer(client.get("/v1/coverage?system=testbed&limit=1&stale_after_s=0.001"))["items"]
    assert all(cell["stale"] for cell in row["cells"])
    asked = wanted(row) | {"stale_after_s": 0.001}
    [item] = answer(client.post("/v1/coverage", json=asked))["items"]
    assert all(cell["stale"] for cell in item["cells"])


def test_configurations_say_where_they_were_measured(
    testbed: TestResponse, post: Post, client: FlaskClient
) -> None:
    rows = [{**ROW, "command": "ior -a MPIIO -r -c -b 8m -t 1m", "tasks": 4, "nodes": 1}]
    answer(post("/v1/measurements", json={"system": "mn4", "measurements": rows}), 201)
    found = everything(client, "/v1/configurations?limit=4")
    assert [item["id"] for item in found] == sorted(item["id"] for item in found)
    assert everything(client, "/v1/configurations?system=testbed&limit=4") == found[:15]
    [of_mn4] = everything(client, "/v1/configurations?system=mn4")
    assert of_mn4 == found[15]
    assert of_mn4["command"] == "ior -a MPIIO -r -c -b 8m -t 1m"
    # The benchmarks of the testbed wrote with -e, as its README says.
    assert of_mn4["fsync"] == "none"
    assert {item["fsync"] for item in found if " -w " in item["command"]} == {"end"}
    numbers = {"repetitions": 1, "set_apart": 0, "before_change": 0}
    assert of_mn4["measured"] == [{"system": "mn4", "engine": "ior", "io_nodes": [4], **numbers}]
    cells = sum(item["measured"][0]["repetitions"] for item in found[:15])
    assert cells == 440


def test_rows_of_json_are_measurements(post: Post, client: FlaskClient) -> None:
    rows = [
        {**ROW, "bandwidth_mib_s": 60.25 + i, "bytes": 402653184, "time_s": 6.4, "io_nodes": n}
        for n in (0, 4)
        for i in range(3)
    ]
    request = {"system": "testbed", "measurements": rows}
    found = {"format": "json", "measurements": 6, "configurations": 1}
    assert answer(post("/v1/measurements", json=request), 201) == {"stored": True, **found}
    assert answer(post("/v1/measurements", json=request)) == {"stored": False, **found}
    [curve] = everything(client, "/v1/curves?system=testbed")
    assert (curve["command"], curve["tasks"], curve["nodes"]) == (
        COMMAND.removeprefix("mpiexec -n 16 "),
        16,
        8,
    )
    assert curve["cells"] == [
        {"io_nodes": n, "bandwidths_mib_s": [60.25, 61.25, 62.25]} for n in (0, 4)
    ]


def test_no_row_is_stored_when_one_cannot_be_used(post: Post, client: FlaskClient) -> None:
    rows = [ROW, {**ROW, "command": "ior -a POSIX -w -b 5 -t 4"}]
    said = answer(post("/v1/measurements", json={"system": "mn4", "measurements": rows}), 422)
    assert said["detail"].startswith("measurements.1: the transfer size must be a multiple of 8")
    answer(client.get("/v1/measurements?system=mn4"), 404)


def test_a_command_of_several_lines_does_not_move_the_numbers_of_later_rows(
    post: Post, client: FlaskClient
) -> None:
    rows = [{**ROW, "command": "ior -a POSIX\n -w\r\n -b 24m -t 24m"}, ROW]
    wrong = [*rows, {**ROW, "command": "ior -a POSIX -w -b 5 -t 4"}]
    said = answer(post("/v1/measurements", json={"system": "mn4", "measurements": wrong}), 422)
    assert said["detail"].startswith("measurements.2: ")
    answer(post("/v1/measurements", json={"system": "mn4", "measurements": rows}), 201)
    commands = {item["command"] for item in everything(client, "/v1/measurements?system=mn4")}
    assert "ior -a POSIX -w -b 24m -t 24m" in commands


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"io_nodes": -1}, "body.measurements.0.io_nodes"),
        ({"bandwidth_mib_s": 0}, "body.measurements.0.bandwidth_mib_s"),
        ({"bandwidth_mib_s": 1e300}, "body.measurements.0.bandwidth_mib_s"),
        ({"command": ""}, "body.measurements.0.command"),
        ({"tasks": 2**31}, "body.measurements.0.tasks"),
        ({"started": "a\nb"}, "body.measurements.0.started"),
        ({"repetition": 1}, "body.measurements.0.repetition"),
    ],
)
def test_an_unusable_value_is_named(post: Post, change: dict[str, object], said: str) -> None:
    request = {"system": "mn4", "measurements": [ROW | change]}
    assert answer(post("/v1/measurements", json=request), 422)["detail"].startswith(f"{said}: ")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "not a benchmark result of a known format"),
        (b"\x00\xff" * 100, "not a benchmark result of a known format"),
        (b"PAR1 and then nothing", "this Parquet file cannot be read"),
        (b"io_nodes,bandwidth_mib_s,command\n1,2\n", "more or fewer cells"),
        (b"io_nodes,bandwidth_mib_s,command\n1,nan,ior -w\n", "a bandwidth of nan MiB/s"),
        (b'{"fio version": "fio-3.33", "jobs": []}', "fio knows neither"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_line_with_its_name(
    post: Post, content: bytes, said: str
) -> None:
    detail = answer(send_file(post, content, "../x.csv", system="mn4"), 422)["detail"]
    assert detail.startswith("x.csv:")
    assert said in detail
    assert "--" not in detail
    assert "\n" not in detail


def test_outputs_of_ior_are_stored_with_the_values_of_the_form(
    post: Post, client: FlaskClient
) -> None:
    file = next(path for path in sorted(IOR_OUTPUTS.rglob("*.json")))
    said = answer(send_file(post, file, system="mn4"), 422)["detail"]
    assert said.endswith("; give it with io_nodes")
    found = answer(send_file(post, file, system="mn4", io_nodes=2), 201)
    rows = everything(client, "/v1/measurements?system=mn4")
    assert {row["io_nodes"] for row in rows} == {2}
    assert len(rows) == found["measurements"]


def test_options_of_ior_are_quoted_as_ior_spells_them(post: Post) -> None:
    content = b"io_nodes,bandwidth_mib_s,command\n1,2,ior -w --some-option=\n"
    detail = answer(send_file(post, content, "x.csv", system="mn4"), 422)["detail"]
    assert detail.startswith("x.csv:2: ")
    assert "--some-option" in detail


def test_a_system_spelled_like_another_is_the_clients_mistake(
    testbed: TestResponse, post: Post
) -> None:
    answer(testbed, 201)
    detail = answer(send_file(post, TESTBED, system="Testbed", tasks=16, nodes=8), 422)["detail"]
    assert detail.startswith("system 'Testbed': ")


def test_an_export_of_one_database_restores_it_in_another(
    testbed: TestResponse, client: FlaskClient, settings: Settings, post: Post, tmp_path: Path
) -> None:
    export = tmp_path / "export.csv"
    command = ["bench", "export", "--output", str(export), "--db", settings.database or ""]
    exported = CliRunner().invoke(cli, command)
    assert exported.exit_code == 0, exported.output
    found = answer(send_file(post, export, system="copy"), 201)
    assert (found["measurements"], found["configurations"]) == (440, 15)
    assert answer(send_file(post, export, system="copy"))["stored"] is False
    names = ("configuration_id", "io_nodes", "repetition", "bandwidth_mib_s", "started")
    one, other = (
        [
            [row[name] for name in names]
            for row in everything(client, f"/v1/measurements?system={system}&limit=500")
        ]
        for system in ("testbed", "copy")
    )
    assert one == other


def test_curves_can_be_copied_from_one_system_to_another(
    testbed: TestResponse, post: Post, client: FlaskClient
) -> None:
    curves = everything(client, "/v1/curves?system=testbed")
    ours = ("configuration_id", "stonewalled")
    sent = [{name: it for name, it in curve.items() if name not in ours} for curve in curves]
    found = {"format": "json", "measurements": 440, "configurations": 15}
    request = {"system": "copy", "curves": sent}
    assert answer(post("/v1/curves", json=request), 201) == {"stored": True, **found}
    assert answer(post("/v1/curves", json=request)) == {"stored": False, **found}
    copied = everything(client, "/v1/curves?system=copy")
    # The bytes of the runs are not sent, so the time limit that ended them is unknown.
    assert copied == [curve | {"stonewalled": False} for curve in curves]


def test_a_curve_has_the_engine_and_the_size_that_it_is_sent_with(
    post: Post, client: FlaskClient
) -> None:
    cells = [
        {"io_nodes": 4, "bandwidths_mib_s": [70.5, 71.5]},
        {"io_nodes": 0, "bandwidths_mib_s": [50]},
    ]
    curve = {"command": COMMAND, "tasks": 32, "nodes": 4, "engine": "fio", "cells": cells}
    request = {"system": "mn4", "curves": [curve, {"command": COMMAND, "cells": cells[:1]}]}
    found = answer(post("/v1/curves", json=request), 201)
    assert (found["measurements"], found["configurations"]) == (5, 2)
    shown = everything(client, "/v1/curves?system=mn4")
    assert [(each["tasks"], each["nodes"], each["engine"], each["cells"]) for each in shown] == [
        (32, 4, "fio", cells[::-1]),
        (16, None, "ior", cells[:1]),
    ]


def test_no_curve_is_stored_when_one_cannot_be_used(post: Post, client: FlaskClient) -> None:
    cells = [{"io_nodes": n, "bandwidths_mib_s": [1.0, 2.0]} for n in (0, 4)]
    commands = (COMMAND, "ior -a POSIX -w -b 5 -t 4")
    curves = [{"command": command, "cells": cells} for command in commands]
    said = answer(post("/v1/curves", json={"system": "mn4", "curves": curves}), 422)
    assert said["detail"].startswith("curves.1: the transfer size must be a multiple of 8")
    answer(client.get("/v1/curves?system=mn4"), 404)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"cells": []}, "body.curves.0.cells"),
        ({"cells": [CELL | {"io_nodes": -1}]}, "body.curves.0.cells.0.io_nodes"),
        ({"cells": [CELL | {"bandwidths_mib_s": []}]}, "body.curves.0.cells.0.bandwidths_mib_s"),
        ({"cells": [CELL | {"bandwidths_mib_s": [0]}]}, "body.curves.0.cells.0.bandwidths_mib_s.0"),
        ({"cells": [CELL | {"bandwidths_mib_s": [1.0] * 5_001}] * 2}, "body.curves"),
        ({"tasks": 0}, "body.curves.0.tasks"),
        ({"configuration_id": 1}, "body.curves.0.configuration_id"),
    ],
)
def test_a_value_that_makes_no_curve_is_named(
    post: Post, change: dict[str, object], said: str
) -> None:
    request = {"system": "mn4", "curves": [{"command": COMMAND, "cells": [CELL]} | change]}
    assert answer(post("/v1/curves", json=request), 422)["detail"].startswith(f"{said}: ")


def test_the_coverage_of_configurations_equals_the_list_in_the_order_of_the_request(
    testbed: TestResponse, client: FlaskClient
) -> None:
    listed = everything(client, "/v1/coverage?system=testbed")[::-1]
    found = answer(client.post("/v1/coverage", json=wanted(*listed)))
    assert without_times(found["items"]) == without_times(listed)
    page = answer(client.get("/v1/coverage?system=testbed&limit=1"))
    assert {name: found[name] for name in ("outlier_rule", "stale_after_s")} == {
        name: page[name] for name in ("outlier_rule", "stale_after_s")
    }


def test_coverage_includes_configurations_that_were_never_measured(
    testbed: TestResponse, post: Post, client: FlaskClient
) -> None:
    [measured] = answer(client.get("/v1/coverage?system=testbed&limit=1"))["items"]
    named = {"command": "ior -a MPIIO -r -c -b 8m -t 1m", "tasks": 4, "nodes": 1}
    number = answer(post("/v1/configurations", json=named), 201)["id"]
    unknown = {"command": "mpiexec -n 4 ior -a POSIX -r -b 8m -t 1m"}
    request = wanted(measured) | {"configurations": [unknown, asked_of(measured), named]}
    first, second, third = answer(client.post("/v1/coverage", json=request))["items"]
    assert (first["configuration_id"], first["engine"], first["tasks"]) == (None, None, 4)
    assert (third["configuration_id"], third["engine"]) == (number, None)
    assert second["configuration_id"] == measured["configuration_id"]
    assert without_times([second]) == without_times([measured])
    numbers = [cell["io_nodes"] for cell in measured["cells"]]
    for item in (first, third):
        assert [cell["io_nodes"] for cell in item["cells"]] == numbers
        assert all(cell["missing"] and cell["repetitions"] == 0 for cell in item["cells"])
    answer(client.get(f"/v1/curves?system=testbed&configuration={number}"), 404)
    known = everything(client, "/v1/configurations?limit=500")
    assert len(known) == 16


def test_coverage_has_a_cell_for_each_number_of_io_nodes_in_the_request(
    post: Post, client: FlaskClient
) -> None:
    rows = [{**ROW, "io_nodes": n, "engine": name} for n in (0, 4, 8) for name in ("ior", "fio")]
    answer(post("/v1/measurements", json={"system": "mn4", "measurements": rows}), 201)
    one = {"command": COMMAND, "nodes": 8}
    request = {"system": "mn4", "configurations": [one], "io_nodes": [32, 4, 4]}
    items = answer(client.post("/v1/coverage", json=request))["items"]
    assert [item["engine"] for item in items] == ["fio", "ior"]
    for item in items:
        cells = [(cell["io_nodes"], cell["missing"]) for cell in item["cells"]]
        assert cells == [(4, False), (32, True)]


def test_every_cell_of_a_system_without_measurements_is_missing(
    post: Post, client: FlaskClient
) -> None:
    request = {"system": "mn4", "configurations": [{"command": COMMAND}], "io_nodes": [0, 4]}
    answer(client.post("/v1/coverage", json=request), 404)
    answer(post("/v1/systems", json={"name": "mn4"}), 201)
    [item] = answer(client.post("/v1/coverage", json=request))["items"]
    assert [cell["missing"] for cell in item["cells"]] == [True, True]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"configurations": []}, "body.configurations"),
        ({"configurations": [{"command": COMMAND}] * 501}, "body.configurations"),
        ({"configurations": [{"command": COMMAND}, {"command": "ls"}]}, "configurations.1"),
        ({"configurations": [{"command": "ior -w -r"}]}, "configurations.0"),
        ({"io_nodes": [-1]}, "body.io_nodes.0"),
        ({"io_nodes": []}, "body.io_nodes"),
        ({"stale_after_s": 0}, "body.stale_after_s"),
        ({"limit": 1}, "body.limit"),
    ],
)
def test_an_unusable_question_for_coverage_is_named(
    post: Post, client: FlaskClient, change: dict[str, object], said: str
) -> None:
    answer(post("/v1/systems", json={"name": "mn4"}), 201)
    configurations = [{"command": COMMAND}]
    request = {"system": "mn4", "configurations": configurations, "io_nodes": [0]} | change
    answered = answer(client.post("/v1/coverage", json=request), 422)
    assert answered["detail"].startswith(f"{said}: ")


def test_a_system_can_be_added_before_it_is_measured(post: Post, client: FlaskClient) -> None:
    named = {"name": "mn4", "imports": 0, "newest": None, "change": None}
    named |= {"untried": 0, "largest_untried": []}
    assert answer(post("/v1/systems", json={"name": "mn4"}), 201) == named
    assert answer(post("/v1/systems", json={"name": "mn4"})) == named
    said = answer(post("/v1/systems", json={"name": "MN4"}), 422)["detail"]
    assert "the database already has a system 'mn4'" in said
    assert everything(client, "/v1/measurements?system=mn4") == []
    assert everything(client, "/v1/coverage?system=mn4") == []
    assert everything(client, "/v1/configurations?system=mn4") == []


def test_a_change_of_a_system_is_noted_listed_and_taken_back(
    client: FlaskClient, authorised: Authorised, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "ioncast.writes")
    admin = authorised("admin")
    post = partial(client.post, **admin)
    rows = [ROW | {"started": f"2026-11-{day}T00:00:00Z"} for day in (19, 21)]
    answer(post("/v1/measurements", json={"system": "mn4", "measurements": rows}), 201)
    change = {"system": "mn4", "since": "2026-11-20", "why": "new file system"}
    noted = answer(post("/v1/changes", json=change), 201)
    assert noted == change | {
        "since": "2026-11-20T00:00:00.000000+00:00",
        "noted_at": noted["noted_at"],
    }
    assert everything(client, "/v1/systems")[0]["change"] == noted
    found = everything(client, "/v1/measurements?system=mn4")
    assert [each["before_change"] for each in found] == [True, False]
    [curve] = everything(client, "/v1/curves?system=mn4")
    assert [len(cell["bandwidths_mib_s"]) for cell in curve["cells"]] == [1]
    [covered] = everything(client, "/v1/coverage?system=mn4")
    assert [(c["repetitions"], c["before_change"]) for c in covered["cells"]] == [(1, 1)]
    for system, status in (("mn4", 204), ("mn4", 404), ("there", 404)):
        assert client.delete(f"/v1/changes?system={system}", **admin).status_code == status
    assert everything(client, "/v1/systems")[0]["change"] is None
    assert [line for line in caplog.messages if "change" in line] == [
        "token a admin on mn4: change since 2026-11-20: new file system",
        "token a admin on mn4: change undone: since 2026-11-20: new file system",
    ]


def test_systems_are_listed_by_name_in_pages(post: Post, client: FlaskClient) -> None:
    names = ["b", "Zeta", "a b", "é", "c&d=e", "a"]
    for name in names:
        answer(post("/v1/systems", json={"name": name}), 201)
    found = [item["name"] for item in everything(client, "/v1/systems?limit=2")]
    assert found == sorted(names)


def test_a_configuration_can_be_added_before_it_is_measured(
    post: Post, client: FlaskClient
) -> None:
    given = {"command": COMMAND, "nodes": 8}
    found = answer(post("/v1/configurations", json=given), 201)
    assert (found["tasks"], found["nodes"], found["measured"]) == (16, 8, [])
    assert answer(post("/v1/configurations", json=given)) == found
    assert everything(client, "/v1/configurations") == [found]
    other = answer(post("/v1/configurations", json=given | {"tasks": 32}), 201)
    assert other["id"] > found["id"]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("ior -w -r", "'write+read' is not an operation; say write or read"),
        ("ls -l", "no ior"),
        ("ior -w -t 3", "multiple of 8"),
        ("ior -w -b 99999999999t", ""),
        ("ior -w 'unclosed", ""),
    ],
)
def test_a_command_that_is_not_a_configuration_is_rejected(
    post: Post, command: str, said: str
) -> None:
    response = post("/v1/configurations", json={"command": command})
    assert said in answer(response, 422)["detail"]


@pytest.mark.parametrize(
    ("place", "given"),
    [
        ("/v1/systems", {"name": "mn4"}),
        ("/v1/configurations", {"command": COMMAND}),
        ("/v1/measurements", {"system": "mn4", "measurements": [ROW]}),
        ("/v1/curves", {"system": "mn4", "curves": [{"command": COMMAND, "cells": [CELL]}]}),
        ("/v1/changes", {"system": "mn4", "since": "2026-11-20", "why": "new file system"}),
    ],
)
def test_only_an_admin_writes(
    client: FlaskClient, authorised: Authorised, place: str, given: dict[str, object]
) -> None:
    assert client.post(place, json=given).status_code == 401
    for role in ROLES:
        assert client.post(place, json=given, **authorised(role)).status_code == 403
    assert everything(client, "/v1/systems") == everything(client, "/v1/configurations") == []


@pytest.mark.parametrize("place", ["measurements", "curves", "coverage", "configurations"])
def test_a_missing_system_is_not_found(client: FlaskClient, place: str) -> None:
    answer(client.get(f"/v1/{place}?system=mn4"), 404)


@pytest.mark.parametrize("place", ["measurements", "curves", "coverage", "configurations"])
def test_an_unknown_system_names_the_likeliest_ones(
    post: Post, client: FlaskClient, place: str
) -> None:
    for number in range(8):
        answer(post("/v1/systems", json={"name": f"machine-{number}x"}), 201)
    said = answer(client.get(f"/v1/{place}?system=Machine6x"), 404)["detail"]
    assert re.search(r"systems are machine-6x, (machine-\dx, ){3}machine-\dx and 3 others$", said)


@pytest.mark.parametrize(
    "query",
    ["", "system=", "system=a&limit=0", "system=a&limit=501", "system=a&after=-1", "system=a&x=1"],
)
@pytest.mark.parametrize("place", ["measurements", "curves", "coverage"])
def test_an_unusable_parameter_is_rejected(client: FlaskClient, place: str, query: str) -> None:
    assert answer(client.get(f"/v1/{place}?{query}"), 422)["detail"].startswith("query.")


def test_a_page_after_the_last_is_empty_or_not_found(
    testbed: TestResponse, client: FlaskClient
) -> None:
    last = 2**31 - 1
    for place in ("curves", "coverage", "configurations"):
        assert everything(client, f"/v1/{place}?system=testbed&after={last}") == []
    answer(client.get(f"/v1/measurements?system=testbed&after={last}"), 404)
    answer(client.get("/v1/curves?system=testbed&configuration=9999"), 404)
    assert everything(client, "/v1/measurements?system=testbed&configuration=9999") == []


class TestALockedDatabase:
    @pytest.fixture
    def settings(self, settings: Settings) -> Settings:
        return settings.model_copy(update={"patience_s": 0.1})

    def test_is_an_error_that_says_when_to_ask_again(self, post: Post, settings: Settings) -> None:
        assert settings.database is not None
        with opened_database(settings.database) as database, transaction(database, write=True):
            response = post("/v1/measurements", json={"system": "mn4", "measurements": [ROW]})
        assert answer(response, 503)["title"] == "Database unavailable"
        assert response.headers["Retry-After"]
        assert settings.database not in response.text
