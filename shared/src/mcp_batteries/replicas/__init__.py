"""Connects replicas: what one announces, the subscribers of all others hear.

Each adapter sends and receives bytes with an official client library; the rest (`bus`) is the same for all. Adapters
are imported only if `--bus` needs them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mcp_batteries.errors import Invalid
from mcp_batteries.settings.addresses import unencoded_signs

if TYPE_CHECKING:
    from mcp_batteries.replicas.bus import RemoteBus

__all__ = ["connect"]

_KINDS = {
    "redis": ("redis", "redis"),
    "rediss": ("redis", "redis"),
    "valkey": ("redis", "redis"),
    "nats": ("nats", "nats"),
    "tls": ("nats", "nats"),
    "postgresql": ("postgresql", "postgres"),
    "postgres": ("postgresql", "postgres"),
}
"""Scheme to module and extra."""


def connect(url: str, name: str) -> RemoteBus:
    """The bus at `url` for the replicas of the server `name`; it connects once `RemoteBus.running` is entered.

    Raises:
        Invalid: The kind of bus is unknown, or its library is not installed.
    """
    scheme = urlsplit(url).scheme
    if scheme not in _KINDS:
        # Not its words: it may hold a password.
        raise Invalid("--bus takes a URL of another kind.", "Give redis://, nats:// or postgresql://.")
    for address in url.split(","):
        if signs := unencoded_signs(address):
            raise Invalid("A sign in the password of --bus ends it early.", f"Write {signs}.")
    module, extra = _KINDS[scheme]
    from mcp_batteries.replicas.bus import RemoteBus

    try:
        link = import_module(f"mcp_batteries.replicas.{module}").link
    except ImportError:
        raise Invalid(f"--bus {scheme}:// needs a library.", f"Install this server with the extra `{extra}`.") from None
    return RemoteBus(link(url, f"mcp.{name}.changes"))
