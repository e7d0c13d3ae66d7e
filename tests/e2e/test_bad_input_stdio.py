"""Over a hundred malformed inputs on the pipe, in each era: the server answers as JSON-RPC says, and lives.

The cases name no tool, so any server can be the subject. Each goes to one long-lived process: what a case
leaves behind would show in the ones after it.
"""

import json
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mcp_batteries.testing.wire import MODERN, Message, StdioWire, Wire
from thinning import few

ERAS = ("2025-11-25", MODERN)
TESTS = Path(__file__).parents[1]
SUBJECTS = {
    "toy": [sys.executable, str(TESTS / "shared" / "toy_server.py")],
    "mcp-fs": [sys.executable, "-m", "mcp_fs", "--read-only", str(TESTS / "snapshots")],
}

PARSE, INVALID, UNKNOWN, PARAMS, VERSION = -32700, -32600, -32601, -32602, -32022


@dataclass(frozen=True)
class Case:
    """Bytes to send (a newline follows) and what must come back.

    `codes` are the errors allowed for `id` (None: the JSON null); empty for no answer at all; `served` when the
    request must succeed in spite of its looks.
    """

    name: str
    line: bytes
    id: Any = None
    codes: tuple[int, ...] = ()
    served: bool = False


def no_json() -> list[Case]:
    lines: dict[str, bytes] = {
        "brace": b"{",
        "closing brace": b"}",
        "words": b"hello, server",
        "truncated": b'{"jsonrpc":"2.0","id":901,"method":"tools/list"',
        "truncated in a string": b'{"jsonrpc":"2.0","id":901,"method":"tools/li',
        "truncated in an escape": b'{"jsonrpc":"2.0","id":901,"method":"\\u00',
        "single quotes": b"{'jsonrpc':'2.0','id':901,'method':'tools/list'}",
        "trailing comma": b'{"jsonrpc":"2.0","id":901,"method":"tools/list",}',
        "bare keys": b'{jsonrpc:"2.0",id:901,method:"tools/list"}',
        "comment": b'{"jsonrpc":"2.0","id":901,"method":"tools/list"} // list',
        "missing colon": b'{"jsonrpc" "2.0"}',
        "two messages": b'{"jsonrpc":"2.0","method":"a"}{"jsonrpc":"2.0","method":"b"}',
        "NUL": b"\0",
        "NUL in a string": b'{"jsonrpc":"2.0","id":901,"method":"tools\0list"}',
        "control character in a string": b'{"jsonrpc":"2.0","id":901,"method":"tools\x01list"}',
        "tab in a string": b'{"jsonrpc":"2.0","id":901,"method":"tools\tlist"}',
        "carriage return in a string": b'{"jsonrpc":"2.0","id":901,"method":"tools\rlist"}',
        "bad escape": b'{"jsonrpc":"2.0","id":901,"method":"tools\\xlist"}',
        "bad unicode escape": b'{"jsonrpc":"2.0","id":901,"method":"\\u12G4"}',
        "HTML": b"<html><body>502 Bad Gateway</body></html>",
        "HTTP": b"POST /mcp HTTP/1.1",
        "language server header": b"Content-Length: 120",
        "server-sent event": b'data: {"jsonrpc":"2.0","id":901,"method":"tools/list"}',
        "XML-RPC": b"<?xml version='1.0'?><methodCall/>",
        "YAML": b"jsonrpc: 2.0",
        "shell": b"$(reboot); exit 1",
        "terminal escape": b"\x1b[31mred\x1b[0m",
        "compressed": bytes.fromhex("1f8b08000000000000ff"),
        "bytes": bytes(set(range(256)) - {10}),
        "UTF-16": '{"jsonrpc":"2.0","id":901,"method":"tools/list"}'.encode("utf-16-le"),
        "record separator": b'\x1e{"jsonrpc":"2.0","id":901,"method":"tools/list"}',
        "leading zero": b'{"jsonrpc":"2.0","id":0901,"method":"tools/list"}',
        "plus sign": b'{"jsonrpc":"2.0","id":+901,"method":"tools/list"}',
        "hexadecimal": b'{"jsonrpc":"2.0","id":0x385,"method":"tools/list"}',
        "half a number": b'{"jsonrpc":"2.0","id":9.,"method":"tools/list"}',
        "endless number": b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"tools/list"}',
        "Python literals": b'{"jsonrpc":"2.0","id":None,"method":"tools/list"}',
        "undefined": b'{"jsonrpc":"2.0","id":undefined,"method":"tools/list"}',
        "arrays 100,000 deep": b"[" * 100_000 + b"]" * 100_000,
        "objects 100,000 deep": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        "open arrays": b"[" * 100_000,
        "params 300 deep": b'{"jsonrpc":"2.0","id":901,"method":"x","params":{"a":' + b"[" * 300 + b"]" * 300 + b"}}",
    }
    return [Case(name, line, 901 if "300 deep" in name else None, (PARSE,)) for name, line in lines.items()]


