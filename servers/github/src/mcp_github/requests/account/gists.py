"""Gists: texts that belong to people and not to a repository."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from mcp_batteries.errors import NotFound, quote
from mcp_batteries.limits import DEFAULT_PAGE_BYTES
from mcp_github.client.api import Api
from mcp_github.invisible import meant_path, shown_path
from mcp_github.listing.pages import Shape, listing, plain
from mcp_github.models import Done, Listing, Record
from mcp_github.policy import Gist, Owner
from mcp_github.safety.taint import GISTS

__all__ = ["Gists"]


def _files(item: Mapping[str, Any]) -> list[str]:
    return list(cast("dict[str, Any]", item.get("files") or {}))


GIST = Shape(
    {**plain("id", "description", "public", "comments", "created_at", "updated_at"), "owner": "owner.login",
     "files": _files, "url": "html_url"},
    ("id", "description", "files", "public", "updated_at"),
)  # fmt: skip


@dataclass(frozen=True)
class Gists:
    api: Api

    async def list(
        self, user: Owner | None, since: str | None, *, fields: Sequence[str] | None, limit: int, cursor: str | None
    ) -> Listing:
        self.api.flow.saw(GISTS)
        where = "/gists" if user is None else f"/users/{user}/gists"
        return await listing(
            self.api, where, "the gists", GIST, params={"since": since}, fields=fields, limit=limit, cursor=cursor
        )

    async def get(self, gist: Gist, file: str | None) -> Record:
        """A gist with its files' texts as far as they fit, or one file."""
        self.api.flow.saw(GISTS)
        found = await self.api.get(f"/gists/{gist.id}", f"gist `{gist.id}`")
        data = GIST.record(found.data, list(GIST.getters))
        files = cast("dict[str, Any]", found.data.get("files") or {})
        file = None if file is None else shown_path(meant_path(file))
        if file is not None and file not in files:
            raise NotFound(
                f"The gist has no file {quote(file)}.", f"It has: {', '.join(quote(name) for name in files)}."
            )
        room = DEFAULT_PAGE_BYTES
        texts: dict[str, str] = {}
        for name, item in files.items():
            if file not in (None, name):
                continue
            text = str(item.get("content") or "")
            cut = item.get("truncated") or len(text) > room
            texts[name] = text[:room] + (f"… [cut, {item.get('size')} bytes]" if cut else "")
            room = max(200, room - len(text))
        return Record(removed=found.removed or None, data={**data, "texts": texts})

    async def write(self, gist: Gist | None, body: dict[str, Any]) -> Done:
        """A new gist, or a change of one."""
        if gist is None:
            made = await self.api.write("POST", "/gists", "a new gist", body)
        else:
            made = await self.api.write("PATCH", f"/gists/{gist.id}", f"gist `{gist.id}`", body)
        verb = "Created" if gist is None else "Changed"
        return Done(done=f"{verb} gist {made.data['id']}.", url=made.data.get("html_url"))
