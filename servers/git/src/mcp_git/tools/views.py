"""This server's views, built from `shared/views`."""

from __future__ import annotations

from mcp_batteries.server.declaration.views import View

__all__ = ["CHANGES", "HISTORY"]

# A change: its message, its files, and the patch by words.
CHANGES = View("changes", "mcp_git")
# Commits with the lines between them.
HISTORY = View("history", "mcp_git")
