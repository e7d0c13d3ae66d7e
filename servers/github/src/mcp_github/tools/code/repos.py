"""Repositories, their files, commits and branches."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, cast

from mcp_types import BlobResourceContents, EmbeddedResource, ImageContent
from pydantic import AfterValidator, Field

from mcp_batteries.errors import Conflict, Invalid, NotFound, Problem, quote
from mcp_batteries.media.pictures import Picture
from mcp_batteries.progress import report_progress
from mcp_batteries.server.declaration.decorators import OtherName, tool
from mcp_batteries.server.declaration.trusted import FreeText, default, trusted
from mcp_github.call_context import current_call
from mcp_github.client.api import Api
from mcp_github.listing.columns import BRANCH, COMMIT, DATED_BRANCH, REPOSITORY, TAG, TREE
from mcp_github.listing.graphql_pages import GraphqlQuery, fetch_graphql_page
from mcp_github.listing.pages import ListQuery, PageOptions, fetch_page, join_notes
from mcp_github.listing.projections import Projection, clip, pick
from mcp_github.models import Done, Listing, Record, Text
from mcp_github.number_forms import NumberOrDefault, OptionalNumber
from mcp_github.policy import Change, DeleteRepo, FileChange, FilePath, Policy, Ref, Repo, WriteRepo
from mcp_github.requests.batches import MAX_BATCH_SECONDS, NOT_TRIED, apply_to_each, tabulate_remarkable
from mcp_github.requests.branches import (
    find_head,
    find_open_pulls,
    get_default_ref,
    make_branch,
    refuse_workflows,
    resolve_latest_release,
    resolve_sha,
    warn_of_parent,
)
from mcp_github.requests.commit_files import commit_files
from mcp_github.requests.diffs import diff_source, read_differences
from mcp_github.requests.files import BinaryFile, list_folder, read_content, require_path
from mcp_github.requests.graphql_queries import BRANCHES, TAGS
from mcp_github.tools.arguments import (
    BranchName,
    Cursor,
    DeleteRepoName,
    Fields,
    ForceRepoName,
    Limit,
    OptionalBranchName,
    OptionalDryRun,
    OptionalPath,
    OptionalRefName,
    PathName,
    RefName,
    RepoName,
    Since,
    Until,
    WriteRepoName,
    check_message,
    choosing,
    drop_unset,
    refuse_beside,
)

__all__ = [
    "copy_repository", "create_branch", "create_repository", "delete_branch", "delete_repository", "get_commit",
    "get_repository", "list_commits", "list_files", "list_refs", "move_branch", "read_diff", "read_file", "write_files",
]  # fmt: skip

RefKind = Literal["branches", "tags"]

# Commits of a pull request that GitHub lists.
_COLUMNS_OF_PERIOD = ("sha", "message", "author", "name", "committed_at")
_MAX_PULL_COMMITS = 250
_MAX_MESSAGE_CHARACTERS = 4000
_MAX_FILES = 60
_MAX_BRANCHES = 50
_DELETED = "deleted"
_MAX_NAMED_PULLS = 10
_SHORT_SHA = 7
# A fork that is older was there before the call. Clocks differ by less.
_NEW_FORK_SECONDS = 300
_GRAPHQL_REFS = {"branches": (BRANCHES, DATED_BRANCH), "tags": (TAGS, TAG)}
_Branches = Annotated[
    list[Ref] | None,
    trusted(Policy.refs),
    Field(max_length=_MAX_BRANCHES, description="Several. Only shown unless dry_run=false"),
]


def _check_count(files: list[Change]) -> list[Change]:
    if not 1 <= len(files) <= 100:
        raise ValueError("must be an array of 1 to 100 files")
    return files


def _check_limit(limit: int) -> int:
    if not 1 <= limit <= 1000:
        raise ValueError("must be an integer from 1 to 1000")
    return limit


@tool("Get a repository", toolset="repos", open_world=True)
async def get_repository(api: Api, *, repo: RepoName, fields: Fields = None) -> Record:
    """Get a repository: description, default_branch, visibility, your permissions.

    A private one may read as not found. To find one: `search_github`.
    """
    hint = "`search_github` with kind=repositories finds it by a word of its name."
    response = await api.get(repo.path, f"repository `{repo.full_name}`", repo=repo, hint=hint)
    api.taint.record_visibility(repo.key, public=not response.data.get("private", False))
    columns = fields or [name for name in REPOSITORY.getters if name != "size_kb"]
    data = REPOSITORY.to_record(response.data, columns)
    return Record(uri=repo.uri, removed=response.removed or None, data=data)


@tool("List files", toolset="repos", open_world=True)
async def list_files(
    api: Api,
    *,
    repo: RepoName,
    path: PathName = default(""),
    ref: OptionalRefName = None,
    recursive: bool = False,
    pattern: Annotated[FreeText | None, Field(description="As *.py")] = None,
    fields: Annotated[Fields, choosing(TREE)] = None,
    limit: Annotated[int, AfterValidator(_check_limit)] = 200,
    cursor: Cursor = None,
) -> Listing:
    """List a folder of a repository with sizes, or with `recursive` all below it.

    Without `ref` on the default branch. To read one: `read_file`, to find code: `search_github`.
    """
    options = PageOptions(fields, limit, cursor)
    return await list_folder(api, repo, path, ref, recursive=recursive, pattern=pattern, options=options)


@tool("Read a file", toolset="repos", open_world=True, also=("get_file_contents",))
async def read_file(
    api: Api,
    *,
    repo: RepoName,
    path: PathName,
    ref: OptionalRefName = None,
    start_line: NumberOrDefault = 1,
    lines: OptionalNumber = None,
) -> Text | EmbeddedResource | ImageContent:
    """Read a file, at `ref` or on the default branch; long text in pages, an image as a picture.

    The first line has its `sha` and how to go on. To find files: `list_files`.
    """
    content = await read_content(api, repo, path, ref, start_line=start_line, max_lines=lines)
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
    api: Api,
    *,
    repo: RepoName,
    number: OptionalNumber = None,
    ref: OptionalRefName = None,
    base: Annotated[Ref | None, trusted(Policy.ref), Field(description="Compare `ref` with this")] = None,
    path: OptionalPath = None,
    summary: bool = False,
    cursor: Cursor = None,
) -> Text:
    """Read the changes of a pull request (`number`), of a commit (`ref`), or of `ref` since it left `base`.

    `summary` lists files only. About a commit: `get_commit`.
    """
    if number is not None:
        refuse_beside("`number`", ref=ref, base=base)
    source = diff_source(repo, number=number, ref=ref, base=base)
    return await read_differences(api, repo, source, path=path, summary=summary, cursor=cursor, introduces=True)


@tool("List commits", toolset="repos", open_world=True)
async def list_commits(
    api: Api,
    *,
    repo: RepoName,
    ref: OptionalRefName = None,
    path: Annotated[FilePath | None, trusted(Policy.file), Field(description="In `repo`")] = None,
    number: OptionalNumber = None,
    base: Annotated[
        Ref | None, trusted(Policy.ref), Field(description="What `ref` has beyond it, or releases/latest")
    ] = None,
    author: Annotated[FreeText | None, Field(description="Login or email")] = None,
    since: Since = None,
    until: Until = None,
    fields: Annotated[Fields, choosing(COMMIT)] = None,
    limit: Limit = 30,
    cursor: Cursor = None,
) -> Listing:
    """List commits of a branch or path, newest first, or of a pull request (`number`) or beyond `base`, oldest first.

    Long messages are cut, whole in `get_commit`. Changes: `read_diff`.
    """
    if number is not None:
        refuse_beside("`number`", ref=ref, path=path, base=base, author=author, since=since, until=until)
        query = await _query_commits_of_pull(api, repo, number)
        return await fetch_page(api, query, PageOptions(fields, limit, cursor))
    if base is not None:
        refuse_beside("`base`", path=path, author=author, since=since, until=until)
        return await _list_commits_beyond(api, repo, base, ref, PageOptions(fields, limit, cursor))
    params: dict[str, Any] = {"sha": None if ref is None else ref.name, "since": since, "until": until}
    if author:
        params["author"] = await api.resolve_login(author)
    query = _query_commits(repo, ref, params)
    if path is None:
        return await fetch_page(api, query, PageOptions(fields, limit, cursor))
    return await _list_commits_of_path(api, repo, path, ref, query, PageOptions(fields, limit, cursor))


@tool("Get a commit", toolset="repos", open_world=True)
async def get_commit(api: Api, *, repo: RepoName, ref: RefName) -> Record:
    """Get a commit: message, author and files (60 at most, as `a.py modified +2 -1`). Changes: `read_diff`."""
    response = await api.get(
        f"{repo.path}/commits/{ref.path}",
        f"commit {quote(ref.name)} of `{repo.full_name}`",
        repo=repo,
        hint="`list_refs` shows branches and tags, `list_commits` commits.",
    )
    data = COMMIT.to_record(response.data, ("sha", "author", "name", "date", "verified", "parents", "url"))
    data["message"] = pick(response.data, clip("commit.message", _MAX_MESSAGE_CHARACTERS))
    data["stats"] = response.data.get("stats")
    files = cast("list[dict[str, Any]]", response.data.get("files") or [])
    data["files"] = [_describe_change(file) for file in files[:_MAX_FILES]]
    note = None
    more = len(files) - _MAX_FILES
    if more > 0:
        note = f"{more} more files: use read_diff."
        if response.next_page:
            note = f"At least {note}"
    return Record(note=note, removed=response.removed or None, data=data)


@tool(
    "List branches or tags", toolset="repos", open_world=True,
    also=(OtherName("list_branches", {"kind": "branches"}), OtherName("list_tags", {"kind": "tags"})),
)  # fmt: skip
async def list_refs(
    api: Api,
    *,
    repo: RepoName,
    kind: RefKind = "branches",
    fields: Annotated[Fields, choosing(BRANCH)] = None,
    limit: Limit = 30,
    cursor: Cursor = None,
) -> Listing:
    """List a repository's branches or tags, with the commit each points to.

    With fields=name,date also when that was committed. Releases: `list_releases`.
    """
    options = PageOptions(fields, limit, cursor)
    description = f"the {kind} of `{repo.full_name}`"
    # REST lists branches without dates, and tags without messages.
    document, projection = _GRAPHQL_REFS[kind]
    columns: set[str] = set()
    if fields:
        columns.update(projection.choose_columns(fields))
    if columns - BRANCH.getters.keys():
        if "protected" in columns:
            projection = await _tell_protected(api, repo, projection)
        query = GraphqlQuery(
            document, {"owner": repo.owner, "name": repo.name}, description, projection,
            find_connection=lambda data: data["repository"]["refs"], repo=repo,
        )  # fmt: skip
        return await fetch_graphql_page(api, query, options)
    page = await fetch_page(api, ListQuery(f"{repo.path}/{kind}", description, BRANCH, repo=repo), options)
    if kind == "branches" and not page.rows and cursor is None:
        return page.model_copy(update={"note": "The repository has no commit yet: `write_files` makes the first one."})
    if kind == "tags" and len(page.rows) > 1:
        order_note = "By name: with fields=name,tagged_at the newest come first."
        return page.model_copy(update={"note": join_notes(order_note, page.note)})
    return page


@tool("Commit files", toolset="repos", effect="destroy", open_world=True)
async def write_files(
    api: Api,
    *,
    repo: WriteRepoName,
    branch: BranchName,
    message: Annotated[FreeText, AfterValidator(check_message)],
    files: Annotated[list[FileChange], trusted(Policy.file_changes), AfterValidator(_check_count)],
    ref: Annotated[Ref | None, trusted(Policy.ref), Field(description="Makes `branch` here")] = None,
) -> Done:
    """Commit files, all or none; to replace one, pass `read_file`'s `sha`. Only a branch: `create_branch`."""
    return await commit_files(api, repo, branch, message, files, ref)


