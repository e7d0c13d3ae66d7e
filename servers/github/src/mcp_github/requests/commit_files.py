"""Commits several files at once, each with its expected sha.

The commit is made by GitHub's `createCommitOnBranch`: it signs it, and takes it only on top of the expected commit. A
server without GraphQL gets the same commit by way of git objects, and so does one of executable files.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcp_batteries.errors import Conflict, Invalid, NotFound, Problem, Unavailable, quote
from mcp_github.client.api import Api, partial_success
from mcp_github.models import Done
from mcp_github.policy import FileChange, FilePath, Ref, TextEdit, WriteRepo
from mcp_github.requests.branches import EMPTY_REPOSITORY_STATUS, find_head, make_branch, resolve_sha
from mcp_github.requests.file_texts import (
    MAX_LFS_POINTER_BYTES,
    REPLACEMENT,
    FileText,
    decode_text,
    is_lfs_pointer,
)
from mcp_github.requests.files import SYMLINK_MODE, fetch_bytes, fetch_contents
from mcp_github.requests.graphql_queries import COMMIT_ON_BRANCH

__all__ = ["commit_files"]

_PLAIN_MODE = "100644"
_EXECUTABLE_MODE = "100755"


@dataclass(frozen=True)
class _Commit:
    sha: str
    url: str


@dataclass(frozen=True)
class _PlannedCommit:
    """A commit whose changes were checked.

    Attributes:
        head: the commit that it is made on top of, the tip of `branch`.
        additions: the new bytes of files, by path.
        modes: of files that exist, by path.
    """

    repo: WriteRepo
    branch: Ref
    head: str
    message: str
    additions: Mapping[str, bytes]
    deletions: Sequence[str]
    modes: Mapping[str, str]

    @property
    def description(self) -> str:
        return f"branch {quote(self.branch.name)} of `{self.repo.full_name}`"

    @property
    def executable_paths(self) -> list[str]:
        return [path for path, mode in self.modes.items() if mode != _PLAIN_MODE]


async def commit_files(
    api: Api, repo: WriteRepo, branch: Ref, message: str, changes: Sequence[FileChange], start: Ref | None
) -> Done:
    """Make one commit on `branch` with all of `changes`, or nothing.

    Args:
        start: where the branch is made if there is none.

    Raises:
        Conflict: a file is not what the caller expects, or the branch moved meanwhile.
    """
    paths = {change.path.name for change in changes}
    if len(paths) < len(changes):
        raise Invalid("A file is named twice.", "Put all changes of a file into one entry.")
    try:
        head = await find_head(api, repo, branch, "`list_refs` shows branches; `ref` makes a new one.")
    except NotFound as problem:
        if problem.status == EMPTY_REPOSITORY_STATUS:
            # The first file makes the branch.
            done = await _make_first_commit(api, repo, branch, message, changes)
            return _tell_unused(done, start, "the repository was empty")
        if start is None:
            raise
    else:
        done = await _commit_on(api, repo, branch, head, message, changes)
        return _tell_unused(done, start, "the branch was there")
    head = await make_branch(api, repo, branch, start)
    with partial_success(f"Branch {branch.name} is made", "Call again once that is mended."):
        return await _commit_on(api, repo, branch, head, message, changes)


def _tell_unused(done: Done, start: Ref | None, reason: str) -> Done:
    """Say of a commit that it is not on top of `start`."""
    if start is None:
        return done
    return done.model_copy(update={"done": f"{done.done} `ref` was not used: {reason}."})


async def _make_first_commit(
    api: Api, repo: WriteRepo, branch: Ref, message: str, changes: Sequence[FileChange]
) -> Done:
    """Make the first commit of a repository, which takes one file and no more; of several files the others
    follow in a second one."""
    for change in changes:
        if change.content is None or change.sha or change.edits or change.delete:
            raise Conflict(f"There is no file {quote(change.name)}: the repository is empty.", "Pass `content`.")
    if changes[0].executable:
        raise Conflict("The first file of a repository can't be executable.", "Put a plain file first.")
    contents = [_encode_content(change, None) for change in changes]
    first, *others = changes
    body = {"message": message, "content": _to_base64(contents[0]), "branch": branch.name}
    response = await api.write(
        "PUT", f"{repo.path}/contents/{first.path.path}", f"the first commit of `{repo.full_name}`", body, repo=repo
    )
    commit = response.data["commit"]
    sha = str(commit["sha"])
    if not others:
        return _done(branch, _Commit(sha, str(commit.get("html_url", ""))), len(changes))
    try:
        done = await _commit_on(api, repo, branch, sha, message, others)
    except Problem as problem:
        raise Unavailable(
            f"{quote(first.name)} is committed to {branch.name} as {sha[:7]}, the others are not: {problem.failure}",
            "Call again with the others alone.",
        ) from problem
    sentence = (
        f"Committed {len(changes)} files to {branch.name}, in two commits: the first of a repository has one file."
    )
    return done.model_copy(update={"done": sentence})


async def _commit_on(
    api: Api, repo: WriteRepo, branch: Ref, head: str, message: str, changes: Sequence[FileChange]
) -> Done:
    """Make one commit on top of `head`, the tip of `branch`."""
    plan = await _plan(api, repo, branch, head, message, changes)
    executable_paths = plan.executable_paths
    if executable_paths:
        # All that GraphQL writes is a plain file.
        commit = await _commit_by_objects(api, plan)
        done = _done(branch, commit, len(changes))
        names = " and ".join(quote(path) for path in executable_paths)
        verb = "are"
        if len(executable_paths) == 1:
            verb = "is"
        sentence = f"{done.done} {names} {verb} executable: GitHub signs such a commit for apps alone."
        return done.model_copy(update={"done": sentence})
    try:
        commit = await _commit_by_graphql(api, plan)
    except NotFound:
        commit = await _commit_by_objects(api, plan)
    return _done(branch, commit, len(changes))


async def _plan(
    api: Api, repo: WriteRepo, branch: Ref, head: str, message: str, changes: Sequence[FileChange]
) -> _PlannedCommit:
    """Check `changes` against the commit `head`, and return what they make of its files."""
    additions: dict[str, bytes] = {}
    deletions: list[str] = []
    for change in changes:
        content = await _new_content(api, repo, api.policy.ref(head), change)
        if content is None:
            deletions.append(change.path.name)
        else:
            additions[change.path.name] = content
    changed_paths = [change.path for change in changes if (change.sha or change.edits) and not change.delete]
    modes = await _read_modes(api, repo, head, changed_paths)
    modes |= {change.path.name: _EXECUTABLE_MODE for change in changes if change.executable and not change.delete}
    return _PlannedCommit(repo, branch, head, message, additions, deletions, modes)


async def _read_modes(api: Api, repo: WriteRepo, head: str, paths: Sequence[FilePath]) -> dict[str, str]:
    """Return the modes of files of the commit `head`, by path.

    Raises:
        Conflict: one of them is a link; GitHub shows the file that it leads to as if it were there.
    """
    trees: dict[str, dict[str, dict[str, Any]]] = {}
    modes: dict[str, str] = {}
    for path in paths:
        tree_sha = head
        entry: dict[str, Any] = {}
        for name in path.name.split("/"):
            if tree_sha not in trees:
                trees[tree_sha] = await _read_tree(api, repo, tree_sha, path)
            entry = trees[tree_sha].get(name, {})
            if entry.get("type") != "tree":
                break
            tree_sha = str(entry["sha"])
        mode = str(entry.get("mode") or _PLAIN_MODE)
        if mode == SYMLINK_MODE:
            raise Conflict(f"{quote(path.display_name)} is a symlink, which is not overwritten.", "Change its target.")
        modes[path.name] = mode
    return modes


async def _read_tree(api: Api, repo: WriteRepo, sha: str, path: FilePath) -> dict[str, dict[str, Any]]:
    """Return the entries of a tree of git's, by name."""
    description = f"the folder of {quote(path.display_name)} in `{repo.full_name}`"
    response = await api.get(f"{repo.path}/git/trees/{sha}", description, internal=True)
    return {entry["path"]: entry for entry in response.data["tree"]}