def no_message() -> list[Case]:
    nobody: dict[str, Any] = {
        "empty batch": [],
        "batch of numbers": [1, 2],
        "batch of one": [{"jsonrpc": "2.0", "id": 901, "method": "tools/list"}],
        "batch of two": [{"jsonrpc": "2.0", "id": id_, "method": "tools/list"} for id_ in (901, 902)],
        "null": None,
        "true": True,
        "number": 1,
        "float": 1.5e300,
        "string": "tools/list",
        "empty object": {},
        "version alone": {"jsonrpc": "2.0"},
        "id null": {"jsonrpc": "2.0", "id": None, "method": "tools/list"},
        "id true": {"jsonrpc": "2.0", "id": True, "method": "tools/list"},
        "id false": {"jsonrpc": "2.0", "id": False, "method": "tools/list"},
        "id 1.5": {"jsonrpc": "2.0", "id": 1.5, "method": "tools/list"},
        "id object": {"jsonrpc": "2.0", "id": {"a": 1}, "method": "tools/list"},
        "id array": {"jsonrpc": "2.0", "id": [901], "method": "tools/list"},
        "id infinite": {"jsonrpc": "2.0", "id": float("inf"), "method": "tools/list"},
        "id not a number": {"jsonrpc": "2.0", "id": float("nan"), "method": "tools/list"},
        "id null and bad method": {"jsonrpc": "2.0", "id": None, "method": 1},
        "no version, no id": {"method": "notifications/initialized"},
        "method a number, no id": {"jsonrpc": "2.0", "method": 1, "params": "bar"},
        "notification with params array": {"jsonrpc": "2.0", "method": "notifications/initialized", "params": [1]},
        "notification with params string": {"jsonrpc": "2.0", "method": "notifications/initialized", "params": "x"},
        "result without id": {"jsonrpc": "2.0", "result": {}},
        "result with id true": {"jsonrpc": "2.0", "id": True, "result": {}},
        "error without id": {"jsonrpc": "2.0", "error": {"code": 1, "message": "boom"}},
    }
    base: Message = {"jsonrpc": "2.0", "id": 901, "method": "tools/list"}
    somebody: dict[str, Message] = {
        "version 1.0": {**base, "jsonrpc": "1.0"},
        "version a number": {**base, "jsonrpc": 2.0},
        "version longer": {**base, "jsonrpc": "2.0.0"},
        "version null": {**base, "jsonrpc": None},
        "version missing": {"id": 901, "method": "tools/list"},
        "version misspelt": {"jsonRPC": "2.0", "id": 901, "method": "tools/list"},
        "method missing": {"jsonrpc": "2.0", "id": 901},
        "method null": {**base, "method": None},
        "method a number": {**base, "method": 7},
        "method an array": {**base, "method": ["tools/list"]},
        "method an object": {**base, "method": {}},
        "method true": {**base, "method": True},
        "params array": {**base, "params": [1, 2]},
        "params string": {**base, "params": "x"},
        "params number": {**base, "params": 0},
        "params false": {**base, "params": False},
        "params but no method": {"jsonrpc": "2.0", "id": 901, "params": {}},
        "bad version, string id": {**base, "jsonrpc": "1.0", "id": "nine"},
        "bad version, empty id": {**base, "jsonrpc": "1.0", "id": ""},
        "bad version, unicode id": {**base, "jsonrpc": "1.0", "id": "ключ\u2028"},
        "bad version, negative id": {**base, "jsonrpc": "1.0", "id": -1},
        "bad version, id zero": {**base, "jsonrpc": "1.0", "id": 0},
        "bad version, long id": {**base, "jsonrpc": "1.0", "id": 10**30},
    }
    return [
        *(Case(name, json.dumps(value).encode(), None, (INVALID,)) for name, value in nobody.items()),
        *(Case(name, json.dumps(value).encode(), value["id"], (INVALID,)) for name, value in somebody.items()),
    ]


