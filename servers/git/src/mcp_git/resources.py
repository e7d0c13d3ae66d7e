"""The state of a repository and its files as resources."""

from __future__ import annotations

import base64
from dataclasses import dataclass

from mcp_types import BlobResourceContents, Resource, TextResourceContents

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.concurrency.threads import run_in_thread
from mcp_batteries.errors import NotFound, quote
from mcp_batteries.server.declaration.decorators import lists_resources, resource
from mcp_git.engine.history.diff import Comparison, read_diff
from mcp_git.engine.history.files import read_contents
from mcp_git.engine.history.log import LogQuery, describe_head, list_commits
from mcp_git.engine.history.refs import RefQuery, list_refs
from mcp_git.engine.program.git import Git
from mcp_git.engine.work_tree.status_report import describe_status
from mcp_git.models import Answer
from mcp_git.policy import RESOURCE_KINDS, TOP_FOLDER, GitResource, Policy, Repository

__all__ = ["Resources"]

_TEXT = "text/plain"
_TITLES = {
    "status": "Status of {}", "head": "Where HEAD of {} is", "branches": "Branches of {}",
    "log": "Latest commits of {}", "diff": "Uncommitted changes of {}", "stash": "Stashes of {}",
}  # fmt: skip
# What is done for each, for the message of a deadline.
_WORK = {
    "status": "The status", "head": "The look at HEAD", "branches": "The list",
    "log": "The log", "diff": "The comparison", "stash": "The list",
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
    """The resources.

    Attributes:
        seconds: until git is stopped.
    """

    policy: Policy
    git: Git
    seconds: float

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
        data = await self._read_contents(parsed)
        try:
            return TextResourceContents(uri=uri, mime_type=_TEXT, text=data.decode())
        except UnicodeDecodeError:
            return BlobResourceContents(
                uri=uri, mime_type="application/octet-stream", blob=base64.b64encode(data).decode()
            )

    async def read_text(self, parsed: GitResource) -> str:
        """The text of a resource; for a file a value that identifies its contents."""
        if parsed.kind == "files":
            return str(await self._read_contents(parsed))
        answer = await run_in_thread(
            lambda cancel: _read_state(self.git, parsed, cancel),
            seconds=self.seconds,
            description=_WORK[parsed.kind],
            long=True,
        )
        return answer.text()

    async def _read_contents(self, parsed: GitResource) -> bytes:
        return await run_in_thread(
            lambda cancel: read_contents(self.git, parsed.repository, parsed.revision, parsed.path, cancel),
            seconds=self.seconds,
            description="Reading",
            long=True,
        )

    async def attach(self, uri: str) -> TextResourceContents:
        """A text resource as an attachment."""
        return TextResourceContents(uri=uri, mime_type=_TEXT, text=await self.read_text(self._parse(uri)))

    def _parse(self, uri: str) -> GitResource:
        parsed = self.policy.resource(uri)
        if parsed is None:
            raise NotFound(f"There is no resource {quote(uri)}.", "`resources/list` has those there are.")
        return parsed


def _read_state(git: Git, parsed: GitResource, cancel: CancelToken) -> Answer:
    """Return the state of a repository that a resource shows."""
    repository = parsed.repository
    match parsed.kind:
        case "status":
            return describe_status(git, repository, TOP_FOLDER, _MAX_FILES, cancel)
        case "head":
            return describe_head(git, repository, cancel)
        case "log":
            return list_commits(git, repository, LogQuery(parsed.revision), _MAX_COMMITS, None, cancel)
        case "diff":
            return read_diff(git, repository, Comparison(None, "all", TOP_FOLDER), None, cancel)
        case "branches":
            return list_refs(git, repository, RefQuery("branches", parsed.revision), _MAX_FILES, None, cancel)
        case _:
            return list_refs(git, repository, RefQuery("stashes", parsed.revision), _MAX_FILES, None, cancel)
