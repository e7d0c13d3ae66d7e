"""Messages made by chance, for whole servers: whatever comes, they answer by the protocol and go on.

    uv run python tests/e2e/fuzz.py [mcp_fs ...] [--minutes 10] [--seed 1]

Each member in turn gets its share of the time over both transports and in both eras. Messages begin as what a client
could send, from what the server itself lists, and are then spoilt: as JSON, as bytes, in their headers. A finding is an
answer that is not JSON-RPC, that says of itself that it is a defect, that has a text it may never have, or that never
comes; a traceback; an end of the process; or memory that is not given back. It is printed with its seed.
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
if __name__ == "__main__":
    # For a start beside whatever else runs for so long; read as the wires are imported.
    os.environ.setdefault("MCP_TEST_SECONDS", "120")

import argparse
import copy
import json
import random
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import httpx2

from contract.cases import CASES
from mcp_batteries.testing.case import Case
from mcp_batteries.testing.wire import MODERN, HttpWire, Message, StdioWire, Wire, WireClosed, WireError

LEGACY = "2025-11-25"
AT_ONCE = 20
SECONDS = 60.0
GROWN = 200.0
"""Megabytes beyond what a server has once it is warm."""

NASTY: list[Any] = [
    *(None, True, False, 0, -1, 1.5, 2**31, 2**53 + 1, -(2**63), 2**200, 1e308, -0.0),
    *("", " ", "\0", "\n", "a" * 5000, "\ud800", "\u202e", "ﬃ", "%00", "../" * 9, "/etc/passwd", "file:///etc/passwd"),
    *("{}", "[]", "null", "NaN", "1e999", "';--", "$(id)", "${x}", "__proto__", "constructor", "*", "**/**", "(" * 500),
    *([], [[]], {}, {"": ""}, {"$ref": "#"}, {"type": "object"}, [None] * 50),
]


DEEP = {f"{depth} deep": b"[" * depth + b"1" + b"]" * depth for depth in (3, 60, 900, 20_000)}
"""Lists in lists, by what stands for them until a message is bytes."""


class Finding(Exception):
    """What no server may do."""


class Maker:
    """Messages for one server, from what it lists and from what its case knows of it."""

    def __init__(self, dice: random.Random, case: Case, lists: dict[str, list[Any]]) -> None:
        self._dice, self._lists = dice, lists
        words = [*_leaves([arguments for _, arguments in (case.read, *case.refused)]), case.uri]
        # What an answer may never have is not what it was asked with.
        self._words = [word for word in words if not any(text in str(word) for text in case.foreign)]
        self._number = 0

    def message(self, modern: bool) -> tuple[Message, bool]:
        """One message, and whether it is as it should be, so that it must be answered."""
        self._number += 1
        method, params = self._request(modern)
        made: Message = {"jsonrpc": "2.0", "id": f"fuzz-{self._number}", "method": method, "params": params}
        if method.startswith("notifications/"):
            del made["id"]
        if self._dice.random() < 0.3:
            return made, "id" in made and method != "subscriptions/listen"
        for _ in range(self._dice.choice((1, 1, 2, 5))):
            made = self._spoilt(made)
        return made, False

    def text(self, message: Message) -> bytes:
        """`message` as bytes, of which some may be others."""
        text = json.dumps(message).encode("ascii")
        for name, deep in DEEP.items():
            text = text.replace(f'"{name}"'.encode(), deep)
        data = bytearray(text)
        for _ in range(self._dice.choice((0, 0, 0, 1, 3))):
            at = self._dice.randrange(len(data) + 1)
            match self._dice.randrange(4):
                case 0:
                    data[at:at] = self._dice.choice(
                        (b"\0", b"\xff", b"\xed\xa0\x80", b"{", b"]", b'"', b"\\u", b"9" * 50)
                    )
                case 1:
                    del data[at : at + self._dice.randrange(1, 40)]
                case 2:
                    data[at : at + 1] = bytes([self._dice.randrange(256)])
                case _:
                    data[at:at] = data[: self._dice.randrange(len(data) + 1)]
        return bytes(data).replace(b"\n", b" ").replace(b"\r", b" ")

    def _request(self, modern: bool) -> tuple[str, Any]:
        dice, uri = self._dice, self._uri()
        common: list[tuple[str, Any]] = [
            *[("tools/call", self._call()) for _ in range(8)],
            ("tools/list", {}), ("resources/list", {}), ("resources/templates/list", {}), ("prompts/list", {}),
            ("resources/read", {"uri": uri}), ("prompts/get", self._prompt()),
            ("completion/complete", self._completion()),
            ("notifications/cancelled", {"requestId": f"fuzz-{dice.randrange(1, self._number + 1)}"}),
            ("notifications/progress", {"progressToken": 1, "progress": 1}),
        ]  # fmt: skip
        modern_only: list[tuple[str, Any]] = [
            ("server/discover", {}),
            ("subscriptions/listen", {"notifications": {"resourceSubscriptions": [uri], "toolsListChanged": True}}),
        ]
        legacy_only: list[tuple[str, Any]] = [
            ("ping", {}), ("resources/subscribe", {"uri": uri}), ("resources/unsubscribe", {"uri": uri}),
            ("notifications/roots/list_changed", {}),
        ]  # fmt: skip
        return dice.choice(common + (modern_only if modern else legacy_only))

    def _call(self) -> Message:
        tool = self._dice.choice(self._lists["tools"])
        properties: dict[str, Any] = tool["inputSchema"].get("properties", {})
        required: list[str] = tool["inputSchema"].get("required", [])
        named = [name for name in properties if name in required or self._dice.random() < 0.3]
        return {"name": tool["name"], "arguments": {name: self._value(properties[name]) for name in named}}

    def _value(self, schema: Any) -> Any:
        dice = self._dice
        if not isinstance(schema, dict) or dice.random() < 0.1:
            return dice.choice(NASTY)
        known = cast("dict[str, Any]", schema)
        if "enum" in known:
            return dice.choice(known["enum"])
        for several in ("anyOf", "oneOf"):
            if several in known:
                return self._value(dice.choice(known[several]))
        match known.get("type"):
            case "integer" | "number":
                return dice.choice((0, 1, 2, 10, 100, known.get("maximum", 1000), known.get("minimum", -1)))
            case "boolean":
                return dice.random() < 0.5
            case "array":
                return [self._value(known.get("items", {})) for _ in range(dice.choice((0, 1, 1, 2, 5)))]
            case "object":
                return {name: self._value(inner) for name, inner in known.get("properties", {}).items()}
            case _:
                return self._word()

    def _word(self) -> Any:
        word = self._dice.choice(self._words)
        if isinstance(word, str) and self._dice.random() < 0.3:
            at = self._dice.randrange(len(word) + 1)
            return word[:at] + self._dice.choice([item for item in NASTY if isinstance(item, str)]) + word[at:]
        return word

    def _uri(self) -> Any:
        known = [item["uri"] for item in self._lists["resources"]] + [self._word(), self._word()]
        templates = [item["uriTemplate"] for item in self._lists["resourceTemplates"]]
        if templates and self._dice.random() < 0.4:
            return self._dice.choice(templates).replace("{", "").replace("}", "")
        return self._dice.choice(known)

    def _prompt(self) -> Message:
        if not self._lists["prompts"]:
            return {"name": "nothing"}
        prompt = self._dice.choice(self._lists["prompts"])
        return {
            "name": prompt["name"],
            "arguments": {item["name"]: self._word() for item in prompt.get("arguments", [])},
        }

    def _completion(self) -> Message:
        templates = self._lists["resourceTemplates"]
        reference: Message = {"type": "ref/prompt", "name": self._prompt()["name"]}
        if templates and self._dice.random() < 0.5:
            reference = {"type": "ref/resource", "uri": self._dice.choice(templates)["uriTemplate"]}
        return {"ref": reference, "argument": {"name": self._dice.choice(("repo", "path", "x")), "value": self._word()}}

    def _spoilt(self, message: Message) -> Message:
        """A copy with something else in one place, wherever that is."""
        made = copy.deepcopy(message)
        if not made:
            return made
        node: Any = made
        key: Any = self._dice.choice(list(made))
        while isinstance(inner := node[key], dict | list) and inner and self._dice.random() < 0.8:
            node = cast("Any", inner)
            key = self._dice.choice(_keys(node))
        match self._dice.randrange(4):
            case 0:
                del node[key]
            case 1 if isinstance(node, dict):
                node[str(self._dice.choice(NASTY))[:100]] = self._dice.choice(NASTY)
            case 2:
                node[key] = self._dice.choice(list(DEEP))
            case _:
                node[key] = self._dice.choice(NASTY)
        return made


class Judge:
    """Looks at all that a server says."""

    def __init__(self, case: Case) -> None:
        self._foreign = case.foreign
        self.tally = Counter[str]()
        self.said: Callable[[], str] = str
        """What the server has logged."""

    def message(self, answer: Any) -> None:
        for item in cast("list[Any]", answer) if isinstance(answer, list) else [answer]:
            text = json.dumps(item)
            if not isinstance(item, dict) or cast("Message", item).get("jsonrpc") != "2.0":
                raise Finding(f"not JSON-RPC: {text[:500]}")
            said = cast("Message", item)
            if "method" not in said and ("result" in said) == ("error" in said):
                raise Finding(f"neither a result nor an error, or both: {text[:500]}")
            if said.get("error", {}).get("code") == -32603 or "failed inside the server" in text:
                raise Finding(f"a defect: {text[:1000]}")
            for secret in self._foreign:
                if json.dumps(secret)[1:-1] in text:
                    raise Finding(f"`{secret}` in {text[:1000]}")
            kind = "errors" if "error" in said or said.get("result", {}).get("isError") else "answers"
            self.tally["notices" if "method" in said else kind] += 1

    def turn(self, wire: Wire) -> None:
        """Judge what came beside the answers, and what the server has logged."""
        for message in wire.messages:
            self.message(message)
        wire.messages.clear()
        self.log()

    def log(self) -> None:
        if "Traceback" in self.said():
            raise Finding("a traceback")


async def lists(wire: Wire) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for method, key in (
        ("tools/list", "tools"), ("resources/list", "resources"), ("resources/templates/list", "resourceTemplates"),
        ("prompts/list", "prompts"),
    ):  # fmt: skip
        found[key] = (await wire.request(method))[key]
    return found


def memory(pid: int) -> float:
    return int(Path(f"/proc/{pid}/status").read_text("utf-8").partition("VmRSS:")[2].split()[0]) / 1024


async def over_stdio(case: Case, revision: str, seconds: float, dice: random.Random, judge: Judge) -> float:
    """Megabytes that the server grew by after the first rounds."""
    async with StdioWire(case.command, revision=revision) as wire:
        judge.said = lambda: wire.stderr
        await wire.open()
        maker, warm = Maker(dice, case, await lists(wire)), 0.0
        until = time.monotonic() + seconds
        for turn in range(sys.maxsize):
            if time.monotonic() > until:
                break
            waiting: set[str] = set()
            for _ in range(AT_ONCE):
                message, must = maker.message(wire.modern)
                if wire.modern and isinstance(message.get("params"), dict) and dice.random() < 0.95:
                    message["params"].setdefault("_meta", wire.envelope())
                if must:
                    waiting.add(message["id"])
                elif message.get("method") == "notifications/cancelled":
                    waiting.discard(str(message.get("params")).partition("'requestId': '")[2].partition("'")[0])
                await wire.send_raw((json.dumps(message).encode() if must else maker.text(message)) + b"\n")
                judge.tally["sent"] += 1
            with anyio.move_on_after(SECONDS):
                await wire.request("tools/list", seconds=SECONDS)
                while waiting:
                    mine = frozenset(waiting)
                    message = await wire.next_message(lambda said, mine=mine: said.get("id") in mine, seconds=SECONDS)
                    waiting.discard(message["id"])
                    judge.message(message)
            if waiting:
                raise Finding(f"no answer to {sorted(waiting)}")
            judge.turn(wire)
            if turn == 20:
                warm = memory(wire.process.pid)
        return memory(wire.process.pid) - warm if warm else 0.0


@asynccontextmanager
async def listening(case: Case) -> AsyncGenerator[tuple[Any, str]]:
    from shared.http_subject import running

    async with running([*case.command, "--transport", "http", "--port", "0"]) as subject:
        yield subject, subject.url


async def over_http(case: Case, revision: str, seconds: float, dice: random.Random, judge: Judge) -> float:
    """Megabytes that the server grew by after the first rounds."""
    async with listening(case) as (subject, url), HttpWire(url, revision=revision) as wire:
        judge.said = lambda: subject.said
        await wire.open()
        maker, warm = Maker(dice, case, await lists(wire)), 0.0

        async def post(data: bytes, headers: dict[str, str], must: bool, held: bool) -> None:
            with anyio.move_on_after(1.0 if held else SECONDS) as limit:
                async with wire.client.stream("POST", url, content=data, headers=headers) as response:
                    if response.status_code >= 500 and response.status_code not in (501, 503):
                        raise Finding(f"{response.status_code} to {data[:1000]!r} with {headers}")
                    kind, body = response.headers.get("content-type", ""), b""
                    if kind.startswith("text/event-stream"):
                        async for event in httpx2.EventSource(response, max_event_size=None):
                            if event.data:
                                judge.message(json.loads(event.data))
                    elif (body := await response.aread()) and kind.startswith("application/json"):
                        judge.message(json.loads(body))
                    if must and response.status_code not in (200, 202, 400, 404, 429):
                        raise Finding(f"{response.status_code} to {data[:1000]!r}: {body[:300]!r}")
            if limit.cancelled_caught and must:
                raise Finding(f"no answer to {data[:1000]!r}")

        until = time.monotonic() + seconds
        for turn in range(sys.maxsize):
            if time.monotonic() > until:
                break
            async with anyio.create_task_group() as tasks:
                for _ in range(AT_ONCE):
                    message, must = maker.message(wire.modern)
                    if wire.modern and isinstance(message.get("params"), dict):
                        message["params"].setdefault("_meta", wire.envelope())
                    headers = {"content-type": "application/json", **wire.headers}
                    try:
                        headers |= wire.headers_for(message)
                    except (AttributeError, KeyError, TypeError, UnicodeError):
                        must = False
                    held = not must
                    if not must and dice.random() < 0.2:
                        name = dice.choice(list(headers))
                        headers[name] = dice.choice(
                            ("", "x" * 3000, "=?base64?!?=", "text/plain", "2024-11-05", "\x7f")
                        )
                    headers = {
                        name: "".join(filter(_is_sendable, str(value))).strip() for name, value in headers.items()
                    }
                    data = json.dumps(message).encode() if must else maker.text(message)
                    tasks.start_soon(post, data, headers, must, held)
                    judge.tally["sent"] += 1
            with anyio.fail_after(SECONDS):
                await wire.request("tools/list", seconds=SECONDS)
            judge.turn(wire)
            if turn == 20:
                warm = memory(subject.process.pid)
        return memory(subject.process.pid) - warm if warm else 0.0


async def fuzz(package: str, seconds: float, seed: int) -> list[str]:
    """What was found in each of the four ways, each with a quarter of the time."""
    found: list[str] = []
    for way, revision in ((way, revision) for way in (over_stdio, over_http) for revision in (LEGACY, MODERN)):
        name = f"{package}, {way.__name__.replace('_', ' ')}, {revision}, seed {seed}"
        with tempfile.TemporaryDirectory() as scratch:
            case = CASES[package](Path(scratch))
            judge, dice = Judge(case), random.Random(f"{seed} {name}")
            try:
                grown = await way(case, revision, seconds / 4, dice, judge)
                if grown > GROWN:
                    raise Finding(f"{grown:.0f} MB more than when it was warm")
                print(f"{name}: {dict(judge.tally)}, {grown:+.0f} MB", flush=True)
            except (Finding, WireClosed, WireError, TimeoutError, ExceptionGroup, httpx2.TransportError) as problem:
                reason: BaseException = problem
                while isinstance(reason, BaseExceptionGroup):
                    reason = cast("BaseExceptionGroup[BaseException]", reason).exceptions[0]
                found.append(f"{name}: {type(reason).__name__}: {reason} after {dict(judge.tally)}")
                log = judge.said()
                print(f"FOUND {found[-1]}\n{log[max(0, log.find('Traceback')) :][:6000]}", flush=True)
    return found


def _is_sendable(letter: str) -> bool:
    return letter.isascii() and letter.isprintable()


def _keys(node: Any) -> list[Any]:
    return list(cast("dict[str, Any]", node)) if isinstance(node, dict) else list(range(len(node)))


def _leaves(node: Any) -> list[Any]:
    if isinstance(node, dict):
        return _leaves(list(cast("dict[str, Any]", node).values()))
    if isinstance(node, list):
        return [leaf for item in cast("list[Any]", node) for leaf in _leaves(item)]
    return [node]


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("members", nargs="*", help="such as mcp_fs; without any, all")
    parser.add_argument("--minutes", type=float, default=10, help="for each member")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    found = [
        finding
        for package in given.members or CASES
        for finding in anyio.run(fuzz, package, given.minutes * 60, given.seed)
    ]
    sys.exit(f"{len(found)} findings" if found else 0)


if __name__ == "__main__":
    main()
