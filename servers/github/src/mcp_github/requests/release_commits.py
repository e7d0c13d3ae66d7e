"""Which tag and commit a release is of, which one may not be published, and which is of a later version."""

from __future__ import annotations

import re

from mcp_batteries.errors import NotFound, Problem, quote
from mcp_github.client.api import Api
from mcp_github.policy import Ref, Repo, WriteRepo
from mcp_github.requests.branches import get_default_branch, refuse_workflows, resolve_sha

__all__ = ["find_later_release", "find_tag", "refuse_unseen_commit"]

# A tag such as `v1.2.3` or `cli-2.0`: which of a repository's programs it is of, and the numbers of its version.
_VERSION = re.compile(r"(?P<program>\D*)(?P<numbers>\d+(?:\.\d+)*)")


async def find_tag(api: Api, full_name: str, release: int) -> str | None:
    """Return the tag of a release by its id; None if it is not shown."""
    repo = api.policy.repo(full_name)
    try:
        response = await api.get(f"{repo.path}/releases/{release}", f"a release of `{repo.full_name}`", internal=True)
    except Problem:
        # Whoever asks has the title of the release all the same.
        return None
    return response.data.get("tag_name")


async def find_later_release(api: Api, repo: Repo, tag: Ref) -> str | None:
    """Return the tag of the latest release if its version is later than that of `tag`; None if that is not known."""
    try:
        path = f"{repo.path}/releases/latest"
        latest = await api.get(path, f"latest release of `{repo.full_name}`", internal=True)
    except NotFound:
        return None
    latest_tag = str(latest.data["tag_name"])
    if _is_later(latest_tag, tag.name):
        return latest_tag
    return None


def _is_later(tag: str, other: str) -> bool:
    """Return whether the version that a tag names is later than the other's, of the same program."""
    version = _VERSION.match(tag)
    other_version = _VERSION.match(other)
    if version is None or other_version is None or version["program"] != other_version["program"]:
        return False
    return _numbers_of(version) > _numbers_of(other_version)


def _numbers_of(version: re.Match[str]) -> list[int]:
    return [int(number) for number in version["numbers"].split(".")]


async def refuse_unseen_commit(api: Api, repo: WriteRepo, tag: Ref, target: str | None) -> None:
    """Raise `Refused` for a release of what no branch of the repository has, or whose workflows would run anew.

    A commit of any fork has a sha here too, and workflows run on a tag or a release as they stand at its commit.

    Args:
        tag: of the release, which may not exist yet.
        target: the branch or commit at which it would be made.
    """
    default_branch = await get_default_branch(api, repo)
    sha = await _find_tag_sha(api, repo, tag)
    if sha is None:
        if target is None or target == default_branch:
            return
        sha = await resolve_sha(api, repo, api.policy.ref(target))
        if sha.startswith(target):
            await _refuse_foreign_commit(api, repo, default_branch, sha)
    await refuse_workflows(api, repo, sha)


async def _find_tag_sha(api: Api, repo: Repo, tag: Ref) -> str | None:
    """Return the commit of a tag; None if there is no such tag."""
    description = f"tag {quote(tag.name)} of `{repo.full_name}`"
    try:
        await api.get(f"{repo.path}/git/ref/tags/{tag.path}", description, internal=True)
        commit = await api.get(f"{repo.path}/commits/tags/{tag.path}", description, internal=True)
    except NotFound:
        return None
    return str(commit.data["sha"])


async def _refuse_foreign_commit(api: Api, repo: WriteRepo, default_branch: str, sha: str) -> None:
    """Raise `Refused` unless the commit is on the default branch."""
    description = f"commit `{sha}` of `{repo.full_name}`"
    base = api.policy.ref(default_branch)
    comparison = await api.get(f"{repo.path}/compare/{base.path}...{sha}", description, internal=True)
    api.policy.require_own_commit(comparison.data.get("status"), description)
