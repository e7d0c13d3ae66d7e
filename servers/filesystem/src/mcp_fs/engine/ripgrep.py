"""Which files may match, told by ripgrep where it is installed, in parallel and fast.

What ripgrep finds is a hint only. It opens paths, which another process can swap under it, and its expressions
are not quite RE2's; so each file it names is opened by handle and searched again by our own engine, and nothing
it prints is ever shown. That also makes the answers with and without ripgrep the same.
"""

from __future__ import annotations

import os
import re
import selectors
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import IO, cast

from mcp_batteries.limits import Stop
from mcp_fs.engine.walk import Filter

__all__ = ["Hint", "candidates", "command", "rust_pattern"]

_FLAGS = (
    *("--no-config", "--no-require-git", "--no-ignore-parent", "--no-ignore-global"),
    *("--color=never", "--crlf", "--null", "--files-with-matches"),
)
_PERL = {"d": "0-9", "w": "0-9A-Za-z_", "s": r"\t\n\f\r "}
_SAME = frozenset("tfvra")
_META = frozenset("\\.+*?()|[]{}^$#&-~")
_REPEAT = re.compile(r"\{\d+(?:,\d*)?\}")
_GROUP = re.compile(r"\((?!\?)|\(\?(?:P<\w+>|(?:-?i)?:|-?i\))")
_UNREADABLE = re.compile(rb"\(os error \d+\)\s*$")
_POLL_SECONDS = 0.02


@cache
def command() -> str | None:
    """Where ripgrep is; None without it, or where a process can't be started in a folder given by handle.

    Beside this interpreter it is what the extra `mcp-fs[ripgrep]` installed.
    """
    places = [os.environ.get("PATH", os.defpath), os.path.dirname(sys.executable)]
    return shutil.which("rg", path=os.pathsep.join(places)) if os.path.isdir("/proc/self/fd") else None


@dataclass(frozen=True, slots=True)
class Hint:
    """What ripgrep is asked.

    Attributes:
        pattern: from `rust_pattern`.
        names: globs of file names; none means all.
    """

    pattern: str
    ignore_case: bool
    wanted: Filter
    names: Sequence[str] = ()

    def arguments(self) -> list[str]:
        flags = [*_FLAGS]
        if self.wanted.hidden:
            flags.append("--hidden")
        if self.wanted.ignored:
            flags.append("--no-ignore")
        if self.ignore_case:
            flags.append("--ignore-case")
        for glob in self.names:
            flags += ["--type-add", f"wanted:{glob}"]
        if self.names:
            flags += ["--type", "wanted"]
        return [*flags, "-e", self.pattern, "."]


def candidates(program: str, folder_fd: int, hint: Hint, stop: Stop) -> tuple[list[tuple[str, ...]], list[str]] | None:
    """(names of files below the folder that seem to match, what could not be read); None when rg can't tell.

    Args:
        folder_fd: handle of the folder; the process is started in it.
    """
    process = subprocess.Popen(
        [program, *hint.arguments()],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=f"/proc/self/fd/{folder_fd}",
    )
    try:
        output, errors = _drain(process, stop)
        status = process.wait()
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdout, process.stderr):
            cast("IO[bytes]", pipe).close()
    complaints = [line for line in errors.splitlines() if line.strip()]
    if status not in (0, 1) and not (complaints and all(_UNREADABLE.search(line) for line in complaints)):
        return None
    found = [tuple(os.fsdecode(path.removeprefix(b"./")).split("/")) for path in output.split(b"\0")[:-1]]
    unread = [os.fsdecode(_path_of(line)) for line in complaints]
    return found, unread


def rust_pattern(pattern: str, *, literal: bool) -> str | None:
    """`pattern` (valid RE2) in Rust's syntax, matching at least the same lines; None when that is not certain.

    The two differ in `\\d`, `\\w`, `\\s` and `\\b` (ASCII in RE2), in class operators and in escapes.
    """
    if not pattern.isascii():
        try:
            pattern.encode()
        except UnicodeEncodeError:
            return None
    if any(char in pattern for char in "\n\0") or len(pattern) > 10_000:
        return None
    if literal:
        return "".join("\\" + char if char in _META else char for char in pattern)
    try:
        return _Rust(pattern).translate()
    except _Uncertain:
        return None