async def _new_content(api: Api, repo: WriteRepo, head: Ref, change: FileChange) -> bytes | None:
    """Return the new content of a file that is what the caller expects; None for a deletion."""
    kinds = [change.content is not None, bool(change.edits), change.delete]
    if kinds.count(True) != 1:
        raise Invalid(f"{quote(change.name)} needs one of `content`, `edits` and `delete`.")
    try:
        existing = await fetch_contents(api, repo, change.path, head, internal=True)
    except NotFound:
        existing = None
    _require_expected(change, existing)
    if change.delete:
        return None
    if existing is None:
        return _encode_content(change, None)
    if change.content is not None:
        await _check_lfs_pointer(api, repo, change, existing)
        if change.is_base64:
            return _encode_content(change, None)
    old_content = await fetch_bytes(api, repo, change.path, existing, internal=True)
    file_text = decode_text(old_content)
    if change.content is not None:
        return _encode_content(change, file_text)
    new_content = _apply_edits(change.name, file_text, change.edits)
    _refuse_replacing_pointer(change, old_content, new_content)
    return new_content


async def _check_lfs_pointer(api: Api, repo: WriteRepo, change: FileChange, existing: Mapping[str, Any]) -> None:
    """Raise `Conflict` if a file's new content would replace a pointer of Git LFS; what is no pointer is not read."""
    new_content = _encode_content(change, None)
    if int(existing.get("size") or 0) > MAX_LFS_POINTER_BYTES or is_lfs_pointer(new_content):
        return
    old_content = await fetch_bytes(api, repo, change.path, existing, internal=True)
    _refuse_replacing_pointer(change, old_content, new_content)


