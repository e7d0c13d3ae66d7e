"""Keeps the large files that were read last, because each page of one takes all of it."""

from __future__ import annotations

from collections import OrderedDict

from mcp_github.call_context import current_call
from mcp_github.policy import Repo

__all__ = ["BlobCache"]

_MAX_BLOB_BYTES = 4_000_000
_MAX_BLOBS = 4


class BlobCache:
    """The bytes of files, by caller and sha: what one token could read does not wait for another."""

    def __init__(self) -> None:
        self._blobs: OrderedDict[tuple[str, str, str], bytes] = OrderedDict()

    def get(self, repo: Repo, sha: str) -> bytes | None:
        """Return the file of `repo` with this sha, if it is here."""
        return self._blobs.get(_key(repo, sha))

    def put(self, repo: Repo, sha: str, data: bytes) -> None:
        """Keep a file, unless it is too large."""
        if len(data) > _MAX_BLOB_BYTES:
            return
        self._blobs[_key(repo, sha)] = data
        while len(self._blobs) > _MAX_BLOBS:
            self._blobs.popitem(last=False)


def _key(repo: Repo, sha: str) -> tuple[str, str, str]:
    return current_call().caller.name, repo.key, sha
