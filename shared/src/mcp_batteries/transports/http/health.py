"""The image's health check: is the server that this container runs still answering?

    /opt/venv/bin/python -m mcp_batteries.transports.http.health

`serve` beside the interpreter is a link to the server's command; the first process's own command line and environment
say how to reach it. Over stdio only its client could ask, so a server on stdio is healthy as long as it runs.
"""

from __future__ import annotations

import http.client
import importlib
import socket
import sys
from importlib.metadata import entry_points
from pathlib import Path

from mcp_batteries.settings import Settings, load
from mcp_batteries.transports.http.listener.certificate import insecure_context

__all__ = ["healthy"]

_SECONDS = 3.0


def healthy(settings: Settings) -> bool:
    """Tell whether a server with these settings answers on this machine."""
    if settings.transport == "stdio":
        return True
    everywhere = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104
    host = everywhere.get(settings.host, settings.host)
    connection = http.client.HTTPConnection(host, settings.port, timeout=_SECONDS)
    try:
        stream = _connect(settings, host)
        if settings.tls_certificate:
            stream = insecure_context().wrap_socket(stream)
        connection.sock = stream
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _connect(settings: Settings, host: str) -> socket.socket:
    if settings.socket is None:
        return socket.create_connection((host, settings.port), _SECONDS)
    stream = socket.socket(socket.AF_UNIX)
    stream.settimeout(_SECONDS)
    stream.connect(settings.socket)
    return stream


def _main() -> int:
    """Check the server that the first process of this container runs; return the exit status."""
    command = Path(sys.executable).with_name("serve").readlink().name
    (script,) = entry_points(group="console_scripts", name=command)
    words = Path("/proc/1/cmdline").read_bytes().decode().rstrip("\0").split("\0")
    start = next(number for number, word in enumerate(words) if Path(word).name in (command, "serve"))
    package = script.value.partition(".")[0]
    kind: type[Settings] = importlib.import_module(f"{package}.settings").Settings
    if healthy(load(kind, words[start + 1 :])):
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(_main())
