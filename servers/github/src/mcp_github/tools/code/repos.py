"""Repositories, their files and branches, as tools."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Annotated

from mcp_types import BlobResourceContents, EmbeddedResource, ImageContent
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from mcp_batteries.media.pictures import Picture
from mcp_batteries.server.declaration.decorators import tool
from mcp_github.listing.pages import PageOptions
from mcp_github.models import Done, Listing, Record, Text
from mcp_github.policy import Policy
from mcp_github.policy import Ref as TrustedRef
from mcp_github.requests.code.branches import Branches, RefKind
from mcp_github.requests.code.commit_files import CommitFiles, FileChange, TextEdit
from mcp_github.requests.code.commit_log import CommitLog
from mcp_github.requests.code.diffs import Diffs, diff_source
from mcp_github.requests.code.files import BinaryFile, Files
from mcp_github.requests.code.repositories import Repositories
from mcp_github.tools.arguments import (
    BranchText,
    Cursor,
    Fields,
    Limit,
    Number,
    OptionalNumber,
    OptionalPath,
    OptionalRefText,
    PathText,
    RefText,
    RepoText,
    Since,
    Until,
    check_message,
    refuse_beside,
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

    def to_trusted(self, policy: Policy) -> FileChange:
        """Return the change with its path checked."""
        edits = [TextEdit(edit.old, edit.new) for edit in self.edits]
        path = policy.write_file(self.path)
        return FileChange(path, self.content, self.base64, edits, self.delete, self.sha)


def _check_count(files: list[Change]) -> list[Change]:
    if not 1 <= len(files) <= 100:
        raise ValueError("must be an array of 1 to 100 files")
    return files


def _check_limit(limit: int) -> int:
    if not 1 <= limit <= 1000:
        raise ValueError("must be an integer from 1 to 1000")
    return limit


@dataclass(frozen=True)
class RepoTools:
    policy: Policy
    repositories: Repositories
    files: Files
    diffs: Diffs
    commit_log: CommitLog
    commit_files: CommitFiles
    branches: Branches

    @tool("Get a repository", toolset="repos", open_world=True)
    async def get_repository(self, repo: RepoText, fields: Fields = None) -> Record:
        """Get a repository: description, default branch, visibility, your permission.

        A private one may read as not found. To find one use `search_github`.
        """
        return await self.repositories.get(self.policy.repo(repo), fields)

    @tool("List files", toolset="repos", open_world=True)
    async def list_files(
        self,
        repo: RepoText,
        path: PathText = "",
        ref: OptionalRefText = None,
        recursive: bool = False,
        pattern: Annotated[str | None, Field(description="As *.py")] = None,
        fields: Fields = None,
        limit: Annotated[int, AfterValidator(_check_limit)] = 200,
        cursor: Cursor = None,
    ) -> Listing:
        """List a folder of a repository with sizes, or with `recursive` all below it.

        Without `ref` on the default branch. To read a file use `read_file`, to find code `search_github`.
        """
        return await self.files.tree(
            self.policy.repo(repo), self.policy.file(path), _parse_ref(self.policy, ref), recursive=recursive,
            pattern=pattern, options=PageOptions(fields, limit, cursor),
        )  # fmt: skip

    @tool("Read a file", toolset="repos", open_world=True)
    async def read_file(
        self,
        repo: RepoText,
        path: PathText,
        ref: OptionalRefText = None,
        start_line: Number = 1,
        lines: OptionalNumber = None,
    ) -> Text | EmbeddedResource | ImageContent:
        """Read a file, at `ref` or on the default branch; long text in pages, an image as a picture.

        The first line has its `sha` and how to go on. To find files use `list_files`.
        """
        content = await self.files.read(
            self.policy.repo(repo), self.policy.file(path), _parse_ref(self.policy, ref), start_line=start_line,
            max_lines=lines,
        )  # fmt: skip
        match content:
            case Picture():
                data = base64.b64encode(content.data).decode()
                return ImageContent(type="image", data=data, mime_type=content.mime_type)
            case BinaryFile():
                return _to_resource(content)
            case _:
                return content

    @tool("Read a diff", toolset="repos", open_world=True)
    async def read_diff(
        self,
        repo: RepoText,
        number: OptionalNumber = None,
        ref: OptionalRefText = None,
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
        trusted_repo = self.policy.repo(repo)
        source = diff_source(
            trusted_repo, number=number, ref=_parse_ref(self.policy, ref), base=_parse_ref(self.policy, base)
        )
        return await self.diffs.read(trusted_repo, source, path=path, summary=summary, cursor=cursor)

    @tool("List commits", toolset="repos", open_world=True)
    async def list_commits(
        self,
        repo: RepoText,
        ref: OptionalRefText = None,
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
        trusted_repo = self.policy.repo(repo)
        options = PageOptions(fields, limit, cursor)
        if number is not None:
            refuse_beside("`number`", ref=ref, path=path, author=author, since=since, until=until)
            return await self.commit_log.list_of_pull(trusted_repo, number, options)
        filters: dict[str, str | None] = {"since": since, "until": until}
        if author:
            filters["author"] = await self.commit_log.api.resolve_login(author)
        if path:
            filters["path"] = self.policy.file(path).name
        return await self.commit_log.list(trusted_repo, _parse_ref(self.policy, ref), filters, options)

    @tool("Get a commit", toolset="repos", open_world=True)
    async def get_commit(self, repo: RepoText, ref: RefText) -> Record:
        """Get a commit: message, author, and its files (60 at most) with counts. For its changes use `read_diff`."""
        return await self.commit_log.get(self.policy.repo(repo), self.policy.ref(ref))

    @tool("List branches or tags", toolset="repos", open_world=True)
    async def list_refs(
        self,
        repo: RepoText,
        kind: RefKind = "branches",
        fields: Fields = None,
        limit: Limit = 30,
        cursor: Cursor = None,
    ) -> Listing:
        """List a repository's branches or tags, with the commit each points to.

        A branch says whether it is protected. For its commits use `list_commits`, for releases `list_releases`.
        """
        return await self.branches.list(self.policy.repo(repo), kind, PageOptions(fields, limit, cursor))

    @tool("Commit files", toolset="repos", effect="destroy", open_world=True)
    async def write_files(
        self,
        repo: RepoText,
        branch: BranchText,
        message: Annotated[str, AfterValidator(check_message), Field(description="Of the commit")],
        files: Annotated[list[Change], AfterValidator(_check_count)],
    ) -> Done:
        """Commit files, all or none; one that exists needs `read_file`'s `sha`. A new branch: `create_branch`."""
        trusted_repo = self.policy.write_repo(repo)
        changes = [change.to_trusted(self.policy) for change in files]
        return await self.commit_files.commit(trusted_repo, self.policy.ref(branch), message, changes)

    @tool("Create a branch", toolset="repos", effect="write", open_world=True)
    async def create_branch(self, repo: RepoText, branch: BranchText, ref: OptionalRefText = None) -> Done:
        """Create a branch at `ref`, else at the default branch. A name that exists is refused.

        Commit with `write_files`.
        """
        trusted_repo = self.policy.write_repo(repo)
        return await self.branches.create(trusted_repo, self.policy.ref(branch), _parse_ref(self.policy, ref))

    @tool("Create a repository", toolset="repos", effect="write", open_world=True)
    async def create_repository(
        self,
        repo: RepoText,
        description: Annotated[str | None, Field(description="One line")] = None,
        private: bool = True,
        readme: bool = True,
    ) -> Done:
        """Create a repository, private and with a README unless told otherwise.

        A fork: `copy_repository`.
        """
        trusted_repo = self.policy.write_repo(repo)
        return await self.repositories.create(trusted_repo, description=description, private=private, readme=readme)

    @tool("Fork a repository", toolset="repos", effect="write", open_world=True)
    async def copy_repository(self, repo: RepoText, target: Annotated[str, Field(description="owner/name")]) -> Done:
        """Fork a repository as `target`, in your account or an organisation.

        An empty one: `create_repository`.
        """
        return await self.repositories.fork(self.policy.repo(repo), self.policy.write_repo(target))

    @tool("Delete a branch", toolset="repos", gate="delete", effect="destroy", open_world=True)
    async def delete_branch(self, repo: RepoText, branch: BranchText) -> Done:
        """Delete a branch, but never the default one. Its commits stay only where others reach them."""
        return await self.branches.delete(self.policy.write_repo(repo, "delete"), self.policy.ref(branch))

    @tool("Delete a repository", toolset="repos", gate="delete", effect="destroy", open_world=True)
    async def delete_repository(self, repo: RepoText) -> Done:
        """Delete a repository with everything in it, for good. A branch: `delete_branch`."""
        return await self.repositories.delete(self.policy.write_repo(repo, "delete"))

    @tool("Move a branch", toolset="repos", gate="force", effect="destroy", open_world=True)
    async def move_branch(self, repo: RepoText, branch: BranchText, ref: RefText, force: bool = False) -> Done:
        """Point a branch at `ref`; only `force` loses commits. For a new one use `create_branch`."""
        trusted_repo = self.policy.write_repo(repo, "force")
        return await self.branches.move(trusted_repo, self.policy.ref(branch), self.policy.ref(ref), force=force)


def _parse_ref(policy: Policy, text: str | None) -> TrustedRef | None:
    """Return the branch, tag or commit that the caller named, if any; an empty name is refused."""
    if text is None:
        return None
    return policy.ref(text)


def _to_resource(file: BinaryFile) -> EmbeddedResource:
    """Return a file that is neither text nor a picture as content of the answer."""
    data = base64.b64encode(file.data).decode()
    blob = BlobResourceContents(uri=file.uri, blob=data, mime_type="application/octet-stream")
    return EmbeddedResource(type="resource", resource=blob)
