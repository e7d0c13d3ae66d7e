"""Answers a client's first requests with the stored answers of an earlier start of the same configuration.

Nothing heavy is imported before the first request that needs the server: a host that starts five servers and only lists
their tools pays for none of them. `store` writes what is read here. A line is answered only if it equals an
earlier one byte for byte, except for its id; every other line goes to the server, and so does everything after it.

Only modules of the standard library that cost next to nothing: no json, re, signal or typing.
"""

from __future__ import annotations

import marshal
import os
import sys
import zlib

from mcp_batteries.transports.stdio.cached_handshake.input import Input

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from hashlib import blake2b
    from typing import Any
else:
    # `signal` wraps this module in enumerations, which cost a third of a start; `hashlib` loads OpenSSL first.
    import _signal as signal
    from _blake2 import blake2b

__all__ = [
    "Handover",
    "cache_path",
    "environment",
    "file_identity",
    "is_private",
    "list_distributions",
    "make_template",
    "replay",
]

_FORMAT = 1
_MAX_BYTES = 4 * 1024 * 1024
_MAX_LINE_BYTES = 64 * 1024


class Handover:
    """What the front has read and answered, from which the server continues.

    Attributes:
        file: the file with the stored answers of this configuration.
        stored: its contents, if still valid.
        answered_lines: in order, each with its answer.
        pending: input that was read but not answered.
    """

    def __init__(self, file: str) -> None:
        self.file = file
        self.stored: dict[str, Any] | None = None
        self.answered_lines: list[tuple[bytes, bytes]] = []
        self.pending = b""


def replay(package: str) -> Handover | None:
    """Answer lines on standard input until one comes that has no stored answer.

    Return None if standard input or the configuration does not allow stored answers. The process ends when the client
    leaves.
    """
    try:
        if os.isatty(0):
            return None
        handover = Handover(cache_path(package))
    except OSError:
        return None
    try:
        stored = _read(handover.file)
        if stored and _is_valid(stored):
            handover.stored = stored
    except (OSError, EOFError, KeyError, TypeError, ValueError):
        pass
    if handover.stored:
        _Replay(handover, handover.stored).run()
    return handover


class _Replay:
    """Answers lines with what is stored, until one needs the server."""

    def __init__(self, handover: Handover, stored: dict[str, Any]) -> None:
        self._handover = handover
        self._sessions: list[dict[str, Any]] = stored["sessions"]
        self._plain: list[_Template] = stored["plain"]
        self._session: dict[str, Any] | None = None
        self._initialized = False

    def run(self) -> None:
        """Answer lines on standard input; a signal ends the process meanwhile."""
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

        After it nothing more is read: a check whether more has come can wait, as not every system can tell for every
        kind of input, and the client may say no more before the server has answered.
        """
        partial_line = b""
        while len(partial_line) < _MAX_LINE_BYTES and not self._handover.pending:
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
        """Write the stored answer to `line`, or leave the line to the server."""
        stored = self._find(line)
        if stored is None:
            self._handover.pending += line
            return
        self._handover.answered_lines.append((line, stored))
        view = memoryview(stored)
        try:
            while view:
                view = view[os.write(1, view) :]
        except OSError:
            os._exit(0)  # Nobody reads any more.

    def _find(self, line: bytes) -> bytes | None:
        """Return the stored answer to `line`; empty for one without an answer, None if it needs the server."""
        if self._session is None:
            for session in self._sessions:
                greeting = _fill(session["hello"], line)
                if greeting is not None:
                    self._session = session
                    return greeting
            return _first_match(self._plain, line)
        if self._initialized:
            return _first_match(self._session["lists"], line)
        # Before the client has confirmed the handshake, it may ask nothing but a ping.
        if line not in self._session["initialized"]:
            return None
        self._initialized = True
        return b""


def _leave(number: int, frame: object) -> None:
    os._exit(128 + number)


# A request's line before and after its id, and its answer after the id. A plain tuple, because `marshal` stores it.
_Template = tuple[bytes, bytes, bytes]


def _first_match(templates: list[_Template], line: bytes) -> bytes | None:
    """Return the answer of the first template that recognises `line`, or None."""
    for template in templates:
        filled = _fill(template, line)
        if filled is not None:
            return filled
    return None


def _fill(template: _Template, line: bytes) -> bytes | None:
    """Return the answer to `line` with its own id, or None if `template` is of another line."""
    before, after, answer_end = template
    if len(line) <= len(before) + len(after) or not (line.startswith(before) and line.endswith(after)):
        return None
    request_id = line[len(before) : len(line) - len(after)]
    if not _is_plain_id(request_id):
        return None
    return b'{"jsonrpc":"2.0","id":' + request_id + answer_end


def _is_plain_id(text: bytes) -> bool:
    """Tell whether `text` is a JSON number or string that stands for the same id in every spelling."""
    if len(text) > 2 and text[:1] == b'"' and text[-1:] == b'"':
        return _is_word(text[1:-1])
    if not text.isdigit() or len(text) > 18:
        return False
    return text[:1] != b"0" or text == b"0"


def _is_word(text: bytes) -> bool:
    return len(text) <= 64 and text.replace(b"-", b"").replace(b"_", b"").isalnum()


def make_template(line: bytes, request_id: bytes, answer: bytes) -> _Template | None:
    """Return a template that recognises `line` with any id and answers like `answer`; None if that is not certain.

    Args:
        request_id: the id of both, as JSON.
    """
    start = b'{"jsonrpc":"2.0","id":' + request_id
    position = line.find(b'"id":') + len(b'"id":')
    position += len(line[position:]) - len(line[position:].lstrip(b" "))
    if line.count(b'"id":') != 1 or not line.startswith(request_id, position):
        return None
    if not answer.startswith(start + b',"result":'):
        return None
    before = line[:position]
    after = line[position + len(request_id) :]
    filled_in = (before, after, answer[len(start) :])
    if after[:1] not in b",}" or _fill(filled_in, line) != answer:
        return None
    return filled_in


def _folder() -> str:
    """Return the folder of the stored answers: in the user's cache folder."""
    home = os.path.expanduser("~")
    if sys.platform == "darwin":
        base = os.path.join(home, "Library", "Caches")
    elif sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local")
    else:
        base = os.environ.get("XDG_CACHE_HOME", "")
        if not os.path.isabs(base):
            base = os.path.join(home, ".cache")
    return os.path.join(base, "mcp-batteries", "first-answers")