@tool("Create a branch", toolset="repos", effect="write", open_world=True)
async def create_branch(api: Api, *, repo: WriteRepoName, branch: BranchName, ref: OptionalRefName = None) -> Done:
    """Create a branch at `ref`, else at the default branch.

    Commit with `write_files`.
    """
    sha = await make_branch(api, repo, branch, ref)
    return Done(done=f"Created branch {branch.name}.", data={"branch": branch.name, "sha": sha})


@tool("Create a repository", toolset="repos", effect="write", open_world=True)
async def create_repository(
    api: Api,
    *,
    repo: WriteRepoName,
    description: Annotated[FreeText | None, Field(description="One line")] = None,
    private: bool = True,
    readme: bool = True,
) -> Done:
    """Create a repository, private and with a README unless told otherwise.

    A fork: `copy_repository`.
    """
    body = drop_unset(name=repo.name, private=private, auto_init=readme, description=description)
    path = f"/orgs/{repo.account}/repos"
    if await _is_own(api, repo):
        path = "/user/repos"
    response = await api.write("POST", path, f"repository `{repo.full_name}`", body)
    return Done(done=f"Created {repo.full_name}.", uri=repo.uri, url=response.data.get("html_url"))


@tool("Fork a repository", toolset="repos", effect="write", open_world=True)
async def copy_repository(
    api: Api,
    *,
    repo: RepoName,
    target: Annotated[WriteRepo, trusted(Policy.write_repo), Field(description="owner/name")],
) -> Done:
    """Fork a repository as `target`, in your account or an organisation.

    An empty one: `create_repository`.
    """
    body: dict[str, Any] = {"name": target.name}
    if not await _is_own(api, target):
        body["organization"] = target.owner
    response = await api.write("POST", f"{repo.path}/forks", f"a fork of `{repo.full_name}`", body)
    full_name = str(response.data["full_name"])
    done = f"GitHub is making {full_name}; it takes a moment."
    if _is_older(response.data, _NEW_FORK_SECONDS):
        # An account has one fork of a repository, which GitHub answers with whatever name was asked for.
        done = f"No new fork was made: {full_name} is there already."
    elif full_name.lower() != target.key:
        done = f"GitHub is making {full_name}, because {target.full_name} is taken; it takes a moment."
    return Done(done=done, uri=f"github://{full_name}", url=response.data.get("html_url"))


