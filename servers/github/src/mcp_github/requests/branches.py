"""Branches, the commits that they and other names stand for, and which of these may not become a branch or tag."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from mcp_batteries.errors import Conflict, Invalid, NotFound, Refused, quote
from mcp_github.call_context import current_call
from mcp_github.client.api import Api
from mcp_github.listing.projections import pick
from mcp_github.policy import Ref, Repo, WriteRepo
from mcp_github.requests.diffs import MAX_COMPARED_FILES

__all__ = [
    "EMPTY_REPOSITORY_STATUS",
    "changed_names",
    "find_head",
    "find_open_pulls",
    "get_default_branch",
    "get_default_ref",
    "make_branch",
    "refuse_workflows",
    "resolve_latest_release",
    "resolve_sha",
    "warn_of_parent",
]


# What GitHub answers about refs of a repository without commits.
EMPTY_REPOSITORY_STATUS = 409
# Stands for the tag of that release.
_LATEST_RELEASE = "releases/latest"


async def get_default_branch(api: Api, repo: Repo) -> str:
    """Return the name of the default branch."""
    response = await api.get(repo.path, f"repository `{repo.full_name}`", internal=True)
    return str(response.data["default_branch"])


async def get_default_ref(api: Api, repo: Repo) -> Ref:
    """Return the default branch."""
    return api.policy.ref(await get_default_branch(api, repo))


async def resolve_sha(api: Api, repo: Repo, ref: Ref | None) -> str:
    """Return the commit that a branch, tag or commit names; by default that of the default branch."""
    if ref is None:
        ref = await get_default_ref(api, repo)
    try:
        branch = await api.get(f"{repo.path}/git/ref/heads/{ref.path}", _describe(ref, repo), internal=True)
        return str(branch.data["object"]["sha"])
    except NotFound:
        description = f"branch, tag or commit {quote(ref.name)} in `{repo.full_name}`"
        hint = "`list_refs` shows branches and tags; without `ref` it is the default branch."
        commit = await api.get(f"{repo.path}/commits/{ref.path}", description, internal=True, hint=hint)
        return str(commit.data["sha"])


async def find_open_pulls(api: Api, repo: Repo, branch: Ref) -> list[int]:
    """Return the numbers of the open pull requests from a branch or into it: GitHub closes them when it is deleted."""
    numbers: set[int] = set()
    for filters in ({"base": branch.name}, {"head": f"{repo.owner}:{branch.name}"}):
        params: dict[str, Any] = {"state": "open", "per_page": 100, **filters}
        try:
            async for number in _find_pulls(api, repo, branch, params):
                numbers.add(number)
        except (NotFound, Refused):
            current_call().add_note("Which open pull requests that closes is not known: the token may not read them.")
            break
    return sorted(numbers)


async def _find_pulls(api: Api, repo: Repo, branch: Ref, params: Mapping[str, Any]) -> AsyncGenerator[int]:
    """Yield the numbers of the pull requests of a branch on all pages of a list.

    GitHub lists those of every branch if it cannot use a filter, which are too many to keep.
    """
    description = f"the open pull requests of {_describe(branch, repo)}"
    next_page: Mapping[str, str] | None = {}
    while next_page is not None:
        response = await api.get(f"{repo.path}/pulls", description, {**params, **next_page}, internal=True)
        for pull in response.data:
            if _is_of_branch(pull, branch):
                yield int(pull["number"])
        next_page = response.next_page or None


def _is_of_branch(pull: Mapping[str, Any], branch: Ref) -> bool:
    """Return whether a pull request is from a branch or into it; GitHub lists all if it cannot use a filter."""
    if pick(pull, "base.ref") == branch.name:
        return True
    # The repository of a fork is null once it is deleted; that of the base has another name than asked for once it is
    # renamed.
    is_of_fork = pick(pull, "head.repo.full_name") != pick(pull, "base.repo.full_name")
    return pick(pull, "head.ref") == branch.name and not is_of_fork


def warn_of_parent(repository: Mapping[str, Any]) -> None:
    """Have the client told that pull requests of another repository may be from branches of this one, a fork."""
    parent = pick(repository, "parent.full_name")
    if parent:
        current_call().add_note(
            f"Open pull requests into `{parent}` were not looked for: GitHub closes those from a deleted branch."
        )


async def find_head(api: Api, repo: Repo, branch: Ref, fix: str = "`list_refs` shows branches.") -> str:
    """Return the commit of a branch; a tag or a commit of that name is none.

    Args:
        fix: what to do where there is no such branch.
    """
    description = _describe(branch, repo)
    try:
        response = await api.get(f"{repo.path}/git/ref/heads/{branch.path}", description, internal=True)
    except NotFound as problem:
        if problem.status == EMPTY_REPOSITORY_STATUS:
            raise
        raise NotFound(f"There is no {description}.", fix) from None
    return str(response.data["object"]["sha"])


async def resolve_latest_release(api: Api, repo: Repo, ref: Ref) -> Ref:
    """Return the tag of the latest release for the name that stands for it, any other `ref` as it is."""
    if ref.name != _LATEST_RELEASE:
        return ref
    path = f"{repo.path}/{_LATEST_RELEASE}"
    release = await api.get(path, f"latest release of `{repo.full_name}`", repo=repo)
    return api.policy.ref(str(release.data["tag_name"]))


async def refuse_workflows(api: Api, repo: WriteRepo, sha: str) -> None:
    """Raise `Refused` if what `sha` holds beyond the default branch changes files Actions runs and that gate is closed.

    A branch or a tag is enough to have them run: `on: push` asks for no review. A commit of any fork has a `sha` here.
    """
    if not api.policy.guards_workflows:
        return
    base = api.policy.ref(await get_default_branch(api, repo))
    description = f"commit `{sha}` of `{repo.full_name}`"
    files: Sequence[Mapping[str, Any]] = []
    is_complete = False
    try:
        path = f"{repo.path}/compare/{base.path}...{sha}"
        comparison = await api.get(path, description, {"per_page": 1}, internal=True)
    except NotFound:
        pass
    else:
        files = comparison.data.get("files") or []
        is_complete = len(files) < MAX_COMPARED_FILES
    api.policy.require_no_workflows(changed_names(files), description, complete=is_complete)


async def make_branch(api: Api, repo: WriteRepo, branch: Ref, start: Ref | None) -> str:
    """Make a branch at `start`, by default at the default branch; return its commit.

    Raises:
        Conflict: there is such a branch.
    """
    sha = await resolve_sha(api, repo, start)
    if start is not None:
        await refuse_workflows(api, repo, sha)
    body = {"ref": f"refs/heads/{branch.name}", "sha": sha}
    try:
        await api.write("POST", f"{repo.path}/git/refs", _describe(branch, repo), body)
    except Invalid as problem:
        if "exists" in str(problem).lower():
            raise Conflict(f"The branch {quote(branch.name)} exists already.", "Choose another name.") from None
        raise
    return sha


def changed_names(files: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of changed files, those from before a move included."""
    names: list[str] = []
    for file in files:
        if "filename" in file:
            names.append(str(file["filename"]))
        if "previous_filename" in file:
            names.append(str(file["previous_filename"]))
    return names


def _describe(branch: Ref, repo: Repo) -> str:
    return f"branch {quote(branch.name)} of `{repo.full_name}`"
