"""Tools that change a repository; offered with `--write`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Invalid, quote
from mcp_batteries.server.declaration.decorators import OtherName, rename_arguments, tool
from mcp_batteries.server.declaration.trusted import FreeText, default, trusted
from mcp_git.engine.operation.operation import CommitOperation, FileOperation, GitInput, Operation
from mcp_git.engine.operation.planning.commits import CommitPlanner
from mcp_git.engine.operation.planning.files import FilePlanner
from mcp_git.engine.operation.planning.picks import PickPlanner
from mcp_git.engine.operation.planning.refs import RefPlanner
from mcp_git.engine.operation.planning.stashes import StashPlanner
from mcp_git.engine.operation.run import OperationRunner
from mcp_git.engine.operation.side_choice import SideChoice
from mcp_git.engine.undo.undo_kind import UndoKind
from mcp_git.engine.work_tree.worktrees import Worktrees
from mcp_git.models import Answer
from mcp_git.policy import (
    Author,
    Expectation,
    Message,
    NewName,
    NewWorktree,
    Policy,
    Range,
    RemovableWorktree,
    RepositoryPath,
    Revision,
    RevisionList,
    parse_author,
    parse_commits,
    parse_expectation,
    parse_message,
    parse_new_name,
    parse_paths,
    parse_revision,
)
from mcp_git.tools.arguments import FilePath, OptionalName, OptionalRef, OptionalRevision, WritableRepo

__all__ = [
    "continue_operation",
    "create_branch",
    "create_commit",
    "create_tag",
    "create_worktree",
    "delete_ref",
    "delete_worktree",
    "move_path",
    "revert_commit",
    "run_cherry_pick",
    "run_merge",
    "run_rebase",
    "run_reset",
    "run_restore",
    "run_stash",
    "run_switch",
    "stage_files",
]

PathList = Annotated[list[RepositoryPath], trusted(parse_paths)]
Paths = Annotated[PathList, Field(max_length=1000, description="From the repository's root; `.` is all.")]
MessageText = Annotated[Message, trusted(parse_message)]
NewRef = Annotated[NewName, trusted(parse_new_name), Field(description="Name to give.")]
Target = Annotated[Revision, trusted(parse_revision), Field(description="Commit, branch or tag.")]
OnlyIf = Annotated[
    Expectation | None, trusted(parse_expectation), Field(description="What must still hold; an undo names it.")
]
Into = Annotated[OptionalRef, Field(description="Branch to switch to, with uncommitted changes, and to stay on.")]

PickedRevision = Annotated[
    Revision | Range | RevisionList,
    trusted(parse_commits),
    Field(description="Commits, with spaces between, or a range `a..b`."),
]
Mainline = Annotated[
    int | None, Field(ge=1, le=99, description="The parent, from 1 on, from which a merge commit differs.")
]

_adapt = rename_arguments(
    repo_path="repo", repository="repo", revision="rev", branch_name="name", base_branch="rev", files="paths"
)
_adapt_target = rename_arguments(
    repo_path="repo", repository="repo", revision="rev", branch_name="rev", branch="rev", commit="rev", files="paths"
)


_rename_for_picks = rename_arguments(
    repo_path="repo", repository="repo", revision="rev", revs="rev", branch="rev", commit="rev", commits="rev"
)


def _adapt_picks(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments under our names; commits may come as an array."""
    renamed = dict(_rename_for_picks(arguments))
    match renamed.get("rev"):
        case [*commits] if all(isinstance(commit, str) for commit in commits):
            renamed["rev"] = " ".join(commits)
        case _:
            pass
    return renamed


_adapt_move = rename_arguments(repo_path="repo", repository="repo", source="path", destination="to")


