"""The nearest benchmark in a catalogue is the one that a plain search through all finds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchdb.measurements.curves import Curve, Measured
from ior_configs import IorConfig
from predictor.matching.nearest import catalogue_of_curves, catalogue_of_rows
from tests.support.examples import examples

# Few sizes, so that many configurations are equally near.
FEW_SIZES = st.sampled_from([3, 6])


def config_of(row: Measured) -> IorConfig:
    return IorConfig(
        api=row.api,
        write=row.operation == "write",
        read=row.operation == "read",
        file_per_process=row.file_per_process,
        collective=row.collective,
        random_offsets=row.random_offsets,
        transfer_size=row.transfer_size,
        block_size=row.block_size,
        segments=row.segments,
        tasks=row.tasks,
        nodes=row.nodes,
        odirect=row.odirect,
        fsync=row.fsync,
        conditions=row.conditions,
    )


def plain_nearest(wanted: IorConfig, rows: Sequence[Measured]) -> Measured | None:
    """Search one after the other by the documented rule: kind, properties, tasks, distance ..."""

    def fsync(config: IorConfig) -> str | None:
        return config.fsync if config.write else "none"

    def kind(config: IorConfig) -> tuple[object, ...]:
        parts = (config.operation, config.api, config.file_access, config.spatiality)
        return *parts, fsync(config) == "each"

    def differs(config: IorConfig) -> tuple[bool, ...]:
        """fsync, order and conditions; an fsync that is not known always differs."""
        orders = [
            "random" if one.random_offsets else one.layout if one.api == "MPIIO" else ""
            for one in (config, wanted)
        ]
        return (
            fsync(wanted) is None or fsync(config) != fsync(wanted),
            blurred(orders[0], config) != blurred(orders[1], wanted),
            config.conditions != wanted.conditions,
        )

    def blurred(layout: str, config: IorConfig) -> str:
        """Blocks of several requests are contiguous by Darshan's counters."""
        requests = config.requests_per_process
        consecutive = requests - config.segments
        if layout == "1d-strided" and 5 * consecutive >= 4 * (requests - 1):
            return "contiguous"
        return layout

    def features(config: IorConfig) -> list[float | None]:
        per_node = config.tasks / config.nodes if config.tasks and config.nodes else None
        return [config.tasks, per_node, config.transfer_size, config.bytes_per_process]

    def rank(row: Measured) -> tuple[Any, ...]:
        theirs = features(config_of(row))
        unknown = theirs.count(None)
        if row.tasks and row.fewest_bytes and row.most_bytes:
            asked = row.tasks * row.block_size * row.segments
            moved = (row.fewest_bytes, row.most_bytes)
            if any(abs(count - asked) > 0.05 * asked for count in moved):
                theirs[3] = None
        squares = [
            math.log(their / our) ** 2
            for our, their in zip(features(wanted), theirs, strict=True)
            if our is not None and their is not None and our != their
        ]
        return (
            *differs(config_of(row)),
            row.tasks is None,
            math.sqrt(sum(squares)),
            unknown,
            config_of(row).layout != wanted.layout,
            row.odirect,
            -row.coverage,
            row.id,
        )

    same_kind = [row for row in rows if kind(config_of(row)) == kind(wanted)]
    return min(same_kind, key=rank, default=None)


@st.composite
def relatives(draw: st.DrawFn) -> st.SearchStrategy[IorConfig]:
    """Configurations of one api and operation, so that many are of one kind."""
    api = draw(st.sampled_from(["POSIX", "MPIIO"]))
    write = draw(st.booleans())
    collective = api == "MPIIO" and draw(st.booleans())
    own_files = draw(st.sampled_from([[False], [True], [False, True]]))
    sizes = draw(st.sampled_from([FEW_SIZES, st.integers(1, 2**20)]))

    @st.composite
    def configs(draw: st.DrawFn) -> IorConfig:
        transfer = 8 * draw(sizes)
        tasks = draw(st.none() | st.just(1) | sizes)
        nodes = draw(st.none() | sizes)
        return IorConfig(
            api=api,
            write=write,
            read=not write,
            collective=collective,
            file_per_process=draw(st.sampled_from(own_files)),
            random_offsets=draw(st.sampled_from([0, 0, 1])),
            transfer_size=transfer,
            block_size=transfer * draw(sizes),
            segments=draw(st.just(1) | sizes),
            tasks=tasks,
            nodes=min(nodes, tasks or nodes) if nodes else None,
            odirect=draw(st.booleans()),
            fsync=draw(st.sampled_from(["none", "none", "end", "each", None])),
            conditions=draw(st.sampled_from([(), (), ("-M 75%",), ("-l random",)])),
        )

    return configs()