@tool(
    "Delete a branch", toolset="repos", gate="delete", effect="destroy", open_world=True, seconds=MAX_BATCH_SECONDS
)  # fmt: skip
async def delete_branch(
    api: Api,
    *,
    repo: DeleteRepoName,
    branch: OptionalBranchName = None,
    branches: _Branches = None,
    dry_run: OptionalDryRun = None,
) -> Done:
    """Delete branches, not the default or one of open pull requests. Commits stay only where others reach them."""
    named: list[Ref] = [*(branches or [])]
    if branch is not None:
        named.insert(0, branch)
    if not named:
        raise Invalid("No branch is named.", "Give `branch`, or several as `branches`.")
    refs = list(dict.fromkeys(named))
    repository = await api.get(repo.path, f"repository `{repo.full_name}`", internal=True)
    for ref in refs:
        api.policy.require_deletable(ref, str(repository.data["default_branch"]), repo)
    warn_of_parent(repository.data)
    commits: dict[Ref, str] = {}
    open_pulls: dict[Ref, list[int]] = {}
    for ref in refs:
        report_progress(len(commits), len(refs), ref.name)
        # Each has the time of a call.
        current_call().github_seconds = 0.0
        commits[ref] = await find_head(api, repo, ref)
        open_pulls[ref] = await find_open_pulls(api, repo, ref)
    if dry_run:
        rows = [[ref.name, sha, open_pulls[ref]] for ref, sha in commits.items()]
        data = {"columns": ["branch", "sha", "open_pulls"], "rows": rows}
        return Done(done="Nothing was changed: this is what would be. Call again with dry_run=false.", data=data)
    if not branches:
        (ref,) = refs
        _require_no_pulls(ref, repo, open_pulls[ref])
        await api.write("DELETE", _branch_path(ref, repo), _describe(ref, repo))
        return Done(done=f"Deleted branch {ref.name}; it was at {commits[ref]}.", data={"sha": commits[ref]})
    return await _delete_branches(api, repo, commits, open_pulls)