def no_answer() -> list[Case]:
    def notes(method: str, **params: Any) -> bytes:
        return json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode()

    lines: dict[str, bytes] = {
        "empty line": b"",
        "blanks": b"   ",
        "carriage return": b"\r",
        "tabs": b"\t\t",
        "form feed": b"\x0c",
        "many empty lines": b"\n" * 1000,
        "unknown notification": notes("notifications/nobody_knows"),
        "notification without namespace": notes("x"),
        "notification with an empty method": notes(""),
        "call that wants no answer": notes("tools/call", name="list_directory", arguments={}, requestState="forged"),
        "initialized again": notes("notifications/initialized"),
        "cancel of an unknown call": notes("notifications/cancelled", requestId=123456),
        "cancel of nothing": notes("notifications/cancelled"),
        "cancel of null": notes("notifications/cancelled", requestId=None),
        "cancel of an object": notes("notifications/cancelled", requestId={}),
        "cancel of true": notes("notifications/cancelled", requestId=True),
        "progress of an unknown token": notes("notifications/progress", progressToken=9, progress=1),
        "progress of nothing": notes("notifications/progress"),
        "progress that is text": notes("notifications/progress", progressToken=1, progress="half"),
        "roots changed": notes("notifications/roots/list_changed"),
        "request method without an id": notes("tools/list"),
        "answer to nothing": b'{"jsonrpc":"2.0","id":987654,"result":{}}',
        "answer to nothing, string id": b'{"jsonrpc":"2.0","id":"who","result":{}}',
        "error to nothing": b'{"jsonrpc":"2.0","id":987654,"error":{"code":-1,"message":"no"}}',
        "result a number": b'{"jsonrpc":"2.0","id":987654,"result":5}',
        "result null": b'{"jsonrpc":"2.0","id":987654,"result":null}',
        "error a string": b'{"jsonrpc":"2.0","id":987654,"error":"boom"}',
        "error without code": b'{"jsonrpc":"2.0","id":987654,"error":{"message":"boom"}}',
        "error code a string": b'{"jsonrpc":"2.0","id":987654,"error":{"code":"boom","message":"boom"}}',
        "error to null": b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}',
    }
    return [Case(name, line) for name, line in lines.items()]


