"""The hardened stdio transport against a server that misbehaves on request (`toy_server.py`)."""

import json
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any

import anyio
import pytest
from mcp_types.jsonrpc import (
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from mcp_batteries.sdk import lowlevel
from mcp_batteries.testing.wire import MODERN, Message, StdioWire, WireError
from mcp_batteries.testing.wire.base import SECONDS
from mcp_batteries.transports.jsonrpc import Malformed, dump, parse, peek_id
from mcp_batteries.transports.stdio.serve import Claim, serve
from shared.stdio_subject import OPENING, TOY, WAYS, call, on_posix, text_of, toy, toy_on_thread
from shared.toy_server import server

ERAS = pytest.mark.parametrize("revision", ["2025-11-25", MODERN])


async def begin(wire: StdioWire, tool: str, **arguments: Any) -> int:
    """Send a call and return its id without waiting."""
    message = wire.message("tools/call", {"name": tool, "arguments": arguments})
    await wire.send_raw(json.dumps(message).encode() + b"\n")
    return message["id"]


# What goes over the wire


@pytest.mark.slow
@pytest.mark.share(1)
@pytest.mark.diagonal
@pytest.mark.anyio
@ERAS
@WAYS
async def test_a_thousand_calls_at_once_are_all_answered(way: str, revision: str) -> None:
    async with toy(way, revision=revision) as wire:
        await wire.open()
        answers: dict[int, str] = {}

        async def one(number: int) -> None:
            answers[number] = text_of(await wire.call("echo", text=f"call {number}"))

        async with anyio.create_task_group() as tasks:
            for number in range(1000):
                tasks.start_soon(one, number)
        assert answers == {number: f"call {number}" for number in range(1000)}


@pytest.mark.share(1)
@pytest.mark.anyio
@ERAS
async def test_what_is_not_unicode_is_replaced_and_sent(revision: str) -> None:
    async with toy_on_thread(revision=revision) as wire:
        await wire.open()
        assert text_of(await wire.call("surrogate")) == "caf\ufffd.txt"
        assert (await wire.call("surrogate", raising=True))["isError"]
        message = wire.message("tools/call", {"name": "progress", "arguments": {"count": 2}})
        message["params"].setdefault("_meta", {})["progressToken"] = "p"
        await wire.send_raw(json.dumps(message).encode() + b"\n")
        told = await wire.notification("notifications/progress", lambda params: params["progress"] == 1)
        assert told["message"] == "\ufffd"
        assert "result" in await wire.next_message(lambda received: received.get("id") == message["id"])


@pytest.mark.anyio
async def test_what_comes_in_cut_is_repaired_and_served() -> None:
    async with toy_on_thread() as wire:
        await wire.open()
        for sent, heard in {b"\\ud83d": "\ufffd", b"\\ud83d\\ude00": "\U0001f600"}.items():
            call = wire.message("tools/call", {"name": "echo", "arguments": {"text": "MARK"}})
            await wire.send_raw(json.dumps(call).encode().replace(b"MARK", sent) + b"\n")
            answer = await wire.next_message(lambda received, call=call: received.get("id") == call["id"])
            assert text_of(answer["result"]) == heard


def spoken(revision: str, *lines: Any) -> list[Any]:
    """What the toy says to `lines` behind a handshake, and then to the end of input."""
    client = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    handshake = [asks(0, "initialize", **client), {"jsonrpc": "2.0", "method": "notifications/initialized"}]
    sent = "".join(json.dumps(line) + "\n" for line in [*handshake, *lines])
    said = [json.loads(line) for line in serve_on_thread(sent.encode()).splitlines()]
    assert said[0]["result"]["protocolVersion"] == revision
    return said[1:]


def serve_on_thread(sent: bytes) -> bytes:
    """What a toy of this process writes into a file when it reads `sent` from another."""
    low = lowlevel(server)
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as sink, ThreadPoolExecutor(1) as thread:
        source.write(sent)
        source.seek(0)
        claim = Claim(source.fileno(), sink.fileno())
        serving = thread.submit(anyio.run, serve, low, low.create_initialization_options(), claim)
        serving.result(SECONDS)
        sink.seek(0)
        return sink.read()


def asks(number: Any, method: str, **params: Any) -> Message:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def test_the_revision_with_batches_has_them_answered_as_one() -> None:
    echo = asks("a", "tools/call", name="echo", arguments={"text": "one"})
    notice = {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}
    wrong = {"jsonrpc": "2.0", "id": 7, "method": 5}
    first, second, *rest = sorted(
        spoken(
            "2025-03-26",
            [notice],
            [echo, notice, asks(1, "ping"), wrong, 3, asks(2, "initialize")],
            [wrong],
            asks(9, "ping"),
        ),
        key=lambda said: (isinstance(said, dict), -len(said)),
    )
    answers = {said["id"]: said.get("result", {}).get("content") or said.get("error", {}).get("code") for said in first}
    assert len(first) == 5 and answers == {
        "a": [{"type": "text", "text": "one"}], 1: None, 7: -32600, None: -32600, 2: -32600,
    }  # fmt: skip
    assert [said["id"] for said in second] == [7]
    assert [said["id"] for said in rest] == [9]


def test_an_array_of_nothing_is_told_so_where_there_are_batches() -> None:
    (said,) = spoken("2025-03-26", [])
    assert said["error"] == {"code": -32600, "message": "Invalid request: there is no message in this array."}


def test_a_batch_goes_out_without_the_call_that_was_cancelled() -> None:
    slow = asks("slow", "tools/call", name="slow", arguments={"seconds": 60})
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "slow"}}
    assert [[said["id"] for said in one] for one in spoken("2025-03-26", [asks(1, "ping"), slow], cancelled)] == [[1]]


