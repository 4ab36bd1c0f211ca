"""The pages of the reference that are made from the code: commands, settings, HTTP interface."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

import click
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from ioncast.cli import cli
from ioncast.service import settings as service_settings
from ioncast.service.web.app import create_app
from ioncast.service.web.http.openapi import document
from scheduler_plugin.settings import SiteSettings

# Columns that fit beside the menus.
HELP_WIDTH = 100
HTTP_HEAD = """\
# HTTP interface

All operations of the service, as `/openapi.json` describes them. The page `/docs` of a running
service has examples to paste, and [The service](../docs/service.md) explains the operations. Errors
are problem documents (RFC 9457).
"""
SETTINGS_HEAD = """\
# Settings

Other documents have the settings of the [plugin](../docs/slurm.md#settings-of-the-plugin) and the
[checks](../docs/checks.md#settings), the [platform file](../docs/platform.md) and the
[campaign file](../docs/campaigns.md#the-campaign-file).
"""


def reference_pages() -> dict[str, str]:
    """The pages in Markdown, by their paths."""
    return {
        "reference/commands.md": "\n".join(_commands_page()),
        "reference/settings.md": "\n".join(_settings_page()),
        "reference/http.md": "\n".join(_http_page()),
    }


def _commands_page() -> Iterator[str]:
    yield "# Commands\n\nThe help of each command, as `--help` prints it.\n"
    yield from _help_texts(cli, click.Context(cli, info_name="ioncast"))


def _help_texts(command: click.Command, context: click.Context) -> Iterator[str]:
    """The help of a command and of those below it."""
    context.terminal_width = HELP_WIDTH
    yield f"## {context.command_path}\n\n```text\n{command.get_help(context)}\n```\n"
    for name, below in _below(command, context):
        yield from _help_texts(below, click.Context(below, context, info_name=name))


def _settings_page() -> Iterator[str]:
    yield SETTINGS_HEAD
    yield "## Environment variables of commands\n"
    yield "| variable | option | commands |\n| --- | --- | --- |"
    found: dict[tuple[str, str], list[str]] = {}
    for variable, option, name in _variables(cli, "ioncast"):
        found.setdefault((variable, option), []).append(f"`{name}`")
    for (variable, option), names in sorted(found.items()):
        yield f"| `{variable}` | `{option}` | {', '.join(names)} |"
    yield "\n## ioncast serve\n"
    yield "Environment variables: `IONCAST_DB` for `database`, else such as `IONCAST_WORKERS`.\n"
    yield from _settings_table(service_settings.Settings)
    yield "\n### The table [systems.NAME]\n"
    yield from _settings_table(service_settings.SystemSettings)
    yield "\n## ioncast slurm watch, ioncast slurm arbitrate\n"
    yield from _settings_table(SiteSettings)
    for name, field in SiteSettings.model_fields.items():
        for model in (field.annotation, *getattr(field.annotation, "__args__", ())):
            if isinstance(model, type) and issubclass(model, BaseModel):
                yield f"\n### The table [{name}]\n"
                yield from _settings_table(model)


def _variables(command: click.Command, name: str) -> Iterator[tuple[str, str, str]]:
    """Variable, option and command, of a command and of those below it."""
    for parameter in command.params:
        if isinstance(parameter.envvar, str):
            yield parameter.envvar, parameter.opts[0], name
    for each, below in _below(command, click.Context(command)):
        yield from _variables(below, f"{name} {each}")


def _below(command: click.Command, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    """The commands of a group, by their names."""
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            if found is not None and not found.hidden:
                yield name, found


def _settings_table(model: type[BaseModel]) -> Iterator[str]:
    yield "| setting | default | meaning |\n| --- | --- | --- |"
    for name, field in model.model_fields.items():
        default = field.default
        if field.default_factory is service_settings.default_state:
            text = "`~/.local/state/ioncast`"
        elif default is PydanticUndefined:
            text = "required" if field.is_required() else ""
        elif default is None or isinstance(default, BaseModel) or default in ("", ()):
            text = ""
        else:
            text = f"`{', '.join(default) if isinstance(default, tuple) else default}`"
        yield f"| `{name}` | {text} | {_cell(field.description or '')} |"


def _http_page() -> Iterator[str]:
    yield HTTP_HEAD
    with tempfile.TemporaryDirectory() as folder:
        app = create_app(service_settings.Settings(database=f"{folder}/x.sqlite", state=folder))
        described = document(app)
    operations = [
        (f"{method.upper()} {path}", operation)
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
    ]
    meanings = {
        status: answer["description"]
        for _, operation in operations
        for status, answer in operation["responses"].items()
    }
    yield "| answer | meaning |\n| --- | --- |"
    yield from (f"| {status} | {_cell(text)} |" for status, text in sorted(meanings.items()))
    for name, operation in operations:
        yield f"\n## {name}\n\n{operation['description']}\n"
        yield from _parameters(operation, described["components"]["schemas"])
        yield f"\nAnswers: {', '.join(operation['responses'])}."


def _parameters(operation: Mapping[str, Any], schemas: Mapping[str, Any]) -> Iterator[str]:
    """The table of an operation's parameters, and of the fields of its body."""
    rows = [
        (each["name"], each["in"], each.get("required", False), each.get("description", ""))
        for each in operation["parameters"]
    ]
    for content in operation.get("requestBody", {}).get("content", {}).values():
        schema = content.get("schema", {})
        schema = schemas.get(schema.get("$ref", "").rpartition("/")[2], schema)
        needed = schema.get("required", ())
        rows += [
            (name, "body", name in needed, field.get("description", ""))
            for name, field in schema.get("properties", {}).items()
        ]
    if rows:
        yield "| parameter | in | required | meaning |\n| --- | --- | --- | --- |"
        for name, place, required, meaning in dict.fromkeys(rows):
            yield f"| `{name}` | {place} | {'yes' if required else 'no'} | {_cell(meaning)} |"


def _cell(text: str) -> str:
    """A text that can stand in a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")
