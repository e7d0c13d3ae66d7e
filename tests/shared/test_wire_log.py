"""The wire log: every message with its direction, for its owner alone, bounded, and without a secret."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_batteries.errors import Unavailable
from mcp_batteries.observability import wire_log as module
from mcp_batteries.observability.wire_log import WireLog
from mcp_batteries.redaction.own import add_secrets, forget_secrets
from mcp_batteries.redaction.text import redact_json
from mcp_batteries.settings import Settings
from mcp_batteries.settings.declared import remember_secrets
from mcp_batteries.testing.wire import MODERN, HttpWire, StdioWire
from shared.http_subject import running

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True, scope="module")
def no_secrets_stay() -> Iterator[None]:
    yield
    forget_secrets()


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.mark.share(1)
@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
async def test_stdio_is_written_down_both_ways(revision: str, tmp_path: Path) -> None:
    log, secret = tmp_path / "wire.log", "ghp_" + "a1B2" * 9
    (tmp_path / "notes.txt").write_text(f"ä {secret}\n", "utf-8")
    async with StdioWire(
        [sys.executable, "-m", "mcp_fs", "--wire-log", str(log), str(tmp_path)], revision=revision
    ) as wire:
        await wire.open()
        assert secret in json.dumps(await wire.call("read_text", path="notes.txt"))
    said = lines(log)
    assert {line["direction"] for line in said} == {"received", "sent"}
    call = next(line for line in said if line.get("message", {}).get("method") == "tools/call")
    answer = next(
        line for line in said if line["direction"] == "sent" and line["message"].get("id") == call["message"]["id"]
    )
    assert "ä ***" in json.dumps(answer["message"], ensure_ascii=False)
    assert secret not in log.read_text("utf-8")
    if os.name == "posix":
        assert log.stat().st_mode & 0o777 == 0o600


@pytest.mark.share(1)
@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
async def test_http_is_written_down_with_who_and_which_request(revision: str, tmp_path: Path) -> None:
    log = tmp_path / "wire.log"
    command = [sys.executable, "-m", "mcp_fs", "--transport", "http", "--port", "0", "--wire-log", str(log)]
    async with running([*command, str(tmp_path)]) as subject, HttpWire(subject.url, revision=revision) as wire:
        await wire.open()
        await wire.call("get_info", path=".")
    said = lines(log)
    call = next(line for line in said if line.get("message", {}) and line["message"].get("method") == "tools/call")
    assert call["address"] == "127.0.0.1" and call["path"] == "/mcp"
    answers = [line for line in said if line["direction"] == "sent" and line["request"] == call["request"]]
    assert answers and answers[0]["status"] == 200


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=12,
    ),
    st.lists(st.integers(0, 5), max_size=4),
)
def test_a_known_secret_is_masked_wherever_it_stands(data: Any, places: list[int]) -> None:
    secret = 'correct "horse" ünd'

    def planted(value: Any) -> Any:
        match value:
            case str():
                cut = places[0] if places else 0
                return value[:cut] + secret + value[cut:]
            case list():
                return [planted(item) for item in value]
            case dict():
                return {key: planted(item) for key, item in value.items()}
            case _:
                return value

    add_secrets([secret])
    hid = redact_json(planted(data))
    assert secret not in json.dumps(hid, ensure_ascii=False).replace('\\"', '"')


def test_secrets_of_the_settings_are_known(tmp_path: Path) -> None:
    class Own(Settings):
        COMMAND = "mcp-own"

    settings = Own(
        wire_log=str(tmp_path / "wire.log"),
        bus="redis://user:open-sesame@127.0.0.1/0",
        auth_tokens="first-one;second-one",
    )
    remember_secrets(settings)
    log = WireLog(str(settings.wire_log))
    log.note("sent", b'{"a": "open-sesame", "b": "it is second-one"}')
    log.note("received", b"first-one is no JSON")
    log.close()
    written = (tmp_path / "wire.log").read_text("utf-8")
    assert [line.get("message", line.get("text")) for line in lines(tmp_path / "wire.log")] == [
        {"a": "***", "b": "it is ***"},
        "*** is no JSON",
    ]
    assert "sesame" not in written


@pytest.mark.parametrize(
    ("said", "rest"),
    [
        ({"password": "hunter2"}, {"password": "***"}),
        ({"headers": {"Authorization": "Bearer x"}}, {"headers": {"Authorization": "***"}}),
        ({"args": ["--token", "abcd", "--verbose"]}, {"args": ["--token", "***", "--verbose"]}),
        ({"name": "API_KEY", "value": "abcd"}, {"name": "API_KEY", "value": "***"}),
        ({"passwords": ["abcd", "efgh"], "pin_password": 123456}, {"passwords": ["***", "***"], "pin_password": "***"}),
        ({"password": {"type": "string"}}, {"password": {"type": "string"}}),
        ({"progressToken": "p1"}, {"progressToken": "p1"}),
        (
            {"text": "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----\nrest"},
            {"text": "***\nrest"},
        ),
    ],
)
def test_what_looks_or_is_called_like_a_secret_is_masked(said: Any, rest: Any) -> None:
    assert redact_json(said) == rest


def test_the_file_is_bounded_and_a_long_message_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_BYTES", 300_000)
    path = tmp_path / "wire.log"
    log = WireLog(str(path))
    for number in range(10):
        log.note("sent", json.dumps({"number": number, "text": "x" * 100_000}).encode())
    log.close()
    assert sorted(item.name for item in tmp_path.iterdir()) == ["wire.log", "wire.log.1"]
    assert all(item.stat().st_size <= 300_000 for item in tmp_path.iterdir())
    assert all(line["bytes"] > 100_000 and len(line["text"]) == 64 * 1024 for line in lines(path))


def test_a_file_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="wire log"):
        WireLog(str(tmp_path / "no" / "wire.log"))


async def test_a_broken_line_is_written_as_text(tmp_path: Path) -> None:
    log = WireLog(str(tmp_path / "wire.log"))
    log.note("received", b"\xff{nonsense")
    log.note("received", b"   ")
    log.close()
    await anyio.lowlevel.checkpoint()
    assert [line["text"] for line in lines(tmp_path / "wire.log")] == ["\ufffd{nonsense"]
