"""Messages made by chance, for whole servers: whatever comes, they answer by the protocol and go on.

Each member in turn gets its share of the time over both transports, in both eras and in the revision that has arrays.
Messages begin as what a client could send, from what the server lists and answers (`fuzz_messages.py`), and are then
spoilt: as JSON, as bytes, in their headers. Servers may ask the client (`--confirm`, roots), which answers alike.
A finding is an answer that is not JSON-RPC, that says of itself that it is a defect, that has a text it may never have,
or that never comes; a traceback; an end of the process; or memory that is not given back. It is printed with its seed.
"""

import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import anyio
import httpx2

from contract.cases import CASES
from e2e.fuzz_messages import ABLE, Maker, is_question
from mcp_batteries.testing.case import Case
from mcp_batteries.testing.wire import MODERN, HttpWire, Message, StdioWire, Wire, WireClosed, WireError
from proofs.tally import Tally

ARRAYS = "2025-03-26"
"""The revision in which messages come in arrays."""
REVISIONS = ("2025-11-25", MODERN, ARRAYS)
AT_ONCE = 20
SECONDS = 60.0
GROWN = 200.0
"""Megabytes beyond what a server has once it is warm."""
OPENED = {
    "confirm": ["--confirm"], "client_roots": ["--client-roots", "narrow"],
    **{gate: [f"--{gate}"] for gate in ("write", "fetch", "push")},
}  # fmt: skip
"""Settings with which a server does all it can, and asks the client."""


class Finding(Exception):
    """What no server may do."""


class Judge:
    """Looks at all that a server says."""

    def __init__(self, case: Case) -> None:
        self._foreign = case.foreign
        # The operator's own paths, which only the settings show.
        self._shown = [
            path for path in case.foreign if path[:1] == "/" and any(path in word for word in case.arguments)
        ]
        self.tally = Counter[str]()
        self.heard: Callable[[Message], None] = lambda answer: None
        """Takes the answers that are right."""
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
            error = said.get("error", {})
            # A problem that says of what kind it is was foreseen, such as a service that does not answer.
            unforeseen = error.get("code") == -32603 and "kind" not in (error.get("data") or ())
            if unforeseen or "failed inside the server" in text:
                raise Finding(f"a defect: {text[:1000]}")
            for secret in self._foreign:
                if secret in self._shown and "config://settings" in text:
                    continue
                if json.dumps(secret)[1:-1] in text:
                    raise Finding(f"`{secret}` in {text[:1000]}")
            kind = "errors" if "error" in said or said.get("result", {}).get("isError") else "answers"
            if kind == "answers":
                self.heard(said)
                if "inputRequests" in (said.get("result") or ()):
                    kind = "questions"
            self.tally["questions" if is_question(said) else "notices" if "method" in said else kind] += 1

    def turn(self, wire: Wire) -> None:
        """Judge what came beside the answers, and what the server has logged."""
        for message in wire.messages:
            self.message(message)
        wire.messages.clear()
        self.log()

    def log(self) -> None:
        if "Traceback" in self.said():
            raise Finding("a traceback")


def opened(case: Case, *more: str) -> list[str]:
    """The words that start it with `OPENED` and `more`, before any server's name."""
    settings = [words for name, words in OPENED.items() if name in case.kind.model_fields]
    return [*case.program.words, *(word for words in settings for word in words), *more, *case.arguments]


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


class _Pipes(StdioWire):
    """What answers in arrays too."""

    def _receive_line(self, line: bytes) -> None:
        if line[:1] != b"[":
            super()._receive_line(line)
            return
        for answer in json.loads(line):
            self._receive(answer)