@tool(
    "Stage files",
    effect="destroy",
    gate="write",
    adapt=_adapt,
    work="The change",
    also=("git_add", "git_stage"),
)
def stage_files(
    operations: OperationRunner,
    cancel: CancelToken,
    *,
    paths: Paths = default([]),
    patch: Annotated[FreeText, Field(description="Unified diff of single hunks, in place of `paths`.")] = "",
    unstage: Annotated[bool, Field(description="Take it out of the index again.")] = False,
    rev: Annotated[
        OptionalRevision,
        Field(description="With `unstage`: the index gets `paths` as this commit has them, by default HEAD."),
    ] = None,
    only_if: OnlyIf = None,
    repo: WritableRepo = default(""),
) -> Answer:
    """Stage files or single hunks for the next commit, or unstage them.

    Files on disk stay as they are; one that is staged no longer counts as in conflict. Then `create_commit`; to
    discard changes use `run_restore`.
    """
    if bool(paths) == bool(patch):
        raise Invalid("Either `paths` or a `patch` is needed.", "Give one of them.")
    if rev is not None and (patch or not unstage):
        raise Invalid("`rev` says what unstaged `paths` are then.", "Leave it out, or set `unstage`.")

    def plan(planner: CommitPlanner) -> Operation:
        if not unstage:
            [command] = _stage_commands(planner, paths, patch)
        elif patch:
            command = planner.stage_patch(patch, unstages=True)
        else:
            source = [rev.text] if rev is not None else []
            command = GitInput(["reset", "--quiet", *source, "--", *_pathspecs(paths)])
        return Operation(command.arguments, command.stdin, revision=rev, undo_kind=UndoKind.INDEX)

    return operations.plan_and_run(repo, CommitPlanner, plan, cancel, only_if, _pathspecs(paths))


@tool("Create commit", effect="destroy", gate="write", adapt=_adapt, work="The change", also=("git_commit",))
def create_commit(
    operations: OperationRunner,
    cancel: CancelToken,
    *,
    message: Annotated[
        MessageText, Field(description="Subject, empty line, body; to amend, by default as it is.")
    ] = default(""),
    paths: Annotated[PathList, Field(max_length=1000, description="To commit, new ones too; `.` is all.")] = default(
        []
    ),
    patch: Annotated[FreeText, Field(description="Unified diff of single hunks to stage first.")] = "",
    all_tracked: Annotated[bool, Field(description="Stage what changed in tracked files first.")] = False,
    amend: Annotated[bool, Field(description="Replace the last commit; its author and their date stay.")] = False,
    author: Annotated[
        Author | Revision | None,
        trusted(parse_author),
        Field(description="If not you: `Ada <ada@example.org>`, or a commit: its author and their date."),
    ] = None,
    repo: WritableRepo = default(""),
) -> Answer:
    """Commit what is staged, or with `paths` only these.

    If the commit fails, the index is as it was before. To stage without a commit use `stage_files`.
    """
    if not (message.text or amend):
        raise Invalid("`message` is missing.", "Give one; only an amended commit has one already.")

    def plan(planner: CommitPlanner) -> Operation:
        stage_first = _stage_commands(planner, paths, patch)
        planned = CommitOperation(
            _commit_command(message, all_tracked, amend, author),
            message.text.encode(),
            undo_kind=UndoKind.UNCOMMIT_ALL if stage_first or all_tracked else UndoKind.SOFT,
            stage_first=stage_first,
            resolved_paths=["."] if all_tracked else _pathspecs(paths),
        )
        if isinstance(author, Revision):
            planned = planner.commit_as(planned, author)
        if not paths or all_tracked:
            return planned
        return planner.commit_only(planned, _pathspecs(paths), has_patch=bool(patch))

    return operations.plan_and_run(repo, CommitPlanner, plan, cancel)


