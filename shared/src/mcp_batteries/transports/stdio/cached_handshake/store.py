"""Stores the server's first answers for the next start of the same configuration, and checks those given at this start.

`replay` reads what is written here.
"""

from __future__ import annotations

import asyncio
import json
import marshal
import os
import secrets
import stat
import sys
import sysconfig
import zlib
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_types.jsonrpc import JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, RequestId

from mcp_batteries.transports.stdio.cached_handshake import replay

if TYPE_CHECKING:
    from mcp_batteries.settings.declared import Dependencies

__all__ = ["AnswerStore"]

_STORED_METHODS = ("initialize", "server/discover", "tools/list", "prompts/list", "resources/templates/list", "ping")
_CHANGE_NOTHING = (
    *_STORED_METHODS, "resources/list", "resources/read", "resources/subscribe", "resources/unsubscribe",
    "subscriptions/listen", "prompts/get", "completion/complete", "logging/setLevel",
)  # fmt: skip
_LIST_NOTIFICATIONS = {
    "tools/list": "notifications/tools/list_changed",
    "prompts/list": "notifications/prompts/list_changed",
}
_SAVE_SECONDS = 0.25
_MAX_SESSIONS = 8
_MAX_LISTS = 32
_MAX_FILES = 256
_COMMON = ["HOME", "PATH", "LANG", "XDG_CACHE_HOME", "PYTHONPATH", "USERPROFILE", "APPDATA", "LOCALAPPDATA"]


class _Expected(NamedTuple):
    """A request that the front has answered, and its answer."""

    method: str
    answer: bytes


class _Waiting(NamedTuple):
    """A request whose answer may be stored."""

    method: str
    line: bytes


class AnswerStore:
    """The requests before anything could change, with their answers.

    Args:
        handover: what the front has answered and read.
        dependencies: what the answers depend on; None if none may be stored.
        prefix: with which the names of the server's environment variables begin.
    """

    def __init__(self, handover: replay.Handover, dependencies: Dependencies | None, prefix: str) -> None:
        self._file = handover.file
        self._is_enabled = dependencies is not None
        self._expected: dict[RequestId, _Expected] = {}
        self._replayed = deque(handover.answered_lines)
        self._waiting: dict[RequestId, _Waiting] = {}
        stored = handover.stored or {}
        self._sessions: list[dict[str, Any]] = stored.get("sessions", [])
        self._plain: list[Any] = stored.get("plain", [])
        self._session: dict[str, Any] | None = None
        self._head = b"".join(line for line, _ in handover.answered_lines) + handover.pending
        self._has_news = False
        if dependencies is not None:
            key = secrets.token_bytes(32)
            names = [*_COMMON, *dependencies.variables]
            watched = [(path, False) for path in dependencies.places]
            watched += [(path, True) for path in dependencies.files]
            self._state = {
                "prefix": prefix,
                "names": names,
                "key": key,
                "environment": replay.environment(prefix, names, key),
                "files": [(path, contents, replay.file_identity(path, contents)) for path, contents in watched],
            }

    def consumed_input(self) -> bytes:
        """Return the beginning of the input, which the front has read."""
        return self._head

    def record_request(self, line: bytes, message: JSONRPCMessage) -> None:
        """Note that `line`, which contains `message`, goes to the server."""
        if self._replayed:
            self._note_replayed(*self._replayed.popleft(), message)
        elif not self._is_enabled:
            return
        elif isinstance(message, JSONRPCNotification):
            if message.method == "notifications/initialized":
                self._note_initialized(line + b"\n")
        elif isinstance(message, JSONRPCRequest):
            self._note_request(line + b"\n", message)

    def _note_replayed(self, line: bytes, answer: bytes, message: JSONRPCMessage) -> None:
        """Expect the server to give the same `answer` to `line` as the front did."""
        if not isinstance(message, JSONRPCRequest):
            return
        self._expected[message.id] = _Expected(message.method, answer)
        if message.method == "initialize":
            self._session = next((item for item in self._sessions if _matches(item["hello"], line)), None)

    def _note_initialized(self, line: bytes) -> None:
        if self._session is None or line in self._session["initialized"]:
            return
        self._session["initialized"] = [line, *self._session["initialized"][:3]]
        self._has_news = True

    def _note_request(self, line: bytes, request: JSONRPCRequest) -> None:
        if request.method not in _CHANGE_NOTHING:
            # What comes after it may be true for this process only.
            self.save()
            self._is_enabled = False
        elif request.method in _STORED_METHODS:
            self._waiting[request.id] = _Waiting(request.method, line)

    def filter_answer(self, request_id: RequestId, data: bytes) -> bytes:
        """Return what to write for `data`, the answer to `request_id`: nothing if the front has already sent it."""
        expected = self._expected.pop(request_id, None)
        if expected is not None:
            if expected.answer == data:
                return b""
            self._forget()
            return self._notice_of_change(expected.method)
        waiting = self._waiting.pop(request_id, None)
        if waiting is not None and self._is_enabled:
            template = replay.make_template(waiting.line, json.dumps(request_id).encode(), data)
            if template is not None and _is_id_alone(waiting.line, template):
                self._keep(waiting.method, template)
        return data

    def _notice_of_change(self, method: str) -> bytes:
        """Return the notification that the list of `method` has changed; nothing if there is none for it."""
        if self._session is None or method not in _LIST_NOTIFICATIONS:
            return b""
        return json.dumps({"jsonrpc": "2.0", "method": _LIST_NOTIFICATIONS[method]}).encode() + b"\n"

    def _keep(self, method: str, template: Any) -> None:
        """Keep the answer to `method` for the next start."""
        if not self._has_news:
            # A host asks for its lists within a moment: they are written together.
            asyncio.get_running_loop().call_later(_SAVE_SECONDS, self.save)
        self._has_news = True
        if method == "initialize":
            self._session = {"hello": template, "initialized": [], "lists": []}
            others = [item for item in self._sessions if item["hello"][:2] != template[:2]]
            self._sessions = [self._session, *others][:_MAX_SESSIONS]
            return
        lists = self._plain
        if self._session is not None:
            lists = self._session["lists"]
        others = [item for item in lists if item[:2] != template[:2]]
        lists[:] = [template, *others][:_MAX_LISTS]

    def save(self) -> None:
        """Store what is new. Blocks for about a millisecond."""
        if not self._has_news or not self._is_enabled:
            return
        self._has_news = False
        packages = sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
        state = self._state | {
            "files": [
                *self._state["files"],
                *((file, True, replay.file_identity(file, True)) for file in _own_files()),
            ],
            "packages": [(path, replay.list_distributions(path)) for path in packages],
            "sessions": self._sessions,
            "plain": self._plain,
        }
        data = marshal.dumps(state)
        # If it can't be written, the next start takes its time, no more.
        with suppress(OSError):
            _write(self._file, zlib.crc32(data).to_bytes(4, "big") + data)

    def _forget(self) -> None:
        """Store nothing more, and remove what is stored."""
        self._is_enabled = False
        with suppress(OSError):
            os.unlink(self._file)


