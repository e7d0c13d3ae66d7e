"""A client that costs next to nothing: whole lines over pipes with blocking reads, parsed only where it matters.

An SDK's client would be slower than the servers it measures. Linux only: /proc tells memory and processor time.
"""

import json
import os
import select
import subprocess
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
_CLIENT = {"name": "bench", "version": "1"}
_BLOCK = 1 << 20


def processes(pid: int) -> list[int]:
    """The process and all below it; of every thread, because uvx starts its program from another than its first."""
    below = list[str]()
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that has just ended
            below += file.read_text().split()
    return [pid, *(item for child in below for item in processes(int(child)))]


def memory(pid: int) -> float:
    """MB that the process and all below it take, what they share counted once."""
    lines = (line for item in processes(pid) for line in Path(f"/proc/{item}/smaps_rollup").read_text().splitlines())
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


class Failed(Exception):
    """Raised when a server refuses, says nothing in time or leaves."""


@dataclass
class Server:
    """A process on its pipes, alive within `with`.

    Attributes:
        command: the program and its arguments.
        revision: `LEGACY` or `MODERN`; `open` speaks it.
        seconds: how long any one answer may take.
        variables: of its environment, beside what is there.
    """

    command: Sequence[str]
    revision: str = LEGACY
    seconds: float = 20.0
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    _rest: bytearray = field(default_factory=bytearray, repr=False)
    _lines: deque[bytes] = field(default_factory=deque, repr=False)
    _last: int = 0

    def __enter__(self) -> Self:
        # Set on some machines, and it doubles Python's start.
        env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        env |= self.variables
        pipe = subprocess.PIPE
        self.started = time.perf_counter()
        self._process = subprocess.Popen(self.command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=env)
        assert self._process.stdin and self._process.stdout
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._in, False)
        self._poll = select.poll()
        self._poll.register(self._out, select.POLLIN)
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> float:
        """Seconds from the end of its input to its exit; it is killed after five."""
        assert self._process.stdin and self._process.stdout
        begun = time.perf_counter()
        self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        return time.perf_counter() - begun

    # What goes over the wire

    def message(self, method: str, params: dict[str, Any] | None = None, *, notice: bool = False) -> tuple[int, bytes]:
        """A request's id and its line, or a notification's line."""
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if not notice:
            self._last += 1
            message["id"] = self._last
        if self.revision >= MODERN and not notice:
            prefix = "io.modelcontextprotocol/"
            envelope = {"protocolVersion": self.revision, "clientInfo": _CLIENT, "clientCapabilities": {}}
            params = {**(params or {}), "_meta": {prefix + name: value for name, value in envelope.items()}}
        if params is not None:
            message["params"] = params
        return self._last, json.dumps(message).encode() + b"\n"

    def send(self, data: bytes) -> None:
        """Write it all, reading meanwhile what the server says: neither side can block the other."""
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._in, view) :]
            except BlockingIOError:
                if self._poll.poll(1):
                    self._fill()
            except BrokenPipeError:
                raise Failed("left") from None

    def line(self, seconds: float | None = None) -> bytes:
        """The next line the server says.

        Raises:
            Failed: none came in time, or the server left.
        """
        if self._lines:
            return self._lines.popleft()
        until = time.perf_counter() + (self.seconds if seconds is None else seconds)
        while not self._lines:
            left = until - time.perf_counter()
            if left <= 0 or not self._poll.poll(left * 1000):
                raise Failed(f"no answer in {self.seconds:.0f} s" if seconds is None else "silent")
            self._fill()
        return self._lines.popleft()

    def _fill(self) -> None:
        data = os.read(self._out, _BLOCK)
        if not data:
            raise Failed("left")
        head, newline, data = data.partition(b"\n")
        self._rest += head
        if newline:
            *lines, rest = data.split(b"\n")
            self._lines += [bytes(self._rest), *lines]
            self._rest[:] = rest

    def ask(self, method: str, params: dict[str, Any] | None = None) -> tuple[dict[str, Any], int]:
        """A request's result and the bytes of its line; whatever else arrives before it is dropped.

        Raises:
            Failed: as `line`, or the server answered with an error.
        """
        key, data = self.message(method, params)
        self.send(data)
        while True:
            line = self.line()
            answer = json.loads(line)
            if answer.get("id") == key and "method" not in answer:
                break
        if "error" in answer:
            raise Failed(answer["error"]["message"])
        result = answer["result"]
        if result.get("isError"):
            raise Failed(result["content"][0]["text"])
        return result, len(line) + 1

    def open(self) -> None:
        """The handshake, or what stands for it."""
        if self.revision >= MODERN:
            self.ask("server/discover")
        else:
            self.ask("initialize", {"protocolVersion": self.revision, "capabilities": {}, "clientInfo": _CLIENT})
            self.send(self.message("notifications/initialized", notice=True)[1])

    def call_line(self, tool: str, arguments: dict[str, Any]) -> bytes:
        return self.message("tools/call", {"name": tool, "arguments": arguments})[1]

    # What it costs

    @property
    def pid(self) -> int:
        return self._process.pid

    def cpu(self) -> float:
        """Processor seconds of the process, all threads, living or ended, and of children it has waited for."""
        # The kernel's number for "the CPU clock of that process" (clock_getcpuclockid(3)).
        own = time.clock_gettime(~self._process.pid << 3 | 2)
        with open(f"/proc/{self._process.pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        return own + (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> tuple[float, float]:
        """Resident memory now and its peak since `reset_peak`, in MiB."""
        with open(f"/proc/{self._process.pid}/status") as file:
            status = dict(line.split(":", 1) for line in file)
        return int(status["VmRSS"].split()[0]) / 1024, int(status["VmHWM"].split()[0]) / 1024

    def reset_peak(self) -> None:
        with open(f"/proc/{self._process.pid}/clear_refs", "w") as file:
            file.write("5")


def sequential(server: Server, lines: Sequence[bytes]) -> list[float]:
    """Milliseconds from each request to its answer, one after the other."""
    spent: list[float] = []
    for line in lines:
        begun = time.perf_counter()
        server.send(line)
        answer = server.line()
        spent.append((time.perf_counter() - begun) * 1000)
        if b'"isError":true' in answer[-200:] or b'"error":{' in answer[:100]:
            raise Failed(answer[:100].decode(errors="replace"))
    return spent


def pipelined(server: Server, lines: Sequence[bytes], in_flight: int) -> float:
    """Answers a second while `in_flight` requests are always under way."""
    begun = time.perf_counter()
    server.send(b"".join(lines[:in_flight]))
    for line in lines[in_flight:]:
        server.line()
        server.send(line)
    for _ in range(min(in_flight, len(lines))):
        server.line()
    return len(lines) / (time.perf_counter() - begun)


def middle(values: Sequence[float], share: float = 0.5) -> float:
    """The value below which `share` of them lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
