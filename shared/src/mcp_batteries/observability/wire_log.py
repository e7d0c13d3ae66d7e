"""Records every message as it came and went in a file, to find out what a host really sends.

It holds what tools read and write, so it is off unless a file is named, and only the owner can read it. It masks what
looks like a secret, and always the secrets of the settings.
"""

from __future__ import annotations

import itertools
import json
import logging
import os
from datetime import UTC, datetime
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from typing import Any, Literal

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mcp_batteries.errors import Unavailable, describe_os_error, quote
from mcp_batteries.observability.audit import caller_of_scope
from mcp_batteries.redaction.text import redact, redact_json

__all__ = ["WireLog"]

_MAX_BYTES = 16 * 1024 * 1024
_MAX_MESSAGE_CHARACTERS = 64 * 1024

Direction = Literal["received", "sent"]


class _File(RotatingFileHandler):
    def _open(self) -> TextIOWrapper:
        # newline: a line ends alike on every system.
        return open(
            self.baseFilename,
            "a",
            encoding="utf-8",
            newline="\n",
            opener=lambda path, flags: os.open(path, flags, 0o600),
        )


class WireLog:
    """Appends a line of JSON per message to `path`, mode 0600: `time`, `direction`, over HTTP who and which, `message`.

    A file of 16 MiB becomes `path`.1, in place of the one before. A message over 64 KiB is cut, and `bytes` says its
    length; what is not JSON is `text`.

    Raises:
        Unavailable: The file can't be written.
    """

    def __init__(self, path: str) -> None:
        self._requests = itertools.count(1)
        try:
            self._file = _File(path, maxBytes=_MAX_BYTES, backupCount=1)
        except OSError as problem:
            raise Unavailable(
                f"The wire log {quote(path)} can't be written: {describe_os_error(problem)}.",
                "Name a file in a folder of yours.",
            ) from None

    def note(self, direction: Direction, data: bytes, **request: object) -> None:
        """Record one message, or one piece of a body, as it is on the wire.

        Args:
            request: over HTTP, the request that it belongs to.
        """
        if not data.strip():
            return
        line: dict[str, object] = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "direction": direction,
            **request,
        }
        try:
            line["message"] = redact_json(json.loads(data))
        except (ValueError, RecursionError):
            line["text"] = redact(data.decode("utf-8", "replace").strip())
        text = json.dumps(line, ensure_ascii=False)
        if len(text) > _MAX_MESSAGE_CHARACTERS:
            message = json.dumps(line.pop("message", None) or line.pop("text", ""), ensure_ascii=False)
            cut = {**line, "bytes": len(data), "text": message[:_MAX_MESSAGE_CHARACTERS]}
            text = json.dumps(cut, ensure_ascii=False)
        text = text.encode("utf-8", "backslashreplace").decode()
        self._file.handle(logging.LogRecord("wire", logging.INFO, "", 0, text, None, None))

    def close(self) -> None:
        self._file.close()

    def layer(self, app: ASGIApp) -> ASGIApp:
        """Wrap `app` to record its requests and answers; each piece of a stream is a separate line."""

        async def record(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            request: dict[str, Any] = {
                "request": next(self._requests),
                **caller_of_scope(scope),
                "method": scope["method"],
                "path": scope["path"],
            }
            body: list[bytes] = []
            status = 0

            async def receive_recorded() -> Message:
                message = await receive()
                if message["type"] == "http.request":
                    body.append(message.get("body", b""))
                    if not message.get("more_body"):
                        self.note("received", b"".join(body) or b'""', **request)
                return message

            async def send_recorded(message: Message) -> None:
                nonlocal status
                if message["type"] == "http.response.start":
                    status = message["status"]
                elif message["type"] == "http.response.body":
                    self.note("sent", message.get("body", b""), **request, status=status)
                await send(message)

            await app(scope, receive_recorded, send_recorded)

        return record
