"""Answers a client's first requests with the stored answers of an earlier start of the same configuration.

Nothing heavy is imported before the first request that needs the server: a host that starts five servers and only lists
their tools pays for none of them. `first_answers` writes what is read here. A line is answered only if it equals an
earlier one byte for byte, except for its id; every other line goes to the server, and so does everything after it.

Only modules of the standard library that cost next to nothing: no json, re, signal or typing.
"""

from __future__ import annotations

import marshal
import os
import sys
import zlib

from mcp_batteries.transports.stdio.front_input import Input

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from hashlib import blake2b
    from typing import Any
else:
    # `hashlib` loads OpenSSL first.
    # What `signal` wraps in enumerations, which cost a third of a start.
    import _signal as signal
    from _blake2 import blake2b

__all__ = ["Handover", "answer", "environment", "identity", "installed", "is_private", "place", "template"]

_FORMAT = 1
_MOST_BYTES = 4 * 1024 * 1024
_LONGEST_LINE = 64 * 1024


class Handover:
    """What the front has read and answered, from which the server continues.

    Attributes:
        file: the file with the stored answers of this configuration.
        kept: its contents, if still valid.
        asked: the answered lines, in order, each with its answer.
        pending: input that was read but not answered.
    """

    def __init__(self, file: str) -> None:
        self.file = file
        self.kept: dict[str, Any] | None = None
        self.asked: list[tuple[bytes, bytes]] = []
        self.pending = b""


def answer(package: str) -> Handover | None:
    """Answer lines on standard input until one comes that has no stored answer.

    None if standard input or the configuration does not allow stored answers. Ends the process when the client leaves.
    """
    try:
        if os.isatty(0):
            return None
        handover = Handover(place(package))
    except OSError:
        return None
    try:
        kept = _read(handover.file)
        handover.kept = kept if kept and _holds(kept) else None
    except (OSError, EOFError, KeyError, TypeError, ValueError):
        pass
    if handover.kept:
        _Front(handover, handover.kept).run()
    return handover


class _Front:
    def __init__(self, handover: Handover, kept: dict[str, Any]) -> None:
        self._handover = handover
        self._sessions: list[dict[str, Any]] = kept["sessions"]
        self._plain: list[_Template] = kept["plain"]
        self._session: dict[str, Any] | None = None
        self._initialized = False

    def run(self) -> None:
        # Python on Windows sees a signal once its read has returned: there the system's own way to end it stays.
        handler = signal.SIG_DFL if sys.platform == "win32" else _leave
        previous = {number: signal.signal(number, handler) for number in (signal.SIGTERM, signal.SIGINT)}
        source = Input()
        self._run(source)
        source.close()
        for number, handled_before in previous.items():
            signal.signal(number, handled_before)

    def _run(self, source: Input) -> None:
        """Read and answer until a line needs the server. What came together with that line is still answered.

        After it nothing more is read: a look whether more has come can wait, as not every system can tell for every
        kind of input, and the client may say no more before the server has answered.
        """
        partial_line = b""
        while len(partial_line) < _LONGEST_LINE and not self._handover.pending:
            chunk = source.read()
            if not chunk:
                if not partial_line:
                    os._exit(0)
                break
            *lines, partial_line = (partial_line + chunk).split(b"\n")
            for line in lines:
                self._answer(line + b"\n")
        self._handover.pending += partial_line

    def _answer(self, line: bytes) -> None:
        found = self._find(line)
        if found is None:
            self._handover.pending += line
            return
        self._handover.asked.append((line, found))
        view = memoryview(found)
        try:
            while view:
                view = view[os.write(1, view) :]
        except OSError:
            os._exit(0)  # Nobody reads any more.

    def _find(self, line: bytes) -> bytes | None:
        if self._session is None:
            for session in self._sessions:
                if (found := _fill(session["hello"], line)) is not None:
                    self._session = session
                    return found
            return _first(self._plain, line)
        if not self._initialized:
            # Until the client has said so, nothing but a ping may be asked.
            self._initialized = line in self._session["initialized"]
            return b"" if self._initialized else None
        return _first(self._session["lists"], line)


def _leave(number: int, frame: object) -> None:
    os._exit(128 + number)


_Template = tuple[bytes, bytes, bytes]
"""A request's line before and after its id, and its answer after the id."""


def _first(templates: list[_Template], line: bytes) -> bytes | None:
    for template in templates:
        if (found := _fill(template, line)) is not None:
            return found
    return None


