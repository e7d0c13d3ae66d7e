"""Data that lives elsewhere: fetched once for all server processes of a user, and followed on their behalf.

    server's fetch(key, validators) -> Fresh | NotModified | Failed
        ^                  `Cache`: what was fetched, how old it is, when to look again, who may look
        |                     ^
    `RemoteSource`: polls what somebody subscribed to, tells the hub which URIs changed

There is no leader. Every process with a subscriber checks when the next check is due, the one that gets the resource's
lock fetches, and all of them learn of a change from the file watcher on the data folder. A killed process loses its
lock.
"""

from mcp_batteries.remote.cache import Cache, Failed, Fetch, FetchResult, NotModified, Outcome, Snapshot, Validators
from mcp_batteries.remote.disk import DiskStore
from mcp_batteries.remote.entry import Entry, Store
from mcp_batteries.remote.memory import MemoryStore
from mcp_batteries.remote.source import RemoteSource
from mcp_batteries.remote.store import open_store

__all__ = [
    "Cache", "DiskStore", "Entry", "Failed", "Fetch", "FetchResult", "MemoryStore", "NotModified", "Outcome",
    "RemoteSource", "Snapshot", "Store", "Validators", "open_store",
]  # fmt: skip
