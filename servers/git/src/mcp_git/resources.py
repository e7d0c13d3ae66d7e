"""The state of a repository and its files as resources."""

from __future__ import annotations

import base64
from dataclasses import dataclass

from mcp_types import BlobResourceContents, Resource, TextResourceContents

from mcp_batteries.errors import NotFound, quote
from mcp_batteries.server.declaration.decorators import lists_resources, resource
from mcp_git.engine.history.diff import Comparison
from mcp_git.engine.history.log import LogQuery
from mcp_git.engine.service import Engine
from mcp_git.policy import RESOURCE_KINDS, GitResource, Policy, Repository

__all__ = ["Resources"]

_TEXT = "text/plain"
_TITLES = {
    "status": "Status of {}", "head": "Where HEAD of {} is", "branches": "Branches of {}",
    "log": "Latest commits of {}", "diff": "Uncommitted changes of {}", "stash": "Stashes of {}",
}  # fmt: skip
_MAX_FILES = 200
_MAX_COMMITS = 50


def _describe(repository: Repository, kind: str) -> Resource:
    return Resource(
        uri=repository.uri(kind),
        name=f"{repository.name} {kind}",
        title=_TITLES[kind].format(repository.name),
        mime_type=_TEXT,
    )


@dataclass(frozen=True)
class Resources:
    policy: Policy
    engine: Engine

    @lists_resources
    async def list_resources(self) -> list[Resource]:
        """The state of each repository."""
        resources: list[Resource] = []
        for repository in self.policy.repositories.values():
            resources += [_describe(repository, kind) for kind in RESOURCE_KINDS]
        return resources

    @resource("git://{repo}/status", name="status", title="The state of a work tree", mime_type=_TEXT)
    async def read_status(self, uri: str, repo: str) -> TextResourceContents:
        """The branch, what is under way, and the files that differ."""
        return await self.attach(uri)

    @resource("git://{repo}/head", name="head", title="The commit that HEAD is", mime_type=_TEXT)
    async def read_head(self, uri: str, repo: str) -> TextResourceContents:
        """The branch and the commit."""
        return await self.attach(uri)

    @resource("git://{repo}/branches", name="branches", title="Branches with what they follow", mime_type=_TEXT)
    async def read_branches(self, uri: str, repo: str) -> TextResourceContents:
        """Branches, those of remotes too, the latest first."""
        return await self.attach(uri)

    @resource("git://{repo}/log", name="log", title="The latest commits", mime_type=_TEXT)
    async def read_log(self, uri: str, repo: str) -> TextResourceContents:
        """The latest commits of HEAD."""
        return await self.attach(uri)

    @resource("git://{repo}/diff", name="diff", title="What is not committed", mime_type=_TEXT)
    async def read_changes(self, uri: str, repo: str) -> TextResourceContents:
        """Files that differ from HEAD, and the beginning of the patch."""
        return await self.attach(uri)

    @resource("git://{repo}/stash", name="stash", title="What is stashed", mime_type=_TEXT)
    async def read_stashes(self, uri: str, repo: str) -> TextResourceContents:
        """Stashes, the latest first."""
        return await self.attach(uri)

    @resource("git://{repo}/files/{rev}/{+path}", name="file", title="A file of a commit")
    async def read_file(self, uri: str, repo: str, rev: str, path: str) -> TextResourceContents | BlobResourceContents:
        """A file as it is in a commit, branch or tag."""
        parsed = self._parse(uri)
        data = await self.engine.read_contents(parsed.repository, parsed.revision, parsed.path)
        try:
            return TextResourceContents(uri=uri, mime_type=_TEXT, text=data.decode())
        except UnicodeDecodeError:
            return BlobResourceContents(
                uri=uri, mime_type="application/octet-stream", blob=base64.b64encode(data).decode()
            )

    async def read_text(self, parsed: GitResource) -> str:
        """The text of a resource; for a file a value that identifies its contents."""
        repository = parsed.repository
        engine = self.engine
        top = self.policy.parse_path("")
        match parsed.kind:
            case "status":
                answer = await engine.describe_status(repository, top, _MAX_FILES)
            case "head":
                answer = await engine.describe_head(repository)
            case "log":
                answer = await engine.list_commits(repository, LogQuery(parsed.revision, top), _MAX_COMMITS, None)
            case "diff":
                answer = await engine.read_diff(repository, Comparison(None, "all", top), None)
            case "branches" | "stash":
                kind = "branches" if parsed.kind == "branches" else "stashes"
                answer = await engine.list_refs(repository, kind, parsed.revision, _MAX_FILES, None)
            case _:
                return str(await engine.read_contents(repository, parsed.revision, parsed.path))
        return answer.text()

    async def attach(self, uri: str) -> TextResourceContents:
        """A text resource as an attachment."""
        return TextResourceContents(uri=uri, mime_type=_TEXT, text=await self.read_text(self._parse(uri)))

    def _parse(self, uri: str) -> GitResource:
        parsed = self.policy.resource(uri)
        if parsed is None:
            raise NotFound(f"There is no resource {quote(uri)}.", "`resources/list` has those there are.")
        return parsed