@tool("Create branch", effect="write", gate="write", adapt=_adapt, work="The change", also=("git_create_branch",))
def create_branch(
    operations: OperationRunner,
    cancel: CancelToken,
    *,
    name: NewRef,
    rev: Target = default("HEAD"),
    switch: Annotated[bool, Field(description="Switch to it.")] = False,
    upstream: Annotated[OptionalRef, Field(description="Branch to follow, such as `origin/main`.")] = None,
    rename: Annotated[OptionalName, Field(description="Branch that gets this `name`.")] = None,
    repo: WritableRepo = default(""),
) -> Answer:
    """Create a branch at a commit, and switch to it if asked, or `rename` one; a name that exists is refused.

    To go to one that exists use `run_switch`.
    """
    if rename is not None:
        if rename.text == name.text:
            raise Invalid(
                f"`name` and `rename` are both {quote(name.text)}.",
                "Give the new name as `name`, and the one that it has as `rename`.",
            )
        if switch or upstream or rev.text != "HEAD":
            raise Invalid("A branch that is renamed stays where it is.", "Leave out `rev`, `switch` and `upstream`.")
        return operations.plan_and_run(repo, RefPlanner, lambda planner: planner.rename_branch(rename, name), cancel)
    return operations.plan_and_run(
        repo, RefPlanner, lambda planner: planner.create_branch(name, rev, switch, upstream), cancel
    )


@tool("Create tag", effect="write", gate="write", adapt=_adapt, work="The change", also=("git_tag",))
def create_tag(
    operations: OperationRunner,
    cancel: CancelToken,
    *,
    name: NewRef,
    rev: Target = default("HEAD"),
    message: Annotated[MessageText, Field(description="Makes it an annotated tag.")] = default(""),
    repo: WritableRepo = default(""),
) -> Answer:
    """Create a tag at a commit, here alone: a remote gets it by a push. A name that exists is refused."""
    return operations.plan_and_run(repo, RefPlanner, lambda planner: planner.create_tag(name, rev, message), cancel)


@tool("Delete a ref", effect="destroy", gate="write", adapt=_adapt, work="The change", also=("git_delete_branch",))
def delete_ref(
    operations: OperationRunner,
    cancel: CancelToken,
    *,
    name: Annotated[NewName, trusted(parse_new_name), Field(description="Branch or tag.")],
    kind: Literal["branch", "tag"] = "branch",
    force: Annotated[bool, Field(description="Also a branch that is merged nowhere.")] = False,
    only_if: OnlyIf = None,
    repo: WritableRepo = default(""),
) -> Answer:
    """Delete a branch or tag here; a remote keeps its own. The answer says how to make it again."""
    return operations.plan_and_run(
        repo, RefPlanner, lambda planner: planner.delete(name, kind, force, only_if), cancel, only_if
    )


@tool(
    "Switch",
    effect="destroy",
    gate="write",
    adapt=_adapt_target,
    work="The change",
    also=("git_checkout", "git_switch"),
)
def run_switch(
    operations: OperationRunner,
    cancel: CancelToken,
    *,
    rev: Target,
    only_if: OnlyIf = None,
    repo: WritableRepo = default(""),
) -> Answer:
    """Switch the work tree to a branch; to another commit with HEAD detached. Uncommitted changes come along.

    Refused where they would be overwritten: `run_stash` puts them aside. For a new branch use `create_branch`.
    """
    return operations.plan_and_run(repo, FilePlanner, lambda planner: planner.switch(rev), cancel, only_if)


@tool("Restore files", effect="destroy", gate="write", adapt=_adapt_target, work="The change", also=("git_restore",))
def run_restore(
    operations: OperationRunner,
    cancel: CancelToken,
    *,
    paths: Paths,
    rev: Target = default("HEAD"),
    index: Annotated[bool, Field(description="Stage them so, too; of a stash, what was staged there.")] = True,
    only_if: OnlyIf = None,
    repo: WritableRepo = default(""),
) -> Answer:
    """Put files back as a commit or stash has them. The answer says how to get back what was lost.

    To unstage only use `stage_files`, to undo commits `run_reset`.
    """
    if not paths:
        raise Invalid("`paths` is empty.", "Name files, or `.` for all.")
    specs = _pathspecs(paths)
    return operations.plan_and_run(
        repo, FilePlanner, lambda planner: planner.restore(rev, specs, stages=index), cancel, only_if, specs
    )


