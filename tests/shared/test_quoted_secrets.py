"""No piece of a secret setting is quoted: of a password with every awkward sign, against a peer that is not there."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

from mcp_batteries.errors import Unavailable
from mcp_batteries.redaction.own import add_secrets, forget_secrets
from mcp_batteries.redaction.text import redact
from mcp_batteries.settings import Settings, variable
from mcp_batteries.settings.addresses import unencoded_signs
from mcp_batteries.settings.declared import mask_passwords, passwords, remember_secrets
from mcp_batteries.testing.wire import StdioWire
from mcp_git.remote_addresses import hide_password
from mcp_postgres.policy.addresses import parse_named_address
from mcp_postgres.settings import Settings as PostgresSettings
from shared.test_secrets import KINDS, harmless, marked, package

AWKWARD = """p@ss:w/o#r?d%41 "'"""
SHORTEST_PIECE = 4
SCHEMES = {"create_reader": ("postgresql",), "bus": ("redis", "nats", "postgresql"), "databases": ("postgresql",)}
CASES = [
    (kind, name, address)
    for kind in KINDS
    for name, url in marked(kind)
    for address in ([f"{scheme}://someone:{{}}@127.0.0.1:1/shop" for scheme in SCHEMES[name]] if url else ["{}"])
]
SPELLINGS = {"raw": AWKWARD, "encoded": quote(AWKWARD, safe="")}


def pieces(secret: str) -> list[str]:
    return [secret[start : start + SHORTEST_PIECE] for start in range(len(secret) - SHORTEST_PIECE + 1)]


@pytest.mark.share(1)
@pytest.mark.anyio
@pytest.mark.diagonal
@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize(
    ("kind", "name", "address"), CASES, ids=[f"{kind.COMMAND}-{name}-{address[:8]}" for kind, name, address in CASES]
)
async def test_no_piece_of_a_secret_is_quoted(
    kind: type[Settings], name: str, address: str, spelling: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = SPELLINGS[spelling]
    if "://" not in address:
        secret = AWKWARD
    value = address.format(secret)
    monkeypatch.chdir(tmp_path)
    environment = {**os.environ, variable(kind, name): value}
    words = harmless(kind, tmp_path)
    if name == "databases":
        words = [value]
        del environment[variable(kind, name)]
    wire_log = tmp_path / "wire.log"
    command = [sys.executable, "-m", package(kind), "--log-level", "debug", "--wire-log", str(wire_log), *words]
    answers = ""
    wire = StdioWire(command, env=environment)
    try:
        async with wire:
            answers += json.dumps(await wire.open(), ensure_ascii=False)
            tools: list[Any] = (await wire.request("tools/list"))["tools"]
            for tool in tools[:: 1 + len(tools) // 5]:
                required = dict.fromkeys(tool["inputSchema"].get("required", []), "1")
                call = {"name": tool["name"], "arguments": required}
                answers += json.dumps(await wire.request("tools/call", call), ensure_ascii=False)
            answers += json.dumps(await wire.request("resources/read", {"uri": "config://settings"}))
    except Exception as refused:
        answers += str(refused)
    assert answers or wire.stderr
    written = wire_log.read_text("utf-8") if wire_log.exists() else ""
    for place, text in (("answers", answers), ("log", wire.stderr), ("wire log", written)):
        for piece in {*pieces(secret), *pieces(AWKWARD)}:
            assert piece not in text, (place, piece, text[max(0, text.find(piece) - 200) : text.find(piece) + 200])


@pytest.mark.parametrize("sign", ["@", "/", "?", "#", " ", "%"])
@pytest.mark.parametrize("scheme", ["postgresql", "redis", "nats"])
def test_a_sign_that_ends_a_password_is_refused_with_its_escape(scheme: str, sign: str) -> None:
    for password in (f"P{sign}ssw0rd", f"{sign}ssw0rd", f"P{sign}{sign}w0rd", f"ssw0rd{sign}"):
        address = f"{scheme}://postgres:{password}@db.example.org:5432/shop"
        assert f"as %{ord(sign):02X}" in unencoded_signs(address), address
        assert "ssw0rd" not in mask_passwords(address) and any("w0rd" in word for word in passwords(address))
        if scheme == "postgresql":
            with pytest.raises(Unavailable, match="ends it early") as refused:
                parse_named_address(address, {})
            assert "w0rd" not in str(refused.value) and f"as %{ord(sign):02X}" in str(refused.value)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://postgres:P%40ssw0rd@db/shop", "postgresql://u@h/n?application_name=a@b", "postgresql://h/n",
        "postgresql://u:p:q@h1:1,h2:2/n?options=-c%20a%3Db", "https://host:8000/@someone", "redis://h:6379/0", "x",
        "nats://token@h:4222", "postgresql:///n?host=/run", "postgresql://u:p@[::1]:5432/n",
    ],
)  # fmt: skip
def test_other_addresses_are_left_alone(address: str) -> None:
    assert unencoded_signs(address) == ""


