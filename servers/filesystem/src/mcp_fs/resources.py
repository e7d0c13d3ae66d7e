"""Files and folders as resources: any of them by its `file://` URI, the top ones listed for people to pick."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from mcp_types import Annotations, BlobResourceContents, Resource, TextResourceContents

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.concurrency.threads import run_in_thread
from mcp_batteries.server.declaration.decorators import lists_resources, resource
from mcp_fs.engine.reading.full_contents import FOLDER_MIME_TYPE, ListedFile, list_files
from mcp_fs.policy import Policy, Root
from mcp_fs.resource_contents import read_resource_contents

__all__ = ["Resources"]


@dataclass(frozen=True)
class Resources:
    policy: Policy

    @lists_resources
    async def roots_and_their_files(self) -> list[Resource]:
        """Each served folder and, for a person who picks one in a menu, what lies directly in it."""
        entries: list[Resource] = []
        for root, files in await run_in_thread(self._list_top_files):
            entries.append(
                Resource(uri=root.uri, name=root.name, title=f"Folder {root.name}", mime_type=FOLDER_MIME_TYPE)
            )
            entries += map(_to_resource, files)
        return entries

    def _list_top_files(self, cancel: CancelToken) -> list[tuple[Root, Sequence[ListedFile]]]:
        """Return each served folder with the files directly in it."""
        return [(root, list_files(self.policy.root_path(root), cancel)) for root in self.policy.roots]

    @resource("file:///{+path}", name="file", title="A file, or a folder's listing")
    async def read_file(self, uri: str) -> list[TextResourceContents | BlobResourceContents]:
        """The contents at `uri`: text, whatever its encoding; of a folder its listing; other files as blobs."""
        return [await read_resource_contents(self.policy.readable(uri), uri)]


def _to_resource(file: ListedFile) -> Resource:
    return Resource(
        uri=file.place.uri,
        name=file.place.display,
        mime_type=file.mime_type,
        size=file.size,
        annotations=Annotations(last_modified=_format_time(file.modified)),
    )


def _format_time(seconds: float) -> str | None:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return None  # A file system can tell of years that no calendar here has.