async def _delete_branches(
    api: Api, repo: DeleteRepo, commits: Mapping[Ref, str], open_pulls: Mapping[Ref, Sequence[int]]
) -> Done:
    """Delete several branches, given with their commits, each as far as GitHub does."""

    async def delete(ref: Ref) -> str:
        _require_no_pulls(ref, repo, open_pulls[ref])
        await api.write("DELETE", _branch_path(ref, repo), _describe(ref, repo))
        return _DELETED

    results = await apply_to_each(api, list(commits), delete, lambda ref: quote(ref.name))
    deleted_count = sum(result.startswith(_DELETED) for result in results.values())
    # One whose deletion failed may be gone all the same, where GitHub's answer was lost.
    was_at = {ref.name: commits[ref] for ref, result in results.items() if not result.startswith(NOT_TRIED)}
    results_by_name = {ref.name: result for ref, result in results.items()}
    data = {"was_at": was_at, **tabulate_remarkable("branch", results_by_name, _DELETED)}
    return Done(done=f"Deleted {deleted_count} of {len(commits)} branches.", data=data)


@tool("Delete a repository", toolset="repos", gate="delete", effect="destroy", open_world=True)
async def delete_repository(api: Api, *, repo: DeleteRepoName) -> Done:
    """Delete a repository with everything in it, for good. A branch: `delete_branch`."""
    await api.write("DELETE", repo.path, f"repository `{repo.full_name}`")
    return Done(done=f"Deleted {repo.full_name}.")


