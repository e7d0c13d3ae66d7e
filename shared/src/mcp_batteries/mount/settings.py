"""Which servers to mount, each with its own settings, and the settings of the process."""

from __future__ import annotations

import importlib
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from itertools import chain, pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import click
from pydantic import Field, PrivateAttr

from mcp_batteries import settings as common
from mcp_batteries.server.calling.call_params import CALL_TOOLS, RUN_SCRIPT
from mcp_batteries.settings import ONLY_OVER_HTTP, Dependencies, Positional, load, variable

__all__ = ["Settings"]

_SEPARATOR = "--"
# Each server may have its own value of these settings; the other common settings belong to the process.
_OWN = {"read_only", "tools", "exclude_tools", "confirm"}
_PROCESS = frozenset(chain.from_iterable(common.Settings.GROUPS.values())) - _OWN
# The process does these things once for all servers, and no server needs to know.
_PROCESS_ONLY = {
    "bus",
    "audit_file",
    "wire_log",
    "metrics",
    "telemetry",
    "auth_tokens",
    *common.Settings.GROUPS["Instead of serving"],
}


class _Common(common.Settings):
    COMMAND: ClassVar[str] = "mcp-batteries"


class Settings(common.Settings):
    """Several servers in one process, behind one entry or endpoint; each tool's name begins with its server's."""

    COMMAND: ClassVar[str] = "mcp-batteries"
    EXTRA: ClassVar[str | None] = "servers"
    OPTIONS_FIRST: ClassVar[bool] = True
    EXAMPLES: ClassVar[tuple[str, ...]] = (
        "fs /path/to/folder -- sqlite my.db -- weather",
        "--discover fs --read-only /path -- sqlite --write my.db -- github",
        "--transport http --port 8000 fs /path -- git /path/to/repository",
    )
    DOCUMENTED: ClassVar[tuple[str, ...]] = ("fs", "{folder}")

    servers: Annotated[tuple[str, ...], Positional()] = Field(
        (), description="A server with its arguments; then -- and the next server."
    )
    discover: bool = Field(
        False,
        description="Offer three tools, which find, describe and call all others, to clients that load every tool.",
    )

    _parts: list[common.Settings] = PrivateAttr(default_factory=list[common.Settings])

    def model_post_init(self, context: Any, /) -> None:
        inherited = _common_arguments(self)
        modules = _server_modules()
        for name, words in _segments(self.servers):
            kind = _settings_of(name, modules)
            _refuse_names(words, modules)
            self._refuse_http_options(name, words)
            settings = load(kind, [*inherited, *words])
            if any(isinstance(other, kind) for other in self._parts):
                raise click.UsageError(f"'{name}' is named twice. Give one {name} all that it shall serve.")
            self._check_process_settings(name, settings)
            _refuse_tools_of_process(name, settings)
            self._parts.append(settings)
        if self.discover and self.param_headers:
            raise click.UsageError(
                "--discover puts each call inside another, where no header shows it to a proxy: leave out "
                "--param-headers or --discover."
            )

    def _refuse_http_options(self, name: str, words: Sequence[str]) -> None:
        """Refuse what belongs to the process before the server's own settings say that it has no effect there."""
        if self.transport != "stdio":
            return
        for field in ONLY_OVER_HTTP:
            flag = "--" + field.replace("_", "-")
            if any(word.partition("=")[0] == flag for word in words):
                raise _for_all(name, field)

    def _check_process_settings(self, name: str, settings: common.Settings) -> None:
        """Check that a server was given nothing of its own that the process decides for all."""
        for field in sorted(_PROCESS):
            expected = getattr(self, field)
            if field in _PROCESS_ONLY:
                expected = type(settings).model_fields[field].default
            if getattr(settings, field) != expected:
                raise _for_all(name, field)

    def parts(self) -> Sequence[common.Settings]:
        return self, *self._parts

    def for_trial(self) -> Self:
        settings = super().for_trial()
        settings._parts = [part.for_trial() for part in self._parts]
        return settings

    @property
    def mounted(self) -> Sequence[common.Settings]:
        """The settings of each server."""
        return self._parts

    def arguments(self) -> list[str]:
        process = self.model_copy(update={"servers": ()})
        words: list[str] = []
        switched_on = [name for name in common.Settings.model_fields if getattr(self, name) is True]
        for settings in self._parts:
            defaults = {name: type(settings).model_fields[name].default for name in (*_PROCESS, *switched_on)}
            own_arguments = settings.model_copy(update=defaults).arguments()
            words += [_SEPARATOR, settings.COMMAND.removeprefix("mcp-"), *own_arguments]
        return [*common.Settings.arguments(process), *words[1:]]

    def secrets(self) -> dict[str, str]:
        secrets = super().secrets()
        for settings in self._parts:
            secrets |= settings.secrets()
        return secrets

    def depends_on(self) -> Dependencies | None:
        variables: list[str] = []
        for settings in self._parts:
            variables.extend(variable(type(settings), name) for name in type(settings).model_fields)
        places: list[str] = []
        files: list[str] = []
        for settings in self._parts:
            dependencies = settings.depends_on()
            if dependencies is None:
                return None
            variables.extend(dependencies.variables)
            places.extend(dependencies.places)
            files.extend(dependencies.files)
        return Dependencies(variables=variables, places=places, files=files)


