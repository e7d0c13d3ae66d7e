"""A secret goes into the server and comes out nowhere: every secret setting, every way in, every way out."""

import importlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import anyio
import pytest

from contract.test_contract import FOLDERS
from git_server.made import Made
from mcp_batteries.cli.host_entry.text import make_entry
from mcp_batteries.settings import (
    ONLY_OVER_HTTP,
    Host,
    Positional,
    Secret,
    Settings,
    file_variable,
    load,
    variable,
)
from mcp_batteries.testing.wire import MODERN, HttpWire
from mcp_batteries.transports.http.auth.tokens import create_token
from shared.http_subject import running
from shared.test_observed import collecting
from tools.docs import package_of

CANARY = "c4n4ry-7f3e"
KINDS: list[type[Settings]] = [
    importlib.import_module(f"{found}.settings").Settings for folder in FOLDERS if (found := package_of(folder))
]


def marked(kind: type[Settings]) -> Iterator[tuple[str, bool]]:
    for name, field in kind.model_fields.items():
        for item in field.metadata:
            if isinstance(item, Secret):
                yield name, item.url


def serving(kind: type[Settings]) -> Iterator[tuple[str, bool]]:
    """What is marked, but for the settings that make a server do one thing and exit."""
    return (found for found in marked(kind) if found[0] != "create_reader")


CASES = [
    pytest.param(kind, name, url, way, id=f"{kind.COMMAND}-{name}-{way}")
    for kind in KINDS
    for name, url in marked(kind)
    for way in ("flag", "variable", "file")
    # As a flag it is only taken with http, whose entries start nothing and hold no setting.
    if (name, way) != ("auth_tokens", "flag")
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
    kind: type[Settings], name: str, url: bool, way: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    words, variables = told(kind, name, url, "variable" if way == "file" else way)
    for key, value in variables.items():
        if way == "file":
            (tmp_path / "secret").write_text(f"{value}\n", "utf-8")
            monkeypatch.setenv(file_variable(kind, name), str(tmp_path / "secret"))
        else:
            monkeypatch.setenv(key, value)
    settings = load(kind, words)
    if way == "file":
        assert settings.origins[name] == f"{variable(kind, name)}_FILE"
        assert settings.front_dependencies() is None
    assert CANARY not in " ".join(settings.arguments())
    assert CANARY in settings.secrets()[variable(kind, name)]
    for host in get_args(Host):
        text = make_entry(host, settings)
        assert CANARY not in text and variable(kind, name) in text, host
    monkeypatch.setenv(variable(kind, name), settings.secrets()[variable(kind, name)])
    assert load(kind, settings.arguments()) == settings


@pytest.mark.share(4)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.COMMAND)
def test_an_address_with_a_secret_is_one_in_every_setting(kind: type[Settings]) -> None:
    """Also in those that nobody marked: all that take a text."""
    addresses = (f"https://someone:{CANARY}@127.0.0.1/x", f"https://{CANARY}@127.0.0.1", f"nats://{CANARY}@127.0.0.1")
    taken: set[str] = set()
    for name, field in kind.model_fields.items():
        for address in (*addresses, f"https://127.0.0.1/?api_key={CANARY}", f"/bin/program --password={CANARY}"):
            words = ["--" + name.replace("_", "-"), address]
            if field.annotation not in (str, str | None) or name in ("new_token", "bus"):
                continue
            try:
                settings = load(kind, [*words, "--transport", "http"] if name in ONLY_OVER_HTTP else words)
            except SystemExit:  # It takes no such text.
                continue
            if address not in getattr(settings, name):  # It took that for a path.
                continue
            taken.add(name)
            assert CANARY not in " ".join(settings.arguments()), name
            assert settings.transport != "stdio" or variable(kind, name) in make_entry("vscode", settings)
    assert {"auth_issuer", "public_url"} <= taken


def test_a_secret_in_a_file_that_is_not_there_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(file_variable(KINDS[0], "bus"), "missing")
    with pytest.raises(SystemExit):
        load(KINDS[0], [])
    assert "_BUS_FILE names a file that cannot be read: No such file or directory." in capsys.readouterr().err
    monkeypatch.setenv(variable(KINDS[0], "bus"), "redis://localhost")
    monkeypatch.setenv(file_variable(KINDS[0], "bus"), os.devnull)
    assert load(KINDS[0], []).bus == "redis://localhost"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the command lines of processes under /proc")
@pytest.mark.parametrize("command", ["mcp-postgres", "mcp-sqlite"])
def test_a_check_tells_nobody(command: str, tmp_path: Path) -> None:
    """Its report, its temporary files and the command lines of what it starts; all secrets are told at once."""
    kind = next(kind for kind in KINDS if command == kind.COMMAND)
    variables: dict[str, str] = {}
    for name, url in serving(kind):
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


MISTAKEN = [
    ("mcp-fs", "{}"), ("mcp-git", "{}"), ("mcp-github", "--api-url {}"), ("mcp-fs", "--audit-file {} ."),
    ("mcp-fs", "--transport http --auth-issuer {} ."), ("mcp-fs", "--transport http --public-url {} ."),
    ("mcp-fs", "--transport http --trusted-proxy {} ."), ("mcp-fs", "--transport http --allowed-origin {} ."),
]  # fmt: skip


