"""Hints of MPI-IO, which IOR reads from its environment: ``IOR_HINT__MPI__cb_nodes=4``.

A hint is a condition of a run (see `ior_configs.conditions`), with this spelling. The hints that
tell how many processes move the data of collective calls are ROMIO's: ``romio_cb_write`` and
``romio_cb_read`` switch collective buffering on, and ``cb_nodes`` is the number of aggregators.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ioncast_base.errors import InputError

PREFIX = "IOR_HINT__MPI__"

_HINT = re.compile(rf"{PREFIX}(?P<name>[A-Za-z0-9_]+)=(?P<value>\S+)")
# ROMIO's default: it buffers the collective calls of processes whose requests interleave.
_DEFAULT = re.compile(rf"{PREFIX}romio_[a-z]+_(?:write|read)=automatic")
_SWITCH = {"write": f"{PREFIX}romio_cb_write", "read": f"{PREFIX}romio_cb_read"}
_AGGREGATORS, _PLACES = f"{PREFIX}cb_nodes", f"{PREFIX}cb_config_list"
# Hints without effect on calls that are not collective.
_COLLECTIVE = re.compile(rf"{PREFIX}(?:cb_|romio_cb_)")
# A usable number of aggregators.
_NUMBER = re.compile(r"[1-9][0-9]{0,8}")
# So many processes of each node may be among the aggregators.
_OF_EACH_NODE = re.compile(r"\*:\d+")


def is_hint(text: str) -> bool:
    """Whether a word is a hint of MPI-IO with its value."""
    return text.startswith(PREFIX)


def canonical_hints(
    hints: Iterable[str], *, operations: Iterable[str], collective: bool
) -> list[str]:
    """Leave out hints without effect on a run, and defaults; the last value of a hint counts.

    ``cb_config_list=*:4`` only lets ROMIO use as many aggregators as ``cb_nodes`` asks for, so it
    is left out beside it; `with_places` adds it again.
    """
    done = set(operations)
    found: dict[str, str] = {}
    for hint in hints:
        if not _HINT.fullmatch(hint):
            raise InputError(
                f"{hint!r} is not a hint of MPI-IO", remedy=f"write {PREFIX}NAME=VALUE"
            )
        name = hint.partition("=")[0]
        found.pop(name, None)
        of_operation = name.rpartition("_")[2]
        is_idle = of_operation in _SWITCH and of_operation not in done
        if not is_idle and (collective or not _COLLECTIVE.match(name)) and not _DEFAULT.match(hint):
            found[name] = hint
    places = found.get(_PLACES, "").partition("=")[2]
    if _AGGREGATORS in found and _OF_EACH_NODE.fullmatch(places):
        del found[_PLACES]
    return list(found.values())


def buffering_hints(operation: str, aggregators: int) -> tuple[str, ...]:
    """Write the hints with which so many processes move the data of collective calls."""
    return f"{_AGGREGATORS}={aggregators}", f"{_SWITCH[operation]}=enable"


def aggregators_of(hints: Iterable[str], operation: str, nodes: int | None) -> int | None:
    """Read how many processes move the data of collective calls; None if hints do not tell.

    Without ``cb_nodes``, ROMIO takes one process of each node.
    """
    found = dict(_parts(hints))
    if found.get(_SWITCH.get(operation, "")) != "enable" or _PLACES in found:
        return None
    return _number(found[_AGGREGATORS]) if _AGGREGATORS in found else nodes


def without_buffering(conditions: Iterable[str]) -> tuple[str, ...]:
    """Leave out the hints that `aggregators_of` reads."""
    told = (_AGGREGATORS, *_SWITCH.values())
    return tuple(one for one in conditions if one.partition("=")[0] not in told)


def with_places(hints: Sequence[str], nodes: int | None) -> list[str]:
    """Add the hint that lets a node have several aggregators, if `cb_nodes` asks for it.

    A list of places that is among the hints stays as it is.
    """
    found = dict(_parts(hints))
    aggregators = _number(found.get(_AGGREGATORS, "")) or 1
    of_each = -(-aggregators // (nodes or 1))
    is_missing = of_each > 1 and _PLACES not in found
    return [*hints, f"{_PLACES}=*:{of_each}"] if is_missing else [*hints]


def hints_in(words: Sequence[str]) -> list[str]:
    """Find the hints among a launcher's words: ``env A=B``, ``-genv A B``, ``-x A=B``, lists."""
    found = []
    for option, word, after in zip(["", *words], words, [*words[1:], ""], strict=False):
        if option.endswith("env") and is_hint(word) and "=" not in word:
            found.append(f"{word}={after}")
        else:
            found += [part for part in _listed(word) if is_hint(part) and "=" in part]
    return found


def _listed(word: str) -> list[str]:
    """Split ``--export=ALL,A=B``; a word that is a hint itself may have commas in its value."""
    return [word] if is_hint(word) else word.partition("=")[2].split(",")


def _number(text: str) -> int | None:
    return int(text) if _NUMBER.fullmatch(text) else None


def _parts(hints: Iterable[str]) -> Iterator[tuple[str, str]]:
    for hint in hints:
        name, _, value = hint.partition("=")
        yield name, value