class _Uncertain(Exception):
    """Raised when a part of a pattern has no twin."""


class _Rust:
    def __init__(self, pattern: str) -> None:
        self.pattern, self.at = pattern, 0

    def take(self) -> str:
        if self.at == len(self.pattern):
            raise _Uncertain
        self.at += 1
        return self.pattern[self.at - 1]

    def translate(self) -> str:
        out: list[str] = []
        while self.at < len(self.pattern):
            match self.take():
                case "\\":
                    out.append(self.escape())
                case "[":
                    out.append(self.bracket())
                case ".":
                    out.append(r"[^\n]")
                case "(":
                    out.append(self.whole(_GROUP))
                case "{":
                    repeat = _REPEAT.match(self.pattern, self.at - 1)
                    out.append(self.whole(_REPEAT) if repeat else r"\{")
                case "]" | "}" | "#" | "&" | "~" | "-" as char:
                    out.append("\\" + char)
                case char:
                    out.append(char)
        return "".join(out)

    def whole(self, token: re.Pattern[str]) -> str:
        match = token.match(self.pattern, self.at - 1)
        if match is None:
            raise _Uncertain
        self.at = match.end()
        return match[0]

    def escape(self) -> str:
        char = self.take()
        if char in "bB":
            return rf"(?-u:\{char})"
        if char in "dws":
            return f"[{_PERL[char]}]"
        if char in "DWS":
            return f"[^{_PERL[char.lower()]}]"
        return self.character(char)

    def character(self, escaped: str) -> str:
        if escaped in _SAME:
            return "\\" + escaped
        if escaped.isalnum() or not escaped.isascii() or escaped == "_":
            raise _Uncertain
        return "\\" + escaped if escaped in _META else escaped

    def bracket(self) -> str:
        out = ["["]
        if self.pattern[self.at : self.at + 1] == "^":
            out.append(self.take())
        first = True
        while (char := self.take()) != "]" or first:
            first = False
            if char == "[" and self.pattern[self.at : self.at + 1] == ":":
                end = self.pattern.find(":]", self.at)
                if end < 0:
                    raise _Uncertain
                out.append(self.pattern[self.at - 1 : end + 2])
                self.at = end + 2
            elif char == "\\" and self.pattern[self.at : self.at + 1] in tuple("dws"):
                out.append(_PERL[self.take()])
            elif char == "\\" and self.pattern[self.at : self.at + 1] in tuple("DWS"):
                out.append(f"[^{_PERL[self.take().lower()]}]")
            else:
                out.append(self.member(char))
                if self.pattern[self.at : self.at + 1] == "-" and self.pattern[self.at + 1 : self.at + 2] not in "]":
                    self.take()
                    out.append("-" + self.member(self.take()))
        return "".join([*out, "]"])

    def member(self, char: str) -> str:
        if char == "\\":
            return self.character(self.take())
        return "\\" + char if char in _META else char


def _drain(process: subprocess.Popen[bytes], stop: Stop) -> tuple[bytes, bytes]:
    chunks: dict[int, list[bytes]] = {}
    with selectors.DefaultSelector() as ready:
        for pipe in (process.stdout, process.stderr):
            fd = cast("IO[bytes]", pipe).fileno()
            chunks[fd] = []
            ready.register(fd, selectors.EVENT_READ)
        while ready.get_map():
            stop.check()
            for key, _ in ready.select(_POLL_SECONDS):
                chunk = os.read(key.fd, 65_536)
                if chunk:
                    chunks[key.fd].append(chunk)
                else:
                    ready.unregister(key.fd)
    output, errors = (b"".join(parts) for parts in chunks.values())
    return output, errors


def _path_of(complaint: bytes) -> bytes:
    """The path in `rg: ./a/b: Permission denied (os error 13)`, as far as it can be told."""
    _, _, rest = complaint.partition(b"./")
    return rest.partition(b": ")[0] or b"."
