"""Runs a script in a process of its own, and makes the calls that it asks for."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import IO, Any, NamedTuple, cast

import anyio.to_thread

from mcp_batteries.errors import Unavailable, well_formed
from mcp_batteries.executables import NO_WINDOW
from mcp_batteries.processes.python_child import child_environment, python_command
from mcp_batteries.scripts.answer_form import answering_rows
from mcp_batteries.scripts.next_page import next_page_arguments

__all__ = ["Answer", "FunctionFailed", "Outcome", "ReadList", "ScriptEnded", "run_script"]

# Of all that a script prints; the rest is left out.
_MAX_OUTPUT_CHARACTERS = 1_000_000
# A line of the process holds the arguments of a call, or some of what the script printed.
_MAX_LINE_BYTES = 16 << 20
_PROCESS_ENDED = "its process ended, as it does after 20 s of work and where it takes too much memory"
_TOP_FOLDER = os.path.abspath(os.sep)


class FunctionFailed(Exception):
    """Raised by a function of a script; the script can catch it, with its text."""


class ScriptEnded(Exception):
    """Raised by a function of a script to end it, with its text; no script catches it."""


class Answer(NamedTuple):
    """What a function of a script returns.

    Attributes:
        text: what the script gets.
        printed_text: what it prints of that instead, if it prints it as it came; empty if no other text.
    """

    text: str
    printed_text: str = ""


Function = Callable[[str, Mapping[str, Any]], Awaitable[str | Answer]]


@dataclass(frozen=True)
class ReadList:
    """What a script read to the last page, by all its calls of one function.

    Attributes:
        length: how many rows or lines they were together.
        unit: which of these.
        notes: what they said beside these, each once; mostly nothing.
    """

    name: str
    calls: int
    length: int
    unit: str
    notes: Sequence[str]


@dataclass
class Outcome:
    """What a script did.

    Attributes:
        prints: what it printed and returned, each print by itself.
        printed_characters: how many characters that is.
        left_out: how many more are missing at its end.
        error: what ended it, with the line; empty if it came to its end.
        lists: what it read to the last page, if it came to its end.
        columns_below_titles: what was taken for the columns of sheets that begin with titles, and these.
    """

    prints: list[str] = field(default_factory=list[str])
    printed_characters: int = 0
    left_out: int = 0
    error: str = ""
    lists: Sequence[ReadList] = ()
    columns_below_titles: Sequence[str] = ()

    @property
    def output(self) -> str:
        return "".join(self.prints)

    def add(self, prints: Sequence[str]) -> None:
        for printed in map(well_formed, prints):
            kept = printed[: _MAX_OUTPUT_CHARACTERS - self.printed_characters]
            if kept:
                self.prints.append(kept)
            self.printed_characters += len(kept)
            self.left_out += len(printed) - len(kept)


async def run_script(
    script: str, functions: Sequence[str], call: Function, seconds: float, reporting: Sequence[str] = ()
) -> Outcome:
    """Run JavaScript whose functions are `functions`; it has no files, no network and no clock of its own to wait on.

    Args:
        call: gets the name of a function and its arguments, and returns its answer or raises `FunctionFailed`.
        seconds: after which it is ended.
        reporting: those of the functions whose text keeps a first line in brackets, which says what they changed.

    Raises:
        Unavailable: the engine is not installed, or no process could be started.
    """
    if find_spec("quickjs") is None:
        raise Unavailable(
            "This server was installed without a JavaScript engine.",
            "Use `calls`. The operator can install the package quickjs-ng.",
        )
    # The engine takes no NUL; in JSON, where `\u0000` was meant, one is easily written.
    source = well_formed(script).replace("\0", r"\x00")
    start: Mapping[str, Any] = {"script": source, "functions": functions, "reporting": reporting}
    outcome = Outcome()
    with anyio.move_on_after(seconds) as scope:
        await _run(start, call, outcome)
    if scope.cancelled_caught:
        outcome.error = f"it took longer than {seconds:.0f} s"
    return outcome


async def _run(start: Mapping[str, Any], call: Function, outcome: Outcome) -> None:
    """Run a script to its end, and put down in `outcome` what it did.

    Args:
        start: the first message to its process.
    """
    message = start
    process = await _Process.start()
    try:
        while True:
            try:
                reply = await process.exchange(message, outcome.add)
            except (EOFError, OSError):
                reply = {"error": _PROCESS_ENDED}
            match reply:
                case {"error": str(error)}:
                    outcome.error = well_formed(error)
                    outcome.lists = _parse_lists(reply.get("lists"), start["functions"])
                    outcome.columns_below_titles = _parse_lines(reply.get("columns_below_titles"))
                    return
                case {"name": str(name), "arguments": str(arguments), "wants_rows": bool(wants_rows)} if (
                    name in start["functions"]
                ):
                    try:
                        with answering_rows(wants_rows):
                            message = await _answer(call, name, arguments)
                    except ScriptEnded as ending:
                        outcome.error = str(ending)
                        return
                case _:
                    outcome.error = _PROCESS_ENDED
                    return
    finally:
        with anyio.CancelScope(shield=True):
            await process.end()


@dataclass
class _Process:
    """A process that runs one script.

    Threads wait for it, because the event loop that psycopg needs on Windows can't.

    Attributes:
        turn: taken by the thread that reads and writes; one whose caller is gone ends with the process.
    """

    process: subprocess.Popen[bytes]
    turn: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(1))

    @classmethod
    async def start(cls) -> _Process:
        try:
            return cls(await anyio.to_thread.run_sync(_start_process))
        except OSError as error:
            raise Unavailable(f"No process could be started for the script: {error.strerror}.") from None

    async def exchange(self, message: Mapping[str, Any], add: Callable[[Sequence[str]], None]) -> dict[str, Any]:
        """Send a message, add what is printed, and return the call that the script makes then, or its end.

        Raises:
            EOFError: The process ended without a word.
            OSError: It takes no message any more.
        """
        work = partial(_exchange, self.process, message, add)
        return await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=self.turn)

    async def end(self) -> None:
        self.process.kill()
        await anyio.to_thread.run_sync(_close, self.process, limiter=self.turn)


def _start_process() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        python_command("mcp_batteries.scripts.child"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=_TOP_FOLDER,
        env=child_environment(),
        creationflags=NO_WINDOW,
    )


def _exchange(
    process: subprocess.Popen[bytes], message: Mapping[str, Any], add: Callable[[Sequence[str]], None]
) -> dict[str, Any]:
    stdin, stdout = _pipes(process)
    stdin.write(json.dumps(message).encode() + b"\n")
    stdin.flush()
    while True:
        line = stdout.readline(_MAX_LINE_BYTES)
        if not line.endswith(b"\n"):
            raise EOFError
        match json.loads(line):
            case {"printed": [*prints]}:
                add([str(printed) for printed in prints])
            case reply:
                return reply


def _close(process: subprocess.Popen[bytes]) -> None:
    process.wait()
    for pipe in _pipes(process):
        # What was not sent yet can't be any more.
        with suppress(OSError):
            pipe.close()


def _pipes(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    assert process.stdin is not None
    assert process.stdout is not None
    return process.stdin, process.stdout


def _parse_lists(lists: Any, functions: Sequence[str]) -> list[ReadList]:
    """Return the lists that a process says it read."""
    if not isinstance(lists, dict):
        return []
    parsed: list[ReadList] = []
    for name, value in cast("dict[str, Any]", lists).items():
        match value:
            case {"calls": int(calls), "length": int(length), "unit": "rows" | "lines" as unit, "notes": [*notes]}:
                if name in functions:
                    parsed.append(ReadList(name, calls, length, unit, [well_formed(str(note)) for note in notes]))
            case _:
                pass
    return parsed


def _parse_lines(lines: Any) -> list[str]:
    """Return what a process says of tables, each in one line."""
    if not isinstance(lines, list):
        return []
    return [" ".join(well_formed(str(line)).split()) for line in cast("list[Any]", lines)]


async def _answer(call: Function, name: str, json_arguments: str) -> Mapping[str, Any]:
    arguments = json.loads(json_arguments)
    if not isinstance(arguments, dict):
        return {"error": "its arguments are no object as JSON"}
    try:
        answer = await call(name, cast("dict[str, Any]", arguments))
    except FunctionFailed as failure:
        return {"error": str(failure)}
    text, printed_text = answer if isinstance(answer, Answer) else Answer(answer)
    return {"text": text, "printed_text": printed_text, "next_page": next_page_arguments(text)}
