"""This server's views, built from `shared/views`."""

from __future__ import annotations

from mcp_batteries.server.declaration.views import View

__all__ = ["DIFF", "MEDIA", "TREE"]

# What an edit does; a dry run is approved or dropped in it.
DIFF = View("diff", "mcp_fs")
# A folder with sizes, opened level by level, the beginnings of files.
TREE = View("tree", "mcp_fs")
# A picture or a sound.
MEDIA = View("media", "mcp_fs")
