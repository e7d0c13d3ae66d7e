"""Resources to read and follow."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from urllib.parse import parse_qs, unquote

from mcp_types import BlobResourceContents, Resource, TextResourceContents

from mcp_batteries.server.declaration.decorators import lists_resources, resource
from mcp_github.client.api import Api
from mcp_github.listing.pages import PageOptions
from mcp_github.models import Listing, Record
from mcp_github.policy import Policy, Repo
from mcp_github.requests.diffs import diff_source, read_differences
from mcp_github.requests.files import decode_blob, fetch_blob, fetch_readme
from mcp_github.tools.account.notifications import fetch_inbox
from mcp_github.tools.automation.actions import get_run
from mcp_github.tools.code.releases import get_release
from mcp_github.tools.code.repos import get_repository
from mcp_github.tools.work.issues import get_issue
from mcp_github.tools.work.pulls import get_pull_request
from mcp_github.watch.followed_uris import NOTIFICATIONS, WATCH_LIST, parse_number
from mcp_github.watch.watch_list import WatchList

__all__ = ["InboxResources", "Resources", "WatchListResources"]

_JSON_TYPE = "application/json"
_DIFF_TYPE = "text/x-diff"
_MAX_DIFF_BYTES = 200_000
_MAX_NOTIFICATIONS = 50


@dataclass(frozen=True)
class Resources:
    """The resources of repositories; what reads them takes answers from what is followed, see `Api.for_resources`."""

    policy: Policy
    api: Api
    watch_list: WatchList

    @lists_resources
    async def list_resources(self) -> list[Resource]:
        """Return the repositories that the allow-list names individually, and the entries of the watch list."""
        names_by_uri = {f"github://{full_name}": full_name for full_name in self.policy.named_repos}
        names_by_uri |= self.watch_list.all()
        return [Resource(uri=uri, name=name, mime_type=_JSON_TYPE) for uri, name in names_by_uri.items()]

    @resource("github://{owner}/{repo}", name="repository", title="A repository", mime_type=_JSON_TYPE)
    async def read_repository(self, owner: str, repo: str, uri: str) -> TextResourceContents:
        return _to_json(uri, await get_repository(self.api, repo=self._parse_repo(owner, repo)))

    @resource("github://{owner}/{repo}/readme", name="readme", title="Its README", mime_type="text/markdown")
    async def read_readme(self, owner: str, repo: str, uri: str) -> TextResourceContents:
        text = await fetch_readme(self.api, self._parse_repo(owner, repo))
        return TextResourceContents(uri=uri, mime_type="text/markdown", text=text)

    @resource("github://{owner}/{repo}/contents/{+path}{?ref}", name="file", title="A file, at a branch, tag or commit")
    async def read_contents(
        self, owner: str, repo: str, uri: str
    ) -> TextResourceContents | BlobResourceContents:  # fmt: skip
        trusted_repo = self._parse_repo(owner, repo)
        # From the URI itself, in which an escaped character is not yet one that divides.
        text_of_path, _, query = uri.partition("/contents/")[2].partition("?")
        path = self.policy.file(unquote(text_of_path), is_escaped=False)
        refs = parse_qs(query).get("ref")
        ref = None
        if refs:
            ref = self.policy.ref(refs[0])
        blob = await fetch_blob(self.api, trusted_repo, path, ref)
        text = decode_blob(blob)
        if text is None:
            data = base64.b64encode(blob.data).decode()
            return BlobResourceContents(uri=uri, blob=data, mime_type="application/octet-stream")
        return TextResourceContents(uri=uri, text=text, mime_type="text/plain")

    @resource("github://{owner}/{repo}/issues/{number}", name="issue", title="An issue", mime_type=_JSON_TYPE)
    async def read_issue(self, owner: str, repo: str, number: str, uri: str) -> TextResourceContents:
        return _to_json(uri, await get_issue(self.api, repo=self._parse_repo(owner, repo), number=parse_number(number)))

    @resource(
        "github://{owner}/{repo}/pulls/{number}", name="pull request", title="A pull request", mime_type=_JSON_TYPE
    )
    async def read_pull_request(self, owner: str, repo: str, number: str, uri: str) -> TextResourceContents:
        return _to_json(
            uri, await get_pull_request(self.api, repo=self._parse_repo(owner, repo), number=parse_number(number))
        )

    @resource("github://{owner}/{repo}/pulls/{number}/diff", name="diff", title="What it changes", mime_type=_DIFF_TYPE)
    async def read_diff(self, owner: str, repo: str, number: str, uri: str) -> TextResourceContents:
        trusted_repo = self._parse_repo(owner, repo)
        source = diff_source(trusted_repo, number=parse_number(number), ref=None, base=None)
        diff = await read_differences(
            self.api, trusted_repo, source, path=None, summary=False, cursor=None, max_bytes=_MAX_DIFF_BYTES
        )
        return TextResourceContents(uri=uri, mime_type=_DIFF_TYPE, text=diff.text())

    @resource("github://{owner}/{repo}/releases/{tag}", name="release", title="A release", mime_type=_JSON_TYPE)
    async def read_release(self, owner: str, repo: str, tag: str, uri: str) -> TextResourceContents:
        trusted_tag = self.policy.ref(unquote(tag))
        return _to_json(uri, await get_release(self.api, repo=self._parse_repo(owner, repo), tag=trusted_tag))

    @resource("github://{owner}/{repo}/runs/{run_id}", name="run", title="A workflow run", mime_type=_JSON_TYPE)
    async def read_run(self, owner: str, repo: str, run_id: str, uri: str) -> TextResourceContents:
        return _to_json(uri, await get_run(self.api, repo=self._parse_repo(owner, repo), run_id=parse_number(run_id)))

    def _parse_repo(self, owner: str, name: str) -> Repo:
        return self.policy.repo(f"{unquote(owner)}/{unquote(name)}")


@dataclass(frozen=True)
class WatchListResources:
    """With `--watch-list`."""

    watch_list: WatchList

    @resource(WATCH_LIST, name="watch list", title="What you work on", mime_type=_JSON_TYPE)
    async def read_watch_list(self) -> TextResourceContents:
        """Return what the watch list has, and what is wrong with its file if anything is."""
        note = None
        if self.watch_list.problem:
            note = f"The last good version is served: {self.watch_list.problem}"
        rows = [[uri, name] for uri, name in self.watch_list.all().items()]
        text = Listing(columns=["uri", "name"], rows=rows, note=note).text()
        return TextResourceContents(uri=WATCH_LIST, mime_type=_JSON_TYPE, text=text)


@dataclass(frozen=True)
class InboxResources:
    """With the toolset notifications."""

    api: Api

    @resource(NOTIFICATIONS, name="notifications", title="Your inbox", mime_type=_JSON_TYPE)
    async def read_notifications(self) -> TextResourceContents:
        """Return unread notifications of what is served, without their texts."""
        unread = await fetch_inbox(self.api, None, {}, PageOptions(limit=_MAX_NOTIFICATIONS))
        return TextResourceContents(uri=NOTIFICATIONS, mime_type=_JSON_TYPE, text=unread.text())


def _to_json(uri: str, record: Record) -> TextResourceContents:
    return TextResourceContents(uri=uri, mime_type=_JSON_TYPE, text=record.text())
