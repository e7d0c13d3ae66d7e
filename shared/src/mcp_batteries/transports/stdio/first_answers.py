"""Stores the server's first answers for the next start of the same configuration, and checks those given at this start.

`front` reads what is written here.
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
from typing import Any

from mcp_types.jsonrpc import JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, RequestId

from mcp_batteries.settings import Settings, variable
from mcp_batteries.transports.stdio import front

__all__ = ["FirstAnswers"]

_KEPT = ("initialize", "server/discover", "tools/list", "prompts/list", "resources/templates/list", "ping")
_CHANGE_NOTHING = (
    *_KEPT, "resources/list", "resources/read", "resources/subscribe", "resources/unsubscribe", "subscriptions/listen",
    "prompts/get", "completion/complete", "logging/setLevel",
)  # fmt: skip
_CHANGED = {
    "tools/list": "notifications/tools/list_changed",
    "prompts/list": "notifications/prompts/list_changed",
}
_SAVE_SECONDS = 0.25
_MOST_SESSIONS = 8
_MOST_LISTS = 32
_MOST_FILES = 256
_COMMON = ["HOME", "PATH", "LANG", "XDG_CACHE_HOME", "PYTHONPATH", "USERPROFILE", "APPDATA", "LOCALAPPDATA"]


class FirstAnswers:
    """The requests before anything could change, with their answers.

    Args:
        handover: what the front has answered and read.
        settings: know what the answers depend on.
    """

    def __init__(self, handover: front.Handover, settings: Settings) -> None:
        self._file = handover.file
        on = settings.front_dependencies()
        self._keeps = on is not None
        self._expected: dict[RequestId, tuple[str, bytes]] = {}
        self._replayed = deque(handover.asked)
        self._waiting: dict[RequestId, tuple[str, bytes]] = {}
        kept = handover.kept or {}
        self._sessions: list[dict[str, Any]] = kept.get("sessions", [])
        self._plain: list[Any] = kept.get("plain", [])
        self._session: dict[str, Any] | None = None
        self._head = b"".join(line for line, _ in handover.asked) + handover.pending
        self._is_new = False
        if on is not None:
            prefix = variable(type(settings), "")
            key = secrets.token_bytes(32)
            names = [*_COMMON, *on.variables]
            watched = [(path, False) for path in on.places] + [(path, True) for path in on.files]
            self._state = {
                "prefix": prefix,
                "names": names,
                "key": key,
                "environment": front.environment(prefix, names, key),
                "files": [(path, contents, front.identity(path, contents)) for path, contents in watched],
            }

    def head(self) -> bytes:
        """The beginning of the input, which the front has read."""
        return self._head

    def asked(self, line: bytes, message: JSONRPCMessage) -> None:
        """Note that `line`, which contains `message`, goes to the server."""
        if self._replayed:
            line, said = self._replayed.popleft()
            if isinstance(message, JSONRPCRequest):
                self._expected[message.id] = (message.method, said)
                if message.method == "initialize":
                    self._session = next((item for item in self._sessions if _matches(item["hello"], line)), None)
        elif not self._keeps:
            return
        elif isinstance(message, JSONRPCNotification):
            line += b"\n"
            if (
                message.method == "notifications/initialized"
                and self._session is not None
                and line not in self._session["initialized"]
            ):
                self._session["initialized"] = [line, *self._session["initialized"][:3]]
                self._is_new = True
        elif isinstance(message, JSONRPCRequest):
            if message.method not in _CHANGE_NOTHING:
                # What comes after it may be true for this process only.
                self.save()
                self._keeps = False
            elif message.method in _KEPT:
                self._waiting[message.id] = (message.method, line + b"\n")

    def answered(self, request_id: RequestId, data: bytes) -> bytes:
        """What to write for `data`, the answer to `request_id`: nothing if the front has already sent it."""
        if (expected := self._expected.pop(request_id, None)) is not None:
            method, said = expected
            if said == data:
                return b""
            self._forget()
            changed = _CHANGED.get(method) if self._session is not None else None
            return json.dumps({"jsonrpc": "2.0", "method": changed}).encode() + b"\n" if changed else b""
        method, line = self._waiting.pop(request_id, ("", b""))
        if method and self._keeps:
            made = front.template(line, json.dumps(request_id).encode(), data)
            if made is not None and _is_id_alone(line, made):
                self._keep(method, made)
        return data

    def _keep(self, method: str, made: Any) -> None:
        if not self._is_new:
            # A host asks for its lists within a moment: they are written together.
            asyncio.get_running_loop().call_later(_SAVE_SECONDS, self.save)
        self._is_new = True
        if method == "initialize":
            self._session = {"hello": made, "initialized": [], "lists": []}
            others = [item for item in self._sessions if item["hello"][:2] != made[:2]]
            self._sessions = [self._session, *others][:_MOST_SESSIONS]
            return
        lists = self._plain if self._session is None else self._session["lists"]
        others = [item for item in lists if item[:2] != made[:2]]
        lists[:] = [made, *others][:_MOST_LISTS]

    def save(self) -> None:
        """Store what is new. Blocks for about a millisecond."""
        if not self._is_new or not self._keeps:
            return
        self._is_new = False
        ours = {name.partition(".")[0] for name in sys.modules if name.startswith("mcp_")}
        modules = [module for name, module in sorted(sys.modules.items()) if name.partition(".")[0] in ours]
        files = [file for module in modules if (file := getattr(module, "__file__", None))]
        packages = sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
        state = self._state | {
            "files": [*self._state["files"], *((file, True, front.identity(file, True)) for file in files)],
            "packages": [(path, front.installed(path)) for path in packages],
            "sessions": self._sessions,
            "plain": self._plain,
        }
        data = marshal.dumps(state)
        # Without it the next start takes its time, no more.
        with suppress(OSError):
            _write(self._file, zlib.crc32(data).to_bytes(4, "big") + data)

    def _forget(self) -> None:
        self._keeps = False
        with suppress(OSError):
            os.unlink(self._file)


def _matches(template: Any, line: bytes) -> bool:
    return line.startswith(template[0]) and line.endswith(template[1])


def _is_id_alone(line: bytes, made: Any) -> bool:
    """Whether changing the number at the place that `made` found changes only the message's id."""
    try:
        other = json.loads(made[0] + b"987654321" + made[1])
        return other.pop("id") == 987654321 and other == {k: v for k, v in json.loads(line).items() if k != "id"}
    except (ValueError, AttributeError, RecursionError):
        return False


def _write(path: str, data: bytes) -> None:
    folder = os.path.dirname(path)
    os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
    with suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    found = os.lstat(folder)
    if not (stat.S_ISDIR(found.st_mode) and front.is_private(found)):
        return
    passing = f"{path}.{secrets.token_hex(8)}"
    binary = os.O_BINARY if sys.platform == "win32" else 0
    handle = os.open(passing, os.O_WRONLY | os.O_CREAT | os.O_EXCL | binary, 0o600)
    try:
        with open(handle, "wb") as file:
            file.write(data)
        os.replace(passing, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(passing)
        raise
    if len(names := os.listdir(folder)) > _MOST_FILES:
        oldest = sorted(names, key=lambda name: os.stat(os.path.join(folder, name)).st_mtime)
        for name in oldest[: len(names) - _MOST_FILES]:
            os.unlink(os.path.join(folder, name))