@tool("Move a path", effect="write", gate="write", adapt=_adapt_move, work="The change", also=("git_mv",))
def move_path(
    operations: OperationRunner, cancel: CancelToken, *, path: FilePath, to: FilePath, repo: WritableRepo = default("")
) -> Answer:
    """Move or rename a tracked file or folder, and stage that; what exists is refused."""
    return operations.plan_and_run(repo, FilePlanner, lambda planner: planner.move_path(path, to), cancel)


@tool("Stash", effect="destroy", gate="write", adapt=_adapt_target, work="The change", also=("git_stash",))
def run_stash(
    operations: OperationRunner,
    cancel: CancelToken,
    *,
    action: Literal["push", "pop", "apply", "drop", "store"] = "push",
    rev: Annotated[OptionalRevision, Field(description="The stash, for all but push.")] = default("stash@{0}"),
    message: Annotated[MessageText, Field(description="The stash's message, for push and store.")] = default(""),
    paths: Annotated[PathList, Field(max_length=1000, description="To push: only these.")] = default([]),
    untracked: Annotated[bool, Field(description="To push: new files too.")] = False,
    index: Annotated[bool, Field(description="To pop or apply: stage again what was staged.")] = False,
    repo: WritableRepo = default(""),
) -> Answer:
    """Put uncommitted changes aside, bring them back (pop, apply) or drop them.

    `list_refs` with kind=stashes lists them; `store` lists a dropped one again, by its hash.
    """
    if action == "push":
        specs = _pathspecs(paths)
        return operations.plan_and_run(
            repo, StashPlanner, lambda planner: planner.push(message, untracked, specs), cancel
        )
    if paths:
        raise Invalid(
            f"A stash is whole: to `{action}` takes no `paths`.",
            "Leave `paths` out, or take single files of it: `run_restore` with its name as `rev`.",
        )
    if rev is None:
        raise Invalid("`rev` is empty.", "Leave it out for the latest stash.")

    def plan(planner: StashPlanner) -> Operation:
        match action:
            case "store":
                return planner.store(rev, message)
            case "drop":
                return planner.drop(rev)
            case "apply" | "pop":
                return planner.apply(action, rev, index)

    return operations.plan_and_run(repo, StashPlanner, plan, cancel)


@tool("Merge", effect="destroy", gate="write", adapt=_adapt_target, work="The change", also=("git_merge",))
def run_merge(
    operations: OperationRunner,
    cancel: CancelToken,
    *,
    rev: Target,
    message: Annotated[
        MessageText,
        Field(description="Of the merge commit, which it makes even for a fast-forward."),
    ] = default(""),
    squash: Annotated[bool, Field(description="Stage what the merge brings; commit nothing.")] = False,
    into: Into = None,
    repo: WritableRepo = default(""),
) -> Answer:
    """Merge a branch into the current one; stops at conflicts and shows them, then `continue_operation`.

    A conflict is no failure. For a single commit use `run_cherry_pick`.
    """
    if message.text and squash:
        raise Invalid("With `squash` nothing is committed yet.", "Give the `message` to `create_commit` then.")
    return operations.plan_and_run(
        repo,
        PickPlanner,
        lambda planner: planner.merge(rev, message=message.text, squash=squash, on_branch=into),
        cancel,
    )


@tool("Rebase", effect="destroy", gate="write", adapt=_adapt_target, work="The change", also=("git_rebase",))
def run_rebase(
    operations: OperationRunner, cancel: CancelToken, *, rev: Target, repo: WritableRepo = default("")
) -> Answer:
    """Put the commits of the current branch on top of another; stops at conflicts, then `continue_operation`.

    They become new commits, which is not for those that others have. To keep the commits use `run_merge`.
    """
    return operations.plan_and_run(repo, PickPlanner, lambda planner: planner.rebase(rev), cancel)


