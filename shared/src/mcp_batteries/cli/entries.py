"""Which entry of a host's file is a server's, how it is written anew and taken out, and whether that was done right."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast
from urllib.parse import urlsplit

from mcp_batteries.cli.formats import ConfigFormat, Malformed
from mcp_batteries.executables import quote_command
from mcp_batteries.settings import Settings, mask_passwords

__all__ = [
    "Entry",
    "describe_command",
    "is_started_by",
    "is_valid",
    "merge",
    "put_entry",
    "server_of",
    "without_entry",
    "words_of",
]

_COMMANDS = ("command", "cmd")
_URLS = ("url", "httpUrl", "serverUrl", "uri", "baseUrl")
_ENVIRONMENTS = ("env", "environment")
_HEADERS = "headers"
# With these a host shows who it is, in the ways of Codex, Claude Code, Cursor and Gemini CLI.
_CREDENTIALS = (_HEADERS, "http_headers", "env_http_headers", "bearer_token_env_var", "headersHelper", "auth", "oauth")
_VARIABLE_NAMES = ("env_vars", "env_keys")
# An entry begins with a value for these, which is a person's to change.
_PREFERENCES = ("enabled", "timeout", "tools", "bearer_token_env_var")
# What stands in entries for a secret that a person fills in.
_BLANKS = ("***", "Bearer ***")


@dataclass(frozen=True)
class Entry:
    """An entry as it belongs into a file.

    Attributes:
        container: the key that holds all servers.
        value: the keys and values of the entry.
        inputs: the values that VS Code asks for.
    """

    container: str
    name: str
    value: dict[str, Any]
    inputs: Sequence[dict[str, Any]] = ()

    @classmethod
    def parse(cls, config_format: ConfigFormat, text: str) -> Entry:
        """Return the entry in a text that `--print-config` prints."""
        document = config_format.read(text)
        inputs = document.pop("inputs", [])
        ((container, servers),) = document.items()
        ((name, value),) = servers.items()
        return cls(container, name, value, inputs)


def server_of(value: object) -> str:
    """Return what an entry starts or connects to, without a password; empty if it is no entry of a server."""
    if not isinstance(value, dict):
        return ""
    entry = cast("dict[str, Any]", value)
    words = words_of(entry)
    return mask_passwords(words[0] if words else _url_of(entry) or "")


def describe_command(value: Mapping[str, Any]) -> str:
    """Return the command that an entry runs, or the URL it connects to, without passwords."""
    words = words_of(value)
    return mask_passwords(quote_command(words) if words else str(_url_of(value) or ""))


def _url_of(value: Mapping[str, Any]) -> str | None:
    return next((url for key in _URLS if isinstance(url := value.get(key), str)), None)


def words_of(value: Mapping[str, Any]) -> list[str]:
    """Return the command that an entry runs, in words; none if it connects to a URL."""
    words: list[Any] = []
    for key in (*_COMMANDS, "args"):
        arguments: Any = value.get(key, [])
        words += arguments if isinstance(arguments, list) else [arguments]
    return [str(word) for word in words]


def is_started_by(value: Any, settings: Settings, url: str | None, previous: Mapping[str, Any]) -> bool:
    """Return whether an entry starts the server of these settings, in whichever way it was installed.

    Args:
        url: the address of the server, if hosts connect to it.
        previous: the entry of this server that was written last.
    """
    if not isinstance(value, dict):
        return False
    entry = cast("dict[str, Any]", value)
    address = _url_of(entry)
    if address is not None and (address == url or _is_same_machine(address, _url_of(previous))):
        return True
    words = words_of(entry)
    return bool(words) and _starts_server(words[0], words[1:], settings)


def _starts_server(program: str, arguments: Sequence[str], settings: Settings) -> bool:
    """Return whether a command starts the server of these settings, by itself or by uv or Python."""
    program_name, _ = os.path.splitext(re.split(r"[\\/]", program)[-1])
    if program_name == settings.COMMAND:
        return True
    if program_name not in ("uv", "uvx") and not program_name.startswith("python"):
        return False
    if settings.COMMAND in arguments or settings.FILE in arguments:
        return True
    module = settings.COMMAND.replace("-", "_")
    return ("-m", module) in pairwise(arguments)


def _is_same_machine(address: str, other: str | None) -> bool:
    if other is None:
        return False
    try:
        return urlsplit(address).hostname == urlsplit(other).hostname
    except ValueError:
        return False


def merge(new: Mapping[str, Any], current: Mapping[str, Any], previous: Mapping[str, Any]) -> dict[str, Any]:
    """Return the new entry with what a person has added to the current one.

    Args:
        previous: the entry that was written last: what is still as it says is ours, and goes if the new one has it not.
    """
    merged: dict[str, Any] = {}
    is_same_url = _url_of(new) == _url_of(current)
    for key, value in current.items():
        if key in _CREDENTIALS and not is_same_url:
            # A token is for one server and goes to no other.
            continue
        variables = _merge_variables(key, new, value, previous)
        if variables is not None:
            if variables or key in new:
                merged[key] = variables
        elif key in new and (key not in _PREFERENCES or previous.get(key) == value):
            merged[key] = new[key]
        elif key not in previous or previous[key] != value:
            merged[key] = value
    for key, value in new.items():
        merged.setdefault(key, value)
    return merged


def _merge_variables(
    key: str, new: Mapping[str, Any], value: Any, previous: Mapping[str, Any]
) -> dict[str, Any] | list[Any] | None:
    """Return the variables, headers or names of variables of both entries; None if `key` is none of these."""
    if key in (*_ENVIRONMENTS, _HEADERS) and isinstance(value, dict):
        return _merge_environment(new.get(key, {}), cast("dict[str, Any]", value), previous.get(key, {}))
    if key in _VARIABLE_NAMES and isinstance(value, list):
        return _merge_names(new.get(key, []), cast("list[Any]", value), previous.get(key, []))
    return None


def _merge_names(new: Sequence[Any], current: Sequence[Any], previous: Sequence[Any]) -> list[Any]:
    """Return the variables that a host hands on: those of the new entry, and those that a person has added."""
    return [*new, *(name for name in current if name not in new and name not in previous)]


def _merge_environment(
    new: Mapping[str, Any], current: Mapping[str, Any], previous: Mapping[str, Any]
) -> dict[str, Any]:
    """Return variables: a password or token that a person has filled in stays, unless it is for another address."""
    merged: dict[str, Any] = {}
    for name, value in current.items():
        is_ours = previous.get(name) == value or "***" in str(value)
        if name not in new:
            if not is_ours:
                merged[name] = value
            continue
        blank = str(new[name])
        is_for_another = "***" in blank and blank not in _BLANKS and mask_passwords(str(value)) != blank
        merged[name] = new[name] if is_ours or is_for_another else value
    for name, value in new.items():
        merged.setdefault(name, value)
    return merged


def put_entry(config_format: ConfigFormat, text: str, entry: Entry, stale_inputs: Sequence[str] = ()) -> str:
    """Return the text with the entry in it.

    Raises:
        Malformed: the text holds something else where the entry belongs.
    """
    text = _without_inputs(config_format, text, entry, stale_inputs)
    for own_input in entry.inputs:
        inputs = config_format.read_leniently(text).get("inputs", [])
        if own_input["id"] not in _ids(inputs):
            text = config_format.put(text, ["inputs", len(inputs)], own_input)
    return config_format.put(text, [entry.container, entry.name], entry.value)


def without_entry(
    config_format: ConfigFormat, text: str, entry: Entry, inputs: Sequence[str], made_keys: Sequence[str]
) -> str:
    """Return the text without the entry.

    Args:
        inputs: the ids of the values that VS Code asks for because of it.
        made_keys: what goes with the last entry in it.

    Raises:
        Malformed: the text cannot be edited.
    """
    text = config_format.remove(text, [entry.container, entry.name])
    text = _without_inputs(config_format, text, entry, inputs)
    for key in made_keys:
        document = config_format.read_leniently(text)
        if key in document and not document[key] and not config_format.comments(text, [key]):
            text = config_format.remove(text, [key])
    return text


def _without_inputs(config_format: ConfigFormat, text: str, entry: Entry, ids: Sequence[str]) -> str:
    """Return the text without some values that VS Code asks for, as far as no other server uses them."""
    for name in ids:
        document = config_format.read_leniently(text)
        others: dict[str, Any] = {**document, "inputs": []}
        if isinstance(others.get(entry.container), dict):
            servers = cast("dict[str, Any]", others[entry.container])
            others[entry.container] = {key: item for key, item in servers.items() if key != entry.name}
        present_ids = _ids(document.get("inputs", []))
        if name in present_ids and f"${{input:{name}}}" not in json.dumps(others, default=repr):
            text = config_format.remove(text, ["inputs", present_ids.index(name)])
    return text


def _ids(inputs: Any) -> list[Any]:
    if not isinstance(inputs, list):
        raise Malformed("it has something else under `inputs`")
    items = cast("list[Any]", inputs)
    return [cast("dict[str, Any]", item).get("id") if isinstance(item, dict) else None for item in items]


def is_valid(
    config_format: ConfigFormat, before: str, after: str, entry: Entry, *, inputs: Sequence[str], installed: bool
) -> bool:
    """Return whether `after` is `before` with the entry as it should be, and nothing else has changed.

    Args:
        inputs: the ids of the values that VS Code asks for because of the entry, before or after.
        installed: whether the entry belongs there, or is to be gone.
    """
    try:
        document = config_format.read_leniently(after)
        if not config_format.is_readable(after) and (installed or config_format.is_readable(before)):
            return False
        servers: Any = document.get(entry.container) or {}
        if installed:
            if json.dumps(servers.get(entry.name), sort_keys=True) != json.dumps(entry.value, sort_keys=True):
                return False
        elif entry.name in servers:
            return False
        own = _own_comments(config_format, before, entry, inputs)
        lost = config_format.comments(before)
        for comment in config_format.comments(after):
            lost.remove(comment)
        for comment in lost:
            own.remove(comment)
        earlier = config_format.read_leniently(before)
        return _foreign(earlier, entry, inputs) == _foreign(document, entry, inputs)
    except ValueError:
        # Malformed, or a comment is new or gone.
        return False


def _own_comments(config_format: ConfigFormat, text: str, entry: Entry, inputs: Sequence[str]) -> list[str]:
    """Return the comments inside the entry and the values that VS Code asks for because of it."""
    document = config_format.read_leniently(text)
    comments: list[str] = []
    if entry.name in (document.get(entry.container) or {}):
        comments += config_format.comments(text, [entry.container, entry.name])
    for position, name in enumerate(_ids(document.get("inputs", []))):
        if name in inputs:
            comments += config_format.comments(text, ["inputs", position])
    return comments


def _foreign(document: Mapping[str, Any], entry: Entry, inputs: Sequence[str]) -> str:
    """Return everything in a file that is not ours, in its order, as a text to compare."""
    others = dict(document)
    servers = dict(others.pop(entry.container, None) or {})
    servers.pop(entry.name, None)
    foreign_inputs: Any = others.pop("inputs", None) or []
    if isinstance(foreign_inputs, list):
        pairs = zip(cast("list[Any]", foreign_inputs), _ids(foreign_inputs), strict=True)
        foreign_inputs = [item for item, name in pairs if name not in inputs]
    return json.dumps([others, servers, foreign_inputs], default=repr)