def test_a_batch_does_not_take_the_answers_of_other_calls() -> None:
    slow = asks("slow", "tools/call", name="slow", arguments={"seconds": 0.2})
    batch, call = sorted(spoken("2025-03-26", slow, [slow, asks(1, "ping")]), key=lambda said: isinstance(said, dict))
    assert {said["id"]: "error" in said for said in batch} == {"slow": True, 1: False}
    assert call["id"] == "slow" and "result" in call


@pytest.mark.slow
def test_a_batch_of_too_many_calls_is_answered_whole() -> None:
    calls = [asks(number, "tools/call", name="slow", arguments={"seconds": 0.01}) for number in range(2100)]
    (batch,) = spoken("2025-03-26", calls)
    assert sorted(said["id"] for said in batch) == list(range(2100))
    assert {said["error"]["code"] for said in batch if "error" in said} <= {-32000}


@pytest.mark.share(1)
@pytest.mark.parametrize("revision", ["2024-11-05", "2025-06-18", "2025-11-25"])
def test_other_revisions_have_no_batches(revision: str) -> None:
    (said,) = spoken(revision, [asks(1, "ping"), asks(2, "ping")])
    assert said["id"] is None and said["error"]["code"] == -32600


@pytest.mark.anyio
async def test_stray_output_stays_off_the_wire() -> None:
    async with toy() as wire:
        await wire.open()
        # Leaving the block fails if anything but JSON-RPC came out of stdout.
        assert "EOF" in text_of(await wire.call("stray"))
    for words in ("start", "print", "flushed", "write", "C", "child"):
        assert f"stray {words}" in wire.stderr.splitlines()


@pytest.mark.slow
@pytest.mark.anyio
async def test_stderr_that_nobody_reads_blocks_nothing() -> None:
    async with toy(read_stderr=False) as wire:
        await wire.open()
        for _ in range(3):
            assert text_of(await wire.call("shout", size=2_000_000)) == "done"
        for _ in range(300):
            assert (await wire.call("fail"))["isError"]
    assert wire.process.returncode == 0


