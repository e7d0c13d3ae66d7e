"""Tools that read a repository."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Invalid
from mcp_batteries.server.declaration.decorators import OtherName, rename_arguments, tool
from mcp_batteries.server.declaration.fields import Cursor, Limit
from mcp_batteries.server.declaration.trusted import FreeText, default, trusted
from mcp_git.engine.history import blame, diff, files, log, refs
from mcp_git.engine.history.diff import Comparison, UncommittedPart
from mcp_git.engine.history.files import TextSearch
from mcp_git.engine.history.log import LogQuery
from mcp_git.engine.history.refs import RefKind, RefQuery
from mcp_git.engine.program.git import Git
from mcp_git.engine.work_tree.status_report import describe_status
from mcp_git.models import Answer
from mcp_git.policy import LineRange, Range, Revision, parse_lines, parse_range, parse_ref
from mcp_git.tools.arguments import FilePath, LineNumber, OptionalPathOrGlob, OptionalRevision, PathOrGlob, Repo, Rev
from mcp_git.tools.views import CHANGES, HISTORY

__all__ = [
    "get_blame",
    "get_merge_base",
    "get_status",
    "list_commits",
    "list_files",
    "list_refs",
    "read_diff",
    "read_file",
    "search_text",
]

_adapt = rename_arguments(repo_path="repo", repository="repo", revision="rev", ref="rev", max_count="limit")
_adapt_log = rename_arguments(
    repo_path="repo",
    repository="repo",
    revision="rev",
    ref="rev",
    branch="rev",
    max_count="limit",
    start_timestamp="since",
    end_timestamp="until",
    grep="message",
    all="all_branches",
)
_rename_for_diff = rename_arguments(
    repo_path="repo",
    repository="repo",
    revision="rev",
    ref="rev",
    commit="rev",
    context_lines="context",
    unified="context",
    name_only="files_only",
    stat="files_only",
)
# Other names for the two sides of a range.
_SIDES = (("base", "head"), ("from", "to"), ("old", "new"), ("a", "b"))
# Lines, unless the last one is named.
_DEFAULT_BLAMED_LINES = 200


def _adapt_diff(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments under our names; `target` is what `git diff` compares the current state with."""
    renamed = dict(_rename_for_diff(arguments))
    for name in ("staged", "cached"):
        match renamed.get(name):
            case False:
                del renamed[name]
            case True if renamed.get("only", "staged") == "staged":
                del renamed[name]
                renamed["only"] = "staged"
            case _:
                pass
    for start, end in _SIDES:
        if "rev" not in renamed and isinstance(renamed.get(start), str) and isinstance(renamed.get(end), str):
            renamed["rev"] = f"{renamed.pop(start)}..{renamed.pop(end)}"
    target = renamed.pop("target", None)
    if "rev" in renamed or not isinstance(target, str) or target in ("", "HEAD"):
        return renamed
    # A revision alone stands for its own changes here.
    renamed["rev"] = target if ".." in target else f"{target}..HEAD"
    return renamed


@tool("Get status", effect="read", adapt=_adapt, work="The status", also=("git_status",))
def get_status(
    git: Git, cancel: CancelToken, *, repo: Repo = default(""), path: PathOrGlob = default(""), limit: Limit = 100
) -> Answer:
    """Get the branch, a merge or rebase in progress, conflicts, and staged, changed and untracked files.

    Begin here. Lines are as of `git status --short`, without ignored files; `.remark`: the branch; `.all()`: status,
    path, renamed_from. For the changed lines use `read_diff`, for another commit's files `list_files`.
    """
    return describe_status(git, repo, path, limit, cancel)


