"""A secret goes into the server and comes out nowhere: every secret setting, every way in, every way out."""

import importlib
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from contract.test_contract import FOLDERS
from mcp_batteries.cli.hosts import entry
from mcp_batteries.settings import Host, Positional, Secret, Settings, load, variable
from mcp_batteries.testing.docs import package_of

CANARY = "c4n4ry-7f3e"
KINDS: list[type[Settings]] = [
    importlib.import_module(f"{package}.settings").Settings for folder in FOLDERS if (package := package_of(folder))
]


def marked(kind: type[Settings]) -> Iterator[tuple[str, bool]]:
    for name, field in kind.model_fields.items():
        for item in field.metadata:
            if isinstance(item, Secret):
                yield name, item.url


CASES = [
    pytest.param(kind, name, url, way, id=f"{kind.COMMAND}-{name}-{way}")
    for kind in KINDS
    for name, url in marked(kind)
    for way in ("flag", "variable")
]


def told(kind: type[Settings], name: str, url: bool, way: str) -> tuple[list[str], dict[str, str]]:
    """A command line and an environment that hand over the canary."""
    value = f"postgresql://someone:{CANARY}@127.0.0.1:1/shop" if url else CANARY
    if way == "variable":
        return [], {variable(kind, name): value}
    if any(isinstance(item, Positional) for item in kind.model_fields[name].metadata):
        return [value], {}
    return [f"--{name.replace('_', '-')}", value], {}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.COMMAND)
def test_what_sounds_like_a_secret_is_marked_as_one(kind: type[Settings]) -> None:
    names = {name for name, _ in marked(kind)}
    for name in kind.model_fields:
        if re.search(r"(key|token|tokens|password|secret)$", name) and name not in ("new_token", "tls_key"):
            assert name in names, f"{kind.COMMAND}: {name}"


@pytest.mark.parametrize(("kind", "name", "url", "way"), CASES)
def test_no_entry_and_no_command_line_holds_a_secret(
    kind: type[Settings], name: str, url: bool, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, variables = told(kind, name, url, way)
    for key, value in variables.items():
        monkeypatch.setenv(key, value)
    settings = load(kind, words)
    assert CANARY not in " ".join(settings.arguments())
    assert CANARY in settings.secrets()[variable(kind, name)]
    for host in get_args(Host):
        text = entry(host, settings)
        assert CANARY not in text and variable(kind, name) in text, host
    monkeypatch.setenv(variable(kind, name), settings.secrets()[variable(kind, name)])
    assert load(kind, settings.arguments()) == settings


@pytest.mark.skipif(sys.platform != "linux", reason="reads the command lines of processes under /proc")
@pytest.mark.parametrize("command", ["mcp-postgres", "mcp-sqlite"])
def test_a_check_tells_nobody(command: str, tmp_path: Path) -> None:
    """Its report, its temporary files and the command lines of what it starts; all secrets are told at once."""
    kind = next(kind for kind in KINDS if command == kind.COMMAND)
    variables: dict[str, str] = {}
    for name, url in marked(kind):
        variables |= told(kind, name, url, "variable")[1]
    environment = {**os.environ, **variables, "TMPDIR": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    words = ["--demo"] if command == "mcp-sqlite" else []
    started = [sys.executable, "-m", package(kind), "--check", "--log-level", "debug", *words]
    process = subprocess.Popen(started, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    seen: list[str] = []
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.02):
            seen.extend(command_lines(process.pid))

    watcher = threading.Thread(target=look)
    watcher.start()
    said, _ = process.communicate(timeout=120)
    over.set()
    watcher.join()
    assert "start" in said and CANARY not in said
    assert any(package(kind) in line for line in seen) and not [line for line in seen if CANARY in line]
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or CANARY.encode() not in path.read_bytes(), path


def package(kind: type[Settings]) -> str:
    return kind.__module__.partition(".")[0]


def command_lines(parent: int) -> list[str]:
    """The command lines of `parent` and of all that descend from it."""
    found: list[str] = []
    try:
        found.append(Path(f"/proc/{parent}/cmdline").read_text().replace("\0", " "))
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    except OSError:
        return found
    return found + [line for child in children for line in command_lines(int(child))]


@pytest.mark.skipif(sys.platform != "linux", reason="reads the command lines of processes under /proc")
def test_the_look_at_command_lines_sees_a_secret() -> None:
    """The same look, at a process that is told one where everybody sees it."""
    with subprocess.Popen([sys.executable, "-c", "input()", CANARY], stdin=subprocess.PIPE) as process:
        try:
            deadline = time.monotonic() + 20
            while not any(CANARY in line for line in command_lines(process.pid)):
                assert time.monotonic() < deadline
        finally:
            process.kill()
