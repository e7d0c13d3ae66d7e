"""The state of a repository and its files as resources."""

from __future__ import annotations

import base64
from dataclasses import dataclass

from mcp_types import BlobResourceContents, Resource, TextResourceContents

from mcp_batteries.errors import NotFound, quote
from mcp_batteries.server.declare import lists_resources, resource
from mcp_git.engine.history.diff import Compared
from mcp_git.engine.history.log import Wanted
from mcp_git.engine.service import Engine
from mcp_git.policy import KINDS, Policy, Shown

__all__ = ["Resources"]

_TEXT = "text/plain"
_TITLES = {
    "status": "Status of {}", "head": "Where HEAD of {} is", "branches": "Branches of {}",
    "log": "Latest commits of {}", "diff": "Uncommitted changes of {}", "stash": "Stashes of {}",
}  # fmt: skip
_FILES = 200
_ROWS = 50


@dataclass(frozen=True)
class Resources:
    policy: Policy
    engine: Engine

    @lists_resources
    async def states(self) -> list[Resource]:
        """The state of each repository."""
        return [
            Resource(
                uri=repository.uri(kind),
                name=f"{repository.name} {kind}",
                title=_TITLES[kind].format(repository.name),
                mime_type=_TEXT,
            )
            for repository in self.policy.repositories.values()
            for kind in KINDS
        ]

    @resource("git://{repo}/status", name="status", title="The state of a work tree", mime_type=_TEXT)
    async def read_status(self, uri: str, repo: str) -> TextResourceContents:
        """The branch, what is under way, and the files that differ."""
        return await self.attached(uri)

    @resource("git://{repo}/head", name="head", title="The commit that HEAD is", mime_type=_TEXT)
    async def read_head(self, uri: str, repo: str) -> TextResourceContents:
        """The branch and the commit."""
        return await self.attached(uri)

    @resource("git://{repo}/branches", name="branches", title="Branches with what they follow", mime_type=_TEXT)
    async def read_branches(self, uri: str, repo: str) -> TextResourceContents:
        """Branches, those of remotes too, the latest first."""
        return await self.attached(uri)

    @resource("git://{repo}/log", name="log", title="The latest commits", mime_type=_TEXT)
    async def read_log(self, uri: str, repo: str) -> TextResourceContents:
        """The latest commits of HEAD."""
        return await self.attached(uri)

    @resource("git://{repo}/diff", name="diff", title="What is not committed", mime_type=_TEXT)
    async def read_changes(self, uri: str, repo: str) -> TextResourceContents:
        """Files that differ from HEAD, and the beginning of the patch."""
        return await self.attached(uri)

    @resource("git://{repo}/stash", name="stash", title="What is stashed", mime_type=_TEXT)
    async def read_stashes(self, uri: str, repo: str) -> TextResourceContents:
        """Stashes, the latest first."""
        return await self.attached(uri)

    @resource("git://{repo}/files/{rev}/{+path}", name="file", title="A file of a commit")
    async def read_file(self, uri: str, repo: str, rev: str, path: str) -> TextResourceContents | BlobResourceContents:
        """A file as it is in a commit, branch or tag."""
        shown = self._shown(uri)
        data = await self.engine.contents(shown.repository, shown.revision, shown.place)
        try:
            return TextResourceContents(uri=uri, mime_type=_TEXT, text=data.decode())
        except UnicodeDecodeError:
            return BlobResourceContents(
                uri=uri, mime_type="application/octet-stream", blob=base64.b64encode(data).decode()
            )

    async def text(self, shown: Shown) -> str:
        """The text of a resource; for a file a value that identifies its contents."""
        repository, engine = shown.repository, self.engine
        top = self.policy.place("")
        match shown.kind:
            case "status":
                answer = await engine.status(repository, top, _FILES)
            case "head":
                answer = await engine.head(repository)
            case "log":
                answer = await engine.log(repository, Wanted(shown.revision, top), _ROWS, None)
            case "diff":
                answer = await engine.diff(repository, Compared(None, "all", top), None)
            case "branches" | "stash":
                kind = "branches" if shown.kind == "branches" else "stashes"
                answer = await engine.refs(repository, kind, shown.revision, _FILES, None)
            case _:
                return str(await engine.contents(repository, shown.revision, shown.place))
        return answer.text()

    async def attached(self, uri: str) -> TextResourceContents:
        """A text resource as an attachment."""
        return TextResourceContents(uri=uri, mime_type=_TEXT, text=await self.text(self._shown(uri)))

    def _shown(self, uri: str) -> Shown:
        shown = self.policy.shown(uri)
        if shown is None:
            raise NotFound(f"There is no resource {quote(uri)}.", "`resources/list` has those there are.")
        return shown
