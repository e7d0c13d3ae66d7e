"""Messages that are not UTF-8 are refused before a tool stores the characters that would stand for their bytes."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from e2e.test_front import Starts, has_server
from mcp_batteries.testing.wire import MODERN, HttpWire, Message, StdioWire
from mcp_batteries.transports.batches import Batches, members
from mcp_batteries.transports.jsonrpc import Malformed, NotUtf8, parse
from shared.http_subject import Subject, opened, running

ERAS = ("2025-11-25", MODERN)
ENCODINGS = {
    "latin-1": "café",
    "gbk": "中文",
    "big5": "許功蓋",
    "shift_jis": "表示",
    "euc-kr": "한국",
    "cp1251": "привет",
    "utf-16": "é",
}
ARRAYS = "2025-03-26"
NEXT_MOVE = "Encode the whole message as UTF-8"


def writing(wire: StdioWire | HttpWire, path: str) -> tuple[Message, bytes]:
    """A call that writes MARK, and its line."""
    message = wire.message("tools/call", {"name": "write_file", "arguments": {"path": path, "content": "MARK"}})
    return message, json.dumps(message).encode()


def encoded(text: str, encoding: str) -> bytes:
    return text.encode(encoding).replace(b"\n", b"")


@pytest.mark.slow
@pytest.mark.share(1)
@pytest.mark.anyio
@pytest.mark.parametrize("revision", ERAS)
async def test_nothing_is_written_of_what_comes_in_another_encoding_on_the_pipe(revision: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mcp_fs", str(tmp_path)]
    async with StdioWire(command, revision=revision) as wire:
        first, line = writing(wire, "first.txt")
        await wire.send_raw(line.replace(b"MARK", b"caf\xe9") + b"\n")
        refused = await wire.next_message(lambda received: received.get("id") == first["id"])
        assert refused["error"]["code"] == -32700
        await wire.open()
        for encoding, text in ENCODINGS.items():
            call, line = writing(wire, f"{encoding}.txt")
            sent = line.replace(b"MARK", encoded(text, encoding))
            await wire.send_raw(sent + b"\n")
            refused = await wire.next_message()
            assert refused["id"] in (call["id"], None)
            assert refused["error"]["code"] == -32700
            assert f"not UTF-8 at byte {place_of_damage(sent)} " in refused["error"]["message"]
            assert NEXT_MOVE in refused["error"]["message"]
        await wire.call("write_file", path="good.txt", content="café")
    assert [path.name for path in tmp_path.iterdir()] == ["good.txt"]


def place_of_damage(line: bytes) -> int:
    """The first byte, counted from 1, with which `line` can't go on as UTF-8."""
    try:
        line.decode()
    except UnicodeDecodeError as exc:
        return exc.start + 1
    raise AssertionError("all of it is UTF-8")


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    return [sys.executable, "-m", "mcp_fs", "--transport", "http", "--port", "0", str(tmp_path)]


@pytest.mark.share(1)
@pytest.mark.anyio
@pytest.mark.parametrize("revision", ERAS)
async def test_nothing_is_written_of_what_comes_in_another_encoding_over_http(
    revision: str, command: list[str], tmp_path: Path
) -> None:
    async with running(command) as subject, opened(subject, revision) as wire:
        for encoding, text in ENCODINGS.items():
            call, line = writing(wire, f"{encoding}.txt")
            sent = line.replace(b"MARK", encoded(text, encoding))
            headers = wire.headers_for(call)
            refused = await wire.send_raw(sent, headers)
            assert refused.status_code == 400
            assert refused.json()["id"] in (call["id"], None)
            assert f"not UTF-8 at byte {place_of_damage(sent)} " in refused.json()["error"]["message"]
            headers["content-type"] = f"application/json; charset={encoding}"
            refused = await wire.send_raw(sent, headers)
            assert refused.status_code == 415
            assert f"not `{encoding}`" in refused.json()["error"]["message"]
        assert not list(tmp_path.iterdir())
        await served_charsets(wire)
        await refused_array(subject)
    assert [path.name for path in tmp_path.iterdir()] == ["good.txt"]


async def served_charsets(wire: HttpWire) -> None:
    for parameter in ("", ";", "; charset=utf-8", '; CHARSET="UTF-8"', "; charset=us-ascii", "; profile=x"):
        call, line = writing(wire, "good.txt")
        headers = {**wire.headers_for(call), "content-type": f"application/json{parameter}"}
        answer = await wire.send_raw(line, headers)
        assert answer.status_code == 200, parameter
    for parameter in ("; charset=utf-16", "; charset=", "; charset*=utf-8''gbk", "; charset=utf-7"):
        call, line = writing(wire, "bad.txt")
        headers = {**wire.headers_for(call), "content-type": f"application/json{parameter}"}
        answer = await wire.send_raw(line, headers)
        assert answer.status_code == 415, parameter


