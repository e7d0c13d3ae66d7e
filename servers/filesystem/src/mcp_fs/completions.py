"""Paths, completed as a shell would."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote_from_bytes, unquote_to_bytes

from mcp_batteries.errors import Problem
from mcp_batteries.limits import Stop, in_thread
from mcp_batteries.server.declare import completes
from mcp_fs.engine.files.handles import open_folder
from mcp_fs.engine.names import folded
from mcp_fs.policy import Policy, Readable

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
        folder = above or ("/" if typed.startswith("/") else ".")
        found = await in_thread(lambda stop: self._below(folder, start, stop))
        return sorted(_spelled(folder, name, place) for name, place in found)

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
        return sorted(f"{above}/{quote_from_bytes(os.fsencode(name))}" for name, _ in found)

    def _below(self, above: str, start: str, stop: Stop) -> list[tuple[str, Readable]]:
        """The names in the folder `above` that begin with `start`, a slash behind those of folders."""
        found: list[tuple[str, Readable]] = []
        try:
            with open_folder(self.policy.readable(above)) as listed:
                for entry in listed.scan():
                    stop.check()
                    name = entry.name
                    if folded(name).startswith(folded(start)) and (start or not name.startswith(".")):
                        if self.policy.protected((*listed.place.parts, name)):
                            continue
                        found.append((name + "/" * entry.is_dir(), listed.place / name))
                        if len(found) >= _MOST:
                            break
        except Problem:
            return []
        return found


def _spelled(above: str, name: str, place: Readable) -> str:
    """The path as the tools take it: the URI of what no text spells."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return place.uri + "/" * name.endswith("/")
    return ("" if above == "." else above.rstrip("/") + "/") + name
