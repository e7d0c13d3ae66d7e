"""Declarations of settings, and the settings of every server."""

from __future__ import annotations

import dataclasses
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, NamedTuple, Self, cast

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationInfo, field_validator
from pydantic.fields import FieldInfo

from mcp_batteries.hosts import HOST_NAMES
from mcp_batteries.redaction.own import add_secrets
from mcp_batteries.settings.paths import ABSOLUTE

__all__ = [
    "ALL_HOSTS",
    "SETTINGS_URI",
    "Dependencies",
    "Host",
    "InstallQuestion",
    "Positional",
    "Secret",
    "Settings",
    "Short",
    "file_variable",
    "is_unreplaced",
    "mask_passwords",
    "passwords",
    "placeholder",
    "remember_secrets",
    "variable",
]

# A server shows here which settings it is running with.
SETTINGS_URI = "config://settings"

# Instead of a host: every one.
ALL_HOSTS = "all"

Transport = Literal["stdio", "http", "sse"]
LogLevel = Literal["debug", "info", "warning", "error"]
if TYPE_CHECKING:
    Host = str
    HostOrAll = str
else:
    # A choice for each host of which there is a file.
    Host = Literal[HOST_NAMES]
    HostOrAll = Literal[(*HOST_NAMES, ALL_HOSTS)]


class Positional:
    """Marks, inside `Annotated`, the field that takes the command line's plain arguments.

    Args:
        separator: between them in the environment; by default as in PATH.
    """

    def __init__(self, separator: str = os.pathsep) -> None:
        self.separator = separator


class Secret:
    """Marks, inside `Annotated`, a field whose value is secret.

    Such a value travels only in environment variables: it appears in no command line, host entry, report or log.

    Args:
        url: the value is a URL or `key=value` text, and secret only if it holds a password.
    """

    def __init__(self, *, url: bool = False) -> None:
        self.url = url

    def hides(self, text: str) -> bool:
        """Return whether `text` holds a secret."""
        return mask_passwords(text) != text if self.url else bool(text)


_ADDRESS = Secret(url=True)

# What every host takes as a name; Codex takes nothing more. Claude Code calls a tool `mcp__NAME__TOOL`, of which its
# service takes 64 letters; Cursor hides tools with more than 60 in both. Our longest tools have 26.
_ENTRY_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,29}", re.ASCII)


class Short:
    """Marks, inside `Annotated`, a field whose flag has a short form."""

    def __init__(self, flag: str) -> None:
        self.flag = flag


class Dependencies(NamedTuple):
    """What the first answers of a configuration depend on, besides its command line.

    Attributes:
        variables: environment variables, besides those with the server's prefix.
        places: files and folders that must not be replaced.
        files: files that must not change.
    """

    variables: Sequence[str] = ()
    places: Sequence[str] = ()
    files: Sequence[str] = ()


def is_unreplaced(name: str, value: str) -> bool:
    """Return whether a variable holds a reference to itself, in the form of any host: one that did not replace it."""
    references = (rf"\$\{{?(?:env:|input:)?{name}(?::-)?\}}?", rf"\{{env:{name}\}}", f"%{name}%")
    return re.fullmatch("|".join(references), value.strip()) is not None


class InstallQuestion(NamedTuple):
    """A value that a person must give before the server can start: host entries, bundles and the registry ask for it.

    Attributes:
        name: one word, such as `folder`.
        title: the question, as a noun phrase.
        example: what documents show instead of it.
        kind: what a program that asks may offer to pick.
        variable: the environment variable that takes it; None for the command line's plain argument.
        secret: never on a command line, hidden while it is typed.
    """

    name: str
    title: str
    example: str
    kind: Literal["directory", "file", "string"] = "string"
    variable: str | None = None
    secret: bool = False
    required: bool = True
    multiple: bool = False


