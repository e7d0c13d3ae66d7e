"""Which files a program needs to start: its dynamic loader and its libraries."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mcp_batteries.executables import NO_WINDOW
from mcp_batteries.processes.confinement import real_paths

__all__ = ["DEVICES", "LIBRARY_FILES", "NAME_FILES", "ProgramFiles", "is_elf", "program_files"]

_MACOS_FILES = (
    "/System/Library", "/usr/lib", "/usr/share", "/Library/Developer/CommandLineTools/usr/lib", "/opt/homebrew/Cellar",
    "/opt/homebrew/opt", "/opt/homebrew/lib", "/usr/local/Cellar", "/usr/local/opt", "/usr/local/lib", "/opt/local/lib",
    "/private/var/db/timezone", "/private/etc/localtime",
)  # fmt: skip
_LINUX_FILES = (
    "/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/local/lib",
    "/usr/share/locale", "/usr/share/zoneinfo", "/nix/store", "/gnu/store", "/sys/devices/system/cpu",
    "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload", "/etc/localtime",
)  # fmt: skip
_MACOS_NAME_FILES = ("/private/etc/hosts", "/private/etc/resolv.conf")
_LINUX_NAME_FILES = (
    "/etc/nsswitch.conf", "/etc/passwd", "/etc/group", "/etc/host.conf", "/etc/hosts", "/etc/resolv.conf",
    "/etc/gai.conf",
)  # fmt: skip
# The C library reads these for any program: libraries, locales, time zones.
LIBRARY_FILES = _MACOS_FILES if sys.platform == "darwin" else _LINUX_FILES
# It reads these for a program that asks for names of users and hosts. They hold no secrets.
NAME_FILES = _MACOS_NAME_FILES if sys.platform == "darwin" else _LINUX_NAME_FILES
DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
_PROGRAM_HEADER_INTERPRETER = 3
_MAX_INTERPRETER_BYTES = 4096
_TIMEOUT_SECONDS = 10


@dataclass(frozen=True, slots=True)
class ProgramFiles:
    """What has to be executable and readable for some programs to start.

    Attributes:
        executable: The programs and their dynamic loaders, as real paths.
        readable: Folders of their libraries, and what the C library reads for any program, as real paths.
    """

    executable: frozenset[str]
    readable: frozenset[str]


def program_files(programs: Iterable[str]) -> ProgramFiles:
    """Return what `programs` need to start; runs the dynamic loader, which names their libraries."""
    executable: set[str] = set()
    libraries: set[str] = set()
    for program in real_paths(programs):
        executable.add(program)
        loader = _dynamic_loader(program)
        if loader:
            executable.add(os.path.realpath(loader))
            libraries.update(_library_folders(loader, program))
    return ProgramFiles(frozenset(executable), real_paths([*LIBRARY_FILES, *libraries]))


def is_elf(path: str) -> bool:
    """Return whether a file is a program of Linux, and not a script."""
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError:
        return False


def _dynamic_loader(program: str) -> str:
    """Return the path of the loader that a program of Linux names, empty if it names none."""
    try:
        with open(program, "rb") as file:
            header = file.read(64)
            if header[:4] != b"\x7fELF":
                return ""
            is_64_bit = header[4] == 2
            order = "<" if header[5] == 1 else ">"
            if is_64_bit:
                (table,) = struct.unpack_from(f"{order}Q", header, 32)
                entry_size, entries = struct.unpack_from(f"{order}HH", header, 54)
                offset_format = f"{order}Q"
                offset_at = 8
                size_at = 32
            else:
                (table,) = struct.unpack_from(f"{order}I", header, 28)
                entry_size, entries = struct.unpack_from(f"{order}HH", header, 42)
                offset_format = f"{order}I"
                offset_at = 4
                size_at = 16
            for number in range(entries):
                file.seek(table + number * entry_size)
                entry = file.read(entry_size)
                (kind,) = struct.unpack_from(f"{order}I", entry)
                if kind == _PROGRAM_HEADER_INTERPRETER:
                    (offset,) = struct.unpack_from(offset_format, entry, offset_at)
                    (size,) = struct.unpack_from(offset_format, entry, size_at)
                    file.seek(offset)
                    return os.fsdecode(file.read(min(size, _MAX_INTERPRETER_BYTES)).rstrip(b"\0"))
    except (OSError, struct.error, IndexError):
        pass
    return ""


def _library_folders(loader: str, program: str) -> set[str]:
    """Return the folders of a program's libraries, as its loader lists them; glibc's and musl's know `--list`."""
    environment: Mapping[str, str] = {}
    try:
        listing = subprocess.run(
            [loader, "--list", program],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_SECONDS,
            check=False,
            creationflags=NO_WINDOW,
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return set()
    return {os.path.dirname(os.fsdecode(path)) for path in re.findall(rb"(?m)(/\S+) \(0x[0-9a-f]+\)$", listing)}