def not_utf8(wire: Wire) -> list[Case]:
    """Messages in another encoding, or cut within a character: a tool would store what stands for the bytes."""
    listing = {**wire.message("tools/list", {"_meta": {"mark": "MARK"}}), "id": 901}
    mark = json.dumps(listing).encode()
    cases = {
        "Latin-1 bytes": (mark.replace(b"MARK", b"caf\xe9"), 901),
        "GBK bytes": (mark.replace(b"MARK", "中文".encode("gbk")), 901),
        "GBK bytes that end in a backslash": (mark.replace(b"MARK", "誠".encode("gbk")), 901),
        "Shift JIS bytes": (mark.replace(b"MARK", "日本".encode("shift_jis")), 901),
        "overlong UTF-8": (mark.replace(b"MARK", b"\xc0\xaf"), 901),
        "surrogate as UTF-8": (mark.replace(b"MARK", b"\xed\xa0\xbd"), 901),
        "cut UTF-8": (mark.replace(b"MARK", b"\xf0\x9f\x98"), 901),
        "beyond Unicode": (mark.replace(b"MARK", b"\xf4\x90\x80\x80"), 901),
        "Latin-1 bytes in a key": (mark.replace(b"mark", b"caf\xe9"), 901),
        "Latin-1 bytes in an id": (mark.replace(b"901", b'"caf\xe9"'), None),
        "Latin-1 bytes in the method": (mark.replace(b"tools/list", b"tools/list\xe9"), 901),
        "Latin-1 bytes behind the message": (mark + b"\xe9", 901),
        "Latin-1 bytes in a notification": (b'{"jsonrpc":"2.0","method":"notifications/x\xe9"}', None),
        "Latin-1 bytes in an answer": (b'{"jsonrpc":"2.0","id":901,"result":{"a":"caf\xe9"}}', None),
        "Latin-1 bytes in an array": (b"[" + mark.replace(b"MARK", b"caf\xe9") + b"]", None),
        "Latin-1 bytes and a byte order mark": (b"\xef\xbb\xbf" + mark.replace(b"MARK", b"caf\xe9"), 901),
        "UTF-16 with a byte order mark": (json.dumps(listing).replace("MARK", "é").encode("utf-16"), None),
    }
    return [Case(name, line, request_id, (PARSE,)) for name, (line, request_id) in cases.items()]


def odd_but_right(wire: Wire) -> list[Case]:
    """Lines a careful server serves: JSON allows them, or clients send them and mean well."""

    def listing(**meta: Any) -> Message:
        return {**wire.message("tools/list", {"_meta": meta}), "id": 901}

    plain = json.dumps(listing()).encode()
    mark = json.dumps(listing(mark="MARK")).encode()
    lines: dict[str, bytes] = {
        "byte order mark": b"\xef\xbb\xbf" + plain,
        "CRLF": plain + b"\r",
        "id 901.0": plain.replace(b"901", b"901.0"),
        "blanks around": b" \t " + plain + b"  ",
        "cut emoji, first half": mark.replace(b"MARK", b"\\ud83d"),
        "cut emoji, second half": mark.replace(b"MARK", b"\\ude00"),
        "cut emoji, halves swapped": mark.replace(b"MARK", b"\\ude00\\ud83d"),
        "cut emoji in a key": json.dumps(listing(mark={"KEY": 1})).encode().replace(b"KEY", b"\\ud83d"),
        "whole emoji": mark.replace(b"MARK", b"\\ud83d\\ude00"),
        "line separator": mark.replace(b"MARK", "\u2028\u2029\x85".encode()),
        "escaped NUL": mark.replace(b"MARK", b"\\u0000"),
        "escaped slash": plain.replace(b"tools/list", b"tools\\/list"),
        "escaped letters": plain.replace(b"tools/list", b"\\u0074ools/list"),
        "not a number": json.dumps(listing(mark=float("nan"))).encode(),
        "infinity": json.dumps(listing(mark=float("-inf"))).encode(),
        "number beyond floats": mark.replace(b'"MARK"', b"1e999"),
        "long integer": mark.replace(b'"MARK"', b"9" * 4000),
        "megabyte": json.dumps(listing(mark="x" * 1_000_000)).encode(),
        "10,000 keys": json.dumps(listing(mark={str(n): n for n in range(10_000)})).encode(),
        "100 deep": mark.replace(b'"MARK"', b"[" * 100 + b"]" * 100),
        "unknown members": json.dumps({**listing(), "extra": 1, "Content": []}).encode(),
        "key twice": plain.replace(b'"id"', b'"id": 5, "id"', 1),
        "members in another order": json.dumps(dict(reversed(listing().items()))).encode(),
    }
    cases = [Case(name, line, 901, served=True) for name, line in lines.items()]
    for name, request_id in {
        "id zero": 0,
        "id negative": -7,
        "id beyond 64 bits": 10**30,
        "id empty": "",
        "id of digits": "77",
        "id of blanks": " 5 ",
        "id with quotes": '"\\\n',
        "id of 10,000 characters": "i" * 10_000,
        "id of 5,000 digits": "9" * 5_000,
    }.items():
        cases.append(Case(name, json.dumps({**listing(), "id": request_id}).encode(), request_id, served=True))
    return cases