@pytest.mark.slow
@pytest.mark.share(1)
@pytest.mark.anyio
@WAYS
async def test_a_large_text_goes_in_and_out_whole(way: str) -> None:
    text = "naïve \u2028 \U0001f600\n" * 500_000
    async with toy(way) as wire:
        await wire.open()
        assert text_of(await wire.call("echo", text=text)) == text


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_flood_of_notifications_lets_others_in() -> None:
    async with toy() as wire:
        await wire.open()
        message = wire.message("tools/call", {"name": "progress", "arguments": {"count": 20_000}})
        message["params"]["_meta"] = {"progressToken": "p"}
        await wire.send_raw(json.dumps(message).encode() + b"\n")
        await wire.call("echo", text="quick")
        assert not any(received.get("id") == message["id"] for received in wire.messages)
        await wire.next_message(lambda received: received.get("id") == message["id"])


# Limits


@pytest.mark.anyio
async def test_a_line_too_long_is_answered_and_skipped() -> None:
    long = "x" * 300_000
    async with toy_on_thread("max_line=100000") as wire:
        await wire.open()
        for line, expected in {
            f'{{"jsonrpc":"2.0","id":71,"method":"tools/list","params":{{"a":"{long}"}}}}': 71,
            f'{{"method":"tools/list","params":{{"a":"{long}"}},"jsonrpc":"2.0","id":"tail"}}': "tail",
            f'{{"method":"tools/list","jsonrpc":"2.0","params":{{"a":"{long}","id":5}}}}': None,
            long: None,
        }.items():
            await wire.send_raw(line.encode() + b"\n")
            answer = await wire.next_message()
            assert (answer["id"], answer["error"]["code"]) == (expected, -32600)
            assert "100000" in answer["error"]["message"]
        assert text_of(await wire.call("echo", text="x" * 90_000)) == "x" * 90_000


@pytest.mark.anyio
async def test_calls_beyond_the_limit_are_refused() -> None:
    async with toy("max_in_flight=3") as wire:
        await wire.open()
        waiting = [await begin(wire, "stuck") for _ in range(3)]
        with pytest.raises(WireError, match="limit is 3") as refused:
            await wire.call("echo", text="one too many")
        assert refused.value.code == -32000
        await wire.notify("notifications/cancelled", {"requestId": waiting[0]})
        assert text_of(await wire.call("echo", text="room again")) == "room again"
        wire.process.terminate()


@pytest.mark.share(1)
@pytest.mark.anyio
@ERAS
async def test_an_id_in_flight_is_not_taken_twice(revision: str) -> None:
    async with toy_on_thread(revision=revision) as wire:
        await wire.open()

        async def send(request_id: int | str, tool: str, **arguments: Any) -> None:
            message = wire.message("tools/call", {"name": tool, "arguments": arguments})
            await wire.send_raw(json.dumps({**message, "id": request_id}).encode() + b"\n")

        await send(500, "slow", seconds=60)
        await send(500, "echo", text="second")
        assert (await wire.next_message())["error"]["code"] == -32600
        await send("500", "slow", seconds=60)  # A text is another id than a number.
        await wire.notify("notifications/cancelled", {"requestId": "500"})
        await send("500", "echo", text="the text is free")
        assert text_of((await wire.next_message())["result"]) == "the text is free"
        await send(500, "echo", text="the number is not")
        assert (await wire.next_message())["error"]["code"] == -32600
        await wire.notify("notifications/cancelled", {"requestId": 500})
        for _ in range(2):  # Free again once cancelled, and once answered.
            await send(500, "echo", text="again")
            assert text_of((await wire.next_message())["result"]) == "again"


# The way out