def _refuse_replacing_pointer(change: FileChange, old_content: bytes, new_content: bytes) -> None:
    """Raise `Conflict` if a pointer of Git LFS would be replaced by something else: Git LFS calls that broken."""
    if is_lfs_pointer(old_content) and not is_lfs_pointer(new_content):
        raise Conflict(
            f"The content of {quote(change.name)} is in Git LFS, and Git has a pointer to it.",
            "Push it with Git LFS; to have it in Git from now on, delete the file in a commit of its own first.",
        )


async def _commit_by_graphql(api: Api, plan: _PlannedCommit) -> _Commit:
    """Make the commit in one request, signed by GitHub."""
    headline, _, body = plan.message.partition("\n")
    additions = [{"path": path, "contents": _to_base64(content)} for path, content in plan.additions.items()]
    mutation_input = {
        "branch": {"repositoryNameWithOwner": api.current_name(plan.repo), "branchName": plan.branch.name},
        "expectedHeadOid": plan.head,
        "message": {"headline": headline, "body": body.strip()},
        "fileChanges": {"additions": additions, "deletions": [{"path": path} for path in plan.deletions]},
    }
    response = await api.graphql(
        COMMIT_ON_BRANCH, {"input": mutation_input}, plan.description, repo=plan.repo, writes=True
    )
    commit = response.data["createCommitOnBranch"]["commit"]
    return _Commit(str(commit["oid"]), str(commit["url"]))


async def _commit_by_objects(api: Api, plan: _PlannedCommit) -> _Commit:
    """Make the commit of git objects: blobs, a tree, the commit itself, and then the branch that points to it."""
    repo = plan.repo
    description = plan.description
    parent = await api.get(f"{repo.path}/git/commits/{plan.head}", description, internal=True)
    entries: list[dict[str, Any]] = []
    for path, content in plan.additions.items():
        body = {"content": _to_base64(content), "encoding": "base64"}
        blob = await api.write("POST", f"{repo.path}/git/blobs", description, body, repo=repo)
        mode = plan.modes.get(path, _PLAIN_MODE)
        entries.append({"path": path, "mode": mode, "type": "blob", "sha": blob.data["sha"]})
    entries += [{"path": path, "mode": _PLAIN_MODE, "type": "blob", "sha": None} for path in plan.deletions]
    tree_body = {"base_tree": parent.data["tree"]["sha"], "tree": entries}
    tree = await api.write("POST", f"{repo.path}/git/trees", description, tree_body, repo=repo)
    commit_body = {"message": plan.message, "tree": tree.data["sha"], "parents": [plan.head]}
    commit = await api.write("POST", f"{repo.path}/git/commits", description, commit_body, repo=repo)
    await _move_branch(api, plan, str(commit.data["sha"]))
    return _Commit(str(commit.data["sha"]), str(commit.data.get("html_url", "")))


async def _move_branch(api: Api, plan: _PlannedCommit, sha: str) -> None:
    """Have the branch point to the commit `sha`.

    Raises:
        Conflict: the branch moved meanwhile.
    """
    path = f"{plan.repo.path}/git/refs/heads/{plan.branch.path}"
    try:
        await api.write("PATCH", path, plan.description, {"sha": sha, "force": False}, repo=plan.repo)
    except Invalid as problem:
        current = await resolve_sha(api, plan.repo, plan.branch)
        if current == plan.head and "fast forward" not in problem.failure:
            # A rule forbids it, such as one that wants signatures.
            raise
        raise Conflict(
            f"The {plan.description} moved meanwhile; it is at `{current}`.",
            "Read the files with `read_file`, then call again.",
        ) from None


