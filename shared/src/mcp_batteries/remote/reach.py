"""Says why a service was not reached and where to look: its host, its port, a proxy."""

from __future__ import annotations

import socket
import ssl
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

__all__ = ["why_unreached"]


def why_unreached(url: str, error: BaseException) -> str:
    """What went wrong on the way to the host of `url`, as a clause without a full stop."""
    parts = urlsplit(url)
    host = f"`{parts.hostname}`"
    port = parts.port or (443 if parts.scheme == "https" else 80)
    proxies = getproxies()
    scheme = next((name for name in (parts.scheme, "all") if proxies.get(name)), "")
    if scheme and not proxy_bypass(parts.hostname or ""):
        place = f"the proxy of `{scheme.upper()}_PROXY`"
        way = place
        end = f" on the way to {host}"
    else:
        place = host
        way = f"{host} port {port}"
        end = ", and no proxy is set"
    causes = _causes(error)
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        return f"the name of {place} was not found{end}"
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        return f"the certificate of {host} can't be verified"
    if any(isinstance(cause, ConnectionRefusedError) for cause in causes):
        return f"{way} refused the connection{end}"
    if any(isinstance(cause, TimeoutError) for cause in causes):
        return f"{way} did not answer{end}"
    return f"the connection to {way} broke{end}"


def _causes(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found