@tool("List commits", effect="read", view=HISTORY, adapt=_adapt_log, work="The log", also=("git_log",))
def list_commits(
    git: Git,
    cancel: CancelToken,
    *,
    repo: Repo = default(""),
    rev: Annotated[Revision | Range, trusted(parse_range), Field(description="Revision or range `a..b`.")] = default(
        "HEAD"
    ),
    path: OptionalPathOrGlob = None,
    lines: Annotated[
        LineRange | None, trusted(parse_lines), Field(description="Of `path`: `10-20`, or a function.")
    ] = None,
    author: Annotated[FreeText | None, Field(description="Part of a name or address, by .mailmap.")] = None,
    message: FreeText | None = None,
    text: Annotated[
        FreeText | None,
        Field(description="Text that changes add or remove; with `regex` of any changed line."),
    ] = None,
    regex: Annotated[bool, Field(description="`author`, `message`, `text` are POSIX regexes.")] = False,
    since: Annotated[FreeText | None, Field(description="Earliest commit date: `2026-01-31`, `2 weeks ago`.")] = None,
    until: Annotated[FreeText | None, Field(description="Latest date.")] = None,
    all_branches: Annotated[bool, Field(description="Of all branches and tags.")] = False,
    no_merges: bool = False,
    not_picked: Annotated[
        bool, Field(description="Of `a..b`: leave out patches (3 lines around) that `a` has too, but for white space.")
    ] = False,
    follow: Annotated[bool, Field(description="Beyond renames of `path`.")] = False,
    graph: Annotated[bool, Field(description="Draw how they join.")] = False,
    bodies: Annotated[bool, Field(description="Bodies too; `.all()`: `email`, `body`.")] = False,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Answer:
    """List commits, newest first, by path, author, message, date or `text`.

    A `path` `*.py`: at any depth. `hash date author: (refs) subject`; `.all()`: hash (first 12 digits), committed,
    authored (UTC), author (by .mailmap), subject, and lists: parents, refs. What one changed: `read_diff`, who last
    wrote a line: `get_blame`.
    """
    query = LogQuery(
        revision=rev,
        named_path=path,
        author=author,
        message=message,
        text=text,
        is_regex=regex,
        since=since,
        until=until,
        all_branches=all_branches,
        no_merges=no_merges,
        graph=graph,
        lines=lines,
        follow=follow,
        not_picked=not_picked,
        bodies=bodies,
    )
    return log.list_commits(git, repo, query, limit, cursor, cancel)


@tool(
    "Read a diff",
    effect="read",
    view=CHANGES,
    adapt=_adapt_diff,
    work="The comparison",
    also=(
        "git_diff",
        "git_show",
        OtherName("git_diff_staged", {"only": "staged"}),
        OtherName("git_diff_unstaged", {"only": "unstaged"}),
    ),
)
def read_diff(
    git: Git,
    cancel: CancelToken,
    *,
    repo: Repo = default(""),
    rev: Annotated[
        Revision | Range | None,
        trusted(parse_range),
        Field(description="A commit (its message and changes), `a..b`, or `a...b`: what b changed since it left a."),
    ] = None,
    only: Annotated[UncommittedPart, Field(description="Which uncommitted changes.")] = "all",
    path: PathOrGlob = default(""),
    context: Annotated[int, Field(ge=0, le=100)] = 3,
    files_only: Annotated[bool, Field(description="No patch.")] = False,
    cursor: Cursor = None,
) -> Answer:
    """Read the changes of `rev`, or without `rev` the uncommitted ones: files with counts, then the patch in pages.

    A file is `+1 -2 path`, `new +1 -0 path` or `+0 -0 old -> new`; with files_only `.all()`: path, renamed_from,
    kind (`new`, `deleted`), added, removed. For untracked files use `get_status`.
    """
    if rev is not None and only != "all":
        raise Invalid("`only` is about what is not committed, `rev` about what is.", "Leave one of them out.")
    comparison = Comparison(rev, only, path, context, files_only)
    return diff.read_diff(git, repo, comparison, cursor, cancel)


def _adapt_blame(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments under our names; `lines` are those of `git blame -L`, as `list_commits` takes them."""
    renamed = dict(_adapt(arguments))
    lines = re.fullmatch(r"(\d+)(?:[-,:](\d+))?", str(renamed.get("lines")))
    if lines and not {"start_line", "end_line"} & renamed.keys():
        del renamed["lines"]
        renamed["start_line"] = int(lines[1])
        renamed["end_line"] = int(lines[2] or lines[1])
    return renamed


@tool("Get blame", effect="read", adapt=_adapt_blame, work="The blame", also=("git_blame",))
def get_blame(
    git: Git,
    cancel: CancelToken,
    *,
    path: FilePath,
    repo: Repo = default(""),
    rev: Rev | None = None,
    start_line: LineNumber = 1,
    end_line: LineNumber | None = None,
) -> Answer:
    """Show which commit last changed each line of a file, when and by whom; without `end_line` 200 lines.

    `hash date author: subject`, and below it `12: text`. Without `rev`, uncommitted lines too. To see what a commit
    changed use `read_diff`.
    """
    last = end_line or start_line + _DEFAULT_BLAMED_LINES - 1
    if last < start_line:
        raise Invalid("`end_line` is before `start_line`.", "Exchange them.")
    return blame.blame_lines(git, repo, path, rev, start_line, last, cancel)


_rename_for_refs = rename_arguments(repo_path="repo", repository="repo", glob="pattern", no_merged="not_merged")


_SINGULAR_KINDS = {
    "branch": "branches",
    "tag": "tags",
    "remote": "remotes",
    "stash": "stashes",
    "worktree": "worktrees",
}


def _adapt_refs(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments under our names; local and remote branches are one list here."""
    renamed = dict(_rename_for_refs({name: value for name, value in arguments.items() if name != "branch_type"}))
    kind = renamed.get("kind")
    if isinstance(kind, str):
        renamed["kind"] = _SINGULAR_KINDS.get(kind, kind)
    return renamed


@tool(
    "List refs",
    effect="read",
    adapt=_adapt_refs,
    work="The list",
    also=("git_branch", OtherName("git_reflog", {"kind": "reflog"}), OtherName("git_remote", {"kind": "remotes"})),
)
def list_refs(
    git: Git,
    cancel: CancelToken,
    *,
    kind: RefKind = "branches",
    repo: Repo = default(""),
    name: Annotated[Revision, trusted(parse_ref), Field(description="For kind=reflog: whose.")] = default("HEAD"),
    pattern: Annotated[FreeText, Field(description="By name, such as `v2.*`.")] = "",
    contains: Annotated[OptionalRevision, Field(description="Those with this commit.")] = None,
    merged: Annotated[OptionalRevision, Field(description="Those merged into this.")] = None,
    not_merged: Annotated[OptionalRevision, Field(description="Those not merged into this.")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Answer:
    """List branches with their upstreams, tags, remotes, stashes, worktrees, or a branch's reflog (`kind`).

    Branches (`* name hash date [upstream: ahead 1] subject`), of remotes too, and tags come newest first; tags with
    `contains` oldest first (`name date`). The reflog has where `name` pointed, so lost commits too: `HEAD@{1} hash
    date commit: subject`. `.all()`: name, hash, date, subject, of branches upstream, ahead, behind, is_current.
    For a branch's commits use `list_commits`.
    """
    query = RefQuery(kind, name, pattern, contains, merged, not_merged)
    return refs.list_refs(git, repo, query, limit, cursor, cancel)


@tool("Get merge base", effect="read", adapt=_adapt, work="The comparison", also=("git_merge_base",))
def get_merge_base(
    git: Git, cancel: CancelToken, *, one: Rev, other: Rev = default("HEAD"), repo: Repo = default("")
) -> Answer:
    """Get the commit at which two revisions parted and how many commits each has had since.

    For those commits use `list_commits` with `a..b`.
    """
    return refs.find_merge_base(git, repo, one, other, cancel)


@tool("Read file", effect="read", adapt=_adapt, work="Reading")
def read_file(
    git: Git,
    cancel: CancelToken,
    *,
    path: FilePath,
    repo: Repo = default(""),
    rev: Rev = default("HEAD"),
    start_line: LineNumber = 1,
    end_line: LineNumber | None = None,
) -> Answer:
    """Read a text file as it is in a commit, not on disk; a long one in pages, by `start_line`.

    In a conflict, rev=`:2` is our side of it and `:3` theirs. To see who wrote its lines use `get_blame`.
    """
    return files.read_file(git, repo, rev, path, start_line, end_line, cancel)


@tool("List files", effect="read", adapt=_adapt, work="The list", also=("git_ls_files",))
def list_files(
    git: Git,
    cancel: CancelToken,
    *,
    path: FilePath = default(""),
    repo: Repo = default(""),
    rev: Rev = default("HEAD"),
    recursive: Annotated[bool, Field(description="All files below it.")] = False,
    limit: Limit = 200,
    cursor: Cursor = None,
) -> Answer:
    """List the files and folders in a folder of a commit, with sizes.

    `size path`, `path/`, a line each in scripts too. To read one use `read_file`, for uncommitted ones
    `get_status`, for text in them `search_text`.
    """
    return files.list_files(git, repo, rev, path, recursive=recursive, limit=limit, cursor=cursor, cancel=cancel)


@tool(
    "Search text",
    effect="read",
    adapt=rename_arguments(query="pattern", repo_path="repo", ref="rev"),
    work="The search",
    also=("git_grep",),
)
def search_text(
    git: Git,
    cancel: CancelToken,
    *,
    pattern: Annotated[FreeText, Field(description="POSIX extended regular expression.")],
    repo: Repo = default(""),
    rev: Rev = default("HEAD"),
    path: PathOrGlob = default(""),
    literal: Annotated[bool, Field(description="`pattern` is plain text.")] = False,
    ignore_case: Annotated[bool, Field(description="`A` matches `a` too.")] = False,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Answer:
    """Search the text files of a commit, not those on disk.

    Matches come as `path:line:text`, several of one file or folder under its name. To find when a text
    was added or removed use `list_commits` with `text`.
    """
    search = TextSearch(pattern, literal, ignore_case)
    return files.search_text(git, repo, rev, path, search, limit=limit, cursor=cursor, cancel=cancel)