def _require_expected(change: FileChange, existing: Mapping[str, Any] | None) -> None:
    """Raise `Conflict` unless what is at the path is what the caller expects there."""
    name = quote(change.name)
    if existing is None:
        if change.sha or change.content is None:
            raise Conflict(f"There is no file {name} on that branch.", "List its folder.")
        return
    kind = existing.get("type", "dir")
    if kind != "file":
        raise Conflict(f"{name} is a {kind}, which is not overwritten.", "Name a file.")
    # Texts that an edit quotes are where they were; what else has changed since stays.
    if change.sha is None and not change.edits:
        raise Conflict(
            f"{name} exists already; its sha is `{existing['sha']}`.", "Read it, then pass `sha` to change it."
        )
    if change.sha is not None and change.sha != existing["sha"]:
        raise Conflict(
            f"{name} is no longer what you read: its sha is `{existing['sha']}` now.",
            "Read it with `read_file`, then call again with that `sha`.",
        )


def _done(branch: Ref, commit: _Commit, file_count: int) -> Done:
    noun = "files"
    if file_count == 1:
        noun = "file"
    return Done(done=f"Committed {file_count} {noun} to {branch.name}.", url=commit.url, data={"commit": commit.sha})


def _to_base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _encode_content(change: FileChange, existing: FileText | None) -> bytes:
    """Return the bytes that the caller passed as the whole new content.

    Args:
        existing: the file as it is, whose encoding and byte order mark stay; nobody sees that it has one.
    """
    assert change.content is not None
    if change.is_base64:
        try:
            return base64.b64decode(change.content, validate=True)
        except ValueError:
            raise Invalid(
                f"The content of {quote(change.name)} is not base64.", "Leave `base64` out for text."
            ) from None
    try:
        if existing is None:
            return change.content.encode()
        _require_known_bytes(change, existing)
        return existing.encode_content(change.content)
    except UnicodeEncodeError:
        raise Invalid(f"The content of {quote(change.name)} holds half of a character.", "Send base64.") from None


def _require_known_bytes(change: FileChange, existing: FileText) -> None:
    """Raise `Conflict` for a file with bytes that were shown as U+FFFD: a new content with that has lost them."""
    if existing.has_unknown_bytes and REPLACEMENT in (change.content or ""):
        raise Conflict(
            f"{quote(change.name)} is not UTF-8, and the new content has {REPLACEMENT} in place of its own bytes.",
            "Change it with `edits`, which leave them as they are.",
        )


def _apply_edits(name: str, file_text: FileText | None, edits: Sequence[TextEdit]) -> bytes:
    """Return the text of a file after `edits`, each of whose old texts has to occur once."""
    if file_text is None:
        raise Invalid(f"{quote(name)} is not text.", "Pass its whole `content` as base64.")
    text = file_text.text
    for number, edit in enumerate(edits, 1):
        _require_encodable(name, edit, file_text)
        edit = _with_line_ends_of(text, edit)
        count = text.count(edit.old) if edit.old else 0
        if count != 1:
            occurrence = "does not occur" if not count else f"occurs {count} times"
            fix = "Quote more lines around it, exactly as the file has them."
            if file_text.has_unknown_bytes and REPLACEMENT in edit.old:
                fix = f"{REPLACEMENT} stands for bytes that can't be quoted: quote what is before or behind them."
            raise Conflict(f"Edit {number} of {quote(name)}: the old text {occurrence}. Nothing was changed.", fix)
        text = text.replace(edit.old, edit.new)
    return file_text.encode(text)


def _require_encodable(name: str, edit: TextEdit, file_text: FileText) -> None:
    """Raise `Invalid` for a new text that has no form in the file's encoding, or whose form nobody knows."""
    try:
        edit.new.encode()
    except UnicodeEncodeError:
        raise Invalid(f"An edit of {quote(name)} holds half of a character.") from None
    if file_text.has_unknown_bytes and not edit.new.isascii():
        raise Invalid(
            f"{quote(name)} is not UTF-8, so nobody knows how it spells what is not ASCII.",
            "Edit it with ASCII alone, or pass its whole `content` as base64.",
        )


def _with_line_ends_of(text: str, edit: TextEdit) -> TextEdit:
    """Return `edit` with the line ends of `text`, if all of these are alike: nobody sees how lines end."""
    has_only_crlf = "\r\n" in text and text.count("\n") == text.count("\r\n")
    if "\r\n" in edit.old + edit.new or not has_only_crlf:
        return edit
    return edit._replace(old=edit.old.replace("\n", "\r\n"), new=edit.new.replace("\n", "\r\n"))
