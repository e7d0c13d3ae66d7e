"""Files of a repository: folders, text by lines, bytes as they are, differences file by file."""

from __future__ import annotations

import base64
import fnmatch
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from mcp_batteries.errors import Invalid, NotFound, TooLarge, Unavailable, quote
from mcp_batteries.limits import DEFAULT_PAGE_BYTES, Cursor, in_thread
from mcp_batteries.media.picture_types import HEAD_BYTES, picture_type
from mcp_batteries.media.pictures import Picture
from mcp_batteries.media.pictures import Refused as NotShown
from mcp_batteries.media.process import prepare_apart
from mcp_github.call_context import caller
from mcp_github.client.api import Api, paging
from mcp_github.invisible import meant_path, shown_path
from mcp_github.listing.columns import TREE
from mcp_github.listing.pages import rows_within
from mcp_github.models import Listing, Text
from mcp_github.policy import HEAD, FilePath, Ref, Repo
from mcp_github.safety.scrub import scrub_text

__all__ = ["COMPARED", "Binary", "Blob", "Diff", "Files", "content_uri"]

_OBJECT, _RAW = "application/vnd.github.object+json", "application/vnd.github.raw+json"
_HINT = "`list_files` with recursive and pattern finds files, `list_refs` branches and tags."
_LFS = "version https://git-lfs.github.com/spec/"
_LARGEST = 20_000_000
"""Bytes of a file that is read at all; GitHub itself stops at 100 MB."""
COMPARED = 300
"""Files a comparison lists; of more it keeps silent."""
_LISTED, _ENTRIES = 3000, 1000
"""The same of a commit or a pull request, and of a folder."""
_KEPT_BYTES = 4_000_000
_BINARY_BYTES = 1_000_000


@dataclass(frozen=True)
class Blob:
    """A file as it is in a commit."""

    path: str
    sha: str
    data: bytes


@dataclass(frozen=True)
class Binary:
    """A file that is not text."""

    uri: str
    path: str
    sha: str
    data: bytes


@dataclass(frozen=True)
class Diff:
    """What differences are asked of: a pull request, a commit, or a comparison."""

    path: str
    what: str
    inside: bool
    """Whether the files are a field of the answer."""
    total: str = ""
    """Where the counts are, if not beside the files."""
    compares: bool = False
    """Whether all files there are stand on the first page: others have commits alone."""


