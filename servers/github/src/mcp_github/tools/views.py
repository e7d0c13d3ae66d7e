"""This server's views, built from `shared/views`."""

from __future__ import annotations

from mcp_batteries.server.declaration.views import View

__all__ = ["DRAFT", "ISSUES", "PULL"]

# An issue or pull request to be made: the person changes and sends it.
DRAFT = View("draft", "mcp_github")
# Issues or pull requests, each opened in place.
ISSUES = View("issues", "mcp_github")
# A pull request with its checks, files and conversation.
PULL = View("pull", "mcp_github")
