"""A served folder with something outside of it, for tests that try to get there."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_fs.engine.changing.entries.deleting import delete_all
from mcp_fs.engine.journal.journal import JournalEntry
from mcp_fs.models import MoveResult
from mcp_fs.policy import Policy, ReadablePath, WritablePath


@dataclass(frozen=True)
class Told:
    """What the policy needs of the settings."""

    folders: tuple[str, ...]
    read_only: bool = False
    allow_secrets: tuple[str, ...] = ()
    allow_repository_internals: bool = False


@dataclass(frozen=True)
class Ground:
    """`root` is served, `outside` is not."""

    root: Path
    outside: Path
    policy: Policy

    def readable(self, path: str) -> ReadablePath:
        return self.policy.readable(path)

    def writable(self, path: str) -> WritablePath:
        return self.policy.writable(path)

    def temporary(self) -> list[str]:
        """Names of temporary entries anywhere beneath the root."""
        return [name for _, folders, files in os.walk(self.root) for name in folders + files if name.startswith(".~")]


def ground(tmp_path: Path) -> Ground:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (outside / "secret.txt").write_text("OUTSIDE")
    return Ground(root, outside, Policy(Told((str(root),))))


def fifo(path: Path) -> None:
    """Make a named pipe; skip the test where pipes have no names in folders."""
    if not hasattr(os, "mkfifo"):
        pytest.skip("has no pipes in folders")
    os.mkfifo(path)


def stop() -> CancelToken:
    return CancelToken()


def delete(
    place: WritablePath, *, recursive: bool, trash: bool = False, step: JournalEntry | None = None
) -> MoveResult:
    """`delete_all` of one."""
    (deleted,) = delete_all([place], recursive=recursive, trash=trash, cancel=stop(), journal_entry=step).entries
    return deleted