@dataclasses.dataclass
class _Origins:
    """The sources of settings, which do not count when settings are compared."""

    of: dict[str, str] = dataclasses.field(default_factory=dict[str, str], compare=False)


class Settings(BaseModel):
    """The settings of every server."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    # The command, the distribution and, in capitals with an underscore, the prefix of the variables.
    COMMAND: ClassVar[str]

    # The extra of the distribution without which the command is of no use.
    EXTRA: ClassVar[str | None] = None

    # Whether everything after the first plain argument is plain too.
    OPTIONS_FIRST: ClassVar[bool] = False

    # The file that is the whole server, if it is one file.
    FILE: ClassVar[str | None] = None

    # Whether the server needs an event loop on `select`, which is not the one Windows gives.
    SELECTOR_LOOP: ClassVar[bool] = False

    # The command line that opens everything the documents describe; `{folder}` is an empty folder.
    DOCUMENTED: ClassVar[tuple[str, ...]] = ("{folder}",)

    # Only the person who installs the server can know the answers to these questions.
    INSTALL_QUESTIONS: ClassVar[tuple[InstallQuestion, ...]] = ()

    # Options that have no effect unless one of some others is set; a server adds its own.
    NEEDS: ClassVar[dict[str, tuple[str, ...]]] = {
        "verbose": ("check",),
        "name": ("install", "uninstall", "print_config"),
        "workspace": ("install", "uninstall"),
        "dry_run": ("install", "uninstall"),
        "auth_audience": ("auth_issuer",),
        "auth_algorithm": ("auth_issuer",),
        "tls_key": ("tls_certificate",),
    }

    # The own options that `--help` shows, by default all; below those of every server. `--help-all` shows the others.
    FREQUENT: ClassVar[tuple[str, ...]] = ("read_only", "check", "install", "uninstall", "print_config")

    # Where a word belongs that was given as a plain argument, `{argument}`, to a server that takes none.
    PLAIN_HINT: ClassVar[str] = "--help shows them."

    # Command lines for the end of `--help`, without the command itself.
    EXAMPLES: ClassVar[tuple[str, ...]] = ()

    # The headings under which `--help` and the documents list the common settings.
    GROUPS: ClassVar[dict[str, tuple[str, ...]]] = {
        "Serve": ("transport", "host", "port", "socket", "public_url", "server_card", "json_response", "param_headers"),
        "Safety": ("read_only", "tools", "exclude_tools", "confirm", "audit_file", "allowed_host", "allowed_origin"),
        "Access over HTTP": (
            "allow_anonymous", "auth_file", "auth_tokens", "auth_issuer", "auth_audience", "auth_algorithm",
            "auth_scope_prefix", "tls_certificate", "tls_key", "trusted_proxy",
        ),
        "Limits over HTTP": (
            "rate_calls", "rate_bytes", "max_parallel", "max_sessions", "session_seconds", "max_streams",
            "max_streams_each", "drain_seconds",
        ),
        "Operation": (
            "bus", "state_key_file", "log_level", "log_format", "wire_log", "metrics", "telemetry", "no_front",
        ),
        "Instead of serving": (
            "check", "verbose", "print_config", "install", "uninstall", "name", "workspace", "dry_run", "purge",
            "new_token", "version",
        ),
    }  # fmt: skip

    transport: Transport = Field("stdio", description="How clients reach the server; use sse for old clients only.")
    host: str = Field("127.0.0.1", description="Address to listen on with http and sse.")
    port: int = Field(8000, ge=0, le=65535, description="Port to listen on with http and sse; 0 takes a free port.")
    socket: Annotated[str | None, ABSOLUTE] = Field(
        None, description="Listen with http on this Unix socket, not on an address; only this user can open it."
    )
    allow_anonymous: bool = Field(
        False, description="Serve everybody who can reach the address when no token is required."
    )
    auth_file: Annotated[str | None, ABSOLUTE] = Field(
        None,
        description="Require a bearer token from this file of --new-token lines; reloaded when it changes.",
    )
    auth_tokens: Annotated[str | None, Secret()] = Field(
        None, description="Require one of these tokens, separated by semicolons; --new-token makes each line."
    )
    auth_issuer: str | None = Field(
        None, description="Require an access token (JWT) of this OAuth issuer, such as https://login.example.org."
    )
    auth_audience: str | None = Field(
        None, description="Audience that access tokens must have; by default this server's public URL."
    )
    auth_algorithm: tuple[str, ...] = Field(
        (),
        description="Signature algorithm to accept, such as ES256; by default every asymmetric one; repeatable.",
    )
    auth_scope_prefix: str = Field(
        "", description="Prefix of the scopes read, write and destroy in access tokens, such as files:."
    )
    public_url: str | None = Field(None, description="URL that clients use, such as https://files.example.org/mcp.")
    server_card: bool = Field(
        False, description="Publish a server card and a catalog with name, version and URL; experimental."
    )
    tls_certificate: Annotated[str | None, ABSOLUTE] = Field(
        None, description="Serve https with this certificate and its chain (PEM file); reloaded when it changes."
    )
    tls_key: Annotated[str | None, ABSOLUTE] = Field(None, description="Private key of the certificate (PEM file).")
    trusted_proxy: tuple[str, ...] = Field(
        (),
        description="Address or network of a trusted proxy that sets X-Forwarded-For and -Proto; repeatable.",
    )
    rate_calls: int = Field(0, ge=0, description="Calls per minute for each HTTP caller; 0 means no limit.")
    rate_bytes: int = Field(
        0, ge=0, description="Bytes per minute for each HTTP caller, calls and answers together; 0 means no limit."
    )
    max_parallel: int = Field(
        32, ge=0, description="Concurrent calls per HTTP caller; further calls wait; 0 means no limit."
    )
    drain_seconds: int = Field(1, ge=0, le=3600, description="Seconds to finish running calls after SIGTERM.")
    max_sessions: int = Field(1000, ge=1, le=100_000, description="Open sessions of older clients.")
    session_seconds: int = Field(
        1800, ge=1, le=86_400, description="Seconds until an unused session of an older client ends."
    )
    max_streams: int = Field(1024, ge=1, le=100_000, description="Open notification streams of all clients together.")
    max_streams_each: int = Field(
        256,
        ge=1,
        le=100_000,
        description="Open notification streams per HTTP caller, and open sessions of older clients.",
    )
    allowed_host: tuple[str, ...] = Field(
        (),
        description="Host header to accept besides the loopback names, such as files.example.org; repeatable.",
    )
    allowed_origin: tuple[str, ...] = Field(
        (),
        description="Browser origin to accept, such as https://app.example.org; repeatable.",
    )
    json_response: bool = Field(
        False, description="Answer HTTP calls with plain JSON: faster, but without progress or questions to the user."
    )
    param_headers: bool = Field(
        False,
        description="Have clients over http repeat a call's database, repository or place in a header, for proxies.",
    )
    read_only: bool = Field(False, description="Offer only tools that change nothing.")
    tools: tuple[str, ...] = Field(
        (),
        description="Offer only these tools or toolsets; default means the usual ones, all means every one, "
        "call_tools lets lists of calls make changes too; repeatable.",
    )
    exclude_tools: tuple[str, ...] = Field((), description="Leave out these tools or toolsets; repeatable.")
    confirm: bool = Field(False, description="Ask the user before a tool replaces or removes anything.")
    bus: Annotated[str | None, Secret(url=True)] = Field(
        None,
        description="Message bus that tells replicas of each other's changes: redis://, nats:// or postgresql://.",
    )
    state_key_file: Annotated[str | None, ABSOLUTE] = Field(
        None, description="Shared keys, one per line, so that any replica can continue an elicitation."
    )
    log_level: LogLevel = Field("warning", description="Least severe messages to write to standard error.")
    log_format: Literal["text", "json"] = Field(
        "text", description="Form of those messages; json writes one object per line."
    )
    wire_log: Annotated[str | None, ABSOLUTE] = Field(
        None, description="Append every message to this file, secrets masked; it holds what the tools read and write."
    )
    metrics: bool = Field(
        False, description="Serve Prometheus metrics at /metrics over HTTP; a token needs the scope metrics."
    )
    telemetry: bool = Field(
        False, description="Send OpenTelemetry traces, metrics and logs to the endpoint of the OTEL_* variables."
    )
    no_front: bool = Field(
        False, description="Start the whole server at once, not when the first call over stdio needs it."
    )
    audit_file: Annotated[str | None, ABSOLUTE] = Field(None, description="Append one JSON line per call to this file.")
    check: bool = Field(False, description="Try this configuration with a real client, print a report and exit.")
    verbose: Annotated[bool, Short("-v")] = Field(False, description="Show the details of each step of --check.")
    print_config: Host | None = Field(None, description="Print the entry for a host's configuration file and exit.")
    install: Host | None = Field(None, description="Write the entry into a host's configuration file and exit.")
    uninstall: HostOrAll | None = Field(
        None, description="Take the entry out of a host's configuration file, or all entries out of all, and exit."
    )
    name: str | None = Field(None, description="Name of the entry, for several of this server in one host.")
    workspace: bool = Field(
        False, description="Have --install and --uninstall change the file of the project in the current folder."
    )
    dry_run: bool = Field(False, description="Have --install and --uninstall only say what they would do.")
    purge: bool = Field(
        False,
        description="Remove what this server keeps on this machine, such as caches, and exit; goes with --uninstall.",
    )
    new_token: str | None = Field(
        None, description='Make a token for a name and scopes, such as "alice read write", print both lines and exit.'
    )
    version: bool = Field(False, description="Print the version and exit.")

    _origins: _Origins = PrivateAttr(default_factory=lambda: _Origins())
    _is_trial: bool = PrivateAttr(False)

    @field_validator("socket")
    @classmethod
    def _served_on(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None and sys.platform == "win32":
            raise ValueError("Windows has no Unix sockets that Python can serve: use --port")
        if value is not None and info.data.get("transport") != "http":
            raise ValueError("it needs --transport http")
        return value

    @field_validator("server_card")
    @classmethod
    def _check_server_card(cls, value: bool, info: ValidationInfo) -> bool:
        if value and (info.data.get("transport") != "http" or not info.data.get("public_url")):
            raise ValueError("it needs --transport http and --public-url")
        return value

    @field_validator("name")
    @classmethod
    def _plain_name(cls, value: str | None) -> str | None:
        if value is not None and _ENTRY_NAME.fullmatch(value) is None:
            raise ValueError("write at most 30 letters, digits, hyphens and underscores, such as work")
        return value

    @field_validator("tools", "exclude_tools")
    @classmethod
    def _names(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        # A list with commas is what people try first.
        return tuple(" ".join(values).replace(",", " ").split())

    @property
    def entry_name(self) -> str:
        """The name under which hosts know this server."""
        return self.name or self.COMMAND.removeprefix("mcp-")

    @property
    def serving(self) -> Self:
        """These settings without what is done instead of serving."""
        names = Settings.GROUPS["Instead of serving"]
        return self.model_copy(update={name: Settings.model_fields[name].default for name in names})

    @property
    def socket_url(self) -> str | None:
        """The URL of the endpoint for hosts that connect to Unix sockets."""
        return None if self.socket is None else f"unix{Path(self.socket).absolute().as_uri()[len('file') :]}#/mcp"

    @property
    def server_url(self) -> str | None:
        """The address to which hosts connect; None if they start the server."""
        if self.transport == "stdio":
            return None
        if self.socket_url is not None:
            return self.socket_url
        if self.public_url is not None:
            return self.public_url
        path = "mcp" if self.transport == "http" else "sse"
        return f"http://{self.host}:{self.port}/{path}"

    @property
    def origins(self) -> dict[str, str]:
        """For each setting that was set, the flag or variable that set it."""
        return self._origins.of

    @property
    def is_trial(self) -> bool:
        """Whether a server is built with these only to see whether it can be, so that it makes no file."""
        return self._is_trial

    def for_trial(self) -> Self:
        """Return these settings for a server that is built only to see whether it can be."""
        # The server would make the audit file.
        settings = self.model_copy(update={"audit_file": None})
        settings._is_trial = True
        return settings

    def depends_on(self) -> Dependencies | None:
        """Return what the server's first answers depend on besides these settings; None if that cannot be checked."""
        return None

    def absent(self) -> list[str]:
        """Return the places and files named in these settings that do not exist."""
        return [path for path in dict.fromkeys(self.needed_paths()) if not os.path.exists(path)]

    def needed_paths(self) -> list[str]:
        """Return the places and files named in these settings that must be there when the server starts."""
        needed = self.depends_on() or Dependencies()
        written = [os.path.dirname(path) for path in (self.audit_file, self.wire_log) if path is not None]
        return [*needed.places, *needed.files, *written]

    def unusable(self) -> Sequence[str]:
        """Return a sentence for each place in these settings that is there and has nothing to serve."""
        return ()

    def open_questions(self) -> Sequence[InstallQuestion]:
        """Return the questions of `INSTALL_QUESTIONS` whose answers a server with these settings would use."""
        return self.INSTALL_QUESTIONS

    def unanswered_question(self) -> InstallQuestion | None:
        """Return the required question that plain arguments answer, if there are none."""
        for name, field in type(self).model_fields.items():
            if getattr(self, name) and any(isinstance(item, Positional) for item in field.metadata):
                return None
        for question in self.open_questions():
            if question.required and question.variable is None:
                return question
        return None

    def front_dependencies(self) -> Dependencies | None:
        """Return `depends_on`, or None if something must see the messages that the front would answer."""
        if self.no_front or self.transport != "stdio" or self._records_messages() or self._has_secret_files():
            return None
        return self.depends_on()

    def _records_messages(self) -> bool:
        """Return whether something records messages, or must be told of them."""
        if self.bus or self.audit_file or self.wire_log or self.metrics or self.telemetry:
            return True
        return self.log_level == "debug"

    def _has_secret_files(self) -> bool:
        """Return whether a variable names a file that holds a secret.

        Its contents are not in the environment, by which the front recognises a configuration.
        """
        return any(file_variable(type(self), name) == origin for name, origin in self.origins.items())

    @classmethod
    def documented_arguments(cls, folder: str) -> list[str]:
        """Return `DOCUMENTED` for an empty `folder`."""
        return [item.format(folder=folder) for item in cls.DOCUMENTED]

    def preparation(self) -> str | None:
        """Return the module of the package whose `prepare(settings, data_folder)` runs before an entry is written.

        It gives the settings for the entry and what to tell the person. None if no option asks for such a thing.
        """
        return None

    def printout(self) -> str | None:
        """Return what to print instead of serving, if one of the server's own options asks for that."""
        return None

    def parts(self) -> Sequence[Settings]:
        """These settings, then those of each server that is mounted in the same process."""
        return (self,)

    @classmethod
    def package(cls) -> str:
        """Return the package of the server that these settings belong to."""
        return cls.__module__.removesuffix(".settings")

    def arguments(self) -> list[str]:
        """Return the command line of what differs from the defaults in these settings, except `secrets`."""
        flags: list[str] = []
        plain: list[str] = []
        secrets = self.secrets()
        for name, field in type(self).model_fields.items():
            value = getattr(self, name)
            if value == field.default or variable(type(self), name) in secrets:
                continue
            flag = "--" + name.replace("_", "-")
            if any(isinstance(item, Positional) for item in field.metadata):
                plain.extend(value)
            elif isinstance(value, tuple):
                for item in cast("tuple[str, ...]", value):
                    flags += [flag, item]
            else:
                flags.extend([flag] if value is True else [flag, str(value)])
        return [*flags, *plain]

    def plain_arguments(self) -> list[str]:
        """Return the command line's arguments that are no options."""
        plain: list[str] = []
        for name, field in type(self).model_fields.items():
            if any(isinstance(item, Positional) for item in field.metadata):
                plain.extend(getattr(self, name))
        return plain

    def secrets(self) -> dict[str, str]:
        """Return the settings that hold a secret, as environment variables: process lists show command lines."""
        secrets: dict[str, str] = {}
        for name, field in type(self).model_fields.items():
            value = getattr(self, name)
            # A password is no less one in an address that seldom has any, as of a service behind a proxy.
            unmarked = _ADDRESS if isinstance(value, str) else None
            secret = next((item for item in field.metadata if isinstance(item, Secret)), unmarked)
            words = cast("tuple[str, ...]", value) if isinstance(value, tuple) else (value or "",)
            if secret is not None and any(map(secret.hides, words)):
                secrets[variable(type(self), name)] = _separator(field).join(words)
        return secrets