@tool("Move a branch", toolset="repos", gate="force", effect="destroy", open_world=True)
async def move_branch(api: Api, *, repo: ForceRepoName, branch: BranchName, ref: RefName, force: bool = False) -> Done:
    """Point a branch at `ref`; only `force` loses commits. For a new one use `create_branch`."""
    sha = await resolve_sha(api, repo, ref)
    await refuse_workflows(api, repo, sha)
    # Nobody else can say by which name the commits are found that the branch loses.
    old_sha = await find_head(api, repo, branch)
    await api.write("PATCH", _branch_path(branch, repo), _describe(branch, repo), {"sha": sha, "force": force})
    return Done(
        done=f"Branch {branch.name} is at {sha} now; it was at {old_sha}.",
        data={"branch": branch.name, "sha": sha, "old_sha": old_sha},
    )


def _to_resource(file: BinaryFile) -> EmbeddedResource:
    """Return a file that is neither text nor a picture as content of the answer."""
    data = base64.b64encode(file.data).decode()
    blob = BlobResourceContents(uri=file.uri, blob=data, mime_type="application/octet-stream")
    return EmbeddedResource(type="resource", resource=blob)


async def _tell_protected(api: Api, repo: Repo, projection: Projection) -> Projection:
    """Return the projection of branches with what REST alone tells everybody: whether a branch is protected."""
    description = f"the protected branches of `{repo.full_name}`"
    params: dict[str, Any] = {"protected": True, "per_page": 100}
    names: set[str] = set()
    while True:
        response = await api.get(f"{repo.path}/branches", description, params, repo=repo)
        names.update(branch["name"] for branch in response.data)
        if not response.next_page:
            break
        params |= response.next_page
    return Projection({**projection.getters, "protected": lambda item: item["name"] in names}, projection.default)


def _query_commits(repo: Repo, ref: Ref | None, params: dict[str, Any]) -> ListQuery:
    """Return the list of the commits of a branch, or of the default branch."""
    description = f"the commits of `{repo.full_name}`"
    if ref is not None:
        description = f"the commits of {quote(ref.name)} in `{repo.full_name}`"
    projection = COMMIT
    if params["since"] or params["until"]:
        # GitHub compares these with when a commit was made, which a rebase changes, and not with when it was written.
        projection = Projection(COMMIT.getters, _COLUMNS_OF_PERIOD)
    hint = "`list_refs` shows branches and tags; without `ref` it is the default branch."
    return ListQuery(f"{repo.path}/commits", description, projection, params=params, repo=repo, hint=hint)


async def _list_commits_of_path(
    api: Api, repo: Repo, path: FilePath, ref: Ref | None, query: ListQuery, options: PageOptions
) -> Listing:
    """List the commits of a path; with them, what name it had before, or that there is nothing at it."""
    params = {**query.params, "path": path.name}
    oldest: dict[str, Any] = {}

    def remember_oldest(commits: Any) -> Any:
        if commits:
            oldest.update(commits[-1])
        return commits

    page = await fetch_page(api, replace(query, params=params, find_list=remember_oldest), options)
    if not page.rows and options.cursor is None:
        return await _explain_no_commits(api, page, repo, path, ref)
    is_whole_history = page.cursor is None and not (params.get("author") or params["since"])
    if is_whole_history and oldest:
        note = await _note_old_name(api, repo, path, str(oldest["sha"]))
        return page.model_copy(update={"note": join_notes(page.note, note)})
    return page


