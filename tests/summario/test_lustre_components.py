"""Layouts of files on Lustre: PyDarshan's records, known contents, damage."""

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.applications.darshan_writer import record_id
from summario.lustre_components import NOT_RECORDED, LustreComponents, lustre_components_of
from summario.reading.log import read_log
from tests.support.libdarshan import backend, opened
from tests.support.log_bytes import Component, lustre_bytes_1, lustre_bytes_2, write_modules

MIB = 1 << 20
NPROCS = 4
# A file whose first mebibyte is on a metadata server, then on 1 OST, then on 4; with a second
# mirror. Darshan's runtime lists the components that are in use, and only their OSTs.
COMPONENTS = (
    Component(MIB, (), 0, MIB, pattern=2, mirror=1),
    Component(MIB, (7,), MIB, 64 * MIB, mirror=1, pool="flash"),
    Component(4 * MIB, (3, 0, 9, 4), 64 * MIB, -1, mirror=1, pool="capacity"),
    Component(MIB, (5, 6), 0, -1, flags=17, mirror=2),
)


def decoded(path: Path, version: int, data: bytes, **kwargs: object) -> LustreComponents:
    write_modules(path, {"LUSTRE": (version, data)}, nprocs=NPROCS, **kwargs)
    return lustre_components_of(read_log(path, modules=("LUSTRE",)))


def rows(components: LustreComponents) -> list[tuple[object, ...]]:
    """Each component as PyDarshan has it, with its record id and rank."""
    return [
        (
            int(components.file_id[row]),
            int(components.rank[row]),
            [
                int(column[row])
                for column in (
                    components.stripe_size_bytes,
                    components.stripe_count,
                    components.pattern,
                    components.flags,
                    components.extent_start,
                    components.extent_end,
                    components.mirror_id,
                )
            ],
            components.pools[components.pool[row]],
            osts_of(components, row),
        )
        for row in range(len(components))
    ]


def osts_of(components: LustreComponents, row: int) -> list[int]:
    first = components.first_ost[row]
    return components.ost_ids[first : first + components.stripe_count[row]].tolist()


def pydarshans_rows(path: Path) -> list[tuple[object, ...]]:
    found = []
    with opened(path) as handle:
        while (record := backend().log_get_record(handle, "LUSTRE")) is not None:
            found += [
                (
                    record["id"],
                    record["rank"],
                    component["counters"].tolist(),
                    component["pool_name"],
                    component["ost_ids"].tolist(),
                )
                for component in record["components"]
            ]
    return found


@pytest.mark.slow
def test_layouts_of_all_shared_logs_are_pydarshans(shared_data: Path) -> None:
    versions = []
    for path in sorted(shared_data.rglob("*.darshan")):
        log = read_log(path, modules=("LUSTRE",))
        if "LUSTRE" in log.traces:
            components = lustre_components_of(log)
            assert not components.warnings
            assert rows(components) == pydarshans_rows(path), path
            versions.append(log.header.module_versions["LUSTRE"])
    assert (versions.count(1), versions.count(2)) == (24, 21)


def test_version_1_knows_the_size_of_the_file_system(shared_data: Path) -> None:
    """Cori's scratch file system had 248 OSTs; darshan-parser prints OST 117 for the file."""
    path = shared_data / "darshan-logs/apmpi_apxc/mpi-io-test.darshan"
    components = lustre_components_of(read_log(path, modules=("LUSTRE",)))
    assert components.osts.tolist() == [248]
    assert components.ost_ids.tolist() == [117]


@pytest.mark.parametrize("byte_order", "<>")
def test_version_1_is_one_component_without_end(tmp_path: Path, byte_order: str) -> None:
    data = lustre_bytes_1("/a", -1, MIB, (3, 1, 4), byte_order=byte_order)
    data += lustre_bytes_1("/b", 2, 4 * MIB, (7,), byte_order=byte_order)
    components = decoded(tmp_path / "a.darshan", 1, data, byte_order=byte_order)
    assert rows(components) == pydarshans_rows(tmp_path / "a.darshan")
    assert components.file_id.tolist() == [record_id("/a"), record_id("/b")]
    assert components.rank.tolist() == [-1, 2]
    assert components.stripe_size_bytes.tolist() == [MIB, 4 * MIB]
    assert [osts_of(components, row) for row in (0, 1)] == [[3, 1, 4], [7]]
    assert components.extent_end.tolist() == [-1, -1]
    assert components.osts.tolist() == [248, 248]
    assert components.mdts.tolist() == [5, 5]
    assert components.stripe_offset.tolist() == [3, 7]
    assert components.pools == ("",)


@pytest.mark.parametrize("byte_order", "<>")
def test_version_2_has_a_row_for_each_component(tmp_path: Path, byte_order: str) -> None:
    data = lustre_bytes_2("/a", -1, COMPONENTS, byte_order=byte_order)
    data += lustre_bytes_2("/b", 0, [Component(MIB, (2,))], byte_order=byte_order)
    components = decoded(tmp_path / "a.darshan", 2, data, byte_order=byte_order)
    assert rows(components) == pydarshans_rows(tmp_path / "a.darshan")
    assert components.component.tolist() == [0, 1, 2, 3, 0]
    assert [osts_of(components, row) for row in range(5)] == [[], [7], [3, 0, 9, 4], [5, 6], [2]]
    assert components.extent_start.tolist() == [0, MIB, 64 * MIB, 0, 0]
    assert [components.pools[pool] for pool in components.pool] == ["", "flash", "capacity", "", ""]
    assert set(components.osts) == set(components.mdts) == {NOT_RECORDED}


