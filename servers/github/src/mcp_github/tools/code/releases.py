"""Releases: reading and publishing them; reading is offered with repositories too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, cast

from pydantic import Field

from mcp_batteries.errors import Conflict, Invalid, NotFound, quote
from mcp_batteries.server.calling.results import is_answering_script
from mcp_batteries.server.declaration.decorators import tool
from mcp_batteries.server.declaration.trusted import trusted
from mcp_github.client.api import Api, ApiResponse
from mcp_github.listing.columns import RELEASE
from mcp_github.listing.pages import ListQuery, PageOptions, fetch_page
from mcp_github.listing.projections import Projection, clip, pick
from mcp_github.models import Done, Listing, Record
from mcp_github.policy import Policy, Ref, Repo, WriteRepo
from mcp_github.requests.release_commits import find_later_release, refuse_unseen_commit
from mcp_github.tools.arguments import (
    Cursor,
    DeleteReleaseRepoName,
    Fields,
    Limit,
    OptionalRefName,
    OptionalTitle,
    ReleaseNotes,
    ReleaseRepoName,
    RepoName,
    choosing,
    drop_unset,
)

__all__ = ["create_release", "delete_release", "edit_release", "get_release", "list_releases"]

_MAX_BODY_CHARACTERS = 8000
# Some releases have a thousand, of 200 bytes each.
_MAX_DESCRIBED_ASSETS = 50
_ASSET = Projection(
    {"name": "name", "bytes": "size", "downloads": "download_count", "digest": "digest"},
    ("name", "bytes", "downloads", "digest"),
)

Tag = Annotated[Ref, trusted(Policy.ref), Field(description="Its tag")]


@tool("List releases", toolset=("repos", "releases"), open_world=True)
async def list_releases(
    api: Api,
    *,
    repo: RepoName,
    fields: Annotated[Fields, choosing(RELEASE)] = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Listing:
    """List a repository's releases.

    Drafts only if you may push. The latest, notes and assets: `get_release`.
    """
    query = ListQuery(f"{repo.path}/releases", f"the releases of `{repo.full_name}`", RELEASE, repo=repo)
    return await fetch_page(api, query, PageOptions(fields, limit, cursor))


@tool("Get a release", toolset=("repos", "releases"), open_world=True, also=("get_latest_release",))
async def get_release(
    api: Api,
    *,
    repo: RepoName,
    tag: Annotated[Ref | None, trusted(Policy.ref), Field(description="Latest by default")] = None,
) -> Record:
    """Get a release with its notes and assets.

    `target`: branch or commit to tag. The latest is no draft or prerelease. All: `list_releases`.
    """
    response = await _find(api, repo, tag)
    data = RELEASE.to_record(response.data, [name for name in RELEASE.getters if name != "id"])
    data["body"] = pick(response.data, clip("body", _MAX_BODY_CHARACTERS))
    assets = cast("list[dict[str, Any]]", response.data.get("assets") or [])
    note = None
    if len(assets) <= _MAX_DESCRIBED_ASSETS or is_answering_script():
        data["assets"] = [_ASSET.to_record(asset) for asset in assets]
    else:
        note = f"Of {len(assets)} assets there are the names; a script gets bytes, downloads and digest of each."
    uri = f"{repo.uri}/releases/{response.data.get('tag_name')}"
    return Record(uri=uri, note=note, removed=response.removed or None, data=data)


@tool("Create a release", toolset="releases", gate="releases", effect="write", open_world=True)
async def create_release(
    api: Api,
    *,
    repo: ReleaseRepoName,
    tag: Tag,
    ref: OptionalRefName = None,
    title: OptionalTitle = None,
    body: ReleaseNotes = None,
    draft: bool = True,
    prerelease: bool = False,
    generate_notes: bool = False,
) -> Done:
    """Create a release, as a draft unless told otherwise; the tag is made at `ref` if it does not exist.

    To publish it then: `edit_release`.
    """
    release = drop_unset(
        tag_name=tag.name, name=title, body=body, draft=draft, prerelease=prerelease,
        generate_release_notes=generate_notes,
    )  # fmt: skip
    target = None
    if ref is not None:
        target = ref.name
        release["target_commitish"] = target
    await refuse_unseen_commit(api, repo, tag, target)
    if (await _list_drafts(api, repo, tag)).data:
        raise Conflict(
            f"There is a draft of the {_describe(repo, tag)} already.",
            "Change or publish it with `edit_release`, or delete it first.",
        )
    latest = None
    if _may_be_latest(release):
        latest = await find_later_release(api, repo, tag)
    response = await api.write(
        "POST", f"{repo.path}/releases", _describe(repo, tag), release | _not_latest(latest), repo=repo
    )
    return _done(repo, "Created", response.data, latest)


@tool("Change a release", toolset="releases", gate="releases", effect="destroy", open_world=True)
async def edit_release(
    api: Api,
    *,
    repo: ReleaseRepoName,
    tag: Tag,
    title: OptionalTitle = None,
    body: ReleaseNotes = None,
    draft: bool | None = None,
    prerelease: bool | None = None,
) -> Done:
    """Change a release's title or notes; publish it with draft=false. What is not given stays."""
    changes = drop_unset(name=title, body=body, draft=draft, prerelease=prerelease)
    if not changes:
        raise Invalid("Nothing was given to change.", "Pass what is to be different.")
    release = await _find(api, repo, tag, internal=True)
    if draft is False:
        # GitHub makes the tag only now, perhaps where somebody else had it point.
        await refuse_unseen_commit(api, repo, tag, release.data.get("target_commitish"))
    latest = None
    if _may_be_latest({**release.data, **changes}) and not _may_be_latest(release.data):
        latest = await find_later_release(api, repo, tag)
    # A draft that is changed without its tag loses it: GitHub makes up one, `untagged-…`.
    patch = {"tag_name": release.data["tag_name"]} | changes | _not_latest(latest)
    path = f"{repo.path}/releases/{int(release.data['id'])}"
    response = await api.write("PATCH", path, _describe(repo, tag), patch, repo=repo)
    return _done(repo, "Changed", response.data, latest)