@tool("Cherry-pick", effect="destroy", gate="write", adapt=_adapt_picks, work="The change", also=("git_cherry_pick",))
def run_cherry_pick(
    operations: OperationRunner,
    cancel: CancelToken,
    *,
    rev: PickedRevision,
    mainline: Mainline = None,
    into: Into = None,
    repo: WritableRepo = default(""),
) -> Answer:
    """Do what a commit did once more on the current branch; stops at conflicts, then `continue_operation`.

    It passes over what is there already. For all commits of a branch use `run_merge`.
    """
    return operations.plan_and_run(repo, PickPlanner, _plan_picks(["cherry-pick"], rev, mainline, into), cancel)


@tool("Revert a commit", effect="destroy", gate="write", adapt=_adapt_picks, work="The change", also=("git_revert",))
def revert_commit(
    operations: OperationRunner,
    cancel: CancelToken,
    *,
    rev: PickedRevision,
    mainline: Mainline = None,
    into: Into = None,
    repo: WritableRepo = default(""),
) -> Answer:
    """Make a commit that undoes what an earlier one did, which stays; stops at conflicts, then `continue_operation`.

    To take commits away that nobody else has use `run_reset`.
    """
    return operations.plan_and_run(repo, PickPlanner, _plan_picks(["revert", "--no-edit"], rev, mainline, into), cancel)


@tool("Go on or give up", effect="destroy", gate="write", adapt=_adapt, work="The change")
def continue_operation(
    operations: OperationRunner,
    cancel: CancelToken,
    *,
    action: Literal["continue", "skip", "abort"],
    paths: Annotated[
        PathList, Field(max_length=1000, description="To continue: resolved ones to stage first.")
    ] = default([]),
    ours: Annotated[
        PathList, Field(max_length=1000, description="To continue: staged with our lines (`:2`) where both changed.")
    ] = default([]),
    theirs: Annotated[PathList, Field(max_length=1000, description="Staged with theirs (`:3`).")] = default([]),
    both: Annotated[PathList, Field(max_length=1000, description="Staged with both, ours first.")] = default([]),
    repo: WritableRepo = default(""),
) -> Answer:
    """Continue a merge, rebase, cherry-pick or revert once its conflicts are staged, or abort it.

    `abort` leads back to before it began, `skip` leaves out the commit at hand.
    """
    choice = SideChoice(ours, theirs, both)
    if (paths or not choice.is_empty) and action != "continue":
        raise Invalid(f"To `{action}` stages nothing.", "Leave `paths`, `ours`, `theirs` and `both` out.")
    stage_first = _add_commands(paths)
    return operations.plan_and_run(
        repo, PickPlanner, lambda planner: planner.step(action, stage_first, _pathspecs(paths), choice), cancel
    )


@tool(
    "Reset",
    effect="destroy",
    gate="write",
    adapt=_adapt_target,
    work="The change",
    # Without arguments git takes out of the index what is staged.
    also=(OtherName("git_reset", {"mode": "mixed"}),),
)
def run_reset(
    operations: OperationRunner,
    cancel: CancelToken,
    *,
    rev: Target = default("HEAD"),
    mode: Annotated[
        Literal["soft", "mixed", "keep", "hard"],
        Field(
            description="soft moves only the branch, mixed also resets the index, keep also writes files that differ "
            "(refused where one has uncommitted changes), hard overwrites those changes too."
        ),
    ] = "keep",
    only_if: OnlyIf = None,
    repo: WritableRepo = default(""),
) -> Answer:
    """Move the current branch to another commit, such as one of the reflog to undo what was done.

    The answer says how to get back what `hard` overwrites. For single files use `run_restore`, to undo a commit
    that others have `revert_commit`.
    """
    operation = FileOperation(
        ["reset", "--quiet", f"--{mode}", rev.text, "--"],
        revision=rev,
        undo_kind=UndoKind(mode),
        overwritten_paths=["."] if mode in ("keep", "hard") else [],
        source=rev if mode == "hard" else None,
        refreshes_index=mode == "keep",
    )
    return operations.run(repo, operation, cancel, only_if)


