"""Repositories, their files and branches, as tools."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Annotated, Literal

from mcp_types import BlobResourceContents, EmbeddedResource, ImageContent
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from mcp_batteries.media.pictures import Picture
from mcp_batteries.server.declare import tool
from mcp_github.models import Done, Listing, Record, Text
from mcp_github.policy import Policy
from mcp_github.policy import Ref as TrustedRef
from mcp_github.requests.code.commits import Commits, FileChange
from mcp_github.requests.code.files import Binary, Files
from mcp_github.requests.code.repositories import Repositories
from mcp_github.requests.work.pulls import Pulls
from mcp_github.tools.arguments import (
    Branch,
    Cursor,
    Fields,
    Limit,
    Number,
    OptionalNumber,
    OptionalPath,
    OptionalRef,
    Path,
    Ref,
    RepoName,
    Since,
    Until,
    refuse_beside,
    said,
)

__all__ = ["RepoTools"]


class Edit(BaseModel):
    model_config = ConfigDict(extra="forbid")
    old: str
    new: str


class Change(BaseModel):
    model_config = ConfigDict(extra="forbid")
    path: str
    sha: str | None = Field(None, description="As read, if it exists")
    content: str | None = None
    base64: bool = False
    edits: list[Edit] = Field(default_factory=list[Edit], description="Unique old text to new")
    delete: bool = False


def _some(files: list[Change]) -> list[Change]:
    if not 1 <= len(files) <= 100:
        raise ValueError("must be an array of 1 to 100 files")
    return files


def _thousand(limit: int) -> int:
    if not 1 <= limit <= 1000:
        raise ValueError("must be an integer from 1 to 1000")
    return limit


@dataclass(frozen=True)
class RepoTools:
    policy: Policy
    repositories: Repositories
    files: Files
    pulls: Pulls
    commits: Commits

    @tool("Get a repository", toolset="repos", open_world=True)
    async def get_repository(self, repo: RepoName, fields: Fields = None) -> Record:
        """Get a repository: description, default branch, visibility, your permission.

        A private one may read as not found. To find one use `search_github`.
        """
        return await self.repositories.repository(self.policy.repo(repo), fields)

    @tool("List files", toolset="repos", open_world=True)
    async def list_files(
        self,
        repo: RepoName,
        path: Path = "",
        ref: OptionalRef = None,
        recursive: bool = False,
        pattern: Annotated[str | None, Field(description="As *.py")] = None,
        fields: Fields = None,
        limit: Annotated[int, AfterValidator(_thousand)] = 200,
        cursor: Cursor = None,
    ) -> Listing:
        """List a folder of a repository with sizes, or with `recursive` all below it.

        Without `ref` on the default branch. To read a file use `read_file`, to find code `search_github`.
        """
        return await self.files.tree(
            self.policy.repo(repo), self.policy.file(path), _ref(self.policy, ref), recursive=recursive,
            pattern=pattern, fields=fields, limit=limit, cursor=cursor,
        )  # fmt: skip

    @tool("Read a file", toolset="repos", open_world=True)
    async def read_file(
        self,
        repo: RepoName,
        path: Path,
        ref: OptionalRef = None,
        start_line: Number = 1,
        lines: OptionalNumber = None,
    ) -> Text | EmbeddedResource | ImageContent:
        """Read a file, at `ref` or on the default branch; long text in pages, an image as a picture.

        The first line has its `sha` and how to go on. To find files use `list_files`.
        """
        found = await self.files.read(
            self.policy.repo(repo), self.policy.file(path), _ref(self.policy, ref), start_line=start_line, lines=lines
        )
        match found:
            case Picture():
                data = base64.b64encode(found.data).decode()
                return ImageContent(type="image", data=data, mime_type=found.mime_type)
            case Binary():
                return _as_resource(found)
            case _:
                return found

    @tool("Read a diff", toolset="repos", open_world=True)
    async def read_diff(
        self,
        repo: RepoName,
        number: OptionalNumber = None,
        ref: OptionalRef = None,
        base: Annotated[str | None, Field(description="Compare `ref` with this")] = None,
        path: OptionalPath = None,
        summary: bool = False,
        cursor: Cursor = None,
    ) -> Text:
        """Read the changes of a pull request (`number`), of a commit (`ref`), or of `ref` since it left `base`.

        Patches come in pages; `summary` lists files only. About a commit: `get_commit`.
        """
        if number is not None:
            refuse_beside("`number`", ref=ref, base=base)
        where, policy = self.policy.repo(repo), self.policy
        of = self.pulls.diff(where, number=number, ref=_ref(policy, ref), base=_ref(policy, base))
        return await self.files.diff(where, of, path=path, summary=summary, cursor=cursor)

    @tool("List commits", toolset="repos", open_world=True)
    async def list_commits(
        self,
        repo: RepoName,
        ref: OptionalRef = None,
        path: OptionalPath = None,
        number: OptionalNumber = None,
        author: Annotated[str | None, Field(description="Login or email")] = None,
        since: Since = None,
        until: Until = None,
        fields: Fields = None,
        limit: Limit = 30,
        cursor: Cursor = None,
    ) -> Listing:
        """List commits of a branch or path, newest first, or of a pull request (`number`), oldest first.

        Long messages are cut, whole in `get_commit`. Changes: `read_diff`.
        """
        if number is not None:
            refuse_beside("`number`", ref=ref, path=path, author=author, since=since, until=until)
        policy, author = self.policy, await self.repositories.api.meant_login(author) if author else None
        return await self.repositories.commits(
            policy.repo(repo), ref=_ref(policy, ref), path=policy.file(path).name if path else None, number=number,
            author=author, since=since, until=until, fields=fields, limit=limit, cursor=cursor,
        )  # fmt: skip

    @tool("Get a commit", toolset="repos", open_world=True)
    async def get_commit(self, repo: RepoName, ref: Ref) -> Record:
        """Get a commit: message, author, and its files (60 at most) with counts. For its changes use `read_diff`."""
        return await self.repositories.commit(self.policy.repo(repo), self.policy.ref(ref))

    @tool("List branches or tags", toolset="repos", open_world=True)
    async def list_refs(
        self,
        repo: RepoName,
        kind: Literal["branches", "tags"] = "branches",
        fields: Fields = None,
        limit: Limit = 30,
        cursor: Cursor = None,
    ) -> Listing:
        """List a repository's branches or tags, with the commit each points to.

        A branch says whether it is protected. For its commits use `list_commits`, for releases `list_releases`.
        """
        where = self.policy.repo(repo)
        return await self.repositories.refs(where, kind, fields=fields, limit=limit, cursor=cursor)

    @tool("Commit files", toolset="repos", effect="destroy", open_world=True)
    async def write_files(
        self,
        repo: RepoName,
        branch: Branch,
        message: Annotated[str, AfterValidator(said), Field(description="Of the commit")],
        files: Annotated[list[Change], AfterValidator(_some)],
    ) -> Done:
        """Commit files, all or none; one that exists needs `read_file`'s `sha`. A new branch: `create_branch`."""
        where = self.policy.write_repo(repo)
        changes = [
            FileChange(
                self.policy.write_file(item.path), item.content, item.base64,
                [(edit.old, edit.new) for edit in item.edits], item.delete, item.sha,
            )
            for item in files
        ]  # fmt: skip
        return await self.commits.write(where, self.policy.ref(branch), message, changes)

    @tool("Create a branch", toolset="repos", effect="write", open_world=True)
    async def create_branch(self, repo: RepoName, branch: Branch, ref: OptionalRef = None) -> Done:
        """Create a branch at `ref`, else at the default branch. A name that exists is refused.

        Commit with `write_files`.
        """
        where, policy = self.policy.write_repo(repo), self.policy
        return await self.repositories.create_branch(where, policy.ref(branch), _ref(policy, ref))

    @tool("Create a repository", toolset="repos", effect="write", open_world=True)
    async def create_repository(
        self,
        repo: RepoName,
        description: Annotated[str | None, Field(description="One line")] = None,
        private: bool = True,
        readme: bool = True,
    ) -> Done:
        """Create a repository, private and with a README unless told otherwise.

        A fork: `copy_repository`.
        """
        where = self.policy.write_repo(repo)
        return await self.repositories.create(where, description=description, private=private, readme=readme)

    @tool("Fork a repository", toolset="repos", effect="write", open_world=True)
    async def copy_repository(self, repo: RepoName, target: Annotated[str, Field(description="owner/name")]) -> Done:
        """Fork a repository as `target`, in your account or an organisation.

        An empty one: `create_repository`.
        """
        return await self.repositories.fork(self.policy.repo(repo), self.policy.write_repo(target))

    @tool("Delete a branch", toolset="repos", gate="delete", effect="destroy", open_world=True)
    async def delete_branch(self, repo: RepoName, branch: Branch) -> Done:
        """Delete a branch, but never the default one. Its commits stay only where others reach them."""
        return await self.repositories.delete_branch(self.policy.write_repo(repo, "delete"), self.policy.ref(branch))

    @tool("Delete a repository", toolset="repos", gate="delete", effect="destroy", open_world=True)
    async def delete_repository(self, repo: RepoName) -> Done:
        """Delete a repository with everything in it, for good. A branch: `delete_branch`."""
        return await self.repositories.delete(self.policy.write_repo(repo, "delete"))

    @tool("Move a branch", toolset="repos", gate="force", effect="destroy", open_world=True)
    async def move_branch(self, repo: RepoName, branch: Branch, ref: Ref, force: bool = False) -> Done:
        """Point a branch at `ref`; only `force` loses commits. For a new one use `create_branch`."""
        where, policy = self.policy.write_repo(repo, "force"), self.policy
        return await self.repositories.move_branch(where, policy.ref(branch), policy.ref(ref), force=force)


def _ref(policy: Policy, text: str | None) -> TrustedRef | None:
    return None if text is None else policy.ref(text)


def _as_resource(file: Binary) -> EmbeddedResource:
    """Return a file that is neither text nor a picture as content."""
    data = base64.b64encode(file.data).decode()
    blob = BlobResourceContents(uri=file.uri, blob=data, mime_type="application/octet-stream")
    return EmbeddedResource(type="resource", resource=blob)
