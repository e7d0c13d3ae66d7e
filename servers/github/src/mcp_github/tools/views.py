"""Pages of this server's own, built from `shared/views`."""

from __future__ import annotations

from mcp_batteries.server.views import View

__all__ = ["ISSUES", "PULL"]

ISSUES = View("issues", "mcp_github")
"""Issues or pull requests, each opened in place."""
PULL = View("pull", "mcp_github")
"""A pull request with its checks, files and conversation."""