class Round:
    """Messages that are sent at once: each alone, or some of them in one array.

    Attributes:
        units: what is sent; each with the ids that must be answered, and the bytes where a client would not have
            made them.
    """

    def __init__(self, maker: Maker, wire: Wire, dice: random.Random) -> None:
        self.units: list[tuple[Any, set[str], bytes]] = []
        room = AT_ONCE
        while room > 0:
            several = dice.choice((2, 3, 6)) if wire.revision == ARRAYS and dice.random() < 0.3 else 0
            made = [maker.message(wire.modern) for _ in range(several or 1)]
            room -= len(made)
            for message, _ in made:
                if wire.modern and isinstance(params := message.get("params"), dict) and dice.random() < 0.95:
                    given = cast("Message", params).get("_meta")
                    if given is None or isinstance(given, dict):
                        params["_meta"] = {**wire.envelope(), **(given or {})}
            musts = {message["id"] for message, must in made if must and not _waits(message)}
            unit: Any = [message for message, _ in made] if several else made[0][0]
            # Bytes that are spoilt take the whole line with them.
            whole = all(must for _, must in made) or (several > 0 and dice.random() < 0.5)
            data = json.dumps(unit).encode() if whole else maker.text(unit)
            self.units.append((unit, musts if whole else set(), data))
        # A client that cancels a call waits for it no longer.
        cancelled = {
            str(message.get("params", {}).get("requestId"))
            for unit, _, _ in self.units
            for message in (cast("list[Message]", unit) if isinstance(unit, list) else [unit])
            if message.get("method") == "notifications/cancelled" and isinstance(message.get("params"), dict)
        }
        for _, musts, _ in self.units:
            musts -= cancelled


async def over_stdio(case: Case, revision: str, seconds: float, dice: random.Random, judge: Judge) -> float:
    """Megabytes that the server grew by after the first rounds."""
    async with _Pipes(opened(case), revision=revision, capabilities=ABLE) as wire:
        judge.said = lambda: wire.stderr
        await wire.open()
        maker, warm = Maker(dice, case, await lists(wire)), 0.0
        judge.heard = maker.hear

        async def answer(question: Message) -> None:
            for data in maker.answers(question):
                await wire.send_raw(data + b"\n")

        until = time.monotonic() + seconds
        for turn in range(sys.maxsize):
            if time.monotonic() > until:
                break
            waiting: set[str] = set()
            units = Round(maker, wire, dice).units
            for _, musts, data in units:
                waiting |= musts
                await wire.send_raw(data + b"\n")
                judge.tally["sent"] += 1
            with anyio.move_on_after(SECONDS):
                await wire.request("tools/list", seconds=SECONDS)
                while waiting:
                    mine = frozenset(waiting)
                    message = await wire.next_message(
                        lambda said, mine=mine: is_question(said) or said.get("id") in mine, seconds=SECONDS
                    )
                    judge.message(message)
                    if is_question(message):
                        await answer(message)
                    else:
                        waiting.discard(message["id"])
            if waiting:
                lost = [data for _, musts, data in units if musts & waiting]
                raise Finding(f"no answer to {sorted(waiting)} of {lost!r:.1000}")
            if wire.garbage:
                raise Finding(f"no JSON: {wire.garbage[0][:500]!r}")
            for message in filter(is_question, [*wire.messages]):
                await answer(message)
            judge.turn(wire)
            if turn == 20:
                warm = memory(wire.process.pid)
        return memory(wire.process.pid) - warm if warm else 0.0


@asynccontextmanager
async def listening(case: Case) -> AsyncGenerator[tuple[Any, str]]:
    from shared.http_subject import running

    async with running(opened(case, "--transport", "http", "--port", "0")) as subject:
        yield subject, subject.url


async def over_http(case: Case, revision: str, seconds: float, dice: random.Random, judge: Judge) -> float:
    """Megabytes that the server grew by after the first rounds."""
    async with listening(case) as (subject, url), HttpWire(url, revision=revision, capabilities=ABLE) as wire:
        judge.said = lambda: subject.said
        await wire.open()
        maker, warm = Maker(dice, case, await lists(wire)), 0.0
        judge.heard = maker.hear
        poster = _Poster(wire, maker, judge)
        until = time.monotonic() + seconds
        for turn in range(sys.maxsize):
            if time.monotonic() > until:
                break
            async with anyio.create_task_group() as tasks:
                for unit, musts, data in Round(maker, wire, dice).units:
                    method, headers = _draw_head(wire, unit, musts, dice)
                    tasks.start_soon(poster.post, data, headers, musts, method)
                    judge.tally["sent"] += 1
            with anyio.fail_after(SECONDS):
                await wire.request("tools/list", seconds=SECONDS)
            for message in filter(is_question, [*wire.messages]):
                await poster.answer(message)
            judge.turn(wire)
            if turn == 20:
                warm = memory(subject.process.pid)
        return memory(subject.process.pid) - warm if warm else 0.0