@pytest.mark.share(1)
@pytest.mark.diagonal
@pytest.mark.anyio
@ERAS
@WAYS
async def test_end_of_input_behind_calls_answers_them_all(way: str, revision: str) -> None:
    async with toy(way, revision=revision) as wire:
        await wire.open()
        calls = {await begin(wire, "slow", seconds=0.2) for _ in range(5)}
        await wire.close_stdin()
        assert await wire.wait() == 0
        assert {message["id"] for message in wire.messages if "result" in message} == calls
    assert "lifespan left" in wire.stderr


@pytest.mark.anyio
async def test_a_last_line_without_a_newline_is_served() -> None:
    async with toy_on_thread() as wire:
        await wire.open()
        await wire.send_raw(json.dumps(wire.message("tools/list")).encode())
        await wire.close_stdin()
        await wire.wait()
        assert "result" in wire.messages[0]


@pytest.mark.anyio
async def test_a_listener_does_not_hold_the_exit() -> None:
    async with toy("drain_seconds=600", revision=MODERN) as wire:
        await wire.open()
        await wire.subscribe("toy://x")
        await wire.close_stdin()
        assert await wire.wait() == 0


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_question_to_a_client_that_left_is_answered_in_its_place() -> None:
    async with toy("drain_seconds=600", capabilities={"roots": {}}) as wire:
        await wire.open()
        call = await begin(wire, "ask")
        await wire.next_message(lambda message: message.get("method") == "roots/list")
        await wire.close_stdin()
        assert "The client has left" in json.dumps(await wire.next_message(lambda got: got.get("id") == call))
        assert await wire.wait() == 0


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_question_that_is_answered_goes_on() -> None:
    async with toy(capabilities={"roots": {}}) as wire:
        await wire.open()
        call = await begin(wire, "ask")
        question = await wire.next_message(lambda message: message.get("method") == "roots/list")
        await wire.respond(question["id"], {"roots": [{"uri": "file:///here"}]})
        await wire.close_stdin()
        answer = await wire.next_message(lambda message: message.get("id") == call)
        assert "file:///here" in text_of(answer["result"])


@pytest.mark.share(2)
@pytest.mark.diagonal
@on_posix
@pytest.mark.anyio
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
@pytest.mark.parametrize("tool", [None, "slow", "stubborn", "stuck", "blockade"])
async def test_a_signal_ends_it(number: signal.Signals, status: int, tool: str | None) -> None:
    async with toy() as wire:
        await wire.open()
        if tool:
            await begin(wire, tool, **({"seconds": 600} if tool == "slow" else {}))
        if tool == "blockade":
            with anyio.fail_after(10):
                while "blocked" not in wire.stderr:
                    await anyio.lowlevel.checkpoint()
        elif tool:
            await wire.call("echo", text="the call before this one has begun")
        wire.process.send_signal(number)
        assert await wire.wait() == status
    assert ("lifespan left" in wire.stderr) == (tool not in ("stubborn", "blockade"))
    assert "Traceback" not in wire.stderr


@pytest.mark.share(1)
@pytest.mark.diagonal
@pytest.mark.anyio
@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", *(["SIGBREAK"] if sys.platform == "win32" else [])])
@pytest.mark.parametrize("tool", ["slow", "stubborn", "stuck"])
async def test_a_signal_that_is_raised_inside_ends_it(name: str, tool: str) -> None:
    number = signal.Signals[name]
    async with toy() as wire:
        await wire.open()
        await begin(wire, tool, **({"seconds": 600} if tool == "slow" else {}))
        await begin(wire, "strike", number=number)
        assert await wire.wait() == 128 + number
    assert ("lifespan left" in wire.stderr) == (tool != "stubborn")
    assert "Traceback" not in wire.stderr


