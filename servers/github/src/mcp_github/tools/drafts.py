"""Drafts for the person to read, edit and send: nothing is sent before they do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp_batteries.server.consent_text import remarkable, visible
from mcp_batteries.server.origins import origins_of
from mcp_github.models import Done
from mcp_github.policy import WriteRepo
from mcp_github.safety.taint import Flow

__all__ = ["drafted"]


async def drafted(flow: Flow, repo: WriteRepo, what: str, arguments: Mapping[str, Any]) -> Done:
    """A dry run of making `what` with `arguments`: who could read it, and what is remarkable in it."""
    public = await flow.public(repo.key)
    readers = "everybody" if public else "who may see the repository"
    notes = [*remarkable(arguments), *map(visible, origins_of(arguments))]
    return Done(
        done=f"Nothing was sent. The {what} would be in `{repo.full}` for {readers} to read. Where the host shows a "
        "form the user can change and send it; else call again without `dry_run`.",
        data={"repo": repo.full, "public": public, "sends": dict(arguments), "notes": notes},
    )
