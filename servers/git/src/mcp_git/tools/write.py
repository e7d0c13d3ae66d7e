"""Tools that change a repository; offered with `--write`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from mcp_batteries.errors import Invalid
from mcp_batteries.server.declaration.decorators import rename_arguments, tool
from mcp_git.engine.operation.operation import GitInput, Operation, UndoKind
from mcp_git.engine.operation.plan import OperationPlanner
from mcp_git.engine.service import Engine
from mcp_git.models import Answer
from mcp_git.policy import Policy
from mcp_git.tool_calls import format_call
from mcp_git.tools.arguments import MAX_CALL_SECONDS, RepositoryName

__all__ = ["WriteTools"]

Paths = Annotated[list[str], Field(max_length=1000, description="From the repository's root; `.` is all.")]
NewRef = Annotated[str, Field(description="Name to give.")]
Target = Annotated[str, Field(description="Commit, branch or tag.")]
Into = Annotated[str, Field(description="Branch to switch to first.")]


def _encode_patch(text: str) -> bytes:
    if not text.endswith("\n"):
        text += "\n"
    return text.encode("utf-8", "surrogateescape")


_adapt = rename_arguments(repo_path="repo", repository="repo", revision="rev", branch_name="name", files="paths")


@dataclass(frozen=True)
class WriteTools:
    policy: Policy
    engine: Engine

    @tool("Edit the index", effect="destroy", gate="write", seconds=MAX_CALL_SECONDS, adapt=_adapt)
    async def edit_index(
        self,
        paths: Paths = [],  # noqa: B006 - read only, and in the schema it reads as what it is
        patch: Annotated[str, Field(description="Unified diff of single hunks, in place of `paths`.")] = "",
        unstage: bool = False,
        rev: Annotated[str, Field(description="What unstaged `paths` are staged as then; by default HEAD.")] = "",
        repo: RepositoryName = "",
    ) -> Answer:
        """Stage files or single hunks for the next commit, or unstage them.

        Files on disk stay as they are; one that is staged no longer counts as in conflict. Then `create_commit`; to
        discard changes use `run_restore`.
        """
        if bool(paths) == bool(patch):
            raise Invalid("Either `paths` or a `patch` is needed.", "Give one of them.")
        if rev and (patch or not unstage):
            raise Invalid("`rev` says what unstaged `paths` are then.", "Leave it out, or set `unstage`.")
        if not unstage:
            [command] = self._stage_commands(paths, patch)
            return await self._run(repo, Operation(command.arguments, command.stdin, undo_kind=UndoKind.INDEX))
        if patch:
            arguments = ["apply", "--cached", "--whitespace=nowarn", "--reverse", "-"]
            return await self._run(repo, Operation(arguments, _encode_patch(patch), undo_kind=UndoKind.INDEX))
        arguments = ["reset", "--quiet"]
        source = None
        if rev:
            source = self.policy.parse_revision(rev)
            arguments.append(source.text)
        arguments += ["--", *self._parse_paths(paths)]
        return await self._run(repo, Operation(arguments, revision=source, undo_kind=UndoKind.INDEX))

    @tool("Create commit", effect="destroy", gate="write", seconds=MAX_CALL_SECONDS, adapt=_adapt)
    async def create_commit(
        self,
        message: Annotated[str, Field(min_length=1, description="Subject, empty line, body.")],
        paths: Annotated[
            list[str], Field(max_length=1000, description="To stage first, new ones too; `.` is all.")
        ] = [],  # noqa: B006
        patch: Annotated[str, Field(description="Unified diff of single hunks to stage first.")] = "",
        all_tracked: Annotated[bool, Field(description="Stage what changed in tracked files first.")] = False,
        amend: Annotated[bool, Field(description="Replace the last commit.")] = False,
        repo: RepositoryName = "",
    ) -> Answer:
        """Commit what is staged, and what is named. Hooks are not run, nothing is signed.

        Nothing stays staged by a commit that fails. To stage without a commit use `edit_index`.
        """
        arguments = ["commit", "--quiet", "--no-verify", "--no-gpg-sign", "--cleanup=whitespace", "--file=-"]
        if all_tracked:
            arguments.append("--all")
        if amend:
            arguments.append("--amend")
        stage_first = self._stage_commands(paths, patch)
        operation = Operation(
            arguments,
            self.policy.clean_message(message).encode(),
            undo_kind=UndoKind.UNCOMMIT_ALL if stage_first or all_tracked else UndoKind.SOFT,
            stage_first=stage_first,
            resolved_paths=["."] if all_tracked else self._parse_paths(paths),
        )
        return await self._run(repo, operation)

    @tool("Create branch", effect="write", gate="write", seconds=MAX_CALL_SECONDS, adapt=_adapt)
    async def create_branch(
        self,
        name: NewRef,
        rev: Target = "HEAD",
        switch: bool = False,
        upstream: Annotated[str, Field(description="Branch to follow, such as `origin/main`.")] = "",
        repo: RepositoryName = "",
    ) -> Answer:
        """Create a branch at a commit, and switch to it if asked; a name that exists is refused.

        To go to one that exists use `run_switch`.
        """
        new = self.policy.parse_new_name(name)
        start = self.policy.parse_revision(rev)
        followed = self.policy.parse_ref(upstream) if upstream else None
        return await self._plan_and_run(repo, lambda planner: planner.create_branch(new, start, switch, followed))

    @tool("Create tag", effect="write", gate="write", seconds=MAX_CALL_SECONDS, adapt=_adapt)
    async def create_tag(
        self,
        name: NewRef,
        rev: Target = "HEAD",
        message: Annotated[str, Field(description="Makes an annotated tag.")] = "",
        repo: RepositoryName = "",
    ) -> Answer:
        """Create a tag at a commit, here alone: a remote gets it by a push. A name that exists is refused."""
        new = self.policy.parse_new_name(name)
        start = self.policy.parse_revision(rev)
        arguments = ["tag", "--no-sign"]
        if message:
            arguments += ["--annotate", "--file=-"]
        operation = Operation(
            [*arguments, new.text, start.text],
            self.policy.clean_message(message).encode(),
            revision=start,
            undo_calls=[format_call("delete_ref", name=new.text, kind="tag")],
            touches_files=False,
        )
        return await self._run(repo, operation)

    @tool("Delete a ref", effect="destroy", gate="write", seconds=MAX_CALL_SECONDS, adapt=_adapt)
    async def delete_ref(
        self,
        name: Annotated[str, Field(description="Branch or tag.")],
        kind: Literal["branch", "tag"] = "branch",
        force: Annotated[bool, Field(description="Also a branch that is merged nowhere.")] = False,
        repo: RepositoryName = "",
    ) -> Answer:
        """Delete a branch or tag here; a remote keeps its own. The answer says how to make it again."""
        ref = self.policy.parse_new_name(name)
        return await self._plan_and_run(repo, lambda planner: planner.delete(ref, kind, force))

    @tool("Switch", effect="destroy", gate="write", seconds=MAX_CALL_SECONDS, adapt=_adapt)
    async def run_switch(self, rev: Target, repo: RepositoryName = "") -> Answer:
        """Switch the work tree to a branch; to another commit with HEAD detached. Uncommitted changes come along.

        Refused where they would be overwritten: `run_stash` puts them aside. For a new branch use `create_branch`.
        """
        revision = self.policy.parse_revision(rev)
        return await self._plan_and_run(repo, lambda planner: planner.switch(revision))

    @tool("Restore files", effect="destroy", gate="write", seconds=MAX_CALL_SECONDS, adapt=_adapt)
    async def run_restore(self, paths: Paths, rev: Target = "HEAD", repo: RepositoryName = "") -> Answer:
        """Put files back as a commit has them, staged ones too. The answer says how to get back what was lost.

        To unstage only use `edit_index`, to undo commits `run_reset`.
        """
        source = self.policy.parse_revision(rev)
        parsed_paths = self._parse_paths(paths)
        if not parsed_paths:
            raise Invalid("`paths` is empty.", "Name files, or `.` for all.")
        return await self._plan_and_run(repo, lambda planner: planner.restore(source, parsed_paths))

    @tool("Stash", effect="destroy", gate="write", seconds=MAX_CALL_SECONDS, adapt=_adapt)
    async def run_stash(
        self,
        action: Literal["push", "pop", "apply", "drop", "store"] = "push",
        rev: Annotated[str, Field(description="Which, other than to push.")] = "stash@{0}",
        message: Annotated[str, Field(description="To push or store with.")] = "",
        untracked: bool = False,
        index: Annotated[bool, Field(description="To pop or apply: stage again what was staged.")] = False,
        repo: RepositoryName = "",
    ) -> Answer:
        """Put uncommitted changes aside, bring them back (pop, apply) or drop them.

        `list_refs` with kind=stashes lists them; `store` lists a dropped one again, by its hash.
        """
        if action == "push":
            return await self._run(repo, _push_stash(self.policy.clean_message(message), untracked))
        revision = self.policy.parse_revision(rev)
        cleaned_message = self.policy.clean_message(message)

        def plan(planner: OperationPlanner) -> Operation:
            match action:
                case "store":
                    return planner.store_stash(revision, cleaned_message)
                case "drop":
                    return planner.drop_stash(revision)
                case "apply" | "pop":
                    return planner.apply_stash(action, revision, index)

        return await self._plan_and_run(repo, plan)

    @tool("Merge", effect="destroy", gate="write", seconds=MAX_CALL_SECONDS, adapt=_adapt)
    async def run_merge(
        self,
        rev: Target,
        message: Annotated[str, Field(description="Of the merge commit, which is then made in any case.")] = "",
        squash: bool = False,
        into: Into = "",
        repo: RepositoryName = "",
    ) -> Answer:
        """Merge a branch into the current one; stops at conflicts, then `run_step`.

        The answer says how to undo it. For a single commit use `run_cherry_pick`.
        """
        if message and squash:
            raise Invalid("With `squash` nothing is committed yet.", "Give the `message` to `create_commit` then.")
        revision = self.policy.parse_revision(rev)
        arguments = ["merge", "--quiet", "--no-edit", "--no-verify", "--no-gpg-sign", "--no-autostash"]
        # So that after a conflict lines of a message with `#` are told from git's own.
        arguments.append("--cleanup=scissors")
        if squash:
            arguments.append("--squash")
        if message:
            # `merge` reads no message from a pipe, and leaves one unsaid where it only has to move the branch.
            arguments += ["--no-ff", f"--message={self.policy.clean_message(message)}"]
        operation = Operation(
            [*arguments, revision.text],
            revision=revision,
            undo_kind=UndoKind.FILES if squash else UndoKind.KEEP,
            overwritten_paths=["."],
            on_branch=self.policy.parse_ref(into) if into else None,
        )
        return await self._run(repo, operation)

    @tool("Rebase", effect="destroy", gate="write", seconds=MAX_CALL_SECONDS, adapt=_adapt)
    async def run_rebase(self, rev: Target, repo: RepositoryName = "") -> Answer:
        """Put the commits of the current branch on top of another; stops at conflicts, then `run_step`.

        They become new commits, which is not for those that others have. The answer says how to undo it. To keep the
        commits use `run_merge`.
        """
        revision = self.policy.parse_revision(rev)
        arguments = ["rebase", "--quiet", "--no-verify", "--no-gpg-sign", "--no-autostash", "--no-autosquash"]
        span = [f"{revision.text}..HEAD"]
        return await self._plan_and_run(repo, lambda planner: planner.pick(arguments, revision, span))

    @tool("Cherry-pick", effect="destroy", gate="write", seconds=MAX_CALL_SECONDS, adapt=_adapt)
    async def run_cherry_pick(
        self,
        rev: Target,
        revert: Annotated[bool, Field(description="The opposite of the commit instead.")] = False,
        into: Into = "",
        repo: RepositoryName = "",
    ) -> Answer:
        """Do what a commit did once more on the current branch, or revert it; stops at conflicts, then `run_step`.

        The answer says how to undo it. For all commits of a branch use `run_merge`.
        """
        revision = self.policy.parse_revision(rev)
        arguments = ["revert", "--no-edit"] if revert else ["cherry-pick"]
        arguments.append("--no-gpg-sign")
        branch = self.policy.parse_ref(into) if into else None
        span = ["--no-walk", revision.text]
        return await self._plan_and_run(repo, lambda planner: planner.pick(arguments, revision, span, branch))

    @tool("Go on or give up", effect="destroy", gate="write", seconds=MAX_CALL_SECONDS, adapt=_adapt)
    async def run_step(
        self,
        action: Literal["continue", "skip", "abort"],
        paths: Annotated[
            list[str], Field(max_length=1000, description="To continue: resolved ones to stage first.")
        ] = [],  # noqa: B006
        repo: RepositoryName = "",
    ) -> Answer:
        """Continue a merge, rebase, cherry-pick or revert once its conflicts are staged, or abort it.

        `abort` leads back to before it began, `skip` leaves out the commit at hand.
        """
        if paths and action != "continue":
            raise Invalid(f"To `{action}` stages nothing.", "Leave `paths` out.")
        stage_first = self._stage_commands(paths, "")
        resolved_paths = self._parse_paths(paths)
        return await self._plan_and_run(repo, lambda planner: planner.step(action, stage_first, resolved_paths))

    @tool("Reset", effect="destroy", gate="write", seconds=MAX_CALL_SECONDS, adapt=_adapt)
    async def run_reset(
        self,
        rev: Target,
        mode: Annotated[
            Literal["soft", "mixed", "keep", "hard"],
            Field(description="Keep index and files, files, only what is not committed, or nothing."),
        ] = "keep",
        repo: RepositoryName = "",
    ) -> Answer:
        """Move the current branch to another commit, such as one of the reflog to undo what was done.

        The answer says how to get back what `hard` overwrites. For single files use `run_restore`, to undo a commit
        that others have `run_cherry_pick` with `revert`.
        """
        revision = self.policy.parse_revision(rev)
        operation = Operation(
            ["reset", "--quiet", f"--{mode}", revision.text, "--"],
            revision=revision,
            undo_kind=UndoKind(mode),
            overwritten_paths=["."] if mode in ("keep", "hard") else [],
            source=revision if mode == "hard" else None,
            refreshes_index=mode == "keep",
        )
        return await self._run(repo, operation)

    @tool("Create worktree", effect="write", gate=("write", "worktree-folder"), seconds=MAX_CALL_SECONDS, adapt=_adapt)
    async def create_worktree(
        self,
        name: NewRef,
        branch: Annotated[str, Field(description="To work on; made if it is not there. By default `name`.")] = "",
        rev: Annotated[str, Field(description="Where a new branch begins; by default HEAD.")] = "",
        repo: RepositoryName = "",
    ) -> Answer:
        """Make a second work tree with a branch of its own; it is then served as `name`.

        For work on two branches at once; to change branches in this one use `run_switch`.
        """
        start = self.policy.parse_revision(rev) if rev else None
        new = self.policy.new_worktree(name)
        new_branch = self.policy.parse_new_name(branch or name)
        return await self.engine.create_worktree(self.policy.writable_repository(repo), new, new_branch, start)

    @tool("Delete worktree", effect="destroy", gate=("write", "worktree-folder"), seconds=MAX_CALL_SECONDS)
    async def delete_worktree(
        self,
        name: Annotated[str, Field(description="`list_refs` of `worktrees` has them.")],
        force: Annotated[bool, Field(description="Also with uncommitted changes, which become a stash.")] = False,
    ) -> Answer:
        """Remove a worktree that `create_worktree` made, with its ignored files; its branch stays."""
        return await self.engine.delete_worktree(self.policy.removable_worktree(name), force=force)

    def _parse_paths(self, paths: Sequence[str]) -> list[str]:
        return [self.policy.parse_path(path).text or "." for path in paths]

    def _stage_commands(self, paths: Sequence[str], patch: str) -> list[GitInput]:
        """Return the commands that stage files and single hunks."""
        commands: list[GitInput] = []
        if paths:
            commands.append(GitInput(["add", "--all", "--", *self._parse_paths(paths)]))
        if patch:
            commands.append(GitInput(["apply", "--cached", "--whitespace=nowarn", "-"], _encode_patch(patch)))
        return commands

    async def _run(self, repo: str, operation: Operation) -> Answer:
        return await self.engine.run_operation(self.policy.writable_repository(repo), operation)

    async def _plan_and_run(self, repo: str, plan: Callable[[OperationPlanner], Operation]) -> Answer:
        return await self.engine.plan_and_run(self.policy.writable_repository(repo), plan)


def _push_stash(message: str, with_untracked: bool) -> Operation:
    """Return the operation that puts uncommitted changes aside."""
    arguments = ["stash", "push", "--quiet"]
    if with_untracked:
        arguments.append("--include-untracked")
    if message:
        arguments += ["--message", message]
    undo_calls = [format_call("run_stash", action="pop", index=True)]
    return Operation(arguments, undo_calls=undo_calls, moved_ref="refs/stash")
