"""Tools that talk to remotes; offered with `--fetch` and `--push`. Before a push the user is asked."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.server.declaration.decorators import rename_arguments, tool
from mcp_batteries.server.declaration.trusted import consented, default, trusted
from mcp_git.engine.operation.operation import Operation
from mcp_git.engine.operation.planning.picks import PickPlanner
from mcp_git.engine.operation.planning.refs import RefPlanner
from mcp_git.engine.operation.run import OperationRunner
from mcp_git.engine.program.git import Git
from mcp_git.engine.remote.exchange import resolve_remote
from mcp_git.engine.remote.fetch import FetchRequest, fetch
from mcp_git.engine.remote.plan_push import PushPlanner
from mcp_git.engine.remote.planned_push import PlannedPush
from mcp_git.engine.remote.push import push
from mcp_git.models import Answer
from mcp_git.policy import Policy, Range, RemoteName, Revision, parse_range, parse_remote_name
from mcp_git.tools.arguments import FetchableRepo, FilePath, OptionalName, OptionalRevision, PullableRepo, PushableRepo

__all__ = ["plan_push", "run_fetch", "run_pull", "run_push"]

SomeRemote = Annotated[
    RemoteName | None,
    trusted(parse_remote_name),
    Field(description="By default the branch's. `list_refs` of `remotes` has them."),
]
_adapt = rename_arguments(repo_path="repo", repository="repo", revision="rev")


@tool("Fetch", effect="destroy", gate="fetch", open_world=True, adapt=_adapt, work="The fetch", also=("git_fetch",))
def run_fetch(
    git: Git,
    policy: Policy,
    cancel: CancelToken,
    *,
    remote: SomeRemote = None,
    branch: Annotated[OptionalName, Field(description="Only this one.")] = None,
    tags: Annotated[bool, Field(description="All tags, not only those of what comes.")] = False,
    prune: Annotated[bool, Field(description="Forget branches that the remote no longer has.")] = False,
    deepen: Annotated[int | None, Field(ge=1, description="In a shallow clone: how many commits more.")] = None,
    contents: Annotated[
        Revision | Range | None,
        trusted(parse_range),
        Field(description="In a partial clone: the files of this commit or range too."),
    ] = None,
    path: Annotated[FilePath, Field(description="Of these only this one, in all commits up to there.")] = default(""),
    repo: FetchableRepo = default(""),
) -> Answer:
    """Fetch what a remote has; its branches are then `remote/branch`. Your branches and files stay.

    To see what came use `list_commits` with `main..origin/main`.
    """
    request = FetchRequest(branch, tags, prune, deepen, contents, path)
    return fetch(git, policy, repo, remote, request, cancel)


@tool(
    "Pull",
    effect="destroy",
    gate=("fetch", "write"),
    open_world=True,
    adapt=_adapt,
    work="The pull",
    also=("git_pull",),
)
def run_pull(
    git: Git,
    policy: Policy,
    operations: OperationRunner,
    cancel: CancelToken,
    *,
    rebase: Annotated[bool, Field(description="Rebase instead of a merge.")] = False,
    repo: PullableRepo = default(""),
) -> Answer:
    """Fetch what the current branch follows, and merge it; stops at conflicts, then `continue_operation`."""
    upstream = RefPlanner(git, repo.writable.repository, cancel).find_upstream()
    fetched = Answer([])
    if upstream.remote is not None:
        # What comes is written, so a partial clone needs the contents too.
        contents = upstream.name if git.is_partial(repo.fetchable.repository) else None
        fetched = fetch(git, policy, repo.fetchable, upstream.remote, FetchRequest(contents=contents), cancel)

    def plan(planner: PickPlanner) -> Operation:
        return planner.rebase(upstream.name) if rebase else planner.pull(upstream.name)

    answer = operations.plan_and_run(repo.writable, PickPlanner, plan, cancel)
    return Answer([*answer.facts, *fetched.facts], [*answer.lines, *fetched.lines])


def plan_push(
    git: Git,
    policy: Policy,
    cancel: CancelToken,
    *,
    remote: SomeRemote = None,
    rev: Annotated[OptionalRevision, Field(description="Branch, commit or tag; empty for the current branch.")] = None,
    to: Annotated[OptionalName, Field(description="Its name there; empty for its own.")] = None,
    tag: Annotated[bool, Field(description="Push `rev` as the tag it is.")] = False,
    force: Annotated[bool, Field(description="Replace what is there, if it is what was fetched last.")] = False,
    upstream: Annotated[bool, Field(description="Let the branch follow it.")] = False,
    delete: Annotated[bool, Field(description="Delete the branch or tag `to` there, if it is as fetched.")] = False,
    repo: PushableRepo = default(""),
) -> PlannedPush:
    """Return what a push would be: the user is asked about it, and then it is what `run_push` gets."""
    planner = PushPlanner(
        git=git,
        pushable=repo,
        remote=resolve_remote(git, policy, repo.repository, remote, cancel, for_push=True, pushed=rev),
        revision=rev,
        target=to,
        is_tag=tag,
        force=force,
        sets_upstream=upstream,
        delete=delete,
        cancel=cancel,
    )
    return planner.plan()


@tool("Push", effect="destroy", gate="push", open_world=True, adapt=_adapt, work="The push", also=("git_push",))
def run_push(
    git: Git,
    cancel: CancelToken,
    plan: Annotated[
        PlannedPush,
        consented(
            plan_push,
            fix="The user can push in a terminal: `git push`.",
            work="The look at what is pushed",
        ),
    ],
) -> Answer:
    """Push a branch or tag to a remote, or delete one there; the user is asked first. Hooks are not run.

    To see what would go use `list_commits` with `origin/main..main`.
    """
    return push(git, plan, cancel)
