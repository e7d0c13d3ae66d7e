"""Paths, completed as a shell would."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote_from_bytes, unquote_to_bytes

from mcp_batteries.declare import completes
from mcp_batteries.errors import Problem
from mcp_batteries.limits import Stop, in_thread
from mcp_fs.engine.handles import open_folder
from mcp_fs.policy import Policy

__all__ = ["Completions"]

_MOST = 1000


@dataclass(frozen=True)
class Completions:
    policy: Policy

    @completes("path", of="prompt")
    async def relative(self, typed: str, others: Mapping[str, str]) -> list[str]:
        """Paths as the tools take them; folders end in a slash."""
        above, _, start = typed.rpartition("/")
        if len(self.policy.roots) > 1 and not above:
            return [f"{root.name}/" for root in self.policy.roots if root.name.startswith(start)]
        return await in_thread(lambda stop: self._below(above or ("/" if typed.startswith("/") else "."), start, stop))

    @completes("path", of="resource")
    async def absolute(self, typed: str, others: Mapping[str, str]) -> list[str]:
        """What may stand for `path` in `file:///{+path}`: an absolute path, percent-encoded, less its first slash."""
        above, _, start = typed.rpartition("/")
        tops = [root.uri.removeprefix("file:///") + "/" for root in self.policy.roots]
        if matching := [top for top in tops if top.startswith(typed) and top != typed]:
            return matching
        try:
            found = await in_thread(
                lambda stop: self._below(f"file:///{above}", os.fsdecode(unquote_to_bytes(start)), stop)
            )
        except Problem:
            return []
        names = [item.removeprefix("file:///" + above).lstrip("/") for item in found]
        return [f"{above}/{quote_from_bytes(os.fsencode(name))}" for name in names]

    def _below(self, above: str, start: str, stop: Stop) -> list[str]:
        try:
            folder = self.policy.readable(above)
            found: list[str] = []
            with open_folder(folder) as listed:
                for entry in listed.scan():
                    stop.check()
                    if entry.name.startswith(start) and (start or not entry.name.startswith(".")):
                        found.append(_spelled(above, entry.name, is_folder=entry.is_dir()))
                        if len(found) >= _MOST:
                            break
        except Problem:
            return []
        return sorted(found)


def _spelled(above: str, name: str, *, is_folder: bool) -> str:
    prefix = "" if above == "." else above.rstrip("/") + "/"
    return prefix + name + ("/" if is_folder else "")
