"""Prepares one picture in a process of its own, for servers that have none for such work.

The process reaches no files, has little memory and time, and ends with its picture, so that a picture made to break a
decoder breaks nothing else. The server sends a line of JSON and the file; a line of JSON and the picture come back.
"""

from __future__ import annotations

import json
import os
import subprocess

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Unavailable
from mcp_batteries.executables import NO_WINDOW
from mcp_batteries.media.pictures import Picture, Refusal, Refused
from mcp_batteries.processes.python_child import child_environment, python_command

__all__ = ["prepare_apart"]

# The work itself has six seconds; a process that waits for its turn on a busy machine is not at work.
_WALL_SECONDS = 20.0
_POLL_SECONDS = 0.05


def prepare_apart(data: bytes, mime_type: str, stop: CancelToken) -> Picture:
    """Decode a picture in another process and write it anew as a PNG or JPEG that every model takes.

    Args:
        mime_type: of `data`, by its first bytes.

    Raises:
        Refused: it can't be shown.
        Unavailable: no process could be started.
        Stopped: nobody waits for it any more.
    """
    request = json.dumps({"mime_type": mime_type}).encode() + b"\n" + data
    deadline = CancelToken(_WALL_SECONDS)
    try:
        process = subprocess.Popen(
            python_command("mcp_batteries.media.child"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=os.path.abspath(os.sep),
            env=child_environment(),
            creationflags=NO_WINDOW,
        )
    except OSError as error:
        raise Unavailable(f"No process could be started to decode a picture: {error.strerror}.") from None
    with process:
        try:
            answer = _communicate(process, request, stop, deadline)
        finally:
            process.kill()
    return _parse_answer(answer)


def _communicate(process: subprocess.Popen[bytes], request: bytes, stop: CancelToken, deadline: CancelToken) -> bytes:
    """Send the request and return the whole answer; an empty one if it took too long."""
    remaining: bytes | None = request
    while not deadline.is_set():
        stop.check()
        try:
            answer, _ = process.communicate(remaining, timeout=_POLL_SECONDS)
        except subprocess.TimeoutExpired:
            remaining = None  # it goes on with what it has of the first call
        else:
            return answer
    return b""


def _parse_answer(answer: bytes) -> Picture:
    line, _, data = answer.partition(b"\n")
    if not line:
        raise Refused(Refusal.DAMAGED)  # it took too much time or memory, or broke the decoder
    facts = json.loads(line)
    if "refusal" in facts:
        size = facts["size"]
        raise Refused(Refusal(facts["refusal"]), size and tuple(size))
    return Picture(data=data, **facts)