def test_a_password_in_a_remote_is_left_out_to_its_last_sign() -> None:
    for address in ("https://u:P@ssw0rd@h/a.git", "https://u:P/ssw0rd@h/a.git", "https://ssw0rd@h/a.git"):
        assert "w0rd" not in hide_password(f"fatal: unable to access '{address}': not found"), address
    assert hide_password("see https://h:8443/a and me@h.example") == "see https://h:8443/a and me@h.example"
    assert hide_password("ssh://git@h/a") == "ssh://git@h/a"


def test_a_problem_quotes_no_secret_of_this_process() -> None:
    try:
        add_secrets(["P@ssw0rd"])
        said = str(Unavailable("failed to resolve host 'ssw0rd@host'", "Look at P%40ssw0rd."))
        assert "w0rd" not in said and "host" in said
    finally:
        forget_secrets()


@pytest.mark.parametrize("password", ["P@ssw0rd", "P@[ssw0rd"], ids=["as a host", "as an address"])
def test_what_libpq_quotes_of_an_address_is_hidden(password: str) -> None:
    address = f"postgresql://postgres:{password}@host/db"
    forget_secrets()
    try:
        with pytest.raises(psycopg.Error) as failure:
            psycopg.connect(address)
        quoted = str(failure.value)
        assert "ssw0rd" in quoted, "libpq quotes the address no longer; choose another that it quotes"
        remember_secrets(PostgresSettings(databases=(address,)))
        answer = str(Unavailable(quoted))
        assert "w0rd" not in answer and "host" in answer, answer
        assert "w0rd" not in redact(quoted)
    finally:
        forget_secrets()


def test_what_git_quotes_of_a_remote_is_hidden() -> None:
    address = "https://u:P@ssw0rd@127.0.0.1:1/a.git"
    done = subprocess.run(["git", "ls-remote", address], capture_output=True, text=True, timeout=60, check=False)
    assert "ssw0rd" in done.stderr, "git quotes the address no longer; choose another that it quotes"
    assert "w0rd" not in hide_password(done.stderr)


def test_a_mistake_on_the_command_line_quotes_no_password() -> None:
    words = ["--log-level", "postgresql://u:P@ssw0rd@h/n"]
    done = subprocess.run([sys.executable, "-m", "mcp_fs", *words], capture_output=True, timeout=60, check=False)
    assert done.returncode == 2 and b"w0rd" not in done.stderr


def test_a_word_that_is_no_secret_stays_readable() -> None:
    """A password like the user's name is in every example; hidden, it would take half of the messages with it."""
    forget_secrets()
    try:
        add_secrets(["summer"])
        assert str(Unavailable("A summery summer.")) == "A summery ***."
        forget_secrets()
        remember_secrets(PostgresSettings(databases=("postgresql://postgres:postgres@127.0.0.1/shop",)))
        assert str(Unavailable("No role `postgres` in PostgreSQL.")) == "No role `postgres` in PostgreSQL."
    finally:
        forget_secrets()