@pytest.mark.skipif(sys.platform != "win32", reason="Ctrl-C and Ctrl-Break are keys of Windows consoles")
def test_ctrl_break_ends_it() -> None:
    pipe, group = subprocess.PIPE, getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
    with subprocess.Popen(TOY, stdin=pipe, stdout=pipe, stderr=pipe, creationflags=group) as process:
        assert process.stdin and process.stdout and process.stderr
        process.stdin.write(OPENING + call(1, "slow", seconds=600))
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 0
        process.send_signal(signal.CTRL_BREAK_EVENT)
        assert process.wait(10) == 128 + signal.SIGBREAK
        assert b"lifespan left" in process.stderr.read()


@pytest.mark.slow
@pytest.mark.share(1)
@pytest.mark.anyio
@pytest.mark.parametrize("tool", ["stubborn", "stuck"])
async def test_end_of_input_ends_what_does_not_want_to_end(tool: str) -> None:
    async with toy("drain_seconds=0") as wire:
        await wire.open()
        await begin(wire, tool)
        await wire.call("echo", text="the call before this one has begun")
        await wire.close_stdin()
        assert await wire.wait() == 0


@pytest.mark.share(1)
@pytest.mark.anyio
@WAYS
async def test_it_goes_when_its_parent_dies(way: str) -> None:
    # The parent lends its pipes to the server, so that they stay open when it is killed.
    parent = "import subprocess, sys; subprocess.run(sys.argv[1:])"
    async with StdioWire([sys.executable, "-c", parent, *TOY, way]) as wire:
        await wire.open()
        wire.process.kill()
        assert await wire.wait() == (
            1 if sys.platform == "win32" else -signal.SIGKILL
        )  # And the last holder of stdout is gone.
    assert "lifespan left" in wire.stderr


FAILS = """
import anyio
from contextlib import asynccontextmanager
from mcp.server.lowlevel import Server
from mcp_batteries.transports.stdio import serve as stdio

@asynccontextmanager
async def lifespan(_):
    raise LookupError("no database")
    yield

server = Server("toy", lifespan=lifespan)
try:
    anyio.run(stdio.serve, server, server.create_initialization_options(), stdio.claim())
except LookupError as error:
    raise SystemExit(f"could not start: {error}")
"""


def test_a_server_that_cannot_start_says_so_unwrapped() -> None:
    done = subprocess.run([sys.executable, "-c", FAILS], capture_output=True, timeout=20, check=False)
    assert (done.returncode, done.stdout, done.stderr.splitlines()) == (1, b"", [b"could not start: no database"])


@pytest.mark.reported("Neoteroi/BlackSheep#561")
def test_a_server_whose_tools_would_have_no_descriptions_says_so() -> None:
    command = [sys.executable, "-OO", "-m", "mcp_fs", "."]
    done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=60, check=False, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Python runs without docstrings, which describe the tools")


# Lines


def test_what_cannot_be_written_becomes_an_internal_error() -> None:
    answer = JSONRPCResponse(jsonrpc="2.0", id="a", result={"x": object()})
    assert json.loads(dump(answer))["error"]["code"] == -32603
    assert json.loads(dump(answer))["id"] == "a"
    assert dump(JSONRPCNotification(jsonrpc="2.0", method="m", params={"x": object()})) == b""


def test_surrogates_are_replaced_in_keys_too() -> None:
    answer = JSONRPCResponse(jsonrpc="2.0", id=1, result={"k\udce9": ["\udce9", {"a": None}]})
    assert json.loads(dump(answer))["result"] == {"k\ufffd": ["\ufffd", {"a": None}]}


