"""The loop of a worker: frames in, frames out, one request at a time."""

from __future__ import annotations

import json
import os
import queue
import sqlite3
import struct
import sys
import threading
from typing import Any, BinaryIO

from mcp_sqlite.worker import operations, vectors
from mcp_sqlite.worker.cells import Failure
from mcp_sqlite.worker.connections import Connections, Interrupt, Part

_HEAD = struct.Struct(">I")


def main() -> None:
    frames = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints can't reach the stream of frames
    interrupt = Interrupt()
    requests: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(sys.stdin.buffer, requests, interrupt), daemon=True).start()
    parts: dict[str, Part] = json.loads(sys.argv[sys.argv.index("--parts") + 1]) if "--parts" in sys.argv else {}
    connections = Connections(interrupt, parts)

    def send(frame: dict[str, Any]) -> None:
        body = json.dumps(frame, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        frames.write(_HEAD.pack(len(body)) + body)
        frames.flush()

    try:
        if "--sqlite-vec" in sys.argv:
            vectors.load()
    except Failure as failure:
        send({"error": [failure.kind, failure.what, failure.fix]})
        return
    send({"ready": sqlite3.sqlite_version})
    while True:
        request = requests.get()
        interrupt.start(request.pop("seconds"))
        try:
            send({**operations.run(connections, request, send), "end": True})
        except Failure as failure:
            send({"error": [failure.kind, failure.what, failure.fix], "end": True})


def _read(stream: BinaryIO, requests: queue.SimpleQueue[dict[str, Any]], interrupt: Interrupt) -> None:
    while head := stream.read(_HEAD.size):
        body = stream.read(_HEAD.unpack(head)[0]) if len(head) == _HEAD.size else b""
        if not body:
            break
        request = json.loads(body)
        if request.get("cancel"):
            interrupt.cancel()
        else:
            requests.put(request)
    # Nobody is left to answer. A transaction under way was not acknowledged; SQLite rolls it back.
    os._exit(0)


if __name__ == "__main__":
    main()
