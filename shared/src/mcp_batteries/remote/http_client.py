"""The HTTP client for services elsewhere, with the proxies and the authorities that the environment names."""

from __future__ import annotations

import os
import ssl
from typing import Any
from urllib.request import getproxies

import httpx2

from mcp_batteries.remote.connection_errors import UnusableVariable

__all__ = ["open_http_client"]


def open_http_client(**options: Any) -> httpx2.AsyncClient:
    """Return a client with these options of httpx2.

    Raises:
        httpx2.ConnectError: a variable names a proxy or certificates that cannot be used; no service is reached then.
    """
    _name_version_of_socks()
    try:
        return httpx2.AsyncClient(verify=_trusted_certificates(), **options)
    except OSError:
        reason = f"the certificates of `{_certificates_variable()}` can't be read"
        raise httpx2.ConnectError(reason) from UnusableVariable(reason)
    except (ValueError, httpx2.InvalidURL):
        reason = f"`{_unusable_proxy_variable()}` can't be used: it takes addresses of HTTP and SOCKS 5 proxies"
        raise httpx2.ConnectError(reason) from UnusableVariable(reason)


def _name_version_of_socks() -> None:
    """Write `socks5://` for `socks://` in the variables of proxies: that is how GNOME writes a SOCKS 5 proxy."""
    for name, address in os.environ.items():
        if name.lower().endswith("_proxy") and address.startswith("socks://"):
            os.environ[name] = address.replace("socks://", "socks5://", 1)


def _trusted_certificates() -> ssl.SSLContext | bool:
    """Return the certificates that the variables of the requests library name, True for those that httpx2 finds.

    Many set these variables for an authority of their own, and httpx2 does not read them.
    """
    bundle = os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE") or ""
    if os.path.isfile(bundle) and "SSL_CERT_FILE" not in os.environ:
        return ssl.create_default_context(cafile=bundle)
    return True


def _certificates_variable() -> str:
    """Return the variable whose certificates the client reads."""
    for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        if os.environ.get(name):
            return name
    return "SSL_CERT_DIR"


def _unusable_proxy_variable() -> str:
    """Return the variable whose proxy no client takes; what else such a client reads is `NO_PROXY`."""
    proxies = getproxies()
    for scheme in ("http", "https", "all"):
        address = proxies.get(scheme) or "localhost"
        if "://" not in address:
            address = f"http://{address}"
        try:
            httpx2.Proxy(address)
        except (ValueError, httpx2.InvalidURL):
            return f"{scheme.upper()}_PROXY"
    return "NO_PROXY"