def test_components_that_are_not_in_use_are_left_out(tmp_path: Path) -> None:
    """Logs of Darshan's memory maps still have them, with a stripe size of -1, and their room."""
    unused = Component(-1, (0, 0))
    data = lustre_bytes_2("/a", 0, [Component(MIB, (4, 2)), unused, unused])
    data += lustre_bytes_2("/b", 0, [Component(MIB, (8,))])
    components = decoded(tmp_path / "a.darshan", 2, data)
    assert [osts_of(components, row) for row in range(2)] == [[4, 2], [8]]
    assert components.component.tolist() == [0, 0]
    assert not components.warnings


def test_a_name_that_fills_its_field_is_kept_whole(tmp_path: Path) -> None:
    data = lustre_bytes_2("/a", 0, [Component(MIB, (1,), pool="p" * 16)])
    assert decoded(tmp_path / "a.darshan", 2, data).pools == ("p" * 16,)


def test_a_log_without_lustre_has_no_components() -> None:
    fixture = Path(__file__).parents[0] / "fixtures/single-a.darshan"
    components = lustre_components_of(read_log(fixture, modules=("LUSTRE",)))
    assert (len(components), len(components.ost_ids), components.warnings) == (0, 0, ())


def test_a_partial_module_and_an_unknown_version_are_said(tmp_path: Path) -> None:
    data = lustre_bytes_2("/a", 0, [Component(MIB, (1,))])
    partial = decoded(tmp_path / "a.darshan", 2, data, partial=["LUSTRE"])
    assert len(partial) == 1
    assert "partial" in partial.warnings[0]
    unknown = decoded(tmp_path / "b.darshan", 3, data)
    assert len(unknown) == 0
    assert "have format 3, but this reader knows 1 to 2" in unknown.warnings[0]


GOOD = lustre_bytes_2("/good", 1, [Component(MIB, (6, 1))])


@pytest.mark.parametrize(
    "changes",
    [
        {"rank": NPROCS},
        {"rank": -2},
        {"components": [Component(0, (1,))]},
        {"components": [Component(-4, (1,))]},
        {"components": [Component(1 << 62, (1, 2))]},
        {"components": [Component(MIB, (1,), start=-5)]},
        {"components": [Component(MIB, (1,), start=MIB, end=MIB)]},
        {"components": [Component(MIB, (1,)), Component(MIB, (1,), end=-3)]},
    ],
)
def test_records_with_impossible_numbers_are_left_out(
    tmp_path: Path, changes: dict[str, object]
) -> None:
    bad = lustre_bytes_2(**{"path": "/bad", "rank": 0, "components": COMPONENTS, **changes})
    components = decoded(tmp_path / "a.darshan", 2, GOOD + bad + GOOD)
    assert components.file_id.tolist() == [record_id("/good")] * 2
    assert [osts_of(components, row) for row in (0, 1)] == [[6, 1], [6, 1]]
    assert components.warnings == (
        "1 LUSTRE record left out: a rank, a stripe or an extent is impossible",
    )


@pytest.mark.parametrize("count", [-1, 3, 70_000, 1 << 62, -(1 << 63)])
def test_more_stripes_than_the_record_has_are_impossible(tmp_path: Path, count: int) -> None:
    bad = bytearray(lustre_bytes_2("/bad", 0, [Component(MIB, (1, 2))]))
    struct.pack_into("<q", bad, 32 + 8, count)
    components = decoded(tmp_path / "a.darshan", 2, GOOD + bytes(bad) + GOOD)
    assert components.file_id.tolist() == [record_id("/good")] * 2
    assert len(components.warnings) == 1


@pytest.mark.parametrize("place", [16, 24])
@pytest.mark.parametrize("count", [-1, 1 << 20, (1 << 63) - 1, -(1 << 63)])
def test_data_break_off_at_a_count_that_the_rest_cannot_hold(
    tmp_path: Path, place: int, count: int
) -> None:
    bad = bytearray(GOOD)
    struct.pack_into("<q", bad, place, count)
    components = decoded(tmp_path / "a.darshan", 2, GOOD + bytes(bad) + GOOD)
    assert components.file_id.tolist() == [record_id("/good")]
    [warning] = components.warnings
    assert warning == (
        f"the LUSTRE data break off after 1 record; the rest ({2 * len(GOOD)} bytes) is left out"
    )


@pytest.mark.parametrize("version", [1, 2])
def test_whatever_is_cut_off_is_left_out_with_a_warning(tmp_path: Path, version: int) -> None:
    whole = lustre_bytes_1("/good", 1, MIB, (6, 1)) if version == 1 else GOOD
    for size in range(len(whole)):
        components = decoded(tmp_path / "a.darshan", version, whole + whole[:size])
        assert components.file_id.tolist() == [record_id("/good")]
        assert len(components.warnings) == (size > 0)


@pytest.mark.parametrize("version", [1, 2])
@given(data=st.binary(max_size=600))
def test_no_bytes_crash_the_reader(
    tmp_path_factory: pytest.TempPathFactory, version: int, data: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / f"lustre-{version}.darshan"
    components = decoded(path, version, data)
    assert len(components.ost_ids) == components.stripe_count.sum()


@pytest.mark.parametrize("version", [1, 2])
def test_records_without_a_layout_take_no_memory(tmp_path: Path, version: int) -> None:
    """Zeros are the cheapest records: 300,000 of them are a few bytes in the file."""
    components = decoded(tmp_path / "a.darshan", version, bytes(300_000 * 56))
    assert (len(components), components.warnings) == (0, ())
