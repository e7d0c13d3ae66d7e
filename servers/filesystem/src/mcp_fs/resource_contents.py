"""What is read of a file or a folder, as the contents of its resource."""

from __future__ import annotations

import base64

from mcp_types import BlobResourceContents, TextResourceContents

from mcp_fs.models import FullContents

__all__ = ["to_resource_contents"]


def to_resource_contents(contents: FullContents, uri: str) -> TextResourceContents | BlobResourceContents:
    """Return the contents of the resource at `uri`; a blob for what is not text."""
    if contents.text is not None:
        return TextResourceContents(uri=uri, mime_type=contents.mime_type, text=contents.text)
    return BlobResourceContents(uri=uri, mime_type=contents.mime_type, blob=base64.b64encode(contents.data).decode())
