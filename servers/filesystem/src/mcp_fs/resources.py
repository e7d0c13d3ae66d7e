"""Files and folders as resources: any of them by its `file://` URI, the top ones listed for people to pick."""

from __future__ import annotations

import base64
import mimetypes
import os
import stat
from dataclasses import dataclass

from mcp_types import BlobResourceContents, Resource, TextResourceContents

from mcp_batteries.errors import Problem, TooLarge, quote
from mcp_batteries.limits import Stop, in_thread
from mcp_batteries.server.declare import lists_resources, resource
from mcp_fs.engine.files.cached_read import warm
from mcp_fs.engine.files.handles import open_file, open_folder, status
from mcp_fs.engine.files.text import SAMPLE_BYTES, decode, sniff
from mcp_fs.engine.media import MOST_WHOLE, mime_type
from mcp_fs.policy import Policy, Readable

__all__ = ["Resources"]

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
        if warm(place):
            return self._read(place, uri, Stop())
        return await in_thread(lambda stop: self._read(place, uri, stop), what="Reading")

    def _listed(self, stop: Stop) -> list[Resource]:
        entries: list[Resource] = []
        for root in self.policy.roots:
            top = self.policy.top(root)
            entries.append(Resource(uri=root.uri, name=root.name, title=f"Folder {root.name}", mime_type=_FOLDER))
            for child, kind in self._children(top, stop):
                if kind == stat.S_IFREG and not child.name.startswith("."):
                    entries.append(Resource(uri=child.uri, name=child.display, mime_type=_mime_type(child.name)))
        return entries

    def _children(self, folder: Readable, stop: Stop) -> list[tuple[Readable, int]]:
        """What in `folder` can be read, sorted by name, with its file type (as `stat.S_IFMT`); at most 1,000."""
        with open_folder(folder) as listed:
            names: list[str] = []
            for entry in listed.scan():
                stop.check()
                if not self.policy.protected((*listed.place.parts, entry.name)):
                    names.append(entry.name)
                    if len(names) == _MOST_CHILDREN:
                        break
        found: list[tuple[Readable, int]] = []
        for name in sorted(names):
            stop.check()
            try:
                kind = stat.S_IFMT(status(folder / name).st_mode)
            except Problem:  # gone meanwhile, or a link that leads nowhere or out
                continue
            if kind in (stat.S_IFREG, stat.S_IFDIR):
                found.append((folder / name, kind))
        return found

    def _read(self, place: Readable, uri: str, stop: Stop) -> _Contents:
        if stat.S_ISDIR(status(place).st_mode):
            children = [
                TextResourceContents(
                    uri=child.uri, mime_type=_FOLDER if kind == stat.S_IFDIR else _mime_type(child.name), text=""
                )
                for child, kind in self._children(place, stop)
            ]
            return list(children) or [TextResourceContents(uri=uri, mime_type=_FOLDER, text="")]
        with open_file(place) as file:
            size = os.fstat(file.fileno()).st_size
            head = file.read(SAMPLE_BYTES)
            if size > MOST_WHOLE:
                tool = "read_text" if sniff(head) is not None else "read_media"
                raise TooLarge(
                    f"{quote(place.display)} has {size:,} bytes; a resource is read whole, up to {MOST_WHOLE:,}.",
                    f"Use the tool `{tool}`, which reads it page by page.",
                )
            data = head + file.read()
        kind = mime_type(head, place.name)
        decoded = decode(data)
        if decoded is None:
            return [BlobResourceContents(uri=uri, mime_type=kind, blob=base64.b64encode(data).decode())]
        return [TextResourceContents(uri=uri, mime_type=kind, text=decoded.text)]


_UNKNOWN = "application/octet-stream"


def _mime_type(name: str) -> str:
    return mimetypes.guess_type(name, strict=False)[0] or _UNKNOWN
