"""The part of `--check` that is only for HTTP: certificate, tokens and names, the issuer's keys, the bus."""

from __future__ import annotations

import base64
import json
import logging
import os
import re
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import anyio.abc
import httpx2

from mcp_batteries.executables import NO_WINDOW
from mcp_batteries.program import Program
from mcp_batteries.replicas import connect
from mcp_batteries.replicas.bus import RemoteBus
from mcp_batteries.settings import Settings, mask_passwords, variable
from mcp_batteries.transports.http.listener.certificate import insecure_context

__all__ = ["answers_over_http", "bus_answers"]

_READY = re.compile(r"listening on (\S+)\r?\n")
# The lines that this check itself causes begin with these words.
_CAUSED = ("listening on", "WARNING mcp_batteries.transports.http.refusals")
_OWN: dict[str, Any] = {
    "check": False, "verbose": False, "port": 0, "log_format": "text", "audit_file": None, "wire_log": None,
}  # fmt: skip
_ANYWHERE = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}  # noqa: S104
_BUS_SECONDS = 5.0


async def answers_over_http(program: Program, settings: Settings, stderr_lines: list[str]) -> str:
    """Start the server as in `settings`, except for port and files, and send the requests of probes and strangers.

    Args:
        stderr_lines: receives what the server writes to standard error.

    Returns:
        What was seen to work, for the line of the report.

    Raises:
        RuntimeError: It does not answer as it should, or exited; with its own reason.
    """
    with tempfile.TemporaryDirectory() as folder:
        socket = str(Path(folder) / "socket") if settings.socket else None
        update = {**_OWN, "socket": socket}
        if socket is not None:
            # An address has no effect beside it.
            update |= {name: Settings.model_fields[name].default for name in ("host", "port")}
        own = settings.model_copy(update=update)
        replaced_variables = {variable(type(settings), name) for name in (*_OWN, "socket")}
        process = await anyio.open_process(
            [*program.words, *own.arguments()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            creationflags=NO_WINDOW,
            env={name: value for name, value in os.environ.items() if name not in replaced_variables} | own.secrets(),
        )
        async with process:
            try:
                url = await _read_url(process, stderr_lines)
                if url is None:
                    await process.wait()
                    reason = stderr_lines.pop() if stderr_lines else "it ended"
                    raise RuntimeError(reason.removeprefix(f"{settings.COMMAND}: "))
                return await _send_requests(url, own)
            finally:
                with suppress(ProcessLookupError):
                    process.kill()
                with anyio.CancelScope(shield=True):
                    await _read_url(process, stderr_lines)
                stderr_lines[:] = [line for line in stderr_lines if not line.startswith(_CAUSED)]


async def _read_url(process: anyio.abc.Process, stderr_lines: list[str]) -> str | None:
    """Read what the server writes until it names the URL where it listens; None if its output ends first."""
    assert process.stderr is not None
    text = ""
    url: str | None = None
    async for chunk in process.stderr:
        text += chunk.decode(errors="replace")
        match = _READY.search(text)
        if match is not None:
            url = match[1]
            break
    stderr_lines += [line.strip() for line in text.splitlines() if line.strip()]
    return url


def _base_and_path(url: str, settings: Settings) -> tuple[str, str]:
    """Return how the server that listens at `url` is reached from this machine: scheme and address, and the path."""
    parts = urlsplit(url)
    scheme = parts.scheme
    address = parts.netloc
    path = parts.path
    if settings.socket is not None:
        scheme = "https" if settings.tls_certificate else "http"
        address = "localhost"
        path = parts.fragment
    for everywhere, loopback in _ANYWHERE.items():
        address = address.replace(everywhere, loopback)
    return f"{scheme}://{address}", path


async def _send_requests(url: str, settings: Settings) -> str:
    """Send the requests of probes and strangers; return what they found.

    Raises:
        RuntimeError: an answer is another than it should be.
    """
    base, path = _base_and_path(url, settings)
    transport = httpx2.AsyncHTTPTransport(uds=settings.socket, verify=insecure_context())
    async with httpx2.AsyncClient(transport=transport, trust_env=False) as client:

        async def status(token: str | None = None) -> int:
            headers = {"accept": "application/json, text/event-stream"}
            if token is not None:
                headers["authorization"] = f"Bearer {token}"
            return (await client.post(base + path, json={}, headers=headers)).status_code

        ready = (await client.get(f"{base}/readyz")).status_code
        if ready != 200:
            raise RuntimeError(f"/readyz answers {ready}")
        without_token = await status()
        if without_token not in (400, 401):  # The empty message makes no sense to a server that lets it through.
            raise RuntimeError(f"who comes without a token is answered with {without_token}")
        asks = "asks for a token" if without_token == 401 else "asks nobody for a token"
        finding = f"{urlsplit(base).scheme}, {asks}"
        if settings.auth_issuer is None:
            return finding
        with_unknown_key = await status(_token_with_unknown_key(settings.auth_issuer, settings))
        if with_unknown_key != 401:
            raise RuntimeError(f"the keys of {settings.auth_issuer} cannot be fetched ({with_unknown_key})")
        return f"{finding}, has the issuer's keys"


def _token_with_unknown_key(issuer: str, settings: Settings) -> str:
    """Return a token that makes the server fetch the issuer's keys, because it knows none of that name."""
    algorithm = next(iter(settings.auth_algorithm), "RS256")
    header = {"alg": algorithm, "kid": "check", "typ": "at+jwt"}
    parts = [
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in (header, {"iss": issuer})
    ]
    return f"{'.'.join(parts)}.AAAA"


async def bus_answers(url: str) -> str:
    """Send messages over the bus at `url`, on a separate channel, until one comes back.

    Raises:
        RuntimeError: It does not.
    """
    bus = connect(url, "check")
    reasons = _Reasons()
    log = logging.getLogger(RemoteBus.__module__)
    log.addHandler(reasons)
    log.propagate = False
    try:
        with anyio.move_on_after(_BUS_SECONDS):
            async with bus.running():
                while not bus.connected:  # noqa: ASYNC110
                    await anyio.sleep(0.05)
                return f"{mask_passwords(url)} brings back what is sent"
    finally:
        log.removeHandler(reasons)
        log.propagate = True
    advice = "check its host and port, and that it runs and listens there"
    raise RuntimeError(f"{mask_passwords(url)} is not there ({reasons.last}): {advice}")


class _Reasons(logging.Handler):
    last = "no answer"

    def emit(self, record: logging.LogRecord) -> None:
        self.last = record.getMessage().rpartition(": ")[2]
