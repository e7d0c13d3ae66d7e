"""Gists: texts that belong to people and not to a repository."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from mcp_batteries.clipping import DEFAULT_PAGE_BYTES
from mcp_batteries.errors import NotFound, quote
from mcp_github.client.api import Api
from mcp_github.invisible import escape_path, unescape_path
from mcp_github.listing.pages import ListQuery, PageOptions, fetch_page
from mcp_github.listing.projections import Item, Projection, same_names
from mcp_github.models import Done, Listing, Record
from mcp_github.policy import Gist, Owner
from mcp_github.safety.taint import GISTS

__all__ = ["Gists"]

# Of each file, however long those before it are.
_MIN_FILE_CHARACTERS = 200


def _file_names(gist: Item) -> list[str]:
    return list(cast("dict[str, Any]", gist.get("files") or {}))


_GIST = Projection(
    {
        **same_names("id", "description", "public", "comments", "created_at", "updated_at"),
        "owner": "owner.login",
        "files": _file_names,
        "url": "html_url",
    },
    ("id", "description", "files", "public", "updated_at"),
)


@dataclass(frozen=True)
class Gists:
    api: Api

    async def list(self, user: Owner | None, since: str | None, options: PageOptions) -> Listing:
        self.api.taint.record_read(GISTS)
        path = "/gists"
        if user is not None:
            path = f"/users/{user}/gists"
        return await fetch_page(self.api, ListQuery(path, "the gists", _GIST, params={"since": since}), options)

    async def get(self, gist: Gist, file_name: str | None) -> Record:
        """Return a gist with its files' texts as far as they fit, or one file."""
        self.api.taint.record_read(GISTS)
        response = await self.api.get(f"/gists/{gist.id}", f"gist `{gist.id}`")
        data = _GIST.to_record(response.data, list(_GIST.getters))
        files = cast("dict[str, Any]", response.data.get("files") or {})
        if file_name is not None:
            files = _select_file(files, file_name)
        return Record(removed=response.removed or None, data={**data, "texts": _fitting_texts(files)})

    async def create(self, body: dict[str, Any]) -> Done:
        response = await self.api.write("POST", "/gists", "a new gist", body)
        return Done(done=f"Created gist {response.data['id']}.", url=response.data.get("html_url"))

    async def edit(self, gist: Gist, changes: dict[str, Any]) -> Done:
        response = await self.api.write("PATCH", f"/gists/{gist.id}", f"gist `{gist.id}`", changes)
        return Done(done=f"Changed gist {response.data['id']}.", url=response.data.get("html_url"))


def _select_file(files: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the one of `files` that the caller means, in whichever spelling of invisible characters."""
    escaped_name = escape_path(unescape_path(name))
    if escaped_name not in files:
        names = ", ".join(quote(name) for name in files)
        raise NotFound(f"The gist has no file {quote(escaped_name)}.", f"It has: {names}.")
    return {escaped_name: files[escaped_name]}


def _fitting_texts(files: Mapping[str, Any]) -> dict[str, str]:
    """Return the texts of `files`, cut where they do not fit an answer."""
    room = DEFAULT_PAGE_BYTES
    texts: dict[str, str] = {}
    for name, file in files.items():
        content = str(file.get("content") or "")
        texts[name] = content[:room]
        if file.get("truncated") or len(content) > room:
            texts[name] += f"… [cut, {file.get('size')} bytes]"
        room = max(_MIN_FILE_CHARACTERS, room - len(content))
    return texts
