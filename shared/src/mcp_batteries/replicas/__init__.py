"""Connects replicas: what one announces, the subscribers of all others hear.

Each adapter sends and receives bytes with an official client library; the rest (`bus`) is the same for all. Adapters
are imported only if `--bus` needs them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from mcp_batteries.errors import Invalid
from mcp_batteries.settings.addresses import unencoded_signs

if TYPE_CHECKING:
    from mcp_batteries.replicas.bus import RemoteBus

__all__ = ["connect"]


class _Adapter(NamedTuple):
    """The module that connects to one kind of bus, and the extra that installs its library."""

    module: str
    extra: str


_REDIS = _Adapter("redis", "redis")
_NATS = _Adapter("nats", "nats")
_POSTGRESQL = _Adapter("postgresql", "postgres")
_ADAPTERS = {
    "redis": _REDIS,
    "rediss": _REDIS,
    "valkey": _REDIS,
    "nats": _NATS,
    "tls": _NATS,
    "postgresql": _POSTGRESQL,
    "postgres": _POSTGRESQL,
}


def connect(url: str, name: str) -> RemoteBus:
    """Return the bus at `url` for the replicas of the server `name`; it connects once `RemoteBus.running` is entered.

    Raises:
        Invalid: The kind of bus is unknown, or its library is not installed.
    """
    scheme = urlsplit(url).scheme
    if scheme not in _ADAPTERS:
        # The URL is not quoted, because it may hold a password.
        raise Invalid("--bus takes a URL of another kind.", "Give redis://, nats:// or postgresql://.")
    for address in url.split(","):
        if signs := unencoded_signs(address):
            raise Invalid("A sign in the password of --bus ends it early.", f"Write {signs}.")
    adapter = _ADAPTERS[scheme]
    from mcp_batteries.replicas.bus import RemoteBus

    try:
        link = import_module(f"mcp_batteries.replicas.{adapter.module}").link
    except ImportError:
        raise Invalid(
            f"--bus {scheme}:// needs a library.", f"Install this server with the extra `{adapter.extra}`."
        ) from None
    return RemoteBus(link(url, f"mcp.{name}.changes"))
