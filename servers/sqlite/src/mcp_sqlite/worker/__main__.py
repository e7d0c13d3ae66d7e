"""The loop of a worker: frames in, frames out, one request at a time."""

from __future__ import annotations

import gc
import json
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

_HEAD = struct.Struct(">I")
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_STACK = 16 << 20
"""Bytes of the second thread's, which are few where a system gives what it likes: SQLite parses by recursion."""


def main() -> None:
    frames = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints can't reach the stream of frames
    interrupt = Interrupt()
    parts: dict[str, VisibleNames] = (
        json.loads(sys.argv[sys.argv.index("--parts") + 1]) if "--parts" in sys.argv else {}
    )
    folder = sys.argv[sys.argv.index("--files") + 1] if "--files" in sys.argv else None
    connections = Connections(interrupt, parts, folder)
    reading, working = threading.Lock(), threading.Lock()

    def send(frame: dict[str, Any]) -> None:
        body = _encode(frame).encode("utf-8", "replace")
        frames.write(_HEAD.pack(len(body)) + body)
        frames.flush()

    def serve() -> None:
        # Two threads do this: who has read a request does it too, while the other hears of a cancel. Handing it over
        # would cost as much as a small statement does.
        try:
            while True:
                with reading:
                    request = _next(sys.stdin.buffer, interrupt)
                with working:
                    try:
                        send({**operations.run(connections, request, send), "end": True})
                    except Failure as failure:
                        send({"error": [failure.kind, failure.message, failure.fix], "end": True})
        finally:
            os._exit(1)  # one thread alone would not hear of a cancel

    try:
        if "--sqlite-vec" in sys.argv:
            vectors.load()
    except Failure as failure:
        send({"error": [failure.kind, failure.message, failure.fix]})
        return
    gc.freeze()
    send({"ready": sqlite3.sqlite_version})
    threading.stack_size(_STACK)
    threading.Thread(target=serve, daemon=True).start()
    serve()


def _next(stream: BinaryIO, interrupt: Interrupt) -> dict[str, Any]:
    """The next request, whose time has begun."""
    while head := stream.read(_HEAD.size):
        body = stream.read(_HEAD.unpack(head)[0]) if len(head) == _HEAD.size else b""
        if not body:
            break
        request = json.loads(body)
        if not request.get("cancel"):
            interrupt.start(request.pop("seconds"))
            return request
        interrupt.cancel()
    # Nobody is left to answer. A transaction under way was not acknowledged; SQLite rolls it back.
    os._exit(0)


if __name__ == "__main__":
    main()
