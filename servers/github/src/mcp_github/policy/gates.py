"""What the operator allows for writing, and which files, runs and commits a closed gate protects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from mcp_batteries.errors import Invalid, Refused, quote
from mcp_github.policy.names import FilePath, Ref, file
from mcp_github.policy.repositories import Repo

__all__ = ["Gate", "Gates", "gate_option", "require_deletable", "require_own_commit"]

Gate = Literal["merge", "delete", "workflow_files", "runs", "releases", "force"]

_PRIVILEGED_EVENTS = ("pull_request_target", "workflow_run")


class Gates:
    """Decides what may be changed.

    Args:
        can_write: whether anything may be changed.
        open_gates: the other switches; without the first they open nothing.
    """

    def __init__(self, can_write: bool, open_gates: Mapping[Gate, bool]) -> None:
        self.can_write = can_write
        self._gates: dict[Gate, bool] = {name: can_write and is_open for name, is_open in open_gates.items()}

    @property
    def allowed_actions(self) -> list[str]:
        """What the operator has allowed, by the names of the switches."""
        actions = ["read"]
        if self.can_write:
            actions.append("write")
        return actions + [gate for gate, is_open in self._gates.items() if is_open]

    def require_gate(self, gate: Gate) -> None:
        """Raise `Refused` unless the operator has opened `gate`."""
        if not self._gates[gate]:
            name = gate_option(gate)
            raise Refused(
                f"This needs `{name}`, which is not open.", f"The operator can start it with `--write {name}`."
            )

    def require_write(self) -> None:
        """Raise `Refused` unless the operator has opened writing."""
        if not self.can_write:
            raise Refused("Nothing can be changed through this server.", "The operator can start it with `--write`.")

    def write_file(self, text: str) -> FilePath:
        """Return a path that may be written to.

        Raises:
            Refused: Actions would run it, and that gate is closed.
        """
        path = file(text)
        parts = path.name.casefold().split("/")
        if not path.name:
            raise Invalid("`path` is empty.", "Name a file.")
        if parts[0] == ".git":
            raise Refused(f"{quote(text)} is git's own.")
        is_run_by_actions = parts[:2] == [".github", "workflows"] or parts[-1] in ("action.yml", "action.yaml")
        if is_run_by_actions and not self._gates["workflow_files"]:
            raise Refused(
                f"{quote(text)} is a file that Actions runs; changing it needs `--workflow-files`.",
                "The operator can start the server with `--write --workflow-files`.",
            )
        return path

    @property
    def guards_workflows(self) -> bool:
        """Whether a change must be checked for files that Actions runs."""
        return not self._gates["workflow_files"]

    def require_no_workflows(self, names: Iterable[str], description: str, *, complete: bool) -> None:
        """Raise `Refused` for a branch or tag if Actions would run one of the changed files `names`.

        Args:
            complete: whether these are all the files that it changes.
        """
        if not complete:
            raise Refused(
                f"What {description} changes can't all be told, and files that Actions runs may be among it.",
                "Start from a branch with less, or the operator can open `--workflow-files`.",
            )
        for name in names:
            self.write_file(name)

    def require_mergeable(self, names: Iterable[str]) -> None:
        """Raise `Refused` for a pull request that changes a file of `names` which Actions would run."""
        for name in names:
            try:
                self.write_file(name)
            except Refused as problem:
                raise Refused(f"It is not merged: {problem.failure}", problem.fix) from None

    def require_all_listed(self, listed_count: int, changed_count: int, description: str) -> None:
        """Raise `Refused` for a pull request of which GitHub lists fewer files than it changes."""
        if listed_count < changed_count:
            # Of 3,000 GitHub lists no more, and who names files can have others come first.
            raise Refused(
                f"It is not merged: GitHub lists {listed_count} of the {changed_count} files of {description}.",
                "A person can merge it, or the operator can open `--workflow-files`.",
            )

    def require_rerunnable(self, run: Mapping[str, object], description: str) -> None:
        """Raise `Refused` for a run that nobody approved, or that uses secrets on what a fork sent.

        The code of other runs has already run unchanged; these may use the fork's current contents.
        """
        if "action_required" in (run.get("status"), run.get("conclusion")):
            raise Refused(f"The {description} waits for somebody's approval.", "A person has to look at it on GitHub.")
        if run.get("event") in _PRIVILEGED_EVENTS and self.guards_workflows:
            raise Refused(
                f"The {description} is one of `{run['event']}`: with the repository's secrets, on what others sent.",
                "A person can rerun it on GitHub, or the operator can open `--workflow-files`.",
            )


def require_own_commit(status: object, description: str) -> None:
    """Raise `Refused` for a release of a commit that is not on the default branch, because commits of forks have a sha
    here too.

    Args:
        status: of the commit compared with the default branch.
    """
    if status not in ("behind", "identical"):
        raise Refused(
            f"The {description} is not on the default branch, and may be a fork's.", "Name a branch or tag as `ref`."
        )


def require_deletable(branch: Ref, default: str, repo: Repo) -> None:
    """Raise `Refused` if `branch` is the default one."""
    if branch.name == default:
        raise Refused(f"{quote(branch.name)} is the default branch of `{repo.full_name}`.", "It is not deleted here.")


def gate_option(gate: str) -> str:
    """Return the switch that opens `gate`."""
    return "--" + gate.replace("_", "-")
