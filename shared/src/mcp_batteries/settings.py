"""Every limit and switch, declared once: flags, environment, help, messages and documentation follow from it.

A server subclasses `Settings` with its own fields; each field's description is one sentence for people. A
flag beats the environment, the environment beats the default. An unknown flag, an unknown variable with the
server's prefix and a value out of range each stop the start with one line that says so.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from types import NoneType
from typing import Any, ClassVar, Literal, TypeVar, cast, get_args, get_origin

import click
from annotated_types import Ge, Le
from pydantic import BaseModel, ConfigDict, Field
from pydantic.fields import FieldInfo

__all__ = ["Positional", "Settings", "load", "variable"]

Transport = Literal["stdio", "http", "sse"]
LogLevel = Literal["debug", "info", "warning", "error"]
Host = Literal[
    "vscode", "claude-desktop", "claude-code", "cursor", "windsurf", "copilot-cli", "codex", "gemini-cli",
    "zed", "goose", "cherry-studio", "opencode",
]  # fmt: skip


class Positional:
    """Marks, inside `Annotated`, the field that takes the command line's plain arguments.

    Args:
        separator: between them in the environment; by default as in PATH.
    """

    def __init__(self, separator: str = os.pathsep) -> None:
        self.separator = separator


class Settings(BaseModel):
    """What every server can be told."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    COMMAND: ClassVar[str]
    """The command, the distribution and, in capitals with an underscore, the prefix of the variables."""

    SELECTOR_LOOP: ClassVar[bool] = False
    """Whether it needs an event loop on `select`, which is not the one Windows gives."""

    DOCUMENTED: ClassVar[tuple[str, ...]] = ("{folder}",)
    """The command line that opens everything the documents describe; `{folder}` is an empty folder."""

    transport: Transport = Field("stdio", description="How clients reach the server; sse is for old clients only.")
    host: str = Field("127.0.0.1", description="Address to listen on, for http and sse.")
    port: int = Field(8000, ge=0, le=65535, description="Port to listen on, for http and sse; 0 takes a free one.")
    allow_remote: bool = Field(False, description="Allow listening on an address that other machines can reach.")
    allowed_host: tuple[str, ...] = Field(
        (),
        description="Host header to accept beside the loopback names, such as files.example.org; repeatable.",
    )
    allowed_origin: tuple[str, ...] = Field(
        (),
        description="Origin header to accept from browsers, such as https://app.example.org; repeatable.",
    )
    json_response: bool = Field(
        False, description="Answer HTTP calls with plain JSON: faster, but without progress and questions."
    )
    read_only: bool = Field(False, description="Offer no tool that changes anything.")
    confirm: bool = Field(False, description="Have the user asked before a tool replaces or removes anything.")
    log_level: LogLevel = Field("warning", description="What is written to standard error.")
    audit_file: str | None = Field(None, description="Append one JSON line per call to this file.")
    check: bool = Field(False, description="Try this very configuration with a real client, print a report, exit.")
    print_config: Host | None = Field(None, description="Print the entry for a host's configuration file, exit.")
    version: bool = Field(False, description="Print the version, exit.")

    @classmethod
    def documented(cls, folder: str) -> list[str]:
        """`DOCUMENTED` for an empty `folder`."""
        return [item.format(folder=folder) for item in cls.DOCUMENTED]

    def printout(self) -> str | None:
        """What to print instead of serving, where an option of the server's own asks for that."""
        return None

    def shown(self) -> list[str]:
        """`arguments` without secrets, for a person's eyes."""
        return self.arguments()

    def arguments(self) -> list[str]:
        """The command line that gives these settings again: what differs from the defaults."""
        flags: list[str] = []
        plain: list[str] = []
        for name, field in type(self).model_fields.items():
            value = getattr(self, name)
            flag = "--" + name.replace("_", "-")
            if value == field.default:
                continue
            if any(isinstance(item, Positional) for item in field.metadata):
                plain.extend(value)
            elif isinstance(value, tuple):
                flags.extend(part for item in cast("tuple[str, ...]", value) for part in (flag, item))
            else:
                flags.extend([flag] if value is True else [flag, str(value)])
        return [*flags, *plain]


S = TypeVar("S", bound=Settings)


def load(kind: type[S], arguments: Sequence[str]) -> S:
    """The settings from `arguments` and the environment.

    Raises:
        SystemExit: with 0 after `--help`; with 2 after one line on standard error about what cannot be used.
    """
    command = click.Command(
        kind.COMMAND,
        params=[_parameter(kind, name, field) for name, field in kind.model_fields.items()],
        help=kind.__doc__,
        epilog=f"Every option can be set as {variable(kind, 'NAME')}; lists are separated like PATH.",
        context_settings={"max_content_width": 110, "show_default": True},
    )
    try:
        _refuse_unknown_variables(kind)
        with command.make_context(kind.COMMAND, list(arguments)) as context:
            return kind(**context.params)
    except click.exceptions.Exit as done:
        raise SystemExit(done.exit_code) from None
    except click.ClickException as mistake:
        mistake.show()
        raise SystemExit(mistake.exit_code) from None


def variable(kind: type[Settings], name: str) -> str:
    """The environment variable that sets field `name`."""
    return f"{kind.COMMAND}_{name}".upper().replace("-", "_")


class _Words(click.types.StringParamType):
    def __init__(self, separator: str = os.pathsep) -> None:
        self._separator = separator

    def split_envvar_value(self, rv: str) -> list[str]:
        return [word for word in rv.split(self._separator) if word]


def _parameter(kind: type[Settings], name: str, field: FieldInfo) -> click.Parameter:
    annotation: Any = field.annotation
    alternatives = [item for item in get_args(annotation) if item is not NoneType]
    if NoneType in get_args(annotation) and len(alternatives) == 1:
        annotation = alternatives[0]
    common: dict[str, Any] = {"default": field.default, "envvar": variable(kind, name)}
    flag = "--" + name.replace("_", "-")
    if any(isinstance(item, Positional) for item in field.metadata):
        metavar = f"[{name.upper().removesuffix('S')}]..."
        words = _Words(next(item.separator for item in field.metadata if isinstance(item, Positional)))
        return click.Argument([name], nargs=-1, type=words, metavar=metavar, **common)
    common["help"] = field.description
    if annotation is bool:
        return click.Option([flag], is_flag=True, **common)
    if get_origin(annotation) is tuple:
        return click.Option([flag], multiple=True, type=_Words(), **common)
    if get_origin(annotation) is Literal:
        return click.Option([flag], type=click.Choice(get_args(annotation)), **common)
    if annotation is int:
        low = next((item.ge for item in field.metadata if isinstance(item, Ge)), None)
        high = next((item.le for item in field.metadata if isinstance(item, Le)), None)
        return click.Option([flag], type=click.IntRange(low, high), **common)  # pyright: ignore[reportArgumentType]
    return click.Option([flag], type=annotation, **common)


def _refuse_unknown_variables(kind: type[Settings]) -> None:
    known = {variable(kind, name) for name in kind.model_fields}
    for name in os.environ:
        if name.upper().startswith(variable(kind, "")) and name.upper() not in known:
            near = difflib.get_close_matches(name.upper(), known, n=1)
            raise click.UsageError(f"No such variable: {name}" + (f". Did you mean {near[0]}?" if near else "."))