def _own_files() -> list[str]:
    """Return the files of our modules that are loaded, by the modules' names."""
    packages = {name.partition(".")[0] for name in sys.modules if name.startswith("mcp_")}
    files: list[str] = []
    for name, module in sorted(sys.modules.items()):
        if name.partition(".")[0] in packages:
            file = getattr(module, "__file__", None)
            if file:
                files.append(file)
    return files


def _matches(template: Any, line: bytes) -> bool:
    return line.startswith(template[0]) and line.endswith(template[1])


def _is_id_alone(line: bytes, template: Any) -> bool:
    """Tell whether changing the number at the place that `template` has found changes only the message's id."""
    before, after, _ = template
    try:
        changed = json.loads(before + b"987654321" + after)
        if changed.pop("id") != 987654321:
            return False
        original = json.loads(line)
        del original["id"]
        return changed == original
    except (ValueError, AttributeError, KeyError, RecursionError):
        return False


def _write(path: str, data: bytes) -> None:
    """Replace the file `path` by `data`, and remove the oldest files beside it if there are too many."""
    folder = os.path.dirname(path)
    os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
    with suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    status = os.lstat(folder)
    if not (stat.S_ISDIR(status.st_mode) and replay.is_private(status)):
        return
    temporary = f"{path}.{secrets.token_hex(8)}"
    binary = os.O_BINARY if sys.platform == "win32" else 0
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | binary, 0o600)
    try:
        with open(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    names = os.listdir(folder)
    if len(names) > _MAX_FILES:
        oldest = sorted(names, key=lambda name: os.stat(os.path.join(folder, name)).st_mtime)
        for name in oldest[: len(names) - _MAX_FILES]:
            os.unlink(os.path.join(folder, name))
