"""Sentences of findings, made from templates and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from string import Formatter
from typing import Any

from ioncast_base.wording import counted, in_digits, size


class _Words(Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec == "size":
            return size(value)
        if format_spec == "digits":
            return in_digits(value)
        if format_spec.startswith("# "):
            return counted(value, format_spec[2:])
        return str(super().format_field(value, format_spec))


def in_words(template: str, numbers: Mapping[str, float | str | None]) -> str:
    """Fill numbers into a template of `str.format`, which may have three more formats.

    `size` writes bytes with a unit, `digits` writes three digits, and `# NOUN` counts things.

    Examples
    --------
    >>> in_words("{files:# file} of {bytes:size}, {factor:digits} times", {
    ...     "files": 2, "bytes": 2048, "factor": 3.14159})
    '2 files of 2 KiB, 3.14 times'
    """
    return _Words().vformat(template, (), numbers)
