"""The text of an entry, in the language of the host's file.

The generated pages (`tools.pages`) come from the same functions, so what a page shows is what `--print-config` prints.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from mcp_batteries.cli.host_entry.launch_command import find_launch_command, refuse_cached_program
from mcp_batteries.cli.host_entry.spelling import spell, spell_json
from mcp_batteries.cli.host_entry.variables import HIDDEN_SECRET, entry_variables, token_question, variable_value
from mcp_batteries.errors import Invalid, quote, well_formed
from mcp_batteries.executables import find_executable
from mcp_batteries.hosts.definition import HostDefinition, load_host
from mcp_batteries.settings import InstallQuestion, Settings

__all__ = ["Input", "describe_location", "make_entry", "make_start_entry", "make_url_entry"]


class Input(NamedTuple):
    """A value that VS Code asks its user for once and keeps in its secret storage."""

    id: str
    description: str
    password: bool = False


def describe_location(host: str, *, windows: bool = sys.platform == "win32") -> str:
    """Say where the entry for `host` goes, in words for a person."""
    location = load_host(host).location
    if windows and location.windows_words:
        return location.windows_words
    return location.words


def make_entry(host: str, settings: Settings, *, absolute: bool = False) -> str:
    """Return the configuration text for `host` that starts, or connects to, a server with these settings.

    Args:
        absolute: name the program by its absolute path, because desktop programs often do not have it on their path.

    Raises:
        Invalid: the host cannot connect as the settings say, or would misread a name in them.
    """
    url = settings.server_url
    if url is None:
        words = _start_words(host, settings, absolute=absolute)
        return make_start_entry(host, settings.entry_name, words, entry_variables(settings))
    if settings.socket_url is not None and not load_host(host).unix_socket:
        raise Invalid(f"{host} connects to no Unix socket: leave out --socket.")
    token = token_question(host, settings)
    return make_url_entry(host, settings.entry_name, url, sse=settings.transport == "sse", token=token)


def _start_words(host: str, settings: Settings, *, absolute: bool) -> list[str]:
    """Return the program and the arguments that start a server with these settings.

    Raises:
        Invalid: the program does not stay where it is, or the host would misread a name.
    """
    program, *arguments = find_launch_command(settings.COMMAND, settings.FILE, settings.EXTRA)
    refuse_cached_program(program, settings)
    if absolute and not os.path.isabs(program):
        program = find_executable(program) or program
    words = [program, *arguments, *settings.serving.arguments()]
    for word in words:
        _refuse_misread(host, word)
    return words


def _refuse_misread(host: str, word: str) -> None:
    """Refuse names with which the host would start the server on the wrong folder or file."""
    fix = "Name it by a link with a plain name."
    if well_formed(word) != word:
        raise Invalid(f"{quote(word)} is not UTF-8, and hosts' files can hold nothing else.", fix)
    variables = load_host(host).variables
    if variables is not None:
        match = re.search(variables.replaced, word)
        if match is not None:
            raise Invalid(f"{host} takes `{match[0]}` in {quote(word)} for a variable and puts its value there.", fix)


def make_start_entry(
    host: str, name: str, words: Sequence[str], variables: Sequence[InstallQuestion] = (), inputs: Sequence[Input] = ()
) -> str:
    """Return the entry for `host` that starts a server with `words`.

    Args:
        variables: the server's environment; where possible, the host supplies a secret's value.
        inputs: other values that VS Code asks for; `words` contain `${input:ID}` in their place.
    """
    definition = load_host(host)
    program, *arguments = words
    named_variables = [question for question in variables if question.variable]
    environment = {str(question.variable): variable_value(definition, question) for question in named_variables}
    values = {
        "$name": name,
        "$program": program,
        "$arguments": arguments,
        "$command": list(words),
        "$environment": environment,
        "$variables": list(environment),
    }
    entry = _fill_in(definition.entry.start, values)
    if not definition.asks_inputs:
        return _write_entry(definition, name, entry)
    secrets = [Input(str(question.variable), question.title, question.secret) for question in named_variables]
    return _write_entry(definition, name, entry, [*inputs, *secrets])


def make_url_entry(host: str, name: str, url: str, *, sse: bool = False, token: InstallQuestion | None = None) -> str:
    """Return the entry for `host` that connects to a server at `url`.

    Args:
        token: the variable that holds a token, if the server asks for one.

    Raises:
        Invalid: the host takes no URL.
    """
    definition = load_host(host)
    template = definition.entry.http
    refusal = definition.refusals.http
    if sse:
        template = definition.entry.sse
        refusal = definition.refusals.sse
    if template is None:
        raise Invalid(str(refusal))
    entry = _fill_in(template, {"$name": name, "$url": url})
    if token is None or definition.entry.token is None:
        return _write_entry(definition, name, entry)
    entry |= _fill_in_token(definition, definition.entry.token, token)
    if not definition.asks_inputs:
        return _write_entry(definition, name, entry)
    return _write_entry(definition, name, entry, [Input(str(token.variable), token.title, password=True)])


def _fill_in(template: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entry that a template makes of values; an environment without variables is left out."""
    filled: dict[str, Any] = {}
    for key, item in template.items():
        if item in ("$environment", "$variables") and not values[item]:
            continue
        filled[key] = item
        if isinstance(item, str):
            filled[key] = values.get(item, item)
    return filled


def _fill_in_token(
    definition: HostDefinition, template: Mapping[str, Any], question: InstallQuestion
) -> dict[str, Any]:
    """Return the part of an entry with which the host sends a token."""
    value = variable_value(definition, question)
    if definition.entry.token_literal:
        value = HIDDEN_SECRET
    filled: dict[str, Any] = {}
    for key, item in template.items():
        if isinstance(item, Mapping):
            filled[key] = _fill_in_token(definition, cast("Mapping[str, Any]", item), question)
        else:
            filled[key] = str(item).replace("$token_variable", str(question.variable)).replace("$token", value)
    return filled


def _write_entry(definition: HostDefinition, name: str, entry: dict[str, Any], inputs: Sequence[Input] = ()) -> str:
    """Write an entry in the language of the host's file, in its container.

    Args:
        inputs: what the host asks its user for, beside the container.
    """
    container = definition.entry.container
    match definition.format.language:
        case "toml":
            return "\n".join([f"[{container}.{name}]", *(f"{key} = {spell(value)}" for key, value in entry.items())])
        case "yaml":
            lines = [f"    {key}: {spell(value)}" for key, value in entry.items()]
            return "\n".join([f"{container}:", f"  {name}:", *lines])
        case "json":
            document: dict[str, Any] = {}
            if inputs:
                document["inputs"] = [_describe_input(item) for item in inputs]
            document[container] = {name: entry}
            return spell_json(document)


def _describe_input(item: Input) -> dict[str, Any]:
    description: dict[str, Any] = {"type": "promptString", "id": item.id, "description": item.description}
    if item.password:
        description["password"] = True
    return description
