"""Asks ripgrep, if installed, which files may match, in parallel and fast.

What ripgrep finds is a hint only. It opens paths, which another process can swap under it, its expressions are not
quite RE2's, and it knows few encodings; so each file it names is opened by handle and searched again by our own
engine, and nothing it prints is ever shown. That also makes the answers with and without ripgrep the same.
"""

from __future__ import annotations

import os
import re
import selectors
import subprocess
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import IO, cast

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.executables import NO_WINDOW, find_executable
from mcp_batteries.processes.confinement import Confinement
from mcp_batteries.processes.program_files import ProgramFiles, is_elf, program_files
from mcp_batteries.processes.sandbox import NoSandbox, find_sandbox
from mcp_fs.engine.listing.walk import WalkFilter

__all__ = ["RipgrepQuery", "find_ripgrep", "list_matching_files"]

_FLAGS = (
    *("--no-config", "--no-require-git", "--no-ignore-parent", "--no-ignore-global"),
    *("--color=never", "--crlf", "--null", "--files-with-matches", "--text"),
)
_OS_ERROR = re.compile(rb"\(os error \d+\)\s*$")
_POLL_SECONDS = 0.02


@cache
def find_ripgrep() -> str | None:
    """Where ripgrep is; None without it, or where a process can't be started in a folder given by handle.

    Beside this interpreter it is what the extra `mcp-fs[ripgrep]` installed: newer than most systems', and twice as
    fast at what it is asked here.
    """
    folders = [os.path.dirname(sys.executable), *os.environ.get("PATH", os.defpath).split(os.pathsep)]
    if not os.path.isdir("/proc/self/fd"):
        return None
    return find_executable("rg", folders)


@dataclass(frozen=True, slots=True)
class RipgrepQuery:
    """What ripgrep is asked.

    Attributes:
        pattern: from `prefilter.byte_pattern`.
        wide_pattern: from `prefilter.wide_pattern`; whether a NUL is part of a text only a closer look tells.
        name_globs: globs of file names; none means all.
    """

    pattern: str
    wide_pattern: str
    ignore_case: bool
    walk_filter: WalkFilter
    name_globs: Sequence[str] = ()

    def arguments(self) -> list[str]:
        flags = [*_FLAGS]
        if self.walk_filter.hidden:
            flags.append("--hidden")
        if self.walk_filter.ignored:
            flags.append("--no-ignore")
        if self.ignore_case:
            flags.append("--ignore-case")
        for glob in self.name_globs:
            flags += ["--type-add", f"wanted:{glob}"]
        if self.name_globs:
            flags += ["--type", "wanted"]
        return [*flags, "-e", f"(?-u:{self.pattern})", "-e", f"(?-u:{self.wide_pattern})", "."]

    def for_suffixes(self, suffixes: Collection[str]) -> RipgrepQuery | None:
        """Return the same for files with such suffixes, whatever is in them; None where none of them is asked for."""
        names = [name for name in self.name_globs if name.rpartition(".")[2] in suffixes or name.endswith(("*", "}"))]
        if self.name_globs and not names:
            return None
        return replace(self, pattern="", wide_pattern="", name_globs=names or [f"*.{suffix}" for suffix in suffixes])


def list_matching_files(
    program: str, folder_fd: int, hint: RipgrepQuery, cancel: CancelToken
) -> tuple[list[tuple[str, ...]], list[str]] | None:
    """Return the names of files below the folder that seem to match, and what could not be read.

    None when ripgrep can't tell.

    Args:
        folder_fd: handle of the folder; the process is started in it.
    """
    process = _start([program, *hint.arguments()], f"/proc/self/fd/{folder_fd}")
    try:
        output, errors = read_output(process, cancel)
        status = process.wait()
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdout, process.stderr):
            cast("IO[bytes]", pipe).close()
    complaints = [line for line in errors.splitlines() if line.strip()]
    if status not in (0, 1) and not _are_os_errors(complaints):
        return None
    unreadable_paths = [os.fsdecode(_parse_path(line)) for line in complaints]
    return _split_paths(output), unreadable_paths


def _start(words: Sequence[str], folder: str) -> subprocess.Popen[bytes]:
    """Start ripgrep in a folder, the only one that it may read where the system can confine it."""

    def popen(words: Sequence[str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            creationflags=NO_WINDOW,
        )

    try:
        sandbox = find_sandbox()
    except NoSandbox:
        return popen(words)
    if not is_elf(words[0]):
        # A manager of versions puts a script there, which starts what it likes.
        return popen(words)
    files = _program_files(words[0])
    confinement = Confinement(files.executable, files.readable | {os.readlink(folder)}, frozenset())
    return sandbox.start(confinement, words, popen)


@cache
def _program_files(program: str) -> ProgramFiles:
    return program_files([program])


def _are_os_errors(complaints: Sequence[bytes]) -> bool:
    """Return whether all that ripgrep complains of is files that it could not read."""
    return bool(complaints) and all(_OS_ERROR.search(line) for line in complaints)


def _split_paths(output: bytes) -> list[tuple[str, ...]]:
    """Return the paths that end in NULs, by their names."""
    paths = output.split(b"\0")[:-1]
    return [tuple(os.fsdecode(path.removeprefix(b"./")).split("/")) for path in paths]


def read_output(process: subprocess.Popen[bytes], cancel: CancelToken) -> tuple[bytes, bytes]:
    chunks: dict[int, list[bytes]] = {}
    with selectors.DefaultSelector() as ready:
        for pipe in (process.stdout, process.stderr):
            fd = cast("IO[bytes]", pipe).fileno()
            chunks[fd] = []
            ready.register(fd, selectors.EVENT_READ)
        while ready.get_map():
            cancel.check()
            for key, _ in ready.select(_POLL_SECONDS):
                chunk = os.read(key.fd, 65_536)
                if chunk:
                    chunks[key.fd].append(chunk)
                else:
                    ready.unregister(key.fd)
    output, errors = (b"".join(parts) for parts in chunks.values())
    return output, errors


def _parse_path(complaint: bytes) -> bytes:
    """Return the path in `rg: ./a/b: Permission denied (os error 13)`, as far as it can be told."""
    _, _, behind_prefix = complaint.partition(b"./")
    return behind_prefix.partition(b": ")[0] or b"."