def _fill(template: _Template, line: bytes) -> bytes | None:
    before, after, said = template
    number = line[len(before) : len(line) - len(after)]
    if len(line) <= len(before) + len(after) or not (line.startswith(before) and line.endswith(after)):
        return None
    plain = number[1:-1] if number[:1] == number[-1:] == b'"' and len(number) > 2 else number
    if not (number.isdigit() and (number[:1] != b"0" or number == b"0") if plain is number else _is_word(plain)):
        return None
    return b'{"jsonrpc":"2.0","id":' + number + said if len(number) <= 18 or plain is not number else None


def _is_word(text: bytes) -> bool:
    return len(text) <= 64 and text.replace(b"-", b"").replace(b"_", b"").isalnum()


def template(line: bytes, number: bytes, said: bytes) -> _Template | None:
    """A template that recognises `line` with any id and answers like `said`; None if that is not certain.

    Args:
        number: the id of both, as JSON.
    """
    start = b'{"jsonrpc":"2.0","id":' + number
    at = line.find(b'"id":') + len(b'"id":')
    at += len(line[at:]) - len(line[at:].lstrip(b" "))
    if line.count(b'"id":') != 1 or not (line.startswith(number, at) and said.startswith(start + b',"result":')):
        return None
    made = (line[:at], line[at + len(number) :], said[len(start) :])
    return made if made[1][:1] in b",}" and _fill(made, line) == said else None


def _folder() -> str:
    """The folder of the stored answers: in the user's cache folder."""
    home = os.path.expanduser("~")
    if sys.platform == "darwin":
        base = os.path.join(home, "Library", "Caches")
    elif sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local")
    else:
        base = os.environ.get("XDG_CACHE_HOME", "")
        base = base if os.path.isabs(base) else os.path.join(home, ".cache")
    return os.path.join(base, "mcp-batteries", "first-answers")


def place(package: str) -> str:
    """The file for exactly this command line."""
    # What is the same for two starts of one configuration, but for the environment and the files it names.
    same = (_FORMAT, package, sys.argv[1:], os.getcwd(), sys.executable, sys.prefix, sys.version)
    text = repr(same).encode("utf-8", "surrogatepass")
    return os.path.join(_folder(), blake2b(text, digest_size=20).hexdigest())


def is_private(found: os.stat_result) -> bool:
    """Whether only we can access a file or folder, as far as its mode shows; `found` is from `os.stat`.

    On Windows the mode shows nothing: there the folder is inside the user's profile, which is closed to others.
    """
    return sys.platform == "win32" or (found.st_uid == os.geteuid() and not found.st_mode & 0o077)


def environment(prefix: str, names: list[str], key: bytes) -> bytes:
    """A digest of the variables that begin with `prefix` and those called `names`; their values may be secrets."""
    chosen = sorted((name, value) for name, value in os.environ.items() if name in names or _begins(name, prefix))
    return blake2b(repr(chosen).encode("utf-8", "surrogatepass"), key=key, digest_size=32).digest()


def _begins(name: str, prefix: str) -> bool:
    return name.upper().startswith(prefix)


def identity(path: str, contents: bool) -> tuple[int, ...] | None:
    """Identifies the file or folder `path`; with `contents`, changes with its contents too."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    same = (found.st_dev, found.st_ino, found.st_mode, found.st_uid, found.st_gid)
    return (*same, found.st_size, found.st_mtime_ns) if contents else same


def installed(path: str) -> list[str]:
    """The distributions in a folder of packages, each with its version."""
    try:
        return sorted(name for name in os.listdir(path) if name.endswith((".dist-info", ".egg-info", ".pth")))
    except OSError:
        return []


def _holds(kept: dict[str, Any]) -> bool:
    return (
        kept["environment"] == environment(kept["prefix"], kept["names"], kept["key"])
        and all(identity(path, contents) == found for path, contents, found in kept["files"])
        and all(installed(path) == found for path, found in kept["packages"])
    )


def _read(path: str) -> dict[str, Any] | None:
    try:
        handle = os.open(path, os.O_RDONLY | (os.O_BINARY if sys.platform == "win32" else os.O_NOFOLLOW | os.O_CLOEXEC))
    except OSError:
        return None
    with open(handle, "rb") as file:
        for found in (os.fstat(handle), os.stat(os.path.dirname(path))):
            # What others could have written, or may read, is not ours.
            if not is_private(found):
                return None
        data = file.read(_MOST_BYTES + 1)
    if len(data) < 8 or len(data) > _MOST_BYTES or zlib.crc32(data[4:]) != int.from_bytes(data[:4], "big"):
        return None
    return marshal.loads(data[4:])
