"""The process that runs one script. It imports little, since each script pays for that.

Lines of JSON come and go. The first holds the `script`, the names of its `functions`, and of those that can change
something, `reporting`. A call of a function is a line with its `name` and its `arguments` as JSON text, which the
server checks, and waits for a line with the `text` of the answer, the `printed_text` that the script prints in its
place (empty if that is the same), and the arguments of its `next_page`, or its `error`.
What was printed is a line with `printed`, a text for each print. The last line has the `error` that ended the script,
empty if it came to its end, with the `lists` that it read to their last page then. Its `columns_below_titles` are what
`.rows()` took for the columns of sheets that begin with titles, and these.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

import quickjs

from mcp_batteries.processes.resource_limits import limit_resources
from mcp_batteries.scripts.text_counts import describe_columns, describe_texts, describe_values

__all__ = ["main"]

# For the script's values; the process itself needs more.
_MEMORY_BYTES = 256 << 20
_PROCESS_MEMORY_BYTES = 1 << 30
_STACK_BYTES = 512 << 10
_CPU_SECONDS = 20
# Of a print in one line, and of those that wait for others to go out with them.
_MAX_PRINTED_CHARACTERS = 1_000_000
_MAX_WAITING_CHARACTERS = 100_000
# What is printed soon after goes out with it, because each line costs the server time.
_PRINTING_SECONDS = 0.02
_MAX_ARGUMENTS_CHARACTERS = 1_000_000
_ARGUMENTS_TOO_LONG = json.dumps({"error": f"its arguments have more than {_MAX_ARGUMENTS_CHARACTERS:,} characters"})

# What `count_forms` and `count_values` ask for.
_DESCRIPTIONS: Mapping[str, Callable[..., str]] = {
    "columns": describe_columns,
    "texts": describe_texts,
    "values": describe_values,
}
# What a script finds defined; the last has the names of the functions, twice, yet to be filled in.
_TEXTS = Path(__file__).with_name("texts.js")
_FORMS = Path(__file__).with_name("forms.js")
_LOCALES = Path(__file__).with_name("locales.js")
_PRELUDE = Path(__file__).with_name("prelude.js")
# Lines of errors are counted from here for the prelude, and from 1 for the script.
_FIRST_LINE = 1_000_000
_LINE = re.compile(r"<input>:(\d+)")
# `JSON.parse` puts a line of the text above the line of the script.
_LINE_OF_JSON = re.compile(r"^\s*at <input>:\d+:\d+\n(?=\s*at parse \(native\))")
# A script may `return` and `await`, as models like to, so it is the body of an asynchronous function. It begins in the
# first line of the text, so that the line numbers of its errors are right.
_BEGIN = "__run(async () => { "
_END = "\n})"
_ASYNC_NAME = re.compile(r"\basync\s+function\s+([\w$]+)|([\w$]+)\s*=\s*async\b")


@dataclass
class _Script:
    """A script while it runs.

    Args:
        source: the pipe from the server.
        sink: the pipe to it.

    Attributes:
        printed: what was printed and not yet sent.
        printed_characters: the length of that.
        last_sent: when something was sent, by the monotonic clock.
    """

    source: BinaryIO
    sink: BinaryIO
    printed: list[str] = field(default_factory=list[str])
    printed_characters: int = 0
    last_sent: float = 0.0

    def run(self, script: str, functions: list[str], reporting: list[str]) -> dict[str, Any]:
        """Run it to its end, and return the error that ended it, or what lists it read."""
        library: Any = quickjs
        context = library.Context()
        context.set_memory_limit(_MEMORY_BYTES)
        context.set_max_stack_size(_STACK_BYTES)
        # The engine loses an exception of these functions, so they have none.
        context.add_callable("__call", self._call)
        context.add_callable("__print", self._print)
        context.add_callable("__describe", _describe)
        prelude = _PRELUDE.read_text("utf-8")
        prelude = prelude.replace("FUNCTIONS", json.dumps(functions)).replace("REPORTING", json.dumps(reporting))
        libraries = [path.read_text("utf-8") for path in (_TEXTS, _FORMS, _LOCALES)]
        library_source = "".join(libraries) + prelude
        context.eval("\n" * _FIRST_LINE + library_source)
        try:
            context.eval(_BEGIN + _with_calls_awaited(context, script) + _END)
            while context.execute_pending_job():
                pass
            facts = json.loads(context.eval("__outcome()"))
        except library.JSException as error:
            message, _, stack = str(error).partition("\n")
            facts = {"error": message, "stack": stack}
        columns_below_titles = facts.get("columns_below_titles", [])
        if "error" in facts:
            # A script can put anything there.
            error = _with_line(str(facts["error"]), str(facts.get("stack")))
            return {"error": error, "columns_below_titles": columns_below_titles}
        if not facts.get("ended"):
            return {"error": "it waits for a promise that nothing resolves"}
        return {"error": "", "lists": facts["lists"], "columns_below_titles": columns_below_titles}

    def send(self, message: dict[str, Any]) -> None:
        """Send a message, after what was printed before it."""
        self._send_printed()
        self.sink.write(json.dumps(message).encode() + b"\n")
        self.sink.flush()

    def _call(self, name: str, arguments: str, wants_rows: bool) -> str:
        if len(arguments) > _MAX_ARGUMENTS_CHARACTERS:
            return _ARGUMENTS_TOO_LONG
        self.send({"name": name, "arguments": arguments, "wants_rows": wants_rows})
        answer = self.source.readline()
        if not answer:
            # The server is gone. As an error of the function, a script could catch this and go on.
            os._exit(1)
        return answer.decode()

    def _print(self, json_text: str) -> None:
        text: str = json.loads(json_text)
        for start in range(0, len(text), _MAX_PRINTED_CHARACTERS):
            self._add(text[start : start + _MAX_PRINTED_CHARACTERS])

    def _add(self, text: str) -> None:
        self.printed.append(text)
        self.printed_characters += len(text)
        is_much = self.printed_characters >= _MAX_WAITING_CHARACTERS
        if is_much or time.monotonic() - self.last_sent > _PRINTING_SECONDS:
            self._send_printed()

    def _send_printed(self) -> None:
        if self.printed:
            self.sink.write(json.dumps({"printed": self.printed}).encode() + b"\n")
        self.printed.clear()
        self.printed_characters = 0
        self.sink.flush()
        self.last_sent = time.monotonic()


def main() -> None:
    """Run the script that comes on standard input."""
    limit_resources(_PROCESS_MEMORY_BYTES, _CPU_SECONDS)
    script = _Script(sys.stdin.buffer, sys.stdout.buffer)
    start = json.loads(script.source.readline())
    script.send(script.run(start["script"], start["functions"], start["reporting"]))


def _describe(kind: str, arguments: str) -> str:
    try:
        description = _DESCRIPTIONS[kind](*json.loads(arguments))
    except MemoryError:
        return json.dumps({"error": "there is not memory enough to count so much text"})
    except Exception as error:  # noqa: BLE001 - one would end the process, and a script can put anything there
        return json.dumps({"error": f"these can't be counted: {type(error).__name__}"})
    return json.dumps({"text": description})


def _with_calls_awaited(context: Any, script: str) -> str:
    """Return a script that awaits the statements that only call an asynchronous function, such as `main()`.

    The engine says nothing of an exception in a promise that nobody waits for.
    """
    if "async" not in script:
        return script
    calls = [re.escape(match[1] or match[2]) + r"\(" for match in _ASYNC_NAME.finditer(script)]
    calls.append(r"\(\s*async\b")
    call = re.compile(rf"(?:\A|(?<=[;}}\n]))\s*(?={'|'.join(calls)})")
    for start in reversed([match.end() for match in call.finditer(script)]):
        head = script[:start]
        tail = f"await {script[start:]}"
        if _compiles(context, head) and _compiles(context, tail):
            script = head + tail
    return script


def _compiles(context: Any, statements: str) -> bool:
    """Return whether a part of a script can stand alone; it does not run."""
    try:
        context.eval(f"(async () => {{ {statements}\n}})")
    except cast("Any", quickjs).JSException:
        return False
    return True


def _with_line(message: str, stack: str) -> str:
    """Return the message of an error with the line of the script that it comes from, as far as that is known."""
    for match in _LINE.finditer(_LINE_OF_JSON.sub("", stack)):
        line = int(match[1])
        if line < _FIRST_LINE:
            return f"line {line}: {message}"
    return message
