"""Runs `git status`, and parses what it prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_git.engine.program.git import Git, GitFailed
from mcp_git.engine.program.output import split_records
from mcp_git.engine.program.revisions import is_of_missing_contents
from mcp_git.engine.work_tree.in_progress import find_operations_in_progress
from mcp_git.engine.work_tree.status import Status, StatusEntry
from mcp_git.models import count
from mcp_git.policy import Repository, RepositoryPath
from mcp_git.repository_paths import Layout

__all__ = ["describe_submodules", "read_status"]


def read_status(
    git: Git,
    repository: Repository,
    cancel: CancelToken,
    path: RepositoryPath | None = None,
    layout: Layout | None = None,
) -> Status:
    """Run `git status`, and find meanwhile which operations are in progress."""
    if layout is None:
        layout = git.layout(repository)
    arguments = ["status", "--porcelain=v2", "--branch", "--show-stash", "-z", "--ignore-submodules=dirty", "--"]
    literal_paths = True
    if path is not None and path.text:
        arguments += path.pathspecs
        literal_paths = not path.is_glob
    try:
        return _run_status(git, repository, layout, arguments, literal_paths, cancel)
    except GitFailed as failure:
        if not is_of_missing_contents(failure, git, repository):
            raise
        # By contents git finds what was renamed, and this partial clone lacks some.
        arguments.insert(1, "--no-renames")
        return _run_status(git, repository, layout, arguments, literal_paths, cancel)


def _run_status(
    git: Git,
    repository: Repository,
    layout: Layout,
    arguments: Sequence[str],
    literal_paths: bool,
    cancel: CancelToken,
) -> Status:
    status = Status()
    with git.stream(repository, arguments, cancel, literal_paths=literal_paths, layout=layout) as pieces:
        status.in_progress = find_operations_in_progress(git, repository, layout, cancel)
        records = split_records(pieces)
        for record in records:
            _add_record(status, record, records)
    return status


def _add_record(status: Status, record: bytes, following: Iterator[bytes]) -> None:
    """Add a record of `git status --porcelain=v2`; the earlier path of a renamed file is the record behind it."""
    match record[:1]:
        case b"#":
            _add_header(status, record.decode("utf-8", "replace"))
        case b"1":
            _, letters, _, _, _, _, _, _, path = record.split(b" ", 8)
            status.entries.append(StatusEntry(_decode_letters(letters), path))
        case b"2":
            _, letters, _, _, _, _, _, _, _, path = record.split(b" ", 9)
            status.entries.append(StatusEntry(_decode_letters(letters), path, next(following, b"")))
        case b"u":
            _, letters, _, _, _, _, _, _, _, _, path = record.split(b" ", 10)
            status.entries.append(StatusEntry(_decode_letters(letters), path))
        case b"?":
            status.entries.append(StatusEntry("??", record[2:]))
        case _:
            pass


def _add_header(status: Status, header: str) -> None:
    _, name, *values = header.split(" ")
    match name:
        case "branch.oid":
            status.oid = values[0]
        case "branch.head":
            status.head = values[0]
        case "branch.upstream":
            status.upstream = values[0]
        case "branch.ab":
            status.has_upstream_commit = True
            status.ahead = abs(int(values[0]))
            status.behind = abs(int(values[1]))
        case "stash":
            status.stashes = int(values[0])
        case _:
            pass


def _decode_letters(letters: bytes) -> str:
    return letters.decode("ascii", "replace").replace(".", " ")


def describe_submodules(git: Git, layout: Layout) -> list[str]:
    """Return in how many submodules files may differ, which no status says."""
    submodules = git.list_submodules(layout)
    if not submodules:
        return []
    return [f"files in {count(len(submodules), 'submodule')} not looked at"]
