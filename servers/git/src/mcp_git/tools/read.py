"""Tools that read a repository."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from mcp_batteries.errors import Invalid
from mcp_batteries.server.declaration.decorators import rename_arguments, tool
from mcp_batteries.server.declaration.fields import Cursor, Limit
from mcp_git.engine.history.diff import Comparison, UncommittedPart
from mcp_git.engine.history.files import TextSearch
from mcp_git.engine.history.log import LogQuery
from mcp_git.engine.history.refs import RefKind
from mcp_git.engine.service import Engine
from mcp_git.models import Answer
from mcp_git.policy import Policy
from mcp_git.tools.arguments import MAX_CALL_SECONDS, FilePath, LineNumber, RepositoryName, Rev
from mcp_git.tools.views import CHANGES, HISTORY

__all__ = ["ReadTools"]

_adapt = rename_arguments(repo_path="repo", repository="repo", revision="rev", ref="rev", max_count="limit")
# Lines, unless the last one is named.
_DEFAULT_BLAMED_LINES = 200


@dataclass(frozen=True)
class ReadTools:
    policy: Policy
    engine: Engine

    @tool("Get status", effect="read", seconds=MAX_CALL_SECONDS, adapt=_adapt)
    async def get_status(self, repo: RepositoryName = "", path: FilePath = "", limit: Limit = 100) -> Answer:
        """Get the branch, a merge or rebase in progress, conflicts, and staged, changed and untracked files.

        Begin here. Ignored files are left out. For the changed lines use `read_diff`, for another commit's
        files `list_files`.
        """
        return await self.engine.describe_status(self.policy.repository(repo), self.policy.parse_path(path), limit)

    @tool("List commits", effect="read", view=HISTORY, seconds=MAX_CALL_SECONDS, adapt=_adapt)
    async def list_commits(
        self,
        repo: RepositoryName = "",
        rev: Annotated[str, Field(description="Revision or range `a..b`.")] = "HEAD",
        path: FilePath = "",
        lines: Annotated[str | None, Field(description="Of `path`: `10-20`, or a function.")] = None,
        author: Annotated[str | None, Field(description="Part of a name or address.")] = None,
        message: Annotated[str | None, Field(description="Part of a message.")] = None,
        text: Annotated[str | None, Field(description="Added or removed.")] = None,
        regex: Annotated[
            bool, Field(description="`author`, `message` and `text` (of a line) are POSIX regexes.")
        ] = False,
        since: Annotated[str | None, Field(description="`2026-01-31`, `2 weeks ago`")] = None,
        until: Annotated[str | None, Field(description="As `since`.")] = None,
        all_branches: bool = False,
        graph: bool = False,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> Answer:
        """List commits, newest first, by path, lines, author, message, date or `text`.

        A line each: hash, date, author, (refs), subject; `graph` draws how they join. To see what one changed
        use `read_diff`, who last wrote a line `get_blame`.
        """
        revision = self.policy.parse_range(rev)
        parsed_path = self.policy.parse_path(path)
        if regex and not (text or author or message):
            raise Invalid("`regex` says how to read a text, and there is none.", "Give one, or leave `regex` out.")
        if lines is not None and (not path or text or all_branches):
            raise Invalid("`lines` are of one `path`, without `text` and `all_branches`.", "Name the file alone.")
        line_range = None if lines is None else self.policy.parse_lines(lines)
        query = LogQuery(
            revision, parsed_path, author, message, text, regex, since, until, all_branches, graph, line_range
        )
        return await self.engine.list_commits(self.policy.repository(repo), query, limit, cursor)

    @tool("Read a diff", effect="read", view=CHANGES, seconds=MAX_CALL_SECONDS, adapt=_adapt)
    async def read_diff(
        self,
        repo: RepositoryName = "",
        rev: Annotated[
            str | None,
            Field(
                description="A commit (its message and changes), `a..b`, or `a...b`: what b changed since it left a."
            ),
        ] = None,
        only: Annotated[UncommittedPart, Field(description="Which uncommitted changes.")] = "all",
        path: FilePath = "",
        context: Annotated[int, Field(ge=0, le=100)] = 3,
        files_only: bool = False,
        cursor: Cursor = None,
    ) -> Answer:
        """Read the changes of `rev`, or without `rev` the uncommitted ones: files with counts, then the patch in pages.

        For files and counts alone pass `files_only`; for untracked files use `get_status`.
        """
        if rev is not None and only != "all":
            raise Invalid("`only` is about what is not committed, `rev` about what is.", "Leave one of them out.")
        revision = None if rev is None else self.policy.parse_range(rev)
        comparison = Comparison(revision, only, self.policy.parse_path(path), context, files_only)
        return await self.engine.read_diff(self.policy.repository(repo), comparison, cursor)

    @tool("Get blame", effect="read", seconds=MAX_CALL_SECONDS, adapt=_adapt)
    async def get_blame(
        self,
        path: FilePath,
        repo: RepositoryName = "",
        rev: Rev | None = None,
        start_line: LineNumber = 1,
        end_line: LineNumber | None = None,
    ) -> Answer:
        """Show which commit last changed each line of a file, when and by whom; without `end_line` 200 lines.

        Without `rev`, uncommitted lines too. To see what a commit changed use `read_diff`.
        """
        last = end_line or start_line + _DEFAULT_BLAMED_LINES - 1
        if last < start_line:
            raise Invalid("`end_line` is before `start_line`.", "Exchange them.")
        revision = None if rev is None else self.policy.parse_revision(rev)
        return await self.engine.blame_lines(
            self.policy.repository(repo), self.policy.parse_path(path), revision, start_line, last
        )

    @tool("List refs", effect="read", seconds=MAX_CALL_SECONDS, adapt=_adapt)
    async def list_refs(
        self,
        kind: RefKind = "branches",
        repo: RepositoryName = "",
        name: Annotated[str, Field(description="For kind=reflog: the branch.")] = "HEAD",
        limit: Limit = 100,
        cursor: Cursor = None,
    ) -> Answer:
        """List branches with their upstreams, tags, remotes, stashes, worktrees, or a branch's reflog (`kind`).

        Branches and tags come newest first, with commit and date. The reflog tells where `name` pointed before:
        lost commits are found there. For a branch's commits use `list_commits`.
        """
        return await self.engine.list_refs(
            self.policy.repository(repo), kind, self.policy.parse_ref(name), limit, cursor
        )

    @tool("Get merge base", effect="read", seconds=MAX_CALL_SECONDS, adapt=_adapt)
    async def get_merge_base(self, one: Rev, other: Rev = "HEAD", repo: RepositoryName = "") -> Answer:
        """Get the commit at which two revisions parted and how many commits each has had since.

        For those commits use `list_commits` with `a..b`, for what they changed `read_diff` with `a...b`.
        """
        revisions = self.policy.parse_revision(one), self.policy.parse_revision(other)
        return await self.engine.find_merge_base(self.policy.repository(repo), *revisions)

    @tool("Read file", effect="read", seconds=MAX_CALL_SECONDS, adapt=_adapt)
    async def read_file(
        self,
        path: FilePath,
        repo: RepositoryName = "",
        rev: Rev = "HEAD",
        start_line: LineNumber = 1,
        end_line: LineNumber | None = None,
    ) -> Answer:
        """Read a text file as it is in a commit, not on disk; a long one in pages, by `start_line`.

        In a conflict, rev=`:2` is our side of it and `:3` theirs. To see who wrote its lines use `get_blame`.
        """
        parsed_path = self.policy.parse_path(path)
        return await self.engine.read_file(
            self.policy.repository(repo), self.policy.parse_revision(rev), parsed_path, start_line, end_line
        )

    @tool("List files", effect="read", seconds=MAX_CALL_SECONDS, adapt=_adapt)
    async def list_files(
        self,
        path: FilePath = "",
        repo: RepositoryName = "",
        rev: Rev = "HEAD",
        recursive: bool = False,
        limit: Limit = 200,
        cursor: Cursor = None,
    ) -> Answer:
        """List the files and folders in a folder of a commit, with sizes.

        With `recursive` all files below it, each folder named once. To read one use `read_file`, for uncommitted ones
        `get_status`, for text in them `search_text`.
        """
        parsed_path = self.policy.parse_path(path)
        return await self.engine.list_files(
            self.policy.repository(repo),
            self.policy.parse_revision(rev),
            parsed_path,
            recursive=recursive,
            limit=limit,
            cursor=cursor,
        )

    @tool(
        "Search text",
        effect="read",
        seconds=MAX_CALL_SECONDS,
        adapt=rename_arguments(query="pattern", repo_path="repo", ref="rev"),
    )
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
        """Search the text files of a commit, not those on disk.

        Matches come as `path:line:text`; several of one file or folder are grouped under its name. To find when a text
        was added or removed use `list_commits` with `text`.
        """
        parsed_path = self.policy.parse_path(path)
        search = TextSearch(pattern, literal, ignore_case)
        return await self.engine.search_text(
            self.policy.repository(repo),
            self.policy.parse_revision(rev),
            parsed_path,
            search,
            limit=limit,
            cursor=cursor,
        )