@pytest.mark.share(1)
@pytest.mark.diagonal
@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize(("command", "words"), MISTAKEN)
def test_a_mistake_in_an_address_does_not_repeat_its_password(
    command: str, words: str, check: bool, tmp_path: Path
) -> None:
    given = words.format(f"ftp://someone:{CANARY}@127.0.0.1:1/a?b").split()
    kind = next(kind for kind in KINDS if command == kind.COMMAND)
    line = [sys.executable, "-m", package(kind), *["--check"][: int(check)], *given]
    done = subprocess.run(line, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
    assert done.returncode and done.stderr + done.stdout
    assert CANARY.encode() not in done.stderr + done.stdout


@pytest.mark.share(1, slow=3)
@pytest.mark.anyio
@pytest.mark.skipif(sys.platform != "linux", reason="makes a core and reads limits under /proc")
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.COMMAND)
async def test_a_server_at_work_leaves_no_secret_anywhere(
    kind: type[Settings], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Log, figures, traces, audit, answers, temporary files and core, with every secret told by a variable."""
    with collecting() as collector:
        token, line = create_token("someone destroy metrics settings")
        (tmp_path / "tokens").write_text(line, "utf-8")
        variables = {asked.variable: CANARY for asked in kind.INSTALL_QUESTIONS if asked.variable and asked.secret}
        for name, url in serving(kind):
            variables |= told(kind, name, url, "variable")[1] if name != "auth_tokens" else {}
        for name, value in {
            **variables, "TMPDIR": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), "no_proxy": "127.0.0.1",
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.server_port}",
            "OTEL_EXPORTER_OTLP_COMPRESSION": "none", "OTEL_BSP_SCHEDULE_DELAY": "50",
            "OTEL_METRIC_EXPORT_INTERVAL": "50",
        }.items():  # fmt: skip
            monkeypatch.setenv(str(name), value)
        words = ["--metrics", "--telemetry", "--log-level", "debug", "--audit-file", str(tmp_path / "audit")]
        words += [
            "--auth-file",
            str(tmp_path / "tokens"),
            "--transport",
            "http",
            "--port",
            "0",
            *harmless(kind, tmp_path),
        ]
        monkeypatch.chdir(tmp_path)
        limited = ["sh", "-c", 'ulimit -c unlimited && exec "$@"', "sh", sys.executable, "-m", package(kind), *words]
        outputs: list[str] = []
        async with running(limited) as subject:
            headers = {"authorization": f"Bearer {token}"}
            async with HttpWire(subject.url, revision=MODERN, headers=headers) as wire:
                outputs.append(json.dumps(await wire.open()))
                outputs.append(json.dumps(await wire.request("resources/read", {"uri": "config://settings"})))
                tools: list[Any] = (await wire.request("tools/list"))["tools"]
                tools = tools[:: 1 + len(tools) // 20]
                for tool in tools:
                    call = {
                        "name": tool["name"],
                        "arguments": dict.fromkeys(tool["inputSchema"].get("required", []), "1"),
                    }
                    outputs.append(json.dumps(await wire.request("tools/call", call)))
                outputs.append((await wire.client.get(subject.url.replace("/mcp", "/metrics"), headers=headers)).text)
            with anyio.fail_after(30):
                while not (collector.received["/v1/traces"] and collector.received["/v1/metrics"]):
                    await anyio.sleep(0.05)
            limits = Path(f"/proc/{subject.process.pid}/limits").read_text("utf-8")
            assert re.search(r"Max core file size +0 ", limits), limits
            subject.process.send_signal(signal.SIGABRT)
            assert await subject.ends() == -signal.SIGABRT
        assert "mcp_requests_total" in outputs[-1] and len(outputs) == len(tools) + 3
        written = {str(path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        assert str(tmp_path / "audit") in written
        places = {"log": subject.said.encode(), "answers": "".join(outputs).encode(), **written}
        places |= {path: b"".join(bodies) for path, bodies in collector.received.items()}
        for secret in (CANARY, token):
            assert not [place for place, data in places.items() if secret.encode() in data]


def harmless(kind: type[Settings], scratch: Path) -> list[str]:
    """What a server must be told beyond its secrets, and nothing that leads out of this machine."""
    served = scratch / "served"
    served.mkdir()
    match kind.COMMAND:
        case "mcp-fs":
            return [str(served)]
        case "mcp-batteries":
            return ["fs", str(served), "--", "sqlite", "--demo"]
        case "mcp-git":
            Made(served / "app").commit("First", {"notes.txt": "first\n"})
            return [str(served / "app")]
        case "mcp-sqlite":
            return ["--demo"]
        case "mcp-github":
            return ["--api-url", "http://127.0.0.1:1", "--toolsets", "all"]
        case _:
            return []


def package(kind: type[Settings]) -> str:
    return kind.__module__.removesuffix(".settings")


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