def _draw_head(wire: HttpWire, unit: Any, musts: set[str], dice: random.Random) -> tuple[str, dict[str, str]]:
    """Return the method and the headers of a request; odd ones for some of those that need no answer.

    Args:
        musts: ids that must be answered; emptied if no headers fit what is sent.
    """
    headers = {"content-type": "application/json", **wire.headers}
    try:
        headers |= wire.headers_for({} if isinstance(unit, list) else unit)
    except (AttributeError, KeyError, TypeError, UnicodeError):
        musts.clear()
    method = "POST"
    if not musts and dice.random() < 0.2:
        name = dice.choice([*headers, "last-event-id"])
        headers[name] = dice.choice(("", "x" * 3000, "=?base64?!?=", "text/plain", "2024-11-05", "\x7f"))
        # Of no session: its own one is needed.
        if name == "mcp-session-id" or wire.modern:
            method = dice.choice(("POST", "GET", "DELETE", "PUT", "OPTIONS", "HEAD"))
    return method, {name: "".join(filter(_is_sendable, str(value))).strip() for name, value in headers.items()}


class _Poster:
    """Sends requests over HTTP, and judges each response."""

    def __init__(self, wire: HttpWire, maker: Maker, judge: Judge) -> None:
        self._wire = wire
        self._maker = maker
        self._judge = judge

    async def answer(self, question: Message) -> None:
        """Answer what the server asks, in whatever way."""
        for data in self._maker.answers(question):
            response = await self._wire.client.post(self._wire.url, content=data, headers=self._wire.headers_for({}))
            if response.status_code >= 500:
                raise Finding(f"{response.status_code} to {data[:1000]!r}")

    async def post(self, data: bytes, headers: dict[str, str], musts: set[str], method: str) -> None:
        """Send a request, whose response has to answer the ids of `musts`."""
        with anyio.move_on_after(SECONDS if musts else 1.0) as limit:
            async with self._wire.client.stream(method, self._wire.url, content=data, headers=headers) as response:
                if response.status_code >= 500 and response.status_code not in (501, 503):
                    raise Finding(f"{response.status_code} to {data[:1000]!r} with {headers}")
                body, answers = await self._read(response)
                if musts:
                    _expect_answers(response.status_code, data, body, musts, answers)
        if limit.cancelled_caught and musts:
            raise Finding(f"no answer to {data[:1000]!r}")

    async def _read(self, response: httpx2.Response) -> tuple[bytes, list[Any]]:
        """Return the body of a response that is no stream, and the messages, each judged as it comes."""
        kind = response.headers.get("content-type", "")
        answers: list[Any] = []
        if kind.startswith("text/event-stream"):
            async for event in httpx2.EventSource(response, max_event_size=None):
                if event.data:
                    answers.append(json.loads(event.data))
                    self._judge.message(answers[-1])
                    if is_question(answers[-1]):
                        await self.answer(answers[-1])
            return b"", answers
        body = await response.aread()
        if body and kind.startswith("application/json"):
            answers.append(json.loads(body))
            self._judge.message(answers[-1])
        return body, answers


def _expect_answers(status: int, data: bytes, body: bytes, musts: set[str], answers: list[Any]) -> None:
    if status not in (200, 202, 400, 404, 429):
        raise Finding(f"{status} to {data[:1000]!r}: {body[:300]!r}")
    answered = {cast("Message", item).get("id") for item in answers if isinstance(item, dict)}
    if status == 200 and not musts <= answered:
        raise Finding(f"no answer to {sorted(musts - answered)} of {data[:1000]!r}")


async def fuzz(package: str, seconds: float, seed: int) -> list[str]:
    """What was found in each of the six ways, each with its share of the time."""
    found: list[str] = []
    for way, revision in ((way, revision) for way in (over_stdio, over_http) for revision in REVISIONS):
        name = f"{package}, {way.__name__.replace('_', ' ')}, {revision}, seed {seed}"
        with tempfile.TemporaryDirectory() as scratch:
            case = CASES[package](Path(scratch))
            judge, dice = Judge(case), random.Random(f"{seed} {name}")
            try:
                grown = await way(case, revision, seconds / 6, dice, judge)
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


def _waits(message: Message) -> bool:
    """Whether a call asks to be answered later than this program waits."""
    seconds = cast("Message", message["params"].get("arguments") or {}).get("wait")
    return isinstance(seconds, (int, float)) and seconds > SECONDS / 4


def _is_sendable(letter: str) -> bool:
    return letter.isascii() and letter.isprintable()


async def prove(count: int, seed: int) -> Tally:
    """Send messages for so many minutes to each member."""
    found: list[str] = []
    for package in CASES:
        found += await fuzz(package, count * 60, seed)
    return Tally.of({"members": len(CASES), "minutes for each": count}, found)
