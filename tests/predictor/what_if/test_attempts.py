"""The pieces of advice that are tried follow from the checks that found something."""

from __future__ import annotations

from collections.abc import Callable, Collection

import pytest

from ior_configs import IorConfig
from predictor.what_if.attempts import Attempt, FilesOfKind, Hints, attempts_of
from summario.phases.values import Part, Phase

MIB = 1 << 20
MakePhase = Callable[..., Phase]
FILE_ACCESS = {("one_file",), ("own_files",)}


def nothing_measured(_wanted: IorConfig) -> list[int]:
    return []


def tried(
    phases: Collection[Phase], *codes: str, sizes: Callable = nothing_measured, **told: int
) -> dict[tuple[str, ...], Attempt]:
    found = attempts_of(tuple(phases), Hints(frozenset(codes)), sizes, **told)
    return {attempt.keys: attempt for attempt in found}


@pytest.mark.parametrize(
    ("code", "key", "told"),
    [
        ("P05", "larger", {"operation": "read"}),
        ("P06", "larger", {}),
        ("M02", "collective", {"operation": "read", "api": "MPIIO", "spatiality": "unknown"}),
        ("M03", "collective", {"api": "MPIIO", "spatiality": "unknown"}),
        ("P15", "collective", {"operation": "read"}),
        ("P16", "collective", {}),
        ("P11", "contiguous", {"operation": "read", "spatiality": "random"}),
        ("P13", "contiguous", {"spatiality": "random"}),
    ],
)
def test_each_code_asks_for_its_advice(a_phase: MakePhase, code: str, key: str, told: dict) -> None:
    phase = a_phase((512, 32 * MIB), **told)
    found = tried([phase], code)
    assert found.keys() - FILE_ACCESS == {(key,)}
    assert found[(key,)].codes == (code,)
    other = {"operation": "write" if phase.operation == "read" else "read"}
    assert tried([a_phase((512, 32 * MIB), **(told | other))], code).keys() <= FILE_ACCESS


def test_another_file_access_is_always_tried(a_phase: MakePhase) -> None:
    shared, unique = a_phase(), a_phase(file_access="unique")
    assert tried([shared]).keys() == {("own_files",)}
    assert tried([unique]).keys() == {("one_file",)}
    assert tried([shared, unique]).keys() == FILE_ACCESS
    assert tried([unique])[("one_file",)].codes == ()


def test_repeated_bytes_are_left_out_of_the_files_that_have_them(a_phase: MakePhase) -> None:
    phases = (a_phase(), a_phase(file_access="unique"))
    hints = Hints(frozenset({"P10"}), {FilesOfKind("write", "POSIX", "shared"): 0.5})
    [once] = [
        each for each in attempts_of(phases, hints, nothing_measured) if each.keys == ("once",)
    ]
    assert once.phases == (a_phase((32, 32 * MIB)), phases[1])


def test_larger_requests_have_the_next_measured_size_of_their_kind(a_phase: MakePhase) -> None:
    def sizes(wanted: IorConfig) -> list[int]:
        return [MIB // 2, 2 * MIB, 8 * MIB] if not wanted.file_per_process else [4 * MIB]

    phases = [a_phase((512, 256 * MIB)), a_phase((512, 256 * MIB), file_access="unique")]
    [shared, unique] = tried(phases, "P06", sizes=sizes)[("larger",)].phases
    assert (shared.parts, unique.parts) == ((Part(128, 256 * MIB),), (Part(64, 256 * MIB),))


def test_larger_requests_without_a_measured_size_have_one_mebibyte(a_phase: MakePhase) -> None:
    [larger] = tried([a_phase((512, 256 * MIB))], "P06")[("larger",)].phases
    assert larger.parts == (Part(256, 256 * MIB),)


def test_larger_requests_may_have_the_size_of_a_buffer(a_phase: MakePhase) -> None:
    found = tried([a_phase((512, 256 * MIB))], "P06", buffer_bytes=16 * MIB)
    assert found[("larger",)].phases[0].parts == (Part(16, 256 * MIB),)


def test_two_pieces_of_advice_that_go_together_are_tried_together(a_phase: MakePhase) -> None:
    def sizes(wanted: IorConfig) -> list[int]:
        return [4 * MIB] if wanted.collective else [2 * MIB]

    found = tried([a_phase((512, 256 * MIB))], "P06", "P16", sizes=sizes)
    assert found.keys() - FILE_ACCESS == {("larger",), ("collective",), ("collective", "larger")}
    both = found["collective", "larger"]
    assert both.codes == ("P16", "P06")
    assert (both.phases[0].spatiality, both.phases[0].parts) == (
        "collective",
        (Part(64, 256 * MIB),),
    )
    random = a_phase((512, 256 * MIB), spatiality="random")
    assert ("contiguous", "larger") in tried([random], "P06", "P13")


def test_two_pieces_that_change_no_more_than_one_are_not_tried(a_phase: MakePhase) -> None:
    large = a_phase((64, 256 * MIB))
    assert tried([large], "P06", "P16").keys() - FILE_ACCESS == {("collective",)}


def test_unknown_codes_ask_for_nothing(a_phase: MakePhase) -> None:
    assert tried([a_phase()], "P08", "I03", "X1").keys() == {("own_files",)}