@st.composite
def catalogues(draw: st.DrawFn, configs: st.SearchStrategy[IorConfig]) -> list[Measured]:
    """Make the measured configurations of an engine, in any order."""
    found = draw(st.lists(configs, max_size=40))
    ids = draw(st.permutations(range(1, len(found) + 1)))
    rows = []
    for id_, config in zip(ids, found, strict=True):
        asked = (config.tasks or 1) * config.bytes_per_process
        moved = draw(st.sampled_from([None, asked, asked // 2 + 1, asked + asked // 30]))
        rows.append(measured(id_, config, draw(st.integers(1, 2)), moved))
    return rows


def measured(id_: int, config: IorConfig, coverage: int, moved: int | None = None) -> Measured:
    same = {name for name in Measured._fields if hasattr(config, name)}
    return Measured(
        id=id_,
        engine="ior",
        coverage=coverage,
        fewest_bytes=moved,
        most_bytes=moved,
        **{name: getattr(config, name) for name in same},
    )


@pytest.mark.slow
@given(data=st.data())
@settings(deadline=None, max_examples=examples(300))
def test_the_nearest_is_what_a_plain_search_finds(data: st.DataObject) -> None:
    configs = data.draw(relatives())
    rows = data.draw(catalogues(configs))
    catalogue = catalogue_of_rows(rows)
    for wanted in (*data.draw(st.lists(configs, max_size=5)), *map(config_of, rows)):
        assert catalogue.nearest(wanted) == plain_nearest(wanted, rows)


@given(data=st.data())
@settings(deadline=None, max_examples=examples(200))
def test_curves_and_their_summaries_have_the_same_nearest(data: st.DataObject) -> None:
    configs = data.draw(relatives())
    rows = data.draw(catalogues(configs))
    curves = [
        Curve(
            row.id,
            config_of(row),
            row.engine,
            dict.fromkeys(range(row.coverage), (1.0,)),
            row.stonewalled,
        )
        for row in rows
    ]
    wanted = data.draw(configs)
    nearest = catalogue_of_curves(curves).nearest(wanted)
    expected = catalogue_of_rows(rows).nearest(wanted)
    assert (nearest and nearest.id) == (expected and expected.id)


@given(data=st.data(), count=st.integers(1, 30))
@settings(deadline=None)
def test_the_near_ones_are_of_its_kind_and_the_nearest_is_among_them(
    data: st.DataObject, count: int
) -> None:
    configs = data.draw(relatives())
    rows = data.draw(catalogues(configs))
    wanted = data.draw(configs)
    catalogue = catalogue_of_rows(rows)
    found = catalogue.near(wanted, count)
    kin = catalogue.near(wanted, len(rows) + 1)
    assert len(found) == len(set(found)) <= count
    assert len(found) >= min(count - 1, len(kin))
    assert set(found) <= set(kin)
    assert (catalogue.nearest(wanted) in found) == bool(kin)


def test_the_near_ones_are_nearer_than_the_others() -> None:
    wanted = IorConfig(write=True, tasks=2, transfer_size=1024, block_size=8 << 20)
    rows = [measured(i, replace(wanted, transfer_size=8 << i), coverage=1) for i in range(20)]
    assert {row.id for row in catalogue_of_rows(rows).near(wanted, 4)} == {6, 7, 8}


def test_of_equally_near_ones_none_is_lost_to_rounding() -> None:
    """Half and twice a size are equally near, although logarithms are rounded."""
    for size in range(1, 500):
        half, wanted, twice = (
            IorConfig(write=True, tasks=2, transfer_size=8 * size * count, block_size=32 * size)
            for count in (1, 2, 4)
        )
        for pair in ((half, twice), (twice, half)):
            rows = [measured(id_, config, coverage=1) for id_, config in enumerate(pair)]
            assert catalogue_of_rows(rows).nearest(wanted) == rows[0]


def test_in_an_empty_catalogue_nothing_is_near() -> None:
    assert catalogue_of_rows([]).nearest(IorConfig(write=True)) is None


def test_the_request_sizes_of_a_kind_are_exact() -> None:
    wanted = IorConfig(write=True, tasks=2, transfer_size=1024, block_size=8 << 20)
    sizes = [8, 47008, 400000, 3 << 20, (1 << 40) + 8]
    rows = [
        measured(i, replace(wanted, transfer_size=size, block_size=size * (i + 1)), coverage=1)
        for i, size in enumerate(reversed([*sizes, 47008]))
    ]
    other = measured(9, replace(wanted, file_per_process=True, block_size=1024), coverage=1)
    assert catalogue_of_rows([*rows, other]).request_sizes(wanted) == sizes
    assert catalogue_of_rows(rows).request_sizes(replace(wanted, write=False, read=True)) == []
