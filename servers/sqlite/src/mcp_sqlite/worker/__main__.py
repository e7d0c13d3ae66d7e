"""The loop of a worker: frames in, frames out, one request at a time."""

from __future__ import annotations

import gc
import json
import math
import os
import sqlite3
import struct
import sys
import threading
from typing import Any, BinaryIO

from mcp_sqlite.worker import operations
from mcp_sqlite.worker.connection import vectors
from mcp_sqlite.worker.connection.connections import Connections
from mcp_sqlite.worker.connection.database import VisibleNames
from mcp_sqlite.worker.connection.interrupt import Interrupt
from mcp_sqlite.worker.language.failure import Failure

_LENGTH = struct.Struct(">I")
_to_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
# Threads have small stacks where a system gives what it likes, and SQLite parses by recursion.
_STACK_BYTES = 16 << 20


class _Worker:
    """Answers requests with two threads: who has read a request answers it too, while the other hears of a cancel.

    Handing it over would cost as much as a small statement does.
    """

    def __init__(self, connections: Connections, answers: BinaryIO) -> None:
        self._connections = connections
        self._answers = answers
        self._reading = threading.Lock()
        self._working = threading.Lock()

    def send(self, frame: dict[str, Any]) -> None:
        body = _to_json(frame).encode("utf-8", "replace")
        self._answers.write(_LENGTH.pack(len(body)) + body)
        self._answers.flush()

    def send_failure(self, failure: Failure, **members: Any) -> None:
        self.send({"error": [failure.kind, failure.message, failure.fix], **members})

    def serve(self) -> None:
        """Answer requests for as long as the process lives."""
        try:
            while True:
                with self._reading:
                    request = _read_request(sys.stdin.buffer, self._connections.interrupt)
                with self._working:
                    self._answer(request)
        finally:
            os._exit(1)  # one thread alone would not hear of a cancel

    def _answer(self, request: dict[str, Any]) -> None:
        try:
            frame = operations.run(self._connections, request, self.send)
            self.send({**frame, "end": True})
        except Failure as failure:
            self.send_failure(failure, end=True)


def main() -> None:
    """Answer the requests that come by the standard input until it ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints can't reach the stream of frames
    visible_names: dict[str, VisibleNames] = {}
    configured = json.loads(_read_option("--parts") or "{}")
    for path, (tables, masked_columns) in configured.items():
        visible_names[path] = VisibleNames(tables, masked_columns)
    worker = _Worker(Connections(Interrupt(), visible_names, _read_option("--files")), answers)
    try:
        if "--sqlite-vec" in sys.argv:
            vectors.load()
    except Failure as failure:
        worker.send_failure(failure)
        return
    gc.freeze()
    worker.send({"ready": sqlite3.sqlite_version})
    threading.stack_size(_STACK_BYTES)
    threading.Thread(target=worker.serve, daemon=True).start()
    worker.serve()


def _read_option(name: str) -> str | None:
    """Return the word behind an option of the command line; None where it is missing."""
    if name not in sys.argv:
        return None
    return sys.argv[sys.argv.index(name) + 1]


def _read_request(stream: BinaryIO, interrupt: Interrupt) -> dict[str, Any]:
    """Return the next request, whose time has begun."""
    while True:
        body = _read_frame(stream)
        if not body:
            # Nobody is left to answer. A transaction under way was not acknowledged; SQLite rolls it back.
            os._exit(0)
        request = json.loads(body)
        if not request.get("cancel"):
            interrupt.start(request.pop("seconds"), request.pop("time_limit", math.inf))
            return request
        interrupt.cancel()


def _read_frame(stream: BinaryIO) -> bytes:
    """Return the next frame; nothing where the stream ends."""
    length = stream.read(_LENGTH.size)
    if len(length) < _LENGTH.size:
        return b""
    return stream.read(_LENGTH.unpack(length)[0])


if __name__ == "__main__":
    main()
