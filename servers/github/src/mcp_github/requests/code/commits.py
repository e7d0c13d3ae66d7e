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
from mcp_github.client.api import Api
from mcp_github.models import Done
from mcp_github.policy import FilePath, Ref, WriteRepo
from mcp_github.requests.code.files import Files
from mcp_github.requests.code.repositories import sha_of
from mcp_github.requests.graphql_queries import COMMIT_ON_BRANCH

__all__ = ["Commits", "FileChange"]

_PLAIN = "100644"


@dataclass(frozen=True)
class FileChange:
    """What is to become of a file.

    Attributes:
        content: the whole new content; None for edits and a deletion.
        edits: pairs of a text that occurs once and what takes its place.
        sha: the file's sha as it was read; None for a new file.
    """

    path: FilePath
    content: str | None = None
    is_base64: bool = False
    edits: Sequence[tuple[str, str]] = ()
    delete: bool = False
    sha: str | None = None


@dataclass(frozen=True)
class Commits:
    api: Api
    files: Files

    async def write(self, repo: WriteRepo, branch: Ref, message: str, changes: Sequence[FileChange]) -> Done:
        """One commit on `branch` with all of `changes`, or nothing.

        Raises:
            Conflict: a file is not what the caller expects, or the branch moved meanwhile.
        """
        names = [change.path.name for change in changes]
        if len(set(names)) < len(names):
            raise Invalid("A file is named twice.", "Put all changes of a file into one entry.")
        try:
            head = await self._head(repo, branch)
        except NotFound as problem:
            if problem.status != 409:
                raise
            return await self._first(repo, branch, message, changes)
        return await self._on(repo, branch, head, message, changes)

    async def _first(self, repo: WriteRepo, branch: Ref, message: str, changes: Sequence[FileChange]) -> Done:
        """The first commit of a repository, which takes one file and no more; of several files the others follow."""
        for change in changes:
            if change.content is None or change.sha or change.edits or change.delete:
                raise Conflict(
                    f"There is no file {quote(change.path.shown)}: the repository is empty.", "Pass `content`."
                )
        first, *others = changes
        content = base64.b64encode(_bytes(first.path.shown, first)).decode()
        for change in others:
            _bytes(change.path.shown, change)
        what = f"the first commit of `{repo.full}`"
        body = {"message": message, "content": content, "branch": branch.name}
        made = await self.api.write("PUT", f"{repo.path}/contents/{first.path.path}", what, body, repo=repo)
        sha = str(made.data["commit"]["sha"])
        if not others:
            return _done(branch, sha, str(made.data["commit"].get("html_url", "")), changes)
        try:
            done = await self._on(repo, branch, sha, message, others)
        except Problem as problem:
            kept = f"{quote(first.path.shown)} is committed to {branch.name} as {sha[:7]}"
            raise Unavailable(
                f"{kept}, the others are not: {problem.what}", "Call again with the others alone."
            ) from problem
        said = (
            f"Committed {len(changes)} files to {branch.name}, in two commits: the first of a repository has one file."
        )
        return done.model_copy(update={"done": said, "data": {**(done.data or {}), "files": _shown(changes)}})

    async def _on(self, repo: WriteRepo, branch: Ref, head: str, message: str, changes: Sequence[FileChange]) -> Done:
        """One commit on top of `head`, the tip of `branch`."""
        additions: list[tuple[str, bytes]] = []
        deletions: list[str] = []
        for change in changes:
            content = await self._checked(repo, self.api.policy.ref(head), change)
            if content is None:
                deletions.append(change.path.name)
            else:
                additions.append((change.path.name, content))
        modes = await self._modes(repo, head, [change.path for change in changes if change.sha and not change.delete])
        executable = [quote(name) for name, mode in modes.items() if mode != _PLAIN]
        try:
            # All that GraphQL writes is a plain file.
            sha, url = await (self._by_objects if executable else self._by_graphql)(
                repo, branch, head, message, additions, deletions, modes
            )
        except NotFound:
            if executable:
                raise
            sha, url = await self._by_objects(repo, branch, head, message, additions, deletions, modes)
        done = _done(branch, sha, url, changes)
        if not executable:
            return done
        said = f"{done.done} {' and '.join(executable)} stayed executable: GitHub signs such a commit for apps alone."
        return done.model_copy(update={"done": said})

    async def _modes(self, repo: WriteRepo, head: str, paths: Sequence[FilePath]) -> dict[str, str]:
        """The modes of files of the commit `head`.

        Raises:
            Conflict: one of them is a link; GitHub shows the file that it leads to as if it were there.
        """
        trees: dict[str, dict[str, dict[str, Any]]] = {}
        modes: dict[str, str] = {}
        for path in paths:
            tree, entry = head, dict[str, Any]()
            for part in path.name.split("/"):
                if tree not in trees:
                    what = f"the folder of {quote(path.shown)} in `{repo.full}`"
                    found = await self.api.get(f"{repo.path}/git/trees/{tree}", what, quiet=True)
                    trees[tree] = {item["path"]: item for item in found.data["tree"]}
                entry = trees[tree].get(part, dict[str, Any]())
                if entry.get("type") != "tree":
                    break
                tree = str(entry["sha"])
            modes[path.name] = str(entry.get("mode") or _PLAIN)
            if modes[path.name] == "120000":
                raise Conflict(f"{quote(path.shown)} is a symlink, which is not overwritten.", "Change its target.")
        return modes

    async def _head(self, repo: WriteRepo, branch: Ref) -> str:
        what = f"branch {quote(branch.name)} in `{repo.full}`"
        try:
            found = await self.api.get(f"{repo.path}/git/ref/heads/{branch.path}", what, quiet=True)
        except NotFound as problem:
            if problem.status == 409:  # an empty repository, in which a file makes the branch
                raise
            raise NotFound(f"There is no {what}.", "Make it with `create_branch` first.") from None
        return str(found.data["object"]["sha"])

    async def _checked(self, repo: WriteRepo, head: Ref, change: FileChange) -> bytes | None:
        """The new content; None for a deletion."""
        name = change.path.shown
        kinds = (change.content is not None) + bool(change.edits) + change.delete
        if kinds != 1:
            raise Invalid(f"{quote(name)} needs one of `content`, `edits` and `delete`.")
        try:
            found = await self.files.contents(repo, change.path, head, quiet=True)
        except NotFound:
            found = None
        if found is None:
            if change.sha or change.content is None:
                raise Conflict(f"There is no file {quote(name)} on that branch.", "List its folder.")
        elif found.get("type", "dir") != "file":
            raise Conflict(f"{quote(name)} is a {found.get('type', 'dir')}, which is not overwritten.", "Name a file.")
        elif change.sha is None:
            raise Conflict(
                f"{quote(name)} exists already; its sha is `{found['sha']}`.", "Read it, then pass `sha` to change it."
            )
        elif change.sha != found["sha"]:
            raise Conflict(
                f"{quote(name)} is no longer what you read: its sha is `{found['sha']}` now.", "Read it again."
            )
        if change.delete:
            return None
        if change.content is not None:
            return _bytes(name, change)
        blob = await self.files.blob(repo, change.path, head, quiet=True)
        return _edited(name, blob.data, change.edits)

    async def _by_graphql(
        self, repo: WriteRepo, branch: Ref, head: str, message: str, additions: Sequence[tuple[str, bytes]],
        deletions: Sequence[str], _modes: Mapping[str, str],
    ) -> tuple[str, str]:  # fmt: skip
        headline, _, body = message.partition("\n")
        given = {
            "branch": {"repositoryNameWithOwner": repo.full, "branchName": branch.name},
            "expectedHeadOid": head,
            "message": {"headline": headline, "body": body.strip()},
            "fileChanges": {
                "additions": [
                    {"path": path, "contents": base64.b64encode(content).decode()} for path, content in additions
                ],
                "deletions": [{"path": path} for path in deletions],
            },
        }
        what = f"branch {quote(branch.name)} of `{repo.full}`"
        made = await self.api.graphql(COMMIT_ON_BRANCH, {"input": given}, what, repo=repo, writes=True)
        commit = made.data["createCommitOnBranch"]["commit"]
        return str(commit["oid"]), str(commit["url"])

    async def _by_objects(
        self, repo: WriteRepo, branch: Ref, head: str, message: str, additions: Sequence[tuple[str, bytes]],
        deletions: Sequence[str], modes: Mapping[str, str],
    ) -> tuple[str, str]:  # fmt: skip
        what = f"branch {quote(branch.name)} of `{repo.full}`"
        parent = await self.api.get(f"{repo.path}/git/commits/{head}", what, quiet=True)
        tree: list[dict[str, Any]] = []
        for path, content in additions:
            blob = {"content": base64.b64encode(content).decode(), "encoding": "base64"}
            made = await self.api.write("POST", f"{repo.path}/git/blobs", what, blob, repo=repo)
            tree.append({"path": path, "mode": modes.get(path, _PLAIN), "type": "blob", "sha": made.data["sha"]})
        tree += [{"path": path, "mode": _PLAIN, "type": "blob", "sha": None} for path in deletions]
        entries = {"base_tree": parent.data["tree"]["sha"], "tree": tree}
        top = await self.api.write("POST", f"{repo.path}/git/trees", what, entries, repo=repo)
        body = {"message": message, "tree": top.data["sha"], "parents": [head]}
        commit = await self.api.write("POST", f"{repo.path}/git/commits", what, body, repo=repo)
        moved = {"sha": commit.data["sha"], "force": False}
        try:
            await self.api.write("PATCH", f"{repo.path}/git/refs/heads/{branch.path}", what, moved, repo=repo)
        except Invalid as problem:
            now = await sha_of(self.api, repo, branch)
            if now == head and "fast forward" not in problem.what:
                raise  # A rule forbids it, such as one that wants signatures.
            raise Conflict(f"The {what} moved meanwhile; it is at `{now}`.", "Read the files again.") from None
        return str(commit.data["sha"]), str(commit.data.get("html_url", ""))


