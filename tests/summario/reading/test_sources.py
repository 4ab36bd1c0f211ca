"""The arguments of a command as logs: files, folders, patterns, standard input, gzip."""

from __future__ import annotations

import gzip
import io
import itertools
import os
import sys
import tracemalloc
from pathlib import Path

import pytest

from ioncast_base.errors import DamagedLogError, InputError, IoncastError
from summario.reading.log import read_log
from summario.reading.sources import Source, find_sources, logs_below, read_source, source_of

LOG = Path(__file__).parents[1] / "fixtures" / "single-a.darshan"
CONTENT = LOG.read_bytes()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a tree as a site's log folder."""
    monkeypatch.chdir(tmp_path)
    for name in (
        *("logs/11/2/b.darshan", "logs/11/10/a.darshan.gz", "logs/11/10/a.darshan"),
        *("logs/11/c.darshan", "logs/12/d.darshan", "logs/12/d.darshan_partial"),
        *("logs/README", "logs/.hidden.darshan", "logs/.old/e.darshan", "other/f.darshan"),
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path


def names(*arguments: str) -> list[str]:
    """The names of logs, and the lines of errors."""
    return [
        each.name if isinstance(each, Source) else str(each) for each in find_sources(arguments)
    ]


BELOW_LOGS = [
    "logs/11/10/a.darshan",
    "logs/11/10/a.darshan.gz",
    "logs/11/2/b.darshan",
    "logs/11/c.darshan",
    "logs/12/d.darshan",
]


@pytest.mark.usefixtures("folder")
def test_a_folder_stands_for_the_visible_logs_in_it_and_below_by_name() -> None:
    assert names("logs") == BELOW_LOGS
    assert names("other", "logs/12", "logs/README") == [
        *("other/f.darshan", "logs/12/d.darshan", "logs/README")
    ]


@pytest.mark.parametrize(
    "content", [[], ["notes.txt"], [".a.darshan", ".old/b.darshan"], ["deep/er/x"]]
)
def test_a_folder_without_logs_is_an_error_of_one_line(tmp_path: Path, content: list[str]) -> None:
    for name in content:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    [said] = names(str(tmp_path))
    assert said == f"{tmp_path}: this folder has no Darshan logs (*.darshan, *.darshan.gz)"
    with pytest.raises(InputError):
        list(logs_below(str(tmp_path)))


def test_loops_of_links_end_and_linked_folders_count_once(folder: Path) -> None:
    (folder / "logs/12/up").symlink_to(folder / "logs")
    (folder / "logs/12/up2").symlink_to("..")
    (folder / "logs/12/self").symlink_to("self")
    (folder / "logs/12/gone").symlink_to("nowhere")
    (folder / "logs/z-other").symlink_to(folder / "other")
    (folder / "logs/z-same").symlink_to(folder / "other")
    assert names("logs") == [*BELOW_LOGS, "logs/z-other/f.darshan"]
    assert names("logs/**/*.darshan") == [name for name in BELOW_LOGS if name.endswith("n")]


def test_a_link_to_a_log_is_a_log_of_its_own(folder: Path) -> None:
    (folder / "other/again.darshan").symlink_to("f.darshan")
    assert names("other") == ["other/again.darshan", "other/f.darshan"]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("logs/11/**/*.darshan", [*BELOW_LOGS[:1], *BELOW_LOGS[2:4]]),
        ("logs/1?/[a-c].darshan", ["logs/11/c.darshan"]),
        ("*/[cd].darshan", []),
        ("logs/*/d*", ["logs/12/d.darshan", "logs/12/d.darshan_partial"]),
        # Folders that match stand for all logs below them, each of which counts once.
        ("logs/1*", BELOW_LOGS),
        ("logs/**", BELOW_LOGS),
        ("./logs/**/*", [*BELOW_LOGS, "logs/README", "logs/12/d.darshan_partial"]),
        ("**/**", [f"./{name}" for name in [*BELOW_LOGS, "other/f.darshan"]]),
        ("logs/.*.darshan", ["logs/.hidden.darshan"]),
        ("../{here}/other/*", ["../{here}/other/f.darshan"]),
        ("{root}/other/*", ["{root}/other/f.darshan"]),
    ],
)
def test_a_pattern_stands_for_what_the_shell_would_match(
    folder: Path, pattern: str, expected: list[str]
) -> None:
    def filled(text: str) -> str:
        return text.format(root=folder, here=folder.name)

    found = names(filled(pattern))
    if expected:
        assert sorted(found) == sorted(map(filled, expected))
    else:
        assert found == [
            f"{pattern}: there is no such file, and no log matches this pattern",
        ]


@pytest.mark.usefixtures("folder")
def test_a_file_whose_name_looks_like_a_pattern_is_that_file() -> None:
    Path("logs/[a].darshan").touch()
    Path("logs/a.darshan").touch()
    assert names("logs/[a].darshan") == ["logs/[a].darshan"]
    # Also a link to nowhere: its own error tells more than "no log matches".
    Path("logs/*").symlink_to("nowhere")
    assert names("logs/*") == ["logs/*"]