@pytest.mark.parametrize(
    ("head", "tail", "expected"),
    [
        (b'{"id":5,"params":{"a":"xx', b"", 5),
        (b'{"id":true,"params":{"a":"xx', b'"id":7}', None),
        (b'{"params":{"id":5,"a":"xx', b'xx"}, "id" : -7 }\r', -7),
        (b'{"params":{"id":5,"a":"xx', b'xx"},"id":"seven"}', "seven"),
        (b'{"params":{"a":"xx', b'xx","id":7}}', None),
        (b'{"id":5.0,"params":{"a":"xx', b"", 5),
        (b'{"id":5.5,"params":{"a":"xx', b"", None),
        (b'{"params":{"a":"xx', b'xx"},"id":7.0}', 7),
        (b'{"params":{"a":"xx', b'xx"},"id":7.5}', None),
        (b'{"params":{"a":"xx', b'xx \\"id\\":7}"}', None),
        (b"xxxx", b"xxxx", None),
        (b'{"id":5,"params":' + b"[" * 5000, b"", 5),
        (b'{"params":{"id":[[1]],"a":"]}"}, "id" : "x\\u0041" ,"a":[[', b"", "xA"),
        (b'{"params":[{"id":6}],"i":5,"a":[[', b"", None),
        (b'[{"id":5},', b"", None),
        (b'{"id":12', b"", None),
        (b'{"a":"id","b":7,"c":', b"", None),
        (b'{"id":5,"result":{"a":"xx', b'xx"}}', None),
        (b'{"result":{"a":"xx', b'xx"},"id":5}', None),
        (b'{"id":"5 xx', b'xx"}', None),
    ],
)
def test_the_id_of_a_long_line_is_found_at_its_ends(head: bytes, tail: bytes, expected: Any) -> None:
    assert peek_id(head, tail) == expected


def test_the_id_beside_a_text_full_of_quotes_is_found_in_one_pass() -> None:
    # Such a text is the JSON that a model writes to a file. Looking for strings in what is cut off would take hours.
    assert peek_id(b'{"id":5,"params":{"a":"' + b'\\"' * 500_000, b"") == 5


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"action": "decline", "content": [], "_meta": []}, {"action": "decline", "content": {}, "_meta": {}}),
        ({"action": "accept", "content": {"several": []}}, {"action": "accept", "content": {"several": []}}),
        ({"roots": [], "_meta": []}, {"roots": [], "_meta": {}}),
        ({"role": "assistant", "model": "m", "content": []}, {"role": "assistant", "model": "m", "content": []}),
        ([], None),
        (5, None),
    ],
)
def test_an_answer_of_a_user_is_read_as_php_writes_it(answer: Any, expected: Any) -> None:
    """A user who had said yes or no was taken for one who had said nothing."""
    responses = {"a": answer}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"inputResponses": responses}}
    assert parse(json.dumps(request).encode()).params["inputResponses"] == {
        "a": answer if expected is None else expected
    }
    if expected is not None:
        response = {"jsonrpc": "2.0", "id": 1, "result": answer}
        assert parse(json.dumps(response).encode()).result == expected


@pytest.mark.parametrize("method", ["notifications/initialized", "notifications/cancelled"])
def test_a_notice_is_read_as_php_writes_it(method: str) -> None:
    """The SDK passed over it, so that a session did not begin, or a call was not cancelled."""
    notice = {"jsonrpc": "2.0", "method": method, "params": {"requestId": 1, "_meta": []}}
    assert parse(json.dumps(notice).encode()).params == {"requestId": 1, "_meta": {}}


@pytest.mark.parametrize("request_id", [b"7", b"7.0"])
@pytest.mark.parametrize("value", [b"1" * 5000, b'"caf\xe9"', b"[" * 300 + b"]" * 300])
def test_a_request_that_cannot_be_read_is_answered_where_its_sender_waits(request_id: bytes, value: bytes) -> None:
    line = b'{"jsonrpc":"2.0","id":%s,"method":"tools/list","params":{"a":%s}}' % (request_id, value)
    with pytest.raises(Malformed) as refused:
        parse(line)
    assert refused.value.request_id == 7


@pytest.mark.parametrize("depth", [201, 5000, 200_000])
@pytest.mark.parametrize(
    "shape",
    [
        b'{"jsonrpc":"2.0","id":7,"method":"x","params":{"a":%s}}',
        b'{"method":"x","params":{"id":1,"a":%s},"id":7}',
    ],
)
def test_what_is_nested_too_deeply_is_answered_with_its_id(shape: bytes, depth: int) -> None:
    with pytest.raises(Malformed, match="200 levels") as wrong:
        parse(shape % (b"[" * depth + b"]" * depth))
    assert (wrong.value.code, wrong.value.request_id) == (-32700, 7)