def wrong_requests(wire: Wire) -> list[Case]:
    """Right messages that ask for what cannot be."""

    def asks(method: str, **params: Any) -> bytes:
        return json.dumps({**wire.message(method, params), "id": 901}).encode()

    bad_params = (PARAMS,)
    cases = {
        "unknown method": (asks("nobody/knows"), (UNKNOWN,)),
        "empty method": (asks(""), (UNKNOWN,)),
        "method in capitals": (asks("TOOLS/LIST"), (UNKNOWN,)),
        "method with a newline": (asks("tools/list\n"), (UNKNOWN,)),
        "reserved method": (asks("rpc.discover"), (UNKNOWN,)),
        "method of a notification": (asks("notifications/initialized"), (UNKNOWN,)),
        "method of 100,000 characters": (asks("m" * 100_000), (UNKNOWN,)),
        "call of nothing": (asks("tools/call"), bad_params),
        "call of a number": (asks("tools/call", name=5), bad_params),
        "call of null": (asks("tools/call", name=None), bad_params),
        "call with arguments array": (asks("tools/call", name="x", arguments=[1]), bad_params),
        "call with arguments text": (asks("tools/call", name="x", arguments="{}"), bad_params),
        "read of nothing": (asks("resources/read"), bad_params),
        "read of a number": (asks("resources/read", uri=1), bad_params),
        "prompt of nothing": (asks("prompts/get"), bad_params),
        "prompt arguments array": (asks("prompts/get", name="x", arguments=[]), bad_params),
        "completion of nothing": (asks("completion/complete"), (PARAMS, UNKNOWN)),
        "completion of text": (asks("completion/complete", ref="x", argument="y"), (PARAMS, UNKNOWN)),
        "cursor a number": (asks("tools/list", cursor=5), bad_params),
        "cursor an object": (asks("tools/list", cursor={}), bad_params),
    }
    if wire.modern:
        envelope = wire.envelope()
        version, _, capabilities = envelope

        def stripped(**params: Any) -> bytes:
            return json.dumps({"jsonrpc": "2.0", "id": 901, "method": "tools/list", "params": params}).encode()

        cases |= {
            "no params": (b'{"jsonrpc":"2.0","id":901,"method":"tools/list"}', bad_params),
            "params null": (b'{"jsonrpc":"2.0","id":901,"method":"tools/list","params":null}', bad_params),
            "no envelope": (stripped(), bad_params),
            "envelope an array": (stripped(_meta=[]), bad_params),
            "envelope without capabilities": (stripped(_meta={version: MODERN}), bad_params),
            "envelope without version": (stripped(_meta={capabilities: {}}), bad_params),
            "envelope version a number": (stripped(_meta={**envelope, version: 2026}), bad_params),
            "envelope version null": (stripped(_meta={**envelope, version: None}), bad_params),
            "envelope version unknown": (stripped(_meta={**envelope, version: "2099-01-01"}), (VERSION,)),
            "envelope version of the other era": (stripped(_meta={**envelope, version: "2025-11-25"}), (VERSION,)),
            "capabilities text": (stripped(_meta={**envelope, capabilities: "all"}), bad_params),
            "handshake": (asks("initialize", protocolVersion="2025-11-25"), (VERSION,)),
            "listen to nothing": (asks("subscriptions/listen"), bad_params),
            "listen to text": (asks("subscriptions/listen", notifications="all"), bad_params),
        }
    else:
        cases |= {
            "envelope of the other era": (
                asks("tools/list", _meta={"io.modelcontextprotocol/protocolVersion": MODERN}),
                (INVALID,),
            ),
            "meta an array": (asks("tools/list", _meta=[1]), bad_params),
            "progress token an object": (asks("tools/list", _meta={"progressToken": {}}), bad_params),
            "log level unknown": (asks("logging/setLevel", level="loud"), (PARAMS, UNKNOWN)),
            "handshake without params": (asks("initialize"), bad_params),
            "handshake with version a number": (
                asks("initialize", protocolVersion=1, capabilities={}, clientInfo={"name": "x", "version": "1"}),
                bad_params,
            ),
            "subscription to nothing": (asks("resources/subscribe"), (PARAMS, UNKNOWN)),
        }
    return [Case(name, line, 901, codes) for name, (line, codes) in cases.items()]


