"""Finds the hooks that were set up for an operation, and whether it was to be signed, where none of that is done."""

from __future__ import annotations

import os
from collections.abc import Sequence

from mcp_git.engine.program.git import Git
from mcp_git.git_config import TRUE_VALUES
from mcp_git.policy import Repository
from mcp_git.repository_paths import Layout

__all__ = ["find_unheeded"]

_COMMIT_HOOKS = ("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit")
# What git itself would run, by command.
_HOOKS = {
    "commit": _COMMIT_HOOKS,
    "merge": ("pre-merge-commit", "prepare-commit-msg", "commit-msg", "post-merge"),
    "rebase": ("pre-rebase", "post-rewrite"),
    "cherry-pick": ("prepare-commit-msg", "post-commit"),
    "revert": ("prepare-commit-msg", "post-commit"),
    "switch": ("post-checkout",),
}
_SIGNING_KEYS = {"tag": "tag.gpgsign"} | dict.fromkeys(
    ("commit", "merge", "rebase", "cherry-pick", "revert"), "commit.gpgsign"
)


def find_unheeded(git: Git, repository: Repository, layout: Layout, command: str) -> tuple[list[str], bool]:
    """Return the hooks of a command that were not run, and whether what it made was to be signed."""
    configuration = git.read_unheeded_configuration(repository)
    is_to_be_signed = configuration.get(_SIGNING_KEYS.get(command, ""), "").lower() in TRUE_VALUES
    hooks: list[str] = []
    if not git.programs.hooks:
        hooks = _list_hooks(layout, configuration.get("core.hookspath"), _HOOKS.get(command, ()))
    return hooks, is_to_be_signed and not git.programs.signing


def _list_hooks(layout: Layout, configured_folder: str | None, names: Sequence[str]) -> list[str]:
    """Return those of the hooks that there are; of a folder that may lie outside only that it is configured."""
    if configured_folder is not None:
        has_hooks = configured_folder not in ("", os.devnull)
        return ["the hooks of `core.hooksPath`"] if has_hooks and names else []
    folder = os.path.join(layout.common_dir, "hooks")
    present = [name for name in names if os.access(os.path.join(folder, name), os.X_OK)]
    return [f"the hook {name}" for name in present]
