"""Says why a service was not reached and where to look: its host, its port, a proxy."""

from __future__ import annotations

import socket
import ssl
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

__all__ = ["UnusableVariable", "explain_connection_error"]

# Verification errors of OpenSSL: signed by itself, by one that is, by one that is not known.
_UNKNOWN_AUTHORITY = (18, 19, 20, 21)


class UnusableVariable(Exception):
    """A variable of the environment keeps every connection from being made; the text is a clause, which one and why."""


def explain_connection_error(url: str, error: BaseException) -> str:
    """Return what went wrong on the way to the host of `url`, as a clause without a full stop."""
    parts = urlsplit(url)
    host = f"`{parts.hostname}`"
    proxy = _proxy_variable(parts.scheme, parts.hostname or "")
    if proxy:
        name = f"the proxy of `{proxy}`"
        address = name
        ending = f" on the way to {host}"
    else:
        name = host
        address = f"{host} port {parts.port or _default_port(parts.scheme)}"
        ending = ", and no proxy is set"
    causes = _causes(error)
    known_cause = next(filter(None, (_explain_settings(cause, host) for cause in causes)), "")
    if known_cause:
        return known_cause
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        return f"the name of {name} was not found{ending}"
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        return f"the certificate of {host} can't be verified"
    if any(isinstance(cause, ConnectionRefusedError) for cause in causes):
        return f"{address} refused the connection{ending}"
    if any(isinstance(cause, TimeoutError) for cause in causes):
        return f"{address} did not answer{ending}"
    return f"the connection to {address} broke{ending}"


def _explain_settings(cause: BaseException, host: str) -> str:
    """Return what is wrong with this machine's variables or certificates; empty if the cause is another."""
    if isinstance(cause, UnusableVariable):
        return str(cause)
    if isinstance(cause, ssl.SSLCertVerificationError) and cause.verify_code in _UNKNOWN_AUTHORITY:
        return (
            f"this machine does not know who signed the certificate of {host}; where a proxy reads TLS, its "
            "authority has to be in the file of `SSL_CERT_FILE`"
        )
    return ""


def _proxy_variable(scheme: str, host: str) -> str:
    """Return the variable that names the proxy for `host`; empty if there is none."""
    proxies = getproxies()
    for name in (scheme, "all"):
        if proxies.get(name) and not proxy_bypass(host):
            return f"{name.upper()}_PROXY"
    return ""


def _default_port(scheme: str) -> int:
    if scheme == "https":
        return 443
    return 80


def _causes(error: BaseException | None) -> list[BaseException]:
    """Return `error` and what it was raised from."""
    causes: list[BaseException] = []
    while error is not None and error not in causes:
        causes.append(error)
        error = error.__cause__ or error.__context__
    return causes
