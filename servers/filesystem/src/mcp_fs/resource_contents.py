"""What is read of a file or a folder, as the contents of its resource."""

from __future__ import annotations

import base64

from mcp_types import BlobResourceContents, TextResourceContents

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.concurrency.threads import run_in_thread
from mcp_fs.engine.reading.full_contents import read_full_contents
from mcp_fs.engine.reading.media import is_media, with_safe_type
from mcp_fs.engine.reading.page_cache import run_where_quickest
from mcp_fs.models import FullContents
from mcp_fs.policy import ReadablePath

__all__ = ["read_resource_contents"]


async def read_resource_contents(path: ReadablePath, uri: str) -> TextResourceContents | BlobResourceContents:
    """Read the contents of the resource at `uri`: text, the listing of a folder, or a blob.

    Raises:
        Problem: it can't be read, or is too large.
    """
    contents = await run_where_quickest(path, lambda cancel: read_full_contents(path, cancel))
    if is_media(contents.mime_type):
        contents = await _check_media_type(path, contents)
    if contents.text is not None:
        return TextResourceContents(uri=uri, mime_type=contents.mime_type, text=contents.text)
    return BlobResourceContents(uri=uri, mime_type=contents.mime_type, blob=base64.b64encode(contents.data).decode())


async def _check_media_type(path: ReadablePath, contents: FullContents) -> FullContents:
    def check(cancel: CancelToken) -> FullContents:
        return with_safe_type(path, contents, cancel)

    return await run_in_thread(check, long=True)