def _done(branch: Ref, sha: str, url: str, changes: Sequence[FileChange]) -> Done:
    return Done(
        done=f"Committed {len(changes)} file{'s' if len(changes) > 1 else ''} to {branch.name}.",
        url=url, data={"commit": sha, "branch": branch.name, "files": _shown(changes)},
    )  # fmt: skip


def _shown(changes: Sequence[FileChange]) -> list[str]:
    return [change.path.shown for change in changes]


def _bytes(name: str, change: FileChange) -> bytes:
    assert change.content is not None
    if not change.is_base64:
        try:
            return change.content.encode()
        except UnicodeEncodeError:
            raise Invalid(f"The content of {quote(name)} holds half of a character.", "Send base64.") from None
    try:
        return base64.b64decode(change.content, validate=True)
    except ValueError:
        raise Invalid(f"The content of {quote(name)} is not base64.", "Leave `base64` out for text.") from None


def _edited(name: str, data: bytes, edits: Sequence[tuple[str, str]]) -> bytes:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise Invalid(f"{quote(name)} is not UTF-8 text.", "Pass its whole `content` as base64.") from None
    for number, (old, new) in enumerate(edits, 1):
        if "\r\n" not in old + new and text.count("\n") == text.count("\r\n"):
            # Nobody sees how the lines of a file end.
            old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
        count = text.count(old) if old else 0
        if count != 1:
            found = "does not occur" if not count else f"occurs {count} times"
            raise Conflict(
                f"Edit {number} of {quote(name)}: the old text {found}. Nothing was changed.",
                "Quote more lines around it, exactly as the file has them.",
            )
        text = text.replace(old, new)
    return text.encode()