async def _explain_no_commits(api: Api, page: Listing, repo: Repo, path: FilePath, ref: Ref | None) -> Listing:
    """Return an empty page with the nearest paths if there is nothing at `path`: GitHub does not say so."""
    try:
        await require_path(api, repo, path, ref)
    except NotFound as problem:
        return page.model_copy(update={"note": str(problem)})
    return page


def _is_older(repository: Mapping[str, Any], seconds: float) -> bool:
    """Return whether a repository was made that long ago."""
    created_at = datetime.fromisoformat(str(repository["created_at"]))
    return (datetime.now(UTC) - created_at).total_seconds() > seconds


async def _note_old_name(api: Api, repo: Repo, path: FilePath, oldest_sha: str) -> str | None:
    """Return a note on the name that a file had before, as GitHub follows no rename; None if none is known.

    Args:
        oldest_sha: the first commit with the file's name.
    """
    try:
        response = await api.get(f"{repo.path}/commits/{oldest_sha}", f"commit `{oldest_sha}`", internal=True)
    except Problem:
        return None
    for file in cast("list[dict[str, Any]]", response.data.get("files") or []):
        if file["filename"] == path.name and file.get("previous_filename"):
            old_name = quote(str(file["previous_filename"]))
            return f"Before `{oldest_sha[:_SHORT_SHA]}` it was {old_name}: that `path` has what came earlier."
    return None


async def _query_commits_of_pull(api: Api, repo: Repo, number: int) -> ListQuery:
    """Return the list of the commits of a pull request."""
    pull_path = f"{repo.path}/pulls/{number}"
    description = f"pull request #{number} of `{repo.full_name}`"
    await api.require_insiders(pull_path, description)
    return ListQuery(f"{pull_path}/commits", description, COMMIT, repo=repo, max_items=_MAX_PULL_COMMITS)


async def _list_commits_beyond(api: Api, repo: Repo, base: Ref, ref: Ref | None, options: PageOptions) -> Listing:
    """Return the commits that `ref` has and `base` has not, and how many each has of its own."""
    if ref is None:
        ref = await get_default_ref(api, repo)
    base = await resolve_latest_release(api, repo, base)
    counts: dict[str, Any] = {}

    def find_commits(comparison: Any) -> Any:
        counts.update(comparison)
        return comparison["commits"]

    description = f"the commits from {quote(base.name)} to {quote(ref.name)} in `{repo.full_name}`"
    path = f"{repo.path}/compare/{base.path}...{ref.path}"
    page = await fetch_page(api, ListQuery(path, description, COMMIT, repo=repo, find_list=find_commits), options)
    distance = (
        f"{quote(ref.name)} is {counts.get('ahead_by')} ahead of {quote(base.name)} and "
        f"{counts.get('behind_by')} behind."
    )
    note = join_notes(distance, page.note)
    return page.model_copy(update={"note": note, "total": counts.get("total_commits")})


def _describe_change(file: Mapping[str, Any]) -> str:
    return f"{file['filename']} {file['status']} +{file['additions']} -{file['deletions']}"


async def _is_own(api: Api, repo: Repo) -> bool:
    """Return whether the owner of `repo` is the token's user."""
    user = await api.get("/user", "the user of this token", internal=True)
    return str(user.data.get("login", "")).lower() == repo.owner.lower()


def _require_no_pulls(branch: Ref, repo: Repo, numbers: Sequence[int]) -> None:
    """Raise `Conflict` for a branch of open pull requests.

    Of those into it, GitHub takes no other base once they are closed, and may not open them again.
    """
    if not numbers:
        return
    names = ", ".join(f"#{number}" for number in numbers[:_MAX_NAMED_PULLS])
    if len(numbers) > _MAX_NAMED_PULLS:
        names = f"{names} and {len(numbers) - _MAX_NAMED_PULLS} more"
    raise Conflict(
        f"The {_describe(branch, repo)} was not deleted: GitHub would close open pull requests from it or into it, "
        f"{names}.",
        "Merge or close them first, or give those into it another `base` with `edit_pull_request`.",
    )


def _branch_path(branch: Ref, repo: Repo) -> str:
    return f"{repo.path}/git/refs/heads/{branch.path}"


def _describe(branch: Ref, repo: Repo) -> str:
    return f"branch {quote(branch.name)} of `{repo.full_name}`"