@pytest.mark.parametrize("missing", ["", "jsonrpc", "method"])
def test_a_request_is_one_whatever_else_it_holds(missing: str) -> None:
    nothing: Any = object()
    members: dict[str, tuple[Any, ...]] = {
        "id": (nothing, 1, 2**70, "a", None, 1.5, True, []),
        "params": (nothing, {}, {"a": [1]}, None, [1], "p"),
        "result": (nothing, {}, None),
        "error": (nothing, {"code": 1, "message": "m"}, None),
    }
    for values in product(*members.values()):
        said: dict[str, Any] = {"jsonrpc": "2.0", "method": "m", **dict(zip(members, values, strict=True))}
        said = {name: value for name, value in said.items() if value is not nothing and name != missing}
        line = json.dumps(said).encode()
        try:
            expected: object = JSONRPCRequest.model_validate(said, by_name=False)
        except ValidationError:
            try:
                expected = jsonrpc_message_adapter.validate_python(said, by_name=False)
            except ValidationError:
                expected = None
        is_response = "method" not in said and ("result" in said or "error" in said)
        if expected is None and is_response and type(said.get("id")) in (int, str):
            answer = parse(line)
            assert isinstance(answer, JSONRPCError) and answer.error.message == "The response is not valid."
        elif expected is None or ("id" in said and "method" in said and not isinstance(expected, JSONRPCRequest)):
            with pytest.raises(Malformed):
                parse(line)
        else:
            assert parse(line) == expected


@pytest.mark.reported("laravel/mcp#206")
@pytest.mark.reported("yurineko73/Godot-MCP-Native#16")
def test_an_id_that_is_a_whole_float_is_the_integer() -> None:
    """JSON Schema takes 7.0 for an integer, and libraries with one kind of number write every id so."""
    request = parse(b'{"jsonrpc":"2.0","id":7.0,"method":"ping"}')
    assert isinstance(request, JSONRPCRequest) and str(request.id) == "7"
    response = parse(b'{"jsonrpc":"2.0","id":7.0,"result":{}}')
    assert isinstance(response, JSONRPCResponse) and str(response.id) == "7"
    notice = parse(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7.0}}')
    assert isinstance(notice, JSONRPCNotification) and str((notice.params or {})["requestId"]) == "7"
    for other in (b"7.5", b"1e400", b"1e17", b"NaN"):
        with pytest.raises(Malformed, match="`id` must be a string or an integer"):
            parse(b'{"jsonrpc":"2.0","id":' + other + b',"method":"ping"}')


def test_a_malformed_line_says_what_is_wrong() -> None:
    with pytest.raises(Malformed, match="`params` must be an object") as wrong:
        parse(b'{"jsonrpc":"2.0","id":3,"method":"m","params":[1]}')
    assert (wrong.value.code, wrong.value.request_id) == (-32600, 3)


def test_what_pydantic_does_not_write_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """On Windows it goes no deeper than 99 levels; the HTTP transport hands on what was written again."""
    params: dict[str, Any] = {"a": "é\ud800"}
    for _ in range(90):
        params = {"b": [params]}
    deep = {"jsonrpc": "2.0", "id": 1, "method": "x", "params": params}
    message = parse(json.dumps(deep).encode())
    as_it_is = dump(message)
    for name in ("model_dump_json", "model_dump"):
        monkeypatch.setattr(type(message), name, lambda *_, **__: json.loads(""))
    assert (
        json.loads(dump(message)) == json.loads(as_it_is) == json.loads(json.dumps(deep).replace("\\ud800", "\ufffd"))
    )
