"""The choice between a store on disk and one in memory."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from mcp_batteries.errors import Unavailable
from mcp_batteries.remote.disk import DiskStore
from mcp_batteries.remote.entry import Store
from mcp_batteries.remote.memory import MemoryStore
from mcp_batteries.user_folders import cache_folder

__all__ = ["open_store"]

logger = logging.getLogger(__name__)


def open_store(cache: str | None, command: str, identity: Sequence[str]) -> Store:
    """Return the store for a server's setting `cache`: a folder, `memory`, or None for the user's own cache folder.

    If no folder was named and the user's own is not writable, as in a container with a read-only root, it is memory.

    Args:
        command: names the folder.
        identity: what must be the same for two processes to share: base URLs, the account, a token. Only a keyed
            digest of it is kept, in the names of files.

    Raises:
        Refused: the folder belongs to somebody else.
        Unavailable: the folder that was named cannot be used.
    """
    if cache == "memory":
        return MemoryStore()
    try:
        return DiskStore(cache or str(cache_folder(command)), identity)
    except Unavailable as problem:
        if cache:
            raise
        logger.info("Nothing is kept on disk: %s", problem.failure)
        return MemoryStore()