def cache_path(package: str) -> str:
    """Return the file for exactly this command line."""
    # This is the same for two starts of one configuration, but for the environment and the files that it names.
    configuration = (_FORMAT, package, sys.argv[1:], os.getcwd(), sys.executable, sys.prefix, sys.version)
    text = repr(configuration).encode("utf-8", "surrogatepass")
    return os.path.join(_folder(), blake2b(text, digest_size=20).hexdigest())


def is_private(status: os.stat_result) -> bool:
    """Tell whether only we can access a file or folder, as far as its mode shows; `status` is from `os.stat`.

    On Windows the mode shows nothing: there the folder is inside the user's profile, which is closed to others.
    """
    return sys.platform == "win32" or (status.st_uid == os.geteuid() and not status.st_mode & 0o077)


def environment(prefix: str, names: list[str], key: bytes) -> bytes:
    """Return a digest of the variables that begin with `prefix` and those called `names`.

    Their values may be secrets.
    """
    chosen = sorted((name, value) for name, value in os.environ.items() if name in names or _begins(name, prefix))
    return blake2b(repr(chosen).encode("utf-8", "surrogatepass"), key=key, digest_size=32).digest()


def _begins(name: str, prefix: str) -> bool:
    return name.upper().startswith(prefix)


def file_identity(path: str, contents: bool) -> tuple[int, ...] | None:
    """Return what identifies the file or folder `path`; with `contents`, it changes with the contents too."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    object_itself = (status.st_dev, status.st_ino, status.st_mode, status.st_uid, status.st_gid)
    if not contents:
        return object_itself
    return (*object_itself, status.st_size, status.st_mtime_ns)


def list_distributions(path: str) -> list[str]:
    """Return the distributions in a folder of packages, each with its version."""
    try:
        return sorted(name for name in os.listdir(path) if name.endswith((".dist-info", ".egg-info", ".pth")))
    except OSError:
        return []


def _is_valid(stored: dict[str, Any]) -> bool:
    """Tell whether all that the stored answers depend on is as it was."""
    if stored["environment"] != environment(stored["prefix"], stored["names"], stored["key"]):
        return False
    for path, contents, identity_before in stored["files"]:
        if file_identity(path, contents) != identity_before:
            return False
    return all(list_distributions(path) == distributions for path, distributions in stored["packages"])


def _read(path: str) -> dict[str, Any] | None:
    """Return the contents of the file of stored answers, or None if others could have written or may read it."""
    flags = os.O_BINARY if sys.platform == "win32" else os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        handle = os.open(path, os.O_RDONLY | flags)
    except OSError:
        return None
    with open(handle, "rb") as file:
        if not is_private(os.fstat(handle)) or not is_private(os.stat(os.path.dirname(path))):
            return None
        data = file.read(_MAX_BYTES + 1)
    if len(data) < 8 or len(data) > _MAX_BYTES or zlib.crc32(data[4:]) != int.from_bytes(data[:4], "big"):
        return None
    return marshal.loads(data[4:])
