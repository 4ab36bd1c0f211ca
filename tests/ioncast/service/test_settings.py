"""Settings come from a file, the environment and flags, and are checked in one place."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from ioncast.cli import cli
from ioncast.insights.checks.values import Thresholds
from ioncast.service.settings import Settings, read_settings
from ioncast_base.errors import InputError


def write(folder: Path, text: str) -> Path:
    path = folder / "service.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_everything_has_a_value_that_works() -> None:
    settings = read_settings(environment={})
    assert settings == Settings()
    assert settings.bind == ("127.0.0.1:8420",)


def test_flags_win_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    file = write(tmp_path, "workers = 2\nthreads = 2\nuploads_at_once = 2\n")
    environment = {"IONCAST_WORKERS": "3", "IONCAST_THREADS": "3"}
    settings = read_settings(file, {"workers": "4", "state": None}, environment)
    assert (settings.workers, settings.threads, settings.uploads_at_once) == (4, 3, 2)


def test_the_database_is_named_as_for_all_commands() -> None:
    assert read_settings(environment={"IONCAST_DB": "a.sqlite"}).database == "a.sqlite"


def test_several_values_of_a_variable_have_commas() -> None:
    environment = {"IONCAST_BIND": "unix:/run/ioncast.sock, [::1]:80"}
    assert read_settings(environment=environment).bind == ("unix:/run/ioncast.sock", "[::1]:80")


def test_an_empty_variable_is_not_set() -> None:
    assert read_settings(environment={"IONCAST_WORKERS": ""}).workers == Settings().workers


def test_a_system_may_have_rules_of_its_own(tmp_path: Path) -> None:
    text = (
        'default_io_nodes = 1\n[systems."big one"]\ndefault_io_nodes = 0\ntolerance = 0.2\n'
        "min_confidence = 0\n"
    )
    settings = read_settings(write(tmp_path, text), environment={})
    own, other = settings.rules_of("big one"), settings.rules_of("another")
    assert (own.default, other.default) == (0, 1)
    assert (own.tolerance, other.tolerance) == (0.2, 0.05)
    assert (own.min_confidence, other.min_confidence) == (0, 0.5)


def test_the_keeper_reads_what_a_worker_writes(tmp_path: Path) -> None:
    settings = read_settings(write(tmp_path, "[systems.one]\ntolerance = 0.1\n"), environment={})
    assert Settings.model_validate_json(settings.model_dump_json()) == settings


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("workers = 2\nworker = 3", "service.toml:2: key `worker` is unknown"),
        ("\nreading = 'shut'", "service.toml:2: key `reading`"),
        ("tolerance = 1.0", "service.toml:1: key `tolerance`: "),
        ("min_confidence = 1.0", "service.toml:1: key `min_confidence`: "),
        ("bind = ['nowhere']", "service.toml:1: key `bind`, entry 1: must be HOST:PORT or"),
        ("[systems.one]\ndefault_io_nodes = -1", "service.toml:2: key `systems.one.default_io_no"),
        (
            "[systems.tolerance]\ntolerence = 0.1",
            "service.toml:2: key `systems.tolerance.tolerence` is unknown; did you mean `tolerance",
        ),
        (
            "kept_days = 0",
            'service.toml:1: key `kept_days`: must be at least 1; with keeping = "off" nobody can',
        ),
        ("[systems]\none = 4", "service.toml:2: key `systems.one`: must be a table, not 4"),
        ("bind = ['[::1]:80', '[::1]:80']", 'service.toml:1: key `bind`: "[::1]:80" is listed twi'),
    ],
)
def test_a_mistake_in_the_file_is_one_line_that_names_its_line(
    tmp_path: Path, text: str, line: str
) -> None:
    with pytest.raises(InputError) as raised:
        read_settings(write(tmp_path, text), environment={})
    assert line in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("IONCAST_WORKERS", "0"),
        ("IONCAST_WORKERS", "many"),
        ("IONCAST_READING", "perhaps"),
        ("IONCAST_BIND", "localhost"),
        ("IONCAST_BIND", "localhost:70000"),
        ("IONCAST_BIND", "unix:relative.sock"),
        ("IONCAST_TOLERANCE", "nan"),
        ("IONCAST_DEFAULT_IO_NODES", "10001"),
    ],
)
def test_a_mistake_in_a_variable_is_one_line_that_names_it(name: str, value: str) -> None:
    with pytest.raises(InputError) as raised:
        read_settings(environment={name: value})
    assert str(raised.value).startswith(f"{name}: '{value}'")


def test_a_mistake_in_a_flag_names_the_flag() -> None:
    with pytest.raises(InputError) as raised:
        read_settings(flags={"workers": "x"}, environment={})
    assert str(raised.value) == "--workers: 'x': must be a whole number"


def test_the_checks_have_thresholds_of_their_own_file(tmp_path: Path) -> None:
    file = tmp_path / "checks.toml"
    file.write_text("least_count = 5\n", encoding="utf-8")
    settings = read_settings(environment={"IONCAST_CHECKS": str(file)})
    assert settings.thresholds() == Thresholds(least_count=5)
    assert Settings().thresholds() == Thresholds()
    file.write_text("least_counts = 5\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"checks\.toml:1: key `least_counts` is unknown"):
        settings.thresholds()


def test_a_mistake_in_the_file_of_the_checks_is_found_before_the_service_starts(
    tmp_path: Path,
) -> None:
    file = tmp_path / "checks.toml"
    file.write_text("\nsmall_share = 2\n", encoding="utf-8")
    told = ["serve", "--state", str(tmp_path), "--db", str(tmp_path / "db.sqlite")]
    done = CliRunner().invoke(cli, told, env={"IONCAST_CHECKS": str(file)})
    assert isinstance(done.exception, InputError)
    assert str(done.exception).startswith(f"{file}:2: key `small_share`")
    assert not (tmp_path / "db.sqlite").exists()
