"""Completes paths as a shell does."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote_from_bytes, unquote_to_bytes

from mcp_batteries.concurrency.threads import run_in_thread
from mcp_batteries.errors import Problem
from mcp_batteries.server.declaration.decorators import completes
from mcp_fs.engine.listing.folder_page import complete_names
from mcp_fs.policy import Policy, ReadablePath

__all__ = ["Completions"]


@dataclass(frozen=True)
class Completions:
    policy: Policy

    @completes("path", of="prompt")
    async def relative(self, typed: str, others: Mapping[str, str]) -> list[str]:
        """Paths as the tools take them; folders end in a slash."""
        folder, _, start = typed.rpartition("/")
        if len(self.policy.roots) > 1 and not folder:
            return [f"{root.name}/" for root in self.policy.roots if root.name.startswith(start)]
        if typed.startswith("/") and not folder:
            folder = "/"
        names = await self._complete_in(folder or ".", start)
        return sorted(_spell_path(folder, name, path) for name, path in names)

    @completes("path", of="resource")
    async def absolute(self, typed: str, others: Mapping[str, str]) -> list[str]:
        """Values for `path` in `file:///{+path}`: absolute, percent-encoded paths without their first slash."""
        above, _, start = typed.rpartition("/")
        tops = [root.uri.removeprefix("file:///") + "/" for root in self.policy.roots]
        if matching := [top for top in tops if top.startswith(typed) and top != typed]:
            return matching
        names = await self._complete_in(f"file:///{above}", os.fsdecode(unquote_to_bytes(start)))
        return sorted(f"{above}/{quote_from_bytes(os.fsencode(name))}" for name, _ in names)

    async def _complete_in(self, above: str, start: str) -> Sequence[tuple[str, ReadablePath]]:
        try:
            path = self.policy.readable(above)
        except Problem:
            return ()
        return await run_in_thread(lambda cancel: complete_names(path, start, cancel))


def _spell_path(folder: str, name: str, path: ReadablePath) -> str:
    """Return the path as the tools take it; a URI if no text can spell it."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return path.uri + "/" * name.endswith("/")
    if folder in ("", "."):
        return name
    return f"{folder.rstrip('/')}/{name}"