def _separator(field: FieldInfo) -> str:
    return next((item.separator for item in field.metadata if isinstance(item, Positional)), os.pathsep)


_PASSWORDS = (
    # The last @ ends it: what stands before is a password whose signs nobody has percent-encoded.
    re.compile(r"(://[^/@:\s]*:)((?:(?!://)[^\n])*)(?=@)"),
    # A name alone is a token there, elsewhere a name.
    re.compile(r"(\b(?:nats|tls|wss?|https?)://)([^/@:\s]+)(?=@)"),
    re.compile(r"((?:password|token|secret|api_?key)\s*=\s*)('[^']*'|[^\s&]+)", re.IGNORECASE),
)


def mask_passwords(text: str) -> str:
    """Return `text`, a URL or `key=value` text, without its password."""
    for pattern in _PASSWORDS:
        text = pattern.sub(r"\1***", text)
    return text


def passwords(text: str) -> list[str]:
    """Return what `mask_passwords` leaves out of `text`."""
    values: list[str] = []
    for pattern in _PASSWORDS:
        values += [match[2].strip("'") for match in pattern.finditer(text)]
    return values


def remember_secrets(settings: Settings) -> None:
    """Keep the secrets of `settings`, and those of the proxies, out of all that this process writes and answers."""
    proxies = [value for name, value in os.environ.items() if name.lower().endswith("_proxy")]
    values = [*settings.secrets().values(), *proxies]
    secrets: list[str] = []
    for value in values:
        # Example addresses have the user's name as the password; to hide that word would make messages unreadable.
        secrets += [password for password in passwords(value) if value.count(password) == 1]
    # libpq reads this one itself, and mcp-postgres the other.
    secrets.append(os.environ.get("PGPASSWORD", ""))
    secrets += passwords(os.environ.get("DATABASE_URL", ""))
    for value in settings.secrets().values():
        if not passwords(value):
            secrets += [value, *re.split(f"[;{os.pathsep}]", value)]
    add_secrets(secrets)


def placeholder(name: str) -> str:
    """Return the name in `--help` for each value of the positional setting `name`, in the singular."""
    return re.sub("(?<=x)es$|s$", "", re.sub("ies$", "y", name)).upper()


def variable(kind: type[Settings], name: str) -> str:
    """Return the environment variable that sets field `name`."""
    return f"{kind.COMMAND}_{name}".upper().replace("-", "_")


def file_variable(kind: type[Settings], name: str) -> str:
    """Return the environment variable that names a file with the secret `name`."""
    return f"{variable(kind, name)}_FILE"
