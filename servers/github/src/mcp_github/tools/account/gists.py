"""Gists: texts that belong to people and not to a repository; with an allow-list of repositories there are none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, cast

from pydantic import Field

from mcp_batteries.clipping import DEFAULT_PAGE_BYTES
from mcp_batteries.errors import Invalid, NotFound, quote
from mcp_batteries.server.declaration.decorators import tool
from mcp_batteries.server.declaration.fields import EMPTY_COUNTS
from mcp_batteries.server.declaration.trusted import FreeText, trusted
from mcp_github.client.api import Api
from mcp_github.invisible import escape_path, unescape_path
from mcp_github.listing.pages import ListQuery, PageOptions, fetch_page
from mcp_github.listing.projections import Item, Projection, is_clipped, same_names
from mcp_github.models import Done, Listing, Record
from mcp_github.policy import Gist, Owner, Policy
from mcp_github.safety.taint import GISTS
from mcp_github.tools.arguments import ChangedSince, Cursor, Fields, Limit, drop_unset

__all__ = ["get_gist", "list_gists", "write_gist"]

# Of each file, however long those before it are.
_MIN_FILE_CHARACTERS = 200

Texts = Annotated[dict[FreeText, FreeText | None], Field(description="Text by file name; null deletes")]


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


@tool("List gists", toolset="gists", open_world=True)
async def list_gists(
    api: Api,
    *,
    user: Annotated[Owner | None, trusted(Policy.gist_owner), Field(description="Login; yours by default")] = None,
    since: ChangedSince = None,
    fields: Fields = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Listing:
    """List your gists, or those of `user`. The text of one: `get_gist`."""
    api.policy.require_no_allow_list("Gists")
    api.taint.record_read(GISTS)
    path = "/gists"
    if user is not None:
        path = f"/users/{user}/gists"
    query = ListQuery(path, "the gists", _GIST, params={"since": since})
    return await fetch_page(api, query, PageOptions(fields, limit, cursor))


@tool("Get a gist", toolset="gists", open_world=True)
async def get_gist(
    api: Api,
    *,
    gist: Annotated[Gist, trusted(Policy.gist), Field(description="Id")],
    file: Annotated[FreeText | None, Field(description="Only this one")] = None,
) -> Record:
    """Get a gist with the text of its files, of long ones the beginning. Ids: `list_gists`."""
    api.taint.record_read(GISTS)
    response = await api.get(f"/gists/{gist.id}", f"gist `{gist.id}`")
    data = _GIST.to_record(response.data, list(_GIST.getters))
    files = cast("dict[str, Any]", response.data.get("files") or {})
    if file is not None:
        files = _select_file(files, file)
    note = None
    if response.data.get("truncated"):
        note = f"GitHub shows the first {len(data['files'])} files of this gist only."
    return Record(note=note, removed=response.removed or None, data={**data, "texts": _fitting_texts(files)})


@tool("Write a gist", toolset="gists", effect="destroy", open_world=True)
async def write_gist(
    api: Api,
    *,
    texts: Texts,
    gist: Annotated[Gist | None, trusted(Policy.gist), Field(description="Id of the one to change")] = None,
    description: Annotated[FreeText | None, Field(description="One line"), EMPTY_COUNTS] = None,
    public: Annotated[bool, Field(description="A new one is listed")] = False,
) -> Done:
    """Create a gist, or change the one with the id `gist`: files not named stay, one that is null is deleted."""
    api.policy.require_no_allow_list("Gists")
    api.policy.require_write()
    files = _to_files(texts)
    body = drop_unset(description=description, files=files)
    if gist is not None:
        response = await api.write("PATCH", f"/gists/{gist.id}", f"gist `{gist.id}`", body)
        return Done(done=f"Changed gist {response.data['id']}.", url=response.data.get("html_url"))
    if not files or None in files.values():
        raise Invalid("A new gist needs a text for each of its files.")
    response = await api.write("POST", "/gists", "a new gist", {**body, "public": public})
    return Done(done=f"Created gist {response.data['id']}.", url=response.data.get("html_url"))


def _to_files(texts: Mapping[str, str | None]) -> dict[str, Any]:
    """Return what becomes of files, as GitHub takes it; None deletes one."""
    files: dict[str, Any] = {}
    for name, text in texts.items():
        file = None
        if text is not None:
            if is_clipped(text):
                raise Invalid(f"The text of {quote(name)} was cut by an answer.", "Pass the whole text.")
            file = {"content": text}
        files[unescape_path(name)] = file
    return files


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