@tool("Create worktree", effect="write", gate=("write", "worktree-folder"), adapt=_adapt, work="Making the worktree")
def create_worktree(
    worktrees: Worktrees,
    cancel: CancelToken,
    *,
    name: Annotated[NewWorktree, trusted(Policy.new_worktree), Field(description="Name to give.")],
    branch: Annotated[
        OptionalName, Field(description="To work on; made if it is not there. By default `name`.")
    ] = None,
    rev: Annotated[OptionalRevision, Field(description="Where a new branch begins; by default HEAD.")] = None,
    repo: WritableRepo = default(""),
) -> Answer:
    """Make a second work tree with a branch of its own; it is then served as `name`.

    For work on two branches at once; to change branches in this one use `run_switch`.
    """
    return worktrees.create(repo, name, branch or name.branch, rev, cancel)


@tool("Delete worktree", effect="destroy", gate=("write", "worktree-folder"), work="Removing the worktree")
def delete_worktree(
    worktrees: Worktrees,
    cancel: CancelToken,
    *,
    name: Annotated[
        RemovableWorktree,
        trusted(Policy.removable_worktree),
        Field(description="`list_refs` of `worktrees` has them."),
    ],
    force: Annotated[bool, Field(description="Also with uncommitted changes, which become a stash.")] = False,
) -> Answer:
    """Remove a worktree that `create_worktree` made, with its ignored files; its branch stays."""
    return worktrees.delete(name, force, cancel)


def _plan_picks(
    command: Sequence[str], rev: Revision | Range | RevisionList, mainline: int | None, into: Revision | None
) -> Callable[[PickPlanner], Operation]:
    """Return the plan to pick or revert the commits of `rev`, as `command` says."""
    arguments = [*command, "--no-gpg-sign"]
    span = ["--no-walk", *rev.arguments]
    if isinstance(rev, Range):
        if rev.dots != "..":
            raise Invalid("Of a range only `a..b` is done.", "Name the commit before the first one as `a`.")
        span = [rev.text]
        if mainline is None:
            # Git stops at one. What it joined is in the range by itself.
            arguments.append("--no-merges")
    return lambda planner: planner.pick(arguments, rev, span, into, mainline)


def _commit_command(message: Message, all_tracked: bool, amend: bool, author: Author | Revision | None) -> list[str]:
    """Return the command that commits; where the author is that of another commit, the planner finds them."""
    arguments = ["commit", "--quiet", "--no-verify", "--no-gpg-sign"]
    if message.text:
        arguments += ["--cleanup=whitespace", "--file=-"]
    else:
        arguments += ["--cleanup=verbatim", "--no-edit"]
    if all_tracked:
        arguments.append("--all")
    if amend:
        arguments.append("--amend")
    if isinstance(author, Author):
        arguments.append(f"--author={author.text}")
    return arguments


def _pathspecs(paths: Sequence[RepositoryPath]) -> list[str]:
    return [path.pathspec for path in paths]


def _stage_commands(planner: CommitPlanner, paths: Sequence[RepositoryPath], patch: str) -> list[GitInput]:
    """Return the commands that stage files and single hunks."""
    commands = _add_commands(paths)
    if patch:
        commands.append(planner.stage_patch(patch))
    return commands


def _add_commands(paths: Sequence[RepositoryPath]) -> list[GitInput]:
    if not paths:
        return []
    return [GitInput(["add", "--all", "--", *_pathspecs(paths)])]
