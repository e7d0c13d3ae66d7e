"""The process that prepares one picture: it imports little, since it starts anew for each."""

from __future__ import annotations

import io
import json
import os
import sys
from typing import Any

from mcp_batteries.media.pictures import Refused, prepare
from mcp_batteries.processes.resource_limits import limit_resources

__all__ = ["main"]

_WORK_SECONDS = 6
_MEMORY_BYTES = 1 << 30


def main() -> None:
    """Answer the request on standard input."""
    requests = sys.stdin.buffer
    answers = os.fdopen(os.dup(1), "wb")
    # What a library prints goes nowhere.
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    limit_resources(_MEMORY_BYTES, _WORK_SECONDS)
    request: dict[str, Any] = json.loads(requests.readline())
    facts: dict[str, Any]
    data = b""
    try:
        picture = prepare(io.BytesIO(requests.read()), request["mime_type"])
    except Refused as refused:
        facts = {"refusal": refused.refusal, "size": refused.size}
    else:
        data = picture.data
        facts = {
            "mime_type": picture.mime_type,
            "width": picture.width,
            "height": picture.height,
            "frames": picture.frames,
            "is_reduced": picture.is_reduced,
        }
    answers.write(json.dumps(facts).encode() + b"\n" + data)
    answers.close()