@tool("Delete a release", toolset="releases", gate=("releases", "delete"), effect="destroy", open_world=True)
async def delete_release(api: Api, *, repo: DeleteReleaseRepoName, tag: Tag) -> Done:
    """Delete a release with its assets, for good; its tag stays. To change it: `edit_release`."""
    release = await _find(api, repo, tag, internal=True)
    path = f"{repo.path}/releases/{int(release.data['id'])}"
    await api.write("DELETE", path, _describe(repo, tag), repo=repo)
    return Done(done=f"Deleted release {tag.name}; the tag stays.")


async def _find(api: Api, repo: Repo, tag: Ref | None, *, internal: bool = False) -> ApiResponse:
    """Return the release of a tag, be it a draft, which GitHub does not find by its tag; without one the latest."""
    if tag is None:
        description = f"latest release of `{repo.full_name}`"
        return await api.get(f"{repo.path}/releases/latest", description, repo=repo, internal=internal)
    description = _describe(repo, tag)
    try:
        path = f"{repo.path}/releases/tags/{tag.path}"
        return await api.get(path, description, repo=repo, internal=internal)
    except NotFound:
        drafts = await _list_drafts(api, repo, tag, internal=internal)
        if not drafts.data:
            raise
        draft, *others = drafts.data
        if others and internal:
            urls = ", ".join(str(each.get("html_url")) for each in drafts.data)
            raise Conflict(
                f"There are {len(drafts.data)} drafts of the {description}, and which of them is meant is not known.",
                f"Have a person delete all but one: {urls}.",
            ) from None
        return replace(drafts, data=draft)


async def _list_drafts(api: Api, repo: Repo, tag: Ref, *, internal: bool = True) -> ApiResponse:
    """Return the drafts of a tag, newest first; GitHub keeps several, and shows them to those who may write."""
    # Drafts come first in the list.
    path = f"{repo.path}/releases"
    response = await api.get(path, _describe(repo, tag), {"per_page": 100}, repo=repo, internal=internal)
    drafts = [each for each in response.data if each.get("tag_name") == tag.name and each.get("draft")]
    return replace(response, data=drafts)


def _may_be_latest(release: Mapping[str, Any]) -> bool:
    return not release.get("draft") and not release.get("prerelease")


def _not_latest(latest: str | None) -> dict[str, str]:
    """Return what a request says to leave `latest` the latest release; GitHub would take the one it publishes."""
    if latest is None:
        return {}
    return {"make_latest": "false"}


def _done(repo: WriteRepo, verb: str, release: dict[str, Any], latest: str | None) -> Done:
    """Return the result of a write that GitHub answered with a release.

    Args:
        latest: the tag of the release that stays the latest, because its version is later; None if there is none.
    """
    tag = release.get("tag_name")
    uri = f"{repo.uri}/releases/{tag}"
    sentence = f"{verb} release {tag}."
    if latest is not None:
        sentence += f" {latest} stays the latest."
    if release.get("draft"):
        sentence += " It is a draft: `edit_release` with draft=false publishes it."
    return Done(done=sentence, uri=uri, url=release.get("html_url"))


def _describe(repo: Repo, tag: Ref) -> str:
    return f"release {quote(tag.name)} of `{repo.full_name}`"
