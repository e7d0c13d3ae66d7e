"""Files and folders as resources: any of them by its `file://` URI, the top ones listed for people to pick."""

from __future__ import annotations

import base64
import mimetypes
import os
import stat
from dataclasses import dataclass

from mcp_types import BlobResourceContents, Resource, TextResourceContents

from mcp_batteries.declare import lists_resources, resource
from mcp_batteries.errors import TooLarge
from mcp_batteries.limits import Stop, in_thread
from mcp_fs.engine.handles import open_file, open_folder, status
from mcp_fs.engine.text import decode
from mcp_fs.policy import Policy, Readable

__all__ = ["Resources"]

_MOST_BYTES = 10 * 1024 * 1024
_MOST_CHILDREN = 1000
_FOLDER = "inode/directory"

_Contents = list[TextResourceContents | BlobResourceContents]


@dataclass(frozen=True)
class Resources:
    policy: Policy

    @lists_resources
    async def roots_and_their_files(self) -> list[Resource]:
        """Each served folder and, for a person who picks one in a menu, what lies directly in it."""
        return await in_thread(self._listed)

    @resource("file:///{+path}", name="file", title="A file, or a folder as its children")
    async def read_file(self, uri: str) -> _Contents:
        """The contents at `uri`.

        A text file is text, whatever its encoding; other files are blobs. A folder is its children, each with an
        empty text: hosts that browse resources show it as a folder.
        """
        place = self.policy.readable(uri)
        return await in_thread(lambda stop: self._read(place, uri, stop), what="Reading")

    def _listed(self, stop: Stop) -> list[Resource]:
        entries: list[Resource] = []
        for root in self.policy.roots:
            top = self.policy.readable(root.path)
            entries.append(Resource(uri=root.uri, name=root.name, title=f"Folder {root.name}", mime_type=_FOLDER))
            for name, is_folder in self._children(top, stop):
                if not name.startswith(".") and not is_folder:
                    child = top / name
                    entries.append(Resource(uri=child.uri, name=child.display, mime_type=_mime_type(name)))
        return entries

    def _children(self, folder: Readable, stop: Stop) -> list[tuple[str, bool]]:
        """Names in `folder` and whether each is a folder, sorted; at most 1,000, secrets left out."""
        found: list[tuple[str, bool]] = []
        with open_folder(folder) as listed:
            for entry in listed.scan():
                stop.check()
                if not self.policy.protected((*listed.place.parts, entry.name)):
                    found.append((entry.name, entry.is_dir(follow_symlinks=False)))
                    if len(found) == _MOST_CHILDREN:
                        break
        return sorted(found)

    def _read(self, place: Readable, uri: str, stop: Stop) -> _Contents:
        if stat.S_ISDIR(status(place).st_mode):
            children = [
                TextResourceContents(
                    uri=(place / name).uri, mime_type=_FOLDER if is_folder else _mime_type(name), text=""
                )
                for name, is_folder in self._children(place, stop)
            ]
            return list(children) or [TextResourceContents(uri=uri, mime_type=_FOLDER, text="")]
        with open_file(place) as file:
            size = os.fstat(file.fileno()).st_size
            if size > _MOST_BYTES:
                raise TooLarge(
                    f"`{place.display}` has {size:,} bytes; a resource is read whole, up to {_MOST_BYTES:,}.",
                    "Use the tool `read_text`, which reads any part of it.",
                )
            data = file.read()
        kind = _mime_type(place.name)
        decoded = decode(data)
        if decoded is None:
            return [BlobResourceContents(uri=uri, mime_type=kind, blob=base64.b64encode(data).decode())]
        mime_type = "text/plain" if kind == _UNKNOWN else kind
        return [TextResourceContents(uri=uri, mime_type=mime_type, text=decoded.text)]


_UNKNOWN = "application/octet-stream"


def _mime_type(name: str) -> str:
    return mimetypes.guess_type(name, strict=False)[0] or _UNKNOWN
