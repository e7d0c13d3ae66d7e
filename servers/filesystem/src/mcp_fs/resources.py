"""Files and folders as resources: any of them by its `file://` URI, the top ones listed for people to pick."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from mcp_types import Annotations, BlobResourceContents, Resource, TextResourceContents

from mcp_batteries.server.declaration.decorators import lists_resources, resource
from mcp_fs.engine.reading.full_contents import FOLDER_MIME_TYPE, ListedFile
from mcp_fs.engine.service import Engine
from mcp_fs.policy import Policy
from mcp_fs.resource_contents import to_resource_contents

__all__ = ["Resources"]


@dataclass(frozen=True)
class Resources:
    policy: Policy
    engine: Engine

    @lists_resources
    async def roots_and_their_files(self) -> list[Resource]:
        """Each served folder and, for a person who picks one in a menu, what lies directly in it."""
        entries: list[Resource] = []
        for root, files in await self.engine.list_top_files():
            entries.append(
                Resource(uri=root.uri, name=root.name, title=f"Folder {root.name}", mime_type=FOLDER_MIME_TYPE)
            )
            entries += map(_to_resource, files)
        return entries

    @resource("file:///{+path}", name="file", title="A file, or a folder's listing")
    async def read_file(self, uri: str) -> list[TextResourceContents | BlobResourceContents]:
        """The contents at `uri`: text, whatever its encoding; of a folder its listing; other files as blobs."""
        contents = await self.engine.read_full_contents(self.policy.readable(uri))
        return [to_resource_contents(contents, uri)]


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
