"""Drafts for the person to read, edit and send: nothing is sent before they do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp_batteries.server.calling.confirmation_text import escape_invisible, find_warnings
from mcp_batteries.server.calling.read_history import find_read_origins
from mcp_github.models import Done
from mcp_github.policy import WriteRepo
from mcp_github.safety.taint import TaintTracker

__all__ = ["draft_result"]


async def draft_result(taint: TaintTracker, repo: WriteRepo, noun: str, arguments: Mapping[str, Any]) -> Done:
    """Return the result of a dry run: who could read what would be made, and what is remarkable in it.

    Args:
        noun: what would be made, in words.
        arguments: what it would be made of.
    """
    public = await taint.is_public(repo.key)
    readers = "everybody" if public else "who may see the repository"
    notes = [*find_warnings(arguments), *map(escape_invisible, find_read_origins(arguments))]
    return Done(
        done=f"Nothing was sent. The {noun} would be in `{repo.full_name}` for {readers} to read. Where the host shows "
        "a form the user can change and send it; else call again without `dry_run`.",
        data={"repo": repo.full_name, "public": public, "sends": dict(arguments), "notes": notes},
    )
