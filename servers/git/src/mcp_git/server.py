"""The table of contents: builds the server."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from importlib.metadata import version

from mcp_batteries.errors import Unavailable
from mcp_batteries.processes.sandbox import find_sandbox
from mcp_batteries.server.assemble import Assembled, assemble
from mcp_batteries.server.calling.bound_function import TimeLimits
from mcp_batteries.server.list_changes import ChangeFeedConfig
from mcp_batteries.server.skills import PackagedSkills
from mcp_batteries.server.tool_filter import ClosedGate
from mcp_git.changes import RepositoryWatcher
from mcp_git.completions import Completions
from mcp_git.engine.operation.run import OperationRunner
from mcp_git.engine.program.git import Git
from mcp_git.engine.work_tree.worktrees import Worktrees
from mcp_git.policy import Policy
from mcp_git.prompts import Prompts
from mcp_git.resources import Resources
from mcp_git.settings import Settings
from mcp_git.tools import read, remote, write

__all__ = ["build", "confinement"]

logger = logging.getLogger(__name__)


def build(settings: Settings) -> Assembled:
    """Build the server for the folders that `settings` name; whether one is a repository is checked at each call."""
    policy = Policy(settings)
    git = Git(policy)
    try:
        git.binary.find()
    except Unavailable as problem:
        logger.warning("Every call will fail: %s", problem)
    resources = Resources(policy, git, settings.timeout)
    completions = Completions(policy, git, settings.timeout)
    switches = {
        "write": settings.write,
        "fetch": settings.fetch,
        "push": settings.push,
        "worktree-folder": bool(settings.worktree_folder),
    }
    open_gates = {gate for gate, is_open in switches.items() if is_open}
    followed: list[str] = []
    for repository in policy.repositories.values():
        followed += [repository.uri("head"), repository.uri("status")]
    return assemble(
        settings.COMMAND,
        settings,
        rooms=[read, write, remote, resources, Prompts(policy, resources.attach), completions],
        dependencies=[policy, git, OperationRunner(git), Worktrees(git, policy)],
        time_limits=TimeLimits(own_data=settings.timeout, open_world=settings.remote_timeout),
        sources=[RepositoryWatcher(policy, git, resources.read_text, settings)],
        withholds=lambda declared: ClosedGate([f"--{gate}" for gate in declared.gates if gate not in open_gates]),
        follows=ChangeFeedConfig(
            "of a repository's resources (status, head, branches, log, diff, stash, files)",
            instead="For the state now use `get_status`, for earlier commits `list_commits`.",
            uris="As `git://REPO/status`. Default: your subscriptions, else status and head of each repository.",
            usual=lambda: followed,
        ),
        skills=[PackagedSkills(settings.COMMAND, __file__)],
        title="Git",
        version=version(settings.COMMAND),
        instructions=_instructions(list(policy.repositories), writes=settings.write, runs_hooks=policy.runs_hooks),
    )


def confinement(settings: Settings) -> str:
    """Return what confines git here, in one line for `--check`."""
    installed = Git(Policy(settings)).binary
    _ = installed.program
    if installed.confinements is None:
        return (
            f"none: {installed.why_unconfined}; so a repository with links in its git directory is refused, and one "
            "with others in its work tree is not changed"
        )
    line = f"{find_sandbox().name}: git runs only itself, and reads only what is served"
    if settings.hooks:
        line += "; at changes hooks run, which nothing confines (--hooks)"
    if settings.sign:
        line += "; at changes your own program signs, and nothing that is served runs (--sign)"
    return line


def _instructions(names: Sequence[str], *, writes: bool, runs_hooks: bool) -> str:
    which = "" if len(names) == 1 else " Name one of them as `repo`."
    unheeded = "Filters are not run." if runs_hooks else "Hooks and filters are not run."
    undo = " The answer to a change says how to undo it." if writes else ""
    return (
        f"Serves the Git repositories {', '.join(names)}.{which} Paths are relative to a repository's top. Begin with "
        f"`get_status`. The first line of an answer says what was cut and how to go on.{undo} {unheeded}"
    )