@pytest.mark.parametrize("pattern", ["a**b", "**b/*", "[", "[!", "*" * 5000, "*/" * 3000])
def test_a_strange_pattern_is_an_error_of_one_line(
    pattern: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    [said] = names(pattern)
    assert said.startswith(pattern)
    assert "\n" not in said


def test_a_folder_that_cannot_be_read_is_named_and_the_others_are_read(folder: Path) -> None:
    # Root may read every folder, but no name may have more than 255 bytes.
    found = list(find_sources(["logs/12", "x" * 300, str(folder / "logs/gone"), "other"]))
    assert [str(getattr(each, "name", each)) for each in found] == [
        *("logs/12/d.darshan", "x" * 300, f"{folder}/logs/gone", "other/f.darshan")
    ]
    with pytest.raises(InputError, match="File name too long"):
        read_source(found[1])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every folder")
def test_a_closed_folder_is_an_error_and_its_neighbours_are_read(folder: Path) -> None:
    (folder / "logs/11").chmod(0)
    assert names("logs") == ["logs/11: Permission denied", "logs/12/d.darshan"]
    (folder / "logs/11").chmod(0o755)


def test_names_are_what_the_file_system_has(tmp_path: Path) -> None:
    strange = ["-a.darshan", "a\nb.darshan", "c\udcff.darshan", "é.darshan", " .darshan"]
    for name in strange:
        (tmp_path / name).touch()
    assert {Path(name).name for name in names(str(tmp_path))} == set(strange)


# gzip


def packed(path: Path, content: bytes) -> Source:
    path.write_bytes(content)
    return Source(str(path))


def same(source: Source) -> bool:
    found, expected = read_source(source), read_log(LOG)
    return (
        found.job == expected.job
        and found.names == expected.names
        and {
            name: (part.words == expected.records[name].words).all()
            for name, part in found.records.items()
        }
        == dict.fromkeys(expected.records, True)
    )


@pytest.mark.parametrize("name", ["a.darshan.gz", "a.darshan", "a"])
def test_a_log_that_gzip_compressed_is_read_whatever_its_name_is(tmp_path: Path, name: str) -> None:
    assert same(packed(tmp_path / name, gzip.compress(CONTENT)))
    assert same(packed(tmp_path / f"{name}.gz", CONTENT))
    # `cat` of two gzip files is one too, and tapes pad with zeros.
    assert same(
        packed(tmp_path / name, gzip.compress(CONTENT[:999]) + gzip.compress(CONTENT[999:]))
    )
    assert same(packed(tmp_path / name, gzip.compress(CONTENT) + bytes(512)))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (gzip.compress(CONTENT)[:-1], "gzip cannot inflate it: Compressed file ended"),
        (gzip.compress(CONTENT)[:-8] + bytes(8), "gzip cannot inflate it: CRC check failed"),
        (gzip.compress(CONTENT)[:2000] + bytes(100), "gzip cannot inflate it: "),
        (gzip.compress(CONTENT) + b"more", "gzip cannot inflate it: Not a gzipped file"),
        (b"\x1f\x8b", "gzip cannot inflate it: "),
        (gzip.compress(b"hello"), "not a Darshan log"),
        (gzip.compress(b""), "not a Darshan log"),
        (gzip.compress(gzip.compress(CONTENT)), "not a Darshan log"),
        (gzip.compress(CONTENT[:-100]), "the log is truncated"),
        (gzip.compress(CONTENT + b"more"), "4 bytes follow the last module"),
    ],
    # The content has the time of the test's start in it.
    ids=itertools.count(),
)
def test_damaged_gzip_is_an_error_of_one_line(tmp_path: Path, content: bytes, message: str) -> None:
    source = packed(tmp_path / "a.darshan.gz", content)
    with pytest.raises(InputError) as raised:
        read_source(source)
    assert str(raised.value).startswith(f"{source.name}: {message}")
    assert "\n" not in str(raised.value)


@pytest.mark.slow
def test_a_gzip_bomb_is_not_inflated_into_memory(tmp_path: Path) -> None:
    zeros = packed(tmp_path / "zeros.gz", gzip.compress(bytes(64 << 20)))
    log = packed(tmp_path / "log.gz", gzip.compress(CONTENT + bytes(64 << 20)))
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="not a Darshan log"):
            read_log(zeros.name)
        with pytest.raises(DamagedLogError, match="the log has more than 2 MiB; inflate it"):
            read_log(log.name, max_bytes=2 << 20)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


# Standard input


class Input(io.TextIOWrapper):
    """Standard input with some bytes, or from a terminal."""

    def __init__(self, content: bytes, *, terminal: bool = False) -> None:
        super().__init__(io.BytesIO(content))
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


@pytest.mark.parametrize("content", [CONTENT, gzip.compress(CONTENT)], ids=["plain", "gzip"])
def test_a_log_on_standard_input_is_read(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", Input(content))
    source = source_of("-")
    assert source.name == "standard input"
    assert same(source)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "there is no log; send one"),
        (Input(CONTENT, terminal=True), "there is no log; send one"),
        (Input(b""), "there is no log; send one, and give - only once"),
        (Input(b"hello\n" * 9999), "not a Darshan log"),
        (Input(CONTENT[:100]), "the log is truncated"),
    ],
)
def test_standard_input_without_a_log_is_an_error(
    monkeypatch: pytest.MonkeyPatch, given: Input | None, message: str
) -> None:
    monkeypatch.setattr(sys, "stdin", given)
    [error] = find_sources(["-"])
    assert isinstance(error, IoncastError)
    assert str(error).startswith(f"standard input: {message}")


def test_standard_input_has_one_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Input(CONTENT))
    first, second = find_sources(["-", "-"])
    assert isinstance(first, Source)
    assert str(second) == "standard input: there is no log; send one, and give - only once"


def test_a_pipe_that_never_ends_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    class Endless(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def readinto(self, buffer: bytearray) -> int:
            buffer[:] = b"y" * len(buffer)
            return len(buffer)

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(Endless())))
    [error] = find_sources(["-"])
    assert "not a Darshan log" in str(error)


def test_a_named_pipe_is_rejected_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.darshan")
    [source] = find_sources([str(tmp_path)])
    assert isinstance(source, Source)
    with pytest.raises(InputError, match="a pipe, not a file"):
        read_source(source)