@dataclass(frozen=True)
class Files:
    api: Api
    _kept: OrderedDict[str, bytes] = field(default_factory=OrderedDict[str, bytes])

    async def contents(self, repo: Repo, path: FilePath, ref: Ref | None, *, quiet: bool = False) -> dict[str, Any]:
        """What GitHub has at `path`: a file, a folder with its `entries`, a link, a submodule."""
        where = f"{repo.path}/contents/{path.path}"
        what = f"{quote(path.shown or '/')} in `{repo.full}`{f' at {quote(ref.name)}' if ref else ''}"
        params = {"ref": ref.name if ref else None}
        found = await self.api.get(where, what, params, repo=repo, quiet=quiet, accept=_OBJECT, hint=_HINT)
        data: Any = found.data
        return {"type": "dir", "entries": data} if isinstance(data, list) else data

    async def blob(self, repo: Repo, path: FilePath, ref: Ref | None, *, quiet: bool = False) -> Blob:
        """The bytes of a file and the sha that a change of it has to name.

        Raises:
            Invalid: it is a folder, a link or a submodule.
            TooLarge: it has more than 20 MB.
        """
        found = await self.contents(repo, path, ref, quiet=quiet)
        kind, sha = str(found.get("type", "dir")), str(found.get("sha", ""))
        if kind == "dir":
            raise Invalid(f"{quote(path.shown or '/')} is a folder.", "Use `list_files`.")
        if kind == "submodule":
            raise Invalid(f"{quote(path.shown)} is a submodule: {quote(str(found.get('submodule_git_url')))}.")
        if kind == "symlink" and found.get("encoding") != "base64":
            raise Invalid(f"{quote(path.shown)} is a link to {quote(str(found.get('target')))}.", "Read that instead.")
        if int(found.get("size") or 0) > _LARGEST:
            raise TooLarge(f"{quote(path.shown)} has `{found['size']:,}` bytes, more than `{_LARGEST:,}`.")
        # Scrubbing took nothing out of base64, so these are the very bytes.
        if found.get("encoding") == "base64" and found.get("content") is not None:
            try:
                return Blob(path.name, sha, base64.b64decode(found["content"]))
            except ValueError:
                raise Unavailable(
                    f"GitHub's answer for {quote(path.shown)} is cut.", "Try again in a moment."
                ) from None
        key = f"{caller.get().name} {repo.key} {sha}"
        data = self._kept.get(key)
        if data is None:
            where = f"{repo.path}/git/blobs/{self.api.policy.ref(sha).path}"
            what = f"{quote(path.shown)} in `{repo.full}`"
            data = await self.api.raw(where, what, _RAW, repo=repo, max_bytes=_LARGEST, quiet=quiet)
            if len(data) <= _KEPT_BYTES:
                self._kept[key] = data
                while len(self._kept) > 4:
                    self._kept.popitem(last=False)
        return Blob(path.name, sha, data)

    async def read(
        self, repo: Repo, path: FilePath, ref: Ref | None, *, start_line: int, lines: int | None
    ) -> Text | Binary | Picture:
        """Lines of a text file as many as fit an answer; a picture; any other file whole, up to a megabyte."""
        blob = await self.blob(repo, path, ref)
        uri = content_uri(repo, path, ref)
        text = _decoded(blob.data)
        if text is None:
            kind = picture_type(blob.data[:HEAD_BYTES])
            if kind is not None:
                facts = f"{repo.full}:{path.shown}; {kind}, {len(blob.data):,} bytes; sha {blob.sha}"
                return await _picture(blob.data, kind, facts, uri)
            if len(blob.data) > _BINARY_BYTES:
                raise TooLarge(
                    f"{quote(path.shown)} is not text and has `{len(blob.data):,}` bytes, too many for an answer.",
                    f"A host can read {quote(uri)}.",
                )
            return Binary(uri, path.name, blob.sha, blob.data)
        every = text.split("\n")
        if every and not every[-1]:
            every.pop()
        if start_line > max(1, len(every)):
            raise Invalid(f"{quote(path.shown)} has {len(every)} lines, so none is `{start_line}`.")
        wanted = every[start_line - 1 : None if lines is None else start_line - 1 + lines]
        shown: list[str] = []
        size = 0
        for line in wanted:
            size += len(line.encode()) + 1
            if size > DEFAULT_PAGE_BYTES and shown:
                break
            shown.append(line if len(line) <= DEFAULT_PAGE_BYTES else f"{line[:DEFAULT_PAGE_BYTES]}… [line cut]")
        last = start_line - 1 + len(shown)
        body, removed = scrub_text("\n".join(shown), code=True)
        facts = [
            f"{repo.full}:{path.shown}",
            f"lines {start_line if shown else 0}-{last} of {len(every)}",
            f"sha {blob.sha}",
        ]
        if text.startswith(_LFS):
            facts.append("a pointer: the content is in Git LFS, which is not read here")
        if removed:
            facts.append(f"{removed} invisible characters removed")
        facts += [f"truncated, continue with start_line={last + 1}" if last < len(every) else "the end", uri]
        return Text("; ".join(facts), body)

    async def readme(self, repo: Repo) -> str:
        """The text of the README."""
        what = f"the README of `{repo.full}`"
        data = await self.api.raw(f"{repo.path}/readme", what, _RAW, repo=repo, max_bytes=1_000_000)
        return scrub_text(data.decode("utf-8", "replace"))[0]

    @staticmethod
    def text_of(blob: Blob) -> str | None:
        """The text of a file, None if it is none."""
        text = _decoded(blob.data)
        return None if text is None else scrub_text(text, code=True)[0]

    async def tree(
        self, repo: Repo, path: FilePath, ref: Ref | None, *, recursive: bool, pattern: str | None,
        fields: Sequence[str] | None, limit: int, cursor: str | None,
    ) -> Listing:  # fmt: skip
        """What lies in a folder, or in everything beneath it."""
        note = None
        if recursive:
            where = f"{repo.path}/git/trees/{(ref or HEAD).path}"
            found = await self.api.get(where, f"the files of `{repo.full}`", {"recursive": 1}, repo=repo)
            top = f"{path.shown}/" if path.name else ""
            names = {"blob": "file", "tree": "dir", "commit": "submodule"}
            entries: list[dict[str, Any]] = [
                {**item, "type": names.get(item["type"], item["type"])}
                for item in found.data["tree"]
                if item["path"].startswith(top)
            ]
            cut = bool(found.data.get("truncated"))
            if top and not entries and cut:
                raise TooLarge(
                    f"GitHub cut the tree of `{repo.full}` before anything in {quote(path.shown)}.",
                    "List it without `recursive`.",
                )
            if top and not entries:
                raise NotFound(f"There is no folder {quote(path.shown)} in `{repo.full}`.", "List its parent.")
            if cut:
                note = "GitHub cut this tree: list folders one by one."
        else:
            got = await self.contents(repo, path, ref)
            if got.get("type", "dir") != "dir":
                raise Invalid(f"{quote(path.shown)} is a {got['type']}, no folder.", "Use `read_file`.")
            entries = cast("list[dict[str, Any]]", got.get("entries") or [])
            if len(entries) >= _ENTRIES:
                note = f"GitHub lists the first {_ENTRIES:,} of a folder: with `recursive` there may be more."
        if pattern:
            entries = [
                item
                for item in entries
                if fnmatch.fnmatch(item["path"], pattern) or fnmatch.fnmatch(item["path"].rpartition("/")[2], pattern)
            ]
        scope = [repo.key, path.name, ref and ref.name, recursive, pattern]
        start = int(Cursor.decode("files", cursor, scope)) if cursor else 0
        columns = TREE.choose(fields)
        rows = [TREE.row(item, columns) for item in entries[start : start + limit]]
        rows = rows[: rows_within(rows, DEFAULT_PAGE_BYTES)]
        end = start + len(rows)
        following = Cursor.encode("files", end, scope) if end < len(entries) else None
        if following:
            note = " ".join([*([note] if note else []), f"{len(entries) - end} more."])
        return Listing(cursor=following, note=note, total=len(entries), columns=columns, rows=rows)

    async def diff(
        self, repo: Repo, of: Diff, *, path: str | None, summary: bool, cursor: str | None,
        max_bytes: int = DEFAULT_PAGE_BYTES,
    ) -> Text:  # fmt: skip
        """Differences file by file, each whole if it fits, as many as fit."""
        if of.total:
            await self.api.require_insiders(of.total, of.what)
        scope = [of.path, path, summary]
        first: dict[str, Any] = {"q": {}, "skip": 0, "line": 0}
        position: dict[str, Any] = Cursor.decode("diff", cursor, scope) if cursor else first
        parts: list[str] = []
        first_files: list[dict[str, Any]] = []
        size = removed = listed = 0
        most = COMPARED if of.compares else _LISTED
        more = False
        following: dict[str, Any] | None = position
        while following is not None and size < max_bytes:
            params = {"per_page": 100, **paging(following["q"])}
            answer = await self.api.get(of.path, of.what, params, repo=repo)
            removed += answer.removed
            files = cast("list[dict[str, Any]]", (answer.data.get("files") or []) if of.inside else answer.data)
            listed = (int(following["q"].get("page", 1)) - 1) * 100 + len(files)
            turns = dict[str, str]() if of.compares else dict(answer.following)
            if following == first:
                first_files, more = files, bool(turns)
            page, start, line = following["q"], following["skip"], following["line"]
            following = {"q": turns, "skip": 0, "line": 0} if turns else None
            for number, file in enumerate(files[start:], start):
                if path and not _beneath(file["filename"], path):
                    line = 0
                    continue
                room = max_bytes - size
                text, rest = _one_file(file, line, room if parts else max_bytes, summary=summary)
                if text:
                    parts.append(text)
                    size += len(text.encode("utf-8", "surrogatepass"))
                line = 0
                if rest is not None:
                    following = {"q": page, "skip": number, "line": rest}
                    size = max_bytes
                    break
        head = [of.what]
        if cursor is None and path is None and following is not None:
            head += await self._to_come(of, first_files, more=more)
        if listed >= most:
            head.append(f"GitHub lists the first {most:,} files only")
        if removed:
            head.append(f"{removed} invisible characters removed")
        if following is not None:
            head.append(f"truncated, continue with cursor={Cursor.encode('diff', following, scope)}")
        elif path and not parts and listed >= most:
            raise NotFound(
                f"No file at {quote(path)} is among the first {most:,} of {of.what}, and GitHub lists no more.",
                "Compare with `read_file` at both ends, or take single commits.",
            )
        elif path and not parts:
            raise NotFound(f"No file at {quote(path)} differs in {of.what}.", "Leave `path` out to see all.")
        return Text("; ".join(head), "\n".join(parts) or "No differences.")

    async def _to_come(self, of: Diff, files: Sequence[Mapping[str, Any]], *, more: bool) -> list[str]:
        """How much a difference is of which only a part is shown.

        Args:
            files: of its first page.
            more: whether there are other pages.
        """
        about: Mapping[str, Any] = {
            "changed_files": len(files),
            "additions": sum(int(file["additions"]) for file in files),
            "deletions": sum(int(file["deletions"]) for file in files),
        }
        if more and of.total:
            about, more = (await self.api.get(of.total, of.what, quiet=True)).data, False
        least = "at least " if more else ""
        return [f"{least}{about['changed_files']} files, +{about['additions']} -{about['deletions']} in all"]