async def refused_array(subject: Subject) -> None:
    async with opened(subject, ARRAYS) as wire:
        calls = [writing(wire, f"{number}.txt")[1] for number in range(2)]
        sent = b"[" + b",".join([calls[0], calls[1].replace(b"MARK", b"caf\xe9")]) + b"]"
        refused = await wire.send_raw(sent)
        assert refused.status_code == 400
        assert "not UTF-8" in refused.json()["error"]["message"]


def test_an_array_on_the_pipe_is_refused_for_each_of_its_calls() -> None:
    batches = Batches()
    hello = parse(b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}')
    batches.negotiate(hello)  # pyright: ignore[reportArgumentType]
    ping = '{"jsonrpc":"2.0","id":%s,"method":"ping","params":{"a":"MARK"}}'
    told = '{"jsonrpc":"2.0","method":"notifications/MARK"}'
    texts = [ping % 1, ping % '"b"', told]
    line = f"[{','.join(texts)}]".encode().replace(b"MARK", b"caf\xe9")
    found = batches.split(line, lambda number: False)
    assert found is not None
    messages, answer = found
    assert not messages
    answers = json.loads(answer)
    assert [one["id"] for one in answers] == [1, "b"]
    assert all(one["error"]["code"] == -32700 and "not UTF-8" in one["error"]["message"] for one in answers)
    for nobody in (b"[\xe9]", b"[" + told.encode().replace(b"MARK", b"\xe9") + b"]"):
        found = batches.split(nobody, lambda number: False)
        assert found is not None
        assert json.loads(found.answer)["id"] is None
    with pytest.raises(NotUtf8):
        members(line)


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.skipif(sys.platform == "darwin", reason="asks Linux or Windows what a process has loaded")
async def test_stored_answers_are_for_lines_that_the_server_takes(tmp_path: Path) -> None:
    starts = Starts("mcp_fs", [str(tmp_path)], tmp_path)
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "MARK", "version": "1"}}
    line = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}).encode()
    for mark in (b"plain", b"caf\xe9", b"caf\xe9", b"plain", b"caf\xe9"):
        async with starts.start() as wire:
            await wire.send_raw(line.replace(b"MARK", mark) + b"\n")
            answer = await wire.next_message()
            assert answer["id"] == 0
            assert ("result" in answer) == (mark == b"plain")
            if mark != b"plain":
                assert "not UTF-8 at byte" in answer["error"]["message"]
                assert has_server(wire)


def drawn(seed: int) -> Iterator[bytes]:
    """Messages with bytes of any encoding anywhere."""
    dice = Random(seed)
    message = {"jsonrpc": "2.0", "id": 5, "method": "x", "params": {"a": ["ä€😀", {"key": "b"}]}, "extra": "c"}
    kinds = [message, {**message, "id": "five"}, {name: message[name] for name in ("jsonrpc", "method", "params")}]
    while True:
        line = json.dumps(dice.choice(kinds), ensure_ascii=dice.random() < 0.5).encode()
        at = dice.randrange(len(line) + 1)
        match dice.randrange(4):
            case 0:
                encoding = dice.choice(list(ENCODINGS))
                yield line[:at] + encoded(ENCODINGS[encoding], encoding) + line[at:]
            case 1:
                yield line[:at] + line[at + 1 :]
            case 2:
                yield line[:at] + bytes([dice.randrange(128, 256)]) + line[at:]
            case _:
                yield line[:at] + b"\xed\xa0\xbd" + line[at:]


@pytest.mark.parametrize("count", [3_000, pytest.param(300_000, marks=pytest.mark.weekly)])
def test_a_line_is_taken_only_if_it_is_utf8(count: int) -> None:
    lines = drawn(count)
    damaged = 0
    for _ in range(count):
        line = next(lines)
        try:
            line.decode()
            is_utf8 = True
        except UnicodeDecodeError:
            is_utf8 = False
            damaged += 1
        try:
            parse(line)
        except Malformed as wrong:
            assert isinstance(wrong, NotUtf8) == (not is_utf8), line
            assert wrong.request_id in (5, "five", None), line
        else:
            assert is_utf8, line
    assert damaged > count / 3