def table(revision: str) -> dict[str, list[Case]]:
    """Return all cases by their kind."""
    shape = StdioWire([], revision=revision)
    return {
        "no JSON": no_json(),
        "no message": no_message(),
        "no answer": no_answer(),
        "not UTF-8": not_utf8(shape),
        "odd but right": odd_but_right(shape),
        "wrong requests": wrong_requests(shape),
    }


@pytest.fixture(scope="module", params=few(SUBJECTS, "toy"))
def command(request: pytest.FixtureRequest) -> list[str]:
    return SUBJECTS[request.param]


@pytest.fixture(scope="module")
async def wires(command: list[str], anyio_backend: str) -> AsyncGenerator[dict[str, StdioWire]]:
    """One process for each era, alive through the whole table."""
    async with StdioWire(command, revision=ERAS[0]) as legacy, StdioWire(command, revision=ERAS[1]) as modern:
        await legacy.open()
        await modern.open()
        yield dict(zip(ERAS, (legacy, modern), strict=True))
    assert (legacy.process.returncode, modern.process.returncode) == (0, 0)


TABLES = {revision: table(revision) for revision in ERAS}


@contextmanager
def about_case(name: str) -> Generator[None]:
    """Say of a failure which case it is of."""
    try:
        yield
    except Exception as failure:
        failure.add_note(f"the case: {name}")
        raise


@pytest.mark.parametrize("revision", ERAS)
def test_the_table_is_as_long_as_promised(revision: str) -> None:
    names = [case.name for cases in TABLES[revision].values() for case in cases]
    assert len(set(names)) == len(names) >= 100


@pytest.mark.anyio
@pytest.mark.parametrize("kind", TABLES[MODERN])
@pytest.mark.parametrize("era", ERAS)
async def test_bad_lines(wires: dict[str, StdioWire], era: str, kind: str) -> None:
    for case in TABLES[era][kind]:
        with about_case(case.name):
            await check_line(wires[era], case)


async def check_line(wire: StdioWire, case: Case) -> None:
    expects_answer = case.served or bool(case.codes)
    await wire.send_raw(case.line + b"\n")
    answers = [await wire.next_message()] if expects_answer else []
    # The next call works, and nothing else was said before its answer.
    assert "tools" in await wire.request("tools/list")
    answers += wire.messages
    wire.messages.clear()

    assert len(answers) == expects_answer, answers
    for answer in answers:
        assert answer["jsonrpc"] == "2.0"
        assert (answer["id"], type(answer["id"])) == (case.id, type(case.id))
        assert ("result" in answer) == case.served, answer
        if not case.served:
            assert answer["error"]["code"] in case.codes, answer
            assert 0 < len(answer["error"]["message"]) < 200_000
        assert "Traceback" not in json.dumps(answer)
        assert ".py" not in json.dumps(answer.get("error", ""))
    assert "Traceback" not in wire.stderr
