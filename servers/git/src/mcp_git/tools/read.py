"""What reads a repository, as tools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from mcp_batteries.errors import Invalid
from mcp_batteries.server.declare import renames, tool
from mcp_batteries.server.fields import LIMIT, Cursor
from mcp_git.engine.diff import Compared, Part
from mcp_git.engine.log import Wanted
from mcp_git.engine.refs import Kind
from mcp_git.engine.service import Engine
from mcp_git.models import Answer
from mcp_git.policy import Policy
from mcp_git.tools.arguments import LONGEST, FilePath, Number, RepositoryName, Rev
from mcp_git.tools.views import CHANGES, HISTORY

__all__ = ["ReadTools"]

Limit = Annotated[int, Field(ge=1, le=5000, description=LIMIT)]
_adapt = renames(repo_path="repo", repository="repo", revision="rev", ref="rev", max_count="limit")
_BLAMED = 200
"""Lines, unless the last one is named."""


@dataclass(frozen=True)
class ReadTools:
    policy: Policy
    engine: Engine

    @tool("Get status", effect="read", seconds=LONGEST, adapt=_adapt)
    async def get_status(self, repo: RepositoryName = "", path: FilePath = "", limit: Limit = 100) -> Answer:
        """Get the branch, what is under way, conflicts, staged, changed and untracked files. Begin here."""
        return await self.engine.status(self.policy.repository(repo), self.policy.place(path), limit)

    @tool("List commits", effect="read", view=HISTORY, seconds=LONGEST, adapt=_adapt)
    async def list_commits(
        self,
        repo: RepositoryName = "",
        rev: Annotated[str, Field(description="Revision or range `a..b`.")] = "HEAD",
        path: FilePath = "",
        author: Annotated[str | None, Field(description="Part of a name or address.")] = None,
        message: Annotated[str | None, Field(description="Part of a message.")] = None,
        text: Annotated[str | None, Field(description="Only commits that add or remove it.")] = None,
        regex: Annotated[bool, Field(description="`text` is one, for changed lines.")] = False,
        since: Annotated[str | None, Field(description="`2026-01-31`, `2 weeks ago`")] = None,
        until: Annotated[str | None, Field(description="As `since`.")] = None,
        all_branches: bool = False,
        graph: bool = False,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> Answer:
        """List commits, the newest first: hash, date, author, (refs) subject. What one changed: `read_diff`."""
        revision, place = self.policy.range(rev), self.policy.place(path)
        if regex and not text:
            raise Invalid("`regex` says how to read `text`, and there is none.", "Give one, or leave `regex` out.")
        wanted = Wanted(revision, place, author, message, text, regex, since, until, all_branches, graph)
        return await self.engine.log(self.policy.repository(repo), wanted, limit, cursor)

    @tool("Read a diff", effect="read", view=CHANGES, seconds=LONGEST, adapt=_adapt)
    async def read_diff(
        self,
        repo: RepositoryName = "",
        rev: Annotated[
            str | None, Field(description="A commit, for its message and change; `a..b`; `a...b` since they parted.")
        ] = None,
        only: Annotated[Part, Field(description="Of what is not committed.")] = "all",
        path: FilePath = "",
        context: Annotated[int, Field(ge=0, le=100)] = 3,
        cursor: Cursor = None,
    ) -> Answer:
        """Read what changed: without `rev` what is not committed. Files with counts first, then the patch."""
        if rev is not None and only != "all":
            raise Invalid("`only` is about what is not committed, `rev` about what is.", "Leave one of them out.")
        revision = None if rev is None else self.policy.range(rev)
        compared = Compared(revision, only, self.policy.place(path), context)
        return await self.engine.diff(self.policy.repository(repo), compared, cursor)

    @tool("Get blame", effect="read", seconds=LONGEST, adapt=_adapt)
    async def get_blame(
        self,
        path: FilePath,
        repo: RepositoryName = "",
        rev: Rev | None = None,
        start_line: Number = 1,
        end_line: Number | None = None,
    ) -> Answer:
        """Get who changed each line last, and in which commit; without `rev` of the file as it is now.

        Its change: `read_diff`.
        """
        last = end_line or start_line + _BLAMED - 1
        if last < start_line:
            raise Invalid("`end_line` is before `start_line`.", "Exchange them.")
        revision = None if rev is None else self.policy.revision(rev)
        return await self.engine.blame(
            self.policy.repository(repo), self.policy.place(path), revision, start_line, last
        )

    @tool("List refs", effect="read", seconds=LONGEST, adapt=_adapt)
    async def list_refs(
        self,
        kind: Kind = "branches",
        repo: RepositoryName = "",
        name: Annotated[str, Field(description="Whose reflog.")] = "HEAD",
        limit: Limit = 100,
        cursor: Cursor = None,
    ) -> Answer:
        """List branches with what they follow, tags, remotes, stashes, worktrees, or what a branch was before."""
        return await self.engine.refs(self.policy.repository(repo), kind, self.policy.ref(name), limit, cursor)

    @tool("Get merge base", effect="read", seconds=LONGEST, adapt=_adapt)
    async def get_merge_base(self, one: Rev, other: Rev = "HEAD", repo: RepositoryName = "") -> Answer:
        """Get the commit at which two revisions parted and how many commits each has since."""
        revisions = self.policy.revision(one), self.policy.revision(other)
        return await self.engine.merge_base(self.policy.repository(repo), *revisions)

    @tool("Read file", effect="read", seconds=LONGEST, adapt=_adapt)
    async def read_file(
        self,
        path: FilePath,
        repo: RepositoryName = "",
        rev: Rev = "HEAD",
        start_line: Number = 1,
        end_line: Number | None = None,
    ) -> Answer:
        """Read a file as it is in a commit, or as a side of a conflict has it; not as it is on disk."""
        place = self.policy.place(path)
        return await self.engine.read(
            self.policy.repository(repo), self.policy.revision(rev), place, start_line, end_line
        )

    @tool("List files", effect="read", seconds=LONGEST, adapt=_adapt)
    async def list_files(
        self,
        path: FilePath = "",
        repo: RepositoryName = "",
        rev: Rev = "HEAD",
        recursive: bool = False,
        limit: Limit = 200,
        cursor: Cursor = None,
    ) -> Answer:
        """List the files and folders of a commit, with sizes; not what is uncommitted: `get_status`."""
        place = self.policy.place(path)
        return await self.engine.tree(
            self.policy.repository(repo),
            self.policy.revision(rev),
            place,
            recursive=recursive,
            limit=limit,
            cursor=cursor,
        )

    @tool("Search text", effect="read", seconds=LONGEST, adapt=renames(query="pattern", repo_path="repo", ref="rev"))
    async def search_text(
        self,
        pattern: Annotated[str, Field(description="POSIX extended regular expression.")],
        repo: RepositoryName = "",
        rev: Rev = "HEAD",
        path: FilePath = "",
        literal: bool = False,
        ignore_case: bool = False,
        limit: Limit = 100,
        cursor: Cursor = None,
    ) -> Answer:
        """Search the files of a commit: `path:line:text`. For changes in history use `list_commits` with `text`."""
        place = self.policy.place(path)
        return await self.engine.search(
            self.policy.repository(repo), self.policy.revision(rev), place, pattern,
            literal=literal, ignore_case=ignore_case, limit=limit, cursor=cursor,
        )  # fmt: skip
