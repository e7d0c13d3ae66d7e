"""What the file of a host says, read and checked."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, model_validator

from mcp_batteries.hosts import HOST_FOLDER

__all__ = ["HostDefinition", "HostLocation", "load_host"]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class HostFolder(_Table):
    variable: str
    path: str


class HostLocation(_Table):
    words: str
    windows_words: str | None = None
    path: str | None = None
    windows: str | None = None
    macos: str | None = None
    linux: str | None = None
    windows_package: str | None = None
    folder: HostFolder | None = None
    workspace: str | None = None
    reads_jsonc: bool = False


class HostFormat(_Table):
    language: Literal["json", "toml", "yaml"]
    comments: bool = True
    trailing_commas: bool = True


class HostVariables(_Table):
    form: str | None = None
    optional_form: str | None = None
    replaced: str


class HostEntry(_Table):
    container: str
    start: Mapping[str, Any]
    http: Mapping[str, Any] | None = None
    sse: Mapping[str, Any] | None = None
    token: Mapping[str, Any] | None = None
    token_literal: bool = False


class HostRefusals(_Table):
    http: str | None = None
    sse: str | None = None


class HostPage(_Table):
    paragraphs: tuple[str, ...] = ()


class HostDefinition(_Table):
    """The contents of a file of `mcp_batteries.hosts`, which explains every key."""

    title: str
    shows: str
    restart: str | None = None
    unix_socket: bool = False
    asks_inputs: bool = False
    install_link: str | None = None
    add_command: str | None = None
    location: HostLocation
    format: HostFormat
    variables: HostVariables | None = None
    entry: HostEntry
    refusals: HostRefusals = HostRefusals()
    page: HostPage = HostPage()

    @model_validator(mode="after")
    def _require_entry_or_refusal(self) -> HostDefinition:
        """Require for each transport either an entry or the reason why the host takes none."""
        for transport in ("http", "sse"):
            if (getattr(self.entry, transport) is None) == (getattr(self.refusals, transport) is None):
                raise ValueError(f"needs either `entry.{transport}` or `refusals.{transport}`")
        return self


@cache
def load_host(name: str) -> HostDefinition:
    """Return what the file of the host `name` says.

    Raises:
        FileNotFoundError: there is no such host.
        pydantic.ValidationError: a key is missing, unknown or of another type.
    """
    return HostDefinition.model_validate(tomllib.loads((HOST_FOLDER / f"{name}.toml").read_text("utf-8")))
