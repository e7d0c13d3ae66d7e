"""No option is ignored in silence: each pair of options has an effect, or is refused in a sentence that names one."""

import contextlib
import io
import itertools
import json
import os
import re
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

import pytest
from annotated_types import Ge

from mcp_batteries.cli.check import _quiet  # pyright: ignore[reportPrivateUsage]
from mcp_batteries.cli.host_entry.text import make_entry
from mcp_batteries.settings import Positional, Settings, load, variable
from mcp_fs.settings import Settings as Files
from mcp_git.settings import Settings as Git
from mcp_github.settings import Settings as Github
from mcp_postgres.settings import Settings as Postgres
from mcp_sqlite.settings import Settings as Sqlite
from mcp_weather.settings import Settings as Weather

SERVERS = [Files, Git, Github, Postgres, Sqlite, Weather]
ACTIONS = ["check", "print_config", "install", "uninstall", "purge", "new_token", "version"]
ABOUT_ACTIONS = ["verbose", "name", "workspace", "dry_run"]
FLAGS_ABOUT_ACTIONS = {"verbose", "name", "workspace", "dry-run"}
OVER_HTTP = [
    *(name for name in Settings.GROUPS["Serve"] if name != "transport"),
    *Settings.GROUPS["Access over HTTP"],
    *Settings.GROUPS["Limits over HTTP"],
]
# Values for options whose words do not say which they take.
VALUES = {
    "transport": "http",
    "uninstall": "cursor",
    "public_url": "https://team.example/mcp",
    "contact": "me@example.org",
    "auth_issuer": "https://login.example.org",
    "bus": "redis://localhost",
    "create_reader": "postgresql://localhost/shop",
    "units": "imperial",
    "language": "de",
}


def sample(kind: type[Settings], name: str) -> list[str]:
    """Return the words that set one option to something else than its default."""
    field = kind.model_fields[name]
    flag = "--" + name.replace("_", "-")
    annotation: Any = field.annotation
    choices = [choice for part in (annotation, *get_args(annotation)) for choice in _choices(part)]
    if any(isinstance(item, Positional) for item in field.metadata):
        return ["x"]
    if annotation is bool:
        return [flag]
    if name in VALUES:
        return [flag, VALUES[name]]
    if choices:
        return [flag, next(choice for choice in choices if choice != field.default)]
    if isinstance(field.default, int | float):
        low = next((item.ge for item in field.metadata if isinstance(item, Ge)), 0)
        return [flag, str(low if low != field.default else low + 1)]
    if name.endswith("_url"):
        return [flag, "https://example.org"]
    return [flag, "x"]


def _choices(annotation: Any) -> tuple[str, ...]:
    return get_args(annotation) if get_origin(annotation) is Literal else ()


def loaded(kind: type[Settings], words: list[str]) -> tuple[Settings | None, str]:
    """Return the settings, or what was said against them."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return load(kind, words), ""
    except SystemExit:
        return None, said.getvalue()


def mistakes(settings: Settings, one: str, other: str) -> Iterator[str]:
    """Yield which of two options have no effect, though the settings were taken."""
    kind = type(settings)
    acts = [name for name in (one, other) if name in ACTIONS]
    if len(acts) == 2 and {one, other} != {"uninstall", "purge"}:
        yield "only one of two actions is done"
    for name, beside in ((one, other), (other, one)):
        needed = re.findall(r"With --([a-z-]+)[,:]", str(kind.model_fields[name].description))
        if needed and needed[0].replace("-", "_") != beside:
            yield f"{name} is only for --{needed[0]}"
        if name in ABOUT_ACTIONS and beside not in ACTIONS:
            yield f"{name} is about an action"
        if name in OVER_HTTP and beside not in ("transport", "uninstall", "purge", "new_token", "version"):
            yield f"{name} is only for HTTP"
    if settings.print_config and settings.transport == "stdio":
        name = other if one == "print_config" else one
        text = make_entry("cursor", settings)
        written = " ".join(["--" + name.replace("_", "-"), variable(kind, name), "x"])
        if name != "name" and not any(word in text for word in written.split()[: 2 + (name in plain(kind))]):
            yield f"{name} is not in the entry"
        if name == "name" and '"x": {' not in text:
            yield "the entry has another name"
        if FLAGS_ABOUT_ACTIONS & set(re.findall(r"--([a-z-]+)", text)):
            yield "the entry has an option about actions"


def plain(kind: type[Settings]) -> list[str]:
    fields = kind.model_fields.items()
    return [name for name, field in fields if any(isinstance(item, Positional) for item in field.metadata)]


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=pytest.mark.slow if kind is Github else pytest.mark.weekly, id=kind.COMMAND)
        for kind in SERVERS
    ],
)
def test_no_pair_of_options_is_ignored_in_silence(kind: type[Settings], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("MCP_")]:
        monkeypatch.delenv(name)
    found: list[str] = []
    taken = 0
    for one, other in itertools.combinations(kind.model_fields, 2):
        settings, said = loaded(kind, [*sample(kind, one), *sample(kind, other)])
        if settings is None:
            flags = [name.replace("_", "-") for name in (one, other)]
            if not any(flag in said for flag in flags):
                found.append(f"{one}, {other}: refused without a name: {said}")
            continue
        taken += 1
        found += [f"{one}, {other}: {mistake}" for mistake in mistakes(settings, one, other)]
    assert not found, "\n".join(found[:40])
    assert taken > 300


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--port 80", "--port has no effect over stdio: add --transport http, or leave it out."),
        ("--auth-file tokens", "--auth-file has no effect over stdio: add --transport http, or leave it out."),
        ("--transport sse --rate-calls 9", "--rate-calls has no effect over sse: use --transport http"),
        ("--transport http --socket s --port 80", "--port has no effect beside --socket: leave out one of them."),
        ("--merge", "--merge has no effect without --write: add it, or leave this out."),
        ("--check --version", "--version does not go with --check: do one after the other."),
        ("--verbose", "--verbose has no effect without --check: add it, or leave this out."),
        ("--workspace", "--workspace has no effect without --install or --uninstall: add it, or leave this out."),
        ("--uninstall cursor --purge --dry-run", "--dry-run does not go with --purge"),
    ],
)
def test_an_option_without_effect_is_refused(words: str, said: str) -> None:
    settings, message = loaded(Github, words.split())
    assert settings is None and said in message


@pytest.mark.parametrize(
    "words",
    [
        "--uninstall cursor --port 80",
        "--purge --uninstall cursor",
        "--write --merge",
        "--version --port 80",
        "-v --check",
    ],
)
def test_an_option_with_an_effect_is_taken(words: str) -> None:
    assert loaded(Github, words.split())[0] is not None


def test_a_variable_may_be_set_for_every_way_to_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_FS_HOST", "0.0.0.0")
    settings, _ = loaded(Files, ["x"])
    assert settings is not None


def test_a_check_over_stdio_takes_no_option_of_http() -> None:
    words = ["--transport", "http", "--check", "--port", "80", "--auth-file", "tokens", "--max-streams", "7", "x"]
    settings, _ = loaded(Files, words)
    assert settings is not None
    assert loaded(Files, _quiet(settings).arguments())[0] is not None
    assert json.loads(make_entry("cursor", load(Files, ["x"])))