async def _picture(data: bytes, kind: str, facts: str, uri: str) -> Text | Picture:
    """Return a picture in a form that models take, or why it is not shown."""
    try:
        return await in_thread(lambda stop: prepare_apart(data, kind, stop), what="Decoding", long=True)
    except NotShown as refused:
        reason = refused.refusal.reason("mcp-github")
        return Text(f"{facts}; not shown: {reason}; its bytes are the resource {uri}", "")


def _decoded(data: bytes) -> str | None:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _beneath(name: str, path: str) -> bool:
    plain = shown_path(meant_path(path)).strip("/")
    return name == plain or name.startswith(f"{plain}/") or fnmatch.fnmatch(name, plain)


def _one_file(file: Mapping[str, Any], line: int, room: int, *, summary: bool) -> tuple[str, int | None]:
    """The difference of a file from `line` on, and the line to go on with if it had to be cut."""
    before = f" from {file['previous_filename']}" if file.get("previous_filename") else ""
    head = f"=== {file['filename']} ({file['status']}{before}, +{file['additions']} -{file['deletions']})"
    if summary:
        return (head, None) if len(head) <= room else ("", 0)
    patch = file.get("patch")
    if patch is None:
        note = "no text difference: binary, renamed only, or too large; read_file shows it"
        return (f"{head}\n[{note}]", None) if len(head) + len(note) <= room else ("", 0)
    lines = str(patch).split("\n")
    shown: list[str] = []
    size = len(head.encode("utf-8", "surrogatepass")) + 1
    for text in lines[line:]:
        cut = text if len(text) <= 2000 else f"{text[:2000]}… [line cut]"
        size += len(cut.encode("utf-8", "surrogatepass")) + 1
        if size > room:
            break
        shown.append(cut)
    end = line + len(shown)
    if end == len(lines):
        return "\n".join([head if not line else f"{head}, continued", *shown]), None
    # A file that is cut is cut at the start of an answer's room, or not begun at all.
    if not shown or (not line and room < DEFAULT_PAGE_BYTES // 2):
        return "", line
    return "\n".join([head if not line else f"{head}, continued", *shown]), end


def content_uri(repo: Repo, path: FilePath, ref: Ref | None) -> str:
    """The URI of a file's resource."""
    return f"{repo.uri}/contents/{path.path}{f'?ref={ref.path}' if ref else ''}"