def _segments(words: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield each server's name with its arguments."""
    segment: list[str] = []
    for word in [*words, _SEPARATOR]:
        if word != _SEPARATOR:
            segment.append(word)
        elif segment:
            yield segment[0].removeprefix("mcp-"), segment[1:]
            segment = []


def _refuse_names(words: Sequence[str], server_names: Collection[str]) -> None:
    """Refuse a server's name without `--` before it, which would otherwise be taken for a path."""
    for before, word in pairwise(["", *words]):
        # What follows an option may be its value.
        if word.removeprefix("mcp-") in server_names and not before.startswith("-") and not Path(word).exists():
            raise click.UsageError(
                f"'{word}' is a server: write {_SEPARATOR} before it. A path of that name is written .{os.sep}{word}."
            )


def _common_arguments(settings: Settings) -> list[str]:
    """Return the command line that passes the process's settings to a server."""
    fields = common.Settings.model_fields
    shared = {
        name: getattr(settings, name) for name in fields if name not in _PROCESS_ONLY | {"tools", "exclude_tools"}
    }
    return _Common(**shared).arguments()


def _settings_of(name: str, modules: Mapping[str, str]) -> type[common.Settings]:
    if name not in modules:
        available = ", ".join(sorted(modules)) or "none; install some, such as mcp-fs"
        raise click.UsageError(f"There is no server '{name}' here. There are: {available}.")
    package = modules[name].partition(".")[0]
    return importlib.import_module(f"{package}.settings").Settings


def _server_modules() -> dict[str, str]:
    """Return the modules that start the servers in rooms which are installed beside this package, by short names."""
    modules: dict[str, str] = {}
    for command in entry_points(group="console_scripts"):
        if command.module.endswith(".__main__") and _requires_batteries(command):
            modules[command.name.removeprefix("mcp-")] = command.module
    return modules


def _requires_batteries(command: EntryPoint) -> bool:
    requires = (command.dist.requires if command.dist else None) or []
    return any(line.startswith("mcp-batteries") for line in requires)


def _refuse_tools_of_process(name: str, settings: common.Settings) -> None:
    """Refuse what is said to one server of the tools that call those of all servers."""
    for tool in (CALL_TOOLS, RUN_SCRIPT):
        if tool in settings.tools:
            flag = f"--tools default,{tool}"
        elif tool in settings.exclude_tools:
            flag = f"--exclude-tools {tool}"
        else:
            continue
        raise click.UsageError(f"{tool} runs calls of all servers: give {flag} before the first one, not to '{name}'.")


def _for_all(name: str, field: str) -> click.UsageError:
    flag = "--" + field.replace("_", "-")
    return click.UsageError(f"{flag} is for all servers: give it before the first one, not to '{name}'.")
