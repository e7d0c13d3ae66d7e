"""Resources to read and follow."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from urllib.parse import parse_qs, unquote

from mcp_types import BlobResourceContents, Resource, TextResourceContents

from mcp_batteries.server.declare import lists_resources, resource
from mcp_github.client.api import from_cache
from mcp_github.models import Listing, Record
from mcp_github.policy import Policy, Repo
from mcp_github.requests.account.notifications import Notifications
from mcp_github.requests.automation.workflow_runs import Actions
from mcp_github.requests.code.files import Files
from mcp_github.requests.code.repositories import Repositories
from mcp_github.requests.work.issues import Issues
from mcp_github.requests.work.pulls import Pulls
from mcp_github.watch.followed_uris import NOTIFICATIONS, WATCH_LIST, number_of
from mcp_github.watch.watch_list import WatchList

__all__ = ["InboxResources", "Resources", "WatchListResources"]

_JSON, _DIFF = "application/json", "text/x-diff"
_DIFF_BYTES = 200_000


@dataclass(frozen=True)
class Resources:
    policy: Policy
    repositories: Repositories
    files: Files
    issues: Issues
    pulls: Pulls
    actions: Actions
    watch_list: WatchList

    @lists_resources
    async def served(self) -> list[Resource]:
        """The repositories that the allow-list names individually, and the entries of the watch list."""
        found = {f"github://{full}": full for full in self.policy.named} | self.watch_list.all()
        return [Resource(uri=uri, name=name, mime_type=_JSON) for uri, name in found.items()]

    @resource("github://{owner}/{repo}", name="repository", title="A repository", mime_type=_JSON)
    async def read_repository(self, owner: str, repo: str, uri: str) -> TextResourceContents:
        where = self._repo(owner, repo)
        return _record(uri, await self.repositories.repository(where, None))

    @resource("github://{owner}/{repo}/readme", name="readme", title="Its README", mime_type="text/markdown")
    async def read_readme(self, owner: str, repo: str, uri: str) -> TextResourceContents:
        text = await self.files.readme(self._repo(owner, repo))
        return TextResourceContents(uri=uri, mime_type="text/markdown", text=text)

    @resource("github://{owner}/{repo}/contents/{+path}{?ref}", name="file", title="A file, at a branch, tag or commit")
    async def read_contents(
        self, owner: str, repo: str, uri: str
    ) -> TextResourceContents | BlobResourceContents:  # fmt: skip
        where = self._repo(owner, repo)
        # From the URI itself, in which an escaped character is not yet one that divides.
        rest, _, query = uri.partition("/contents/")[2].partition("?")
        refs = parse_qs(query).get("ref")
        path, ref = self.policy.file(unquote(rest), spelt=False), self.policy.ref(refs[0]) if refs else None
        blob = await self.files.blob(where, path, ref)
        text = self.files.text_of(blob)
        if text is None:
            data = base64.b64encode(blob.data).decode()
            return BlobResourceContents(uri=uri, blob=data, mime_type="application/octet-stream")
        return TextResourceContents(uri=uri, text=text, mime_type="text/plain")

    @resource("github://{owner}/{repo}/issues/{number}", name="issue", title="An issue", mime_type=_JSON)
    async def read_issue(self, owner: str, repo: str, number: str, uri: str) -> TextResourceContents:
        return _record(uri, await self.issues.get(self._repo(owner, repo), number_of(number), None))

    @resource("github://{owner}/{repo}/pulls/{number}", name="pull request", title="A pull request", mime_type=_JSON)
    async def read_pull_request(self, owner: str, repo: str, number: str, uri: str) -> TextResourceContents:
        return _record(uri, await self.pulls.get(self._repo(owner, repo), number_of(number), None))

    @resource("github://{owner}/{repo}/pulls/{number}/diff", name="diff", title="What it changes", mime_type=_DIFF)
    async def read_diff(self, owner: str, repo: str, number: str, uri: str) -> TextResourceContents:
        where = self._repo(owner, repo)
        of = self.pulls.diff(where, number=number_of(number), ref=None, base=None)
        found = await self.files.diff(where, of, path=None, summary=False, cursor=None, max_bytes=_DIFF_BYTES)
        return TextResourceContents(uri=uri, mime_type=_DIFF, text=found.text())

    @resource("github://{owner}/{repo}/releases/{tag}", name="release", title="A release", mime_type=_JSON)
    async def read_release(self, owner: str, repo: str, tag: str, uri: str) -> TextResourceContents:
        name = self.policy.ref(unquote(tag))
        return _record(uri, await self.repositories.release(self._repo(owner, repo), name))

    @resource("github://{owner}/{repo}/runs/{run_id}", name="run", title="A workflow run", mime_type=_JSON)
    async def read_run(self, owner: str, repo: str, run_id: str, uri: str) -> TextResourceContents:
        return _record(uri, await self.actions.get(self._repo(owner, repo), number_of(run_id)))

    def _repo(self, owner: str, name: str) -> Repo:
        from_cache.set(True)
        return self.policy.repo(f"{unquote(owner)}/{unquote(name)}")


@dataclass(frozen=True)
class WatchListResources:
    """With `--watch-list`."""

    watch_list: WatchList

    @resource(WATCH_LIST, name="watch list", title="What you work on", mime_type=_JSON)
    async def read_watch_list(self) -> TextResourceContents:
        """What the watch list has, and what is wrong with its file if anything is."""
        problem = self.watch_list.problem
        note = f"The last good version is served: {problem}" if problem else None
        rows = [[uri, name] for uri, name in self.watch_list.all().items()]
        text = Listing(columns=["uri", "name"], rows=rows, note=note).text()
        return TextResourceContents(uri=WATCH_LIST, mime_type=_JSON, text=text)


@dataclass(frozen=True)
class InboxResources:
    """With the toolset notifications."""

    notifications: Notifications

    @resource(NOTIFICATIONS, name="notifications", title="Your inbox", mime_type=_JSON)
    async def read_notifications(self) -> TextResourceContents:
        """Unread notifications of what is served, without their texts."""
        from_cache.set(True)
        found = await self.notifications.list(None, {}, fields=None, limit=50, cursor=None)
        return TextResourceContents(uri=NOTIFICATIONS, mime_type=_JSON, text=found.text())


def _record(uri: str, record: Record) -> TextResourceContents:
    return TextResourceContents(uri=uri, mime_type=_JSON, text=record.text())
