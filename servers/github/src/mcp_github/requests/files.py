"""Files of a repository: folders, text by lines, bytes as they are."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import Any, cast

from mcp_batteries.clipping import DEFAULT_PAGE_BYTES
from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.concurrency.threads import run_in_thread
from mcp_batteries.cursors import Cursor
from mcp_batteries.errors import Invalid, NotFound, Problem, TooLarge, Unavailable, quote
from mcp_batteries.media.picture_types import HEAD_BYTES, picture_type
from mcp_batteries.media.pictures import Picture
from mcp_batteries.media.pictures import Refused as NotShown
from mcp_batteries.media.process import prepare_apart
from mcp_github.client.api import Api
from mcp_github.listing.columns import TREE
from mcp_github.listing.pages import PageOptions, count_fitting_rows, join_notes
from mcp_github.models import Listing, Text
from mcp_github.policy import HEAD, FilePath, Ref, Repo
from mcp_github.requests.file_texts import decode_text, is_lfs_pointer
from mcp_github.requests.path_globs import PathGlob
from mcp_github.safety.scrub import scrub_text

__all__ = [
    "SYMLINK_MODE", "BinaryFile", "Blob", "content_uri", "decode_blob", "fetch_blob", "fetch_bytes",
    "fetch_contents",
    "fetch_readme", "list_folder", "read_content", "require_path",
]  # fmt: skip

_OBJECT_TYPE = "application/vnd.github.object+json"
_RAW_TYPE = "application/vnd.github.raw+json"
_HINT = (
    "`list_files` with recursive and pattern finds files, `list_refs` branches and tags; without `ref` it is the "
    "default branch."
)
# Paths that are told in place of one that is not there, and how many are looked at for them.
_MAX_NEAREST = 3
_MAX_COMPARED_PATHS = 5000
_MAX_QUOTED_PATH_CHARACTERS = 200
# Of a file that is read at all; GitHub itself stops at 100 MB.
_MAX_FILE_BYTES = 20_000_000
_MAX_README_BYTES = 1_000_000
_MAX_BINARY_BYTES = 1_000_000
# Entries of a folder that GitHub lists.
_MAX_FOLDER_ENTRIES = 1000
# Of a link, in a tree of Git's.
SYMLINK_MODE = "120000"
_TYPES_BY_TREE_TYPE = {"blob": "file", "tree": "dir", "commit": "submodule"}


@dataclass(frozen=True)
class Blob:
    """A file as it is in a commit."""

    path: str
    sha: str
    data: bytes


@dataclass(frozen=True)
class BinaryFile:
    """A file that is not text."""

    uri: str
    path: str
    sha: str
    data: bytes


@dataclass(frozen=True)
class _Entries:
    """What lies in a folder, and what the caller has to know of the list."""

    items: list[dict[str, Any]]
    note: str | None = None


@dataclass(frozen=True)
class _LinePage:
    """Lines of a file that fit an answer.

    Attributes:
        first, last: the numbers of the lines shown; `last` is one less than `first` if there are none.
        total: how many lines the file has.
    """

    lines: list[str]
    first: int
    total: int

    @property
    def last(self) -> int:
        return self.first - 1 + len(self.lines)


async def fetch_contents(
    api: Api, repo: Repo, path: FilePath, ref: Ref | None, *, internal: bool = False
) -> dict[str, Any]:
    """Return what GitHub has at `path`: a file, a folder with its `entries`, a link, a submodule."""
    description = f"{quote(path.display_name or '/')} in `{repo.full_name}`"
    params: dict[str, Any] = {"ref": None}
    if ref is not None:
        description += f" at {quote(ref.name)}"
        params = {"ref": ref.name}
    try:
        response = await api.get(
            f"{repo.path}/contents/{path.path}", description, params, repo=repo, internal=internal,
            accept=_OBJECT_TYPE, hint=_HINT,
        )  # fmt: skip
    except NotFound as problem:
        nearest = []
        if not internal and path.name and problem.status == 404:
            nearest = await _find_nearest(api, repo, path, ref)
        if not nearest:
            raise
        names = ", ".join(quote(name, _MAX_QUOTED_PATH_CHARACTERS) for name in nearest)
        raise NotFound(f"{problem.failure} The nearest there are: {names}.", problem.fix, status=404) from None
    data: Any = response.data
    if isinstance(data, list):
        return {"type": "dir", "entries": data}
    return data


async def require_path(api: Api, repo: Repo, path: FilePath, ref: Ref | None) -> None:
    """Raise `NotFound` with the nearest paths if there is nothing at `path`."""
    await fetch_contents(api, repo, path, ref)


async def _find_nearest(api: Api, repo: Repo, path: FilePath, ref: Ref | None) -> list[str]:
    """Return the paths that are most like one that is not there: first those with its very name."""
    tree = "HEAD"
    if ref is not None:
        tree = ref.segment
    try:
        response = await api.get(
            f"{repo.path}/git/trees/{tree}", f"the files of `{repo.full_name}`", {"recursive": 1}, repo=repo
        )
    except Problem:
        # That there is no such path is all that is sure.
        return []
    entries = cast("list[dict[str, Any]]", response.data.get("tree") or [])
    paths = [str(entry["path"]) for entry in entries]
    name = path.name.rpartition("/")[2].casefold()
    namesakes = [each for each in paths if each.rpartition("/")[2].casefold() == name]
    by_key = {each.casefold(): each for each in paths[:_MAX_COMPARED_PATHS]}
    similar = [by_key[key] for key in get_close_matches(path.name.casefold(), by_key, _MAX_NEAREST)]
    return list(dict.fromkeys([*namesakes, *similar]))[:_MAX_NEAREST]


async def fetch_blob(api: Api, repo: Repo, path: FilePath, ref: Ref | None, *, internal: bool = False) -> Blob:
    """Return the bytes of a file and the sha that a change of it has to name.

    Raises:
        Invalid: it is a folder, a link or a submodule.
        TooLarge: it has more than 20 MB.
    """
    contents = await fetch_contents(api, repo, path, ref, internal=internal)
    data = await fetch_bytes(api, repo, path, contents, internal=internal)
    return Blob(path.name, str(contents.get("sha", "")), data)


async def fetch_bytes(
    api: Api, repo: Repo, path: FilePath, contents: Mapping[str, Any], *, internal: bool = False
) -> bytes:
    """Return the bytes of a file of which GitHub sent `contents`, and not always all of it.

    Raises:
        Invalid: it is a folder, a link or a submodule.
        TooLarge: it has more than 20 MB.
    """
    _require_readable_file(contents, path)
    if contents.get("encoding") != "base64" or contents.get("content") is None:
        return await _large_blob(api, repo, path, str(contents.get("sha", "")), internal=internal)
    # Scrubbing took nothing out of base64, so these are the very bytes.
    try:
        return base64.b64decode(contents["content"])
    except ValueError:
        raise Unavailable(f"GitHub's answer for {quote(path.display_name)} is cut.", "Try again in a moment.") from None


async def read_content(
    api: Api, repo: Repo, path: FilePath, ref: Ref | None, *, start_line: int, max_lines: int | None
) -> Text | BinaryFile | Picture:
    """Return lines of a text file as many as fit an answer; a picture; any other file whole, up to a megabyte."""
    blob = await fetch_blob(api, repo, path, ref)
    uri = content_uri(repo, path, ref)
    file_text = decode_text(blob.data)
    name = f"{repo.full_name}:{path.display_name}"
    if file_text is not None:
        page = _cut_lines(file_text.display_text, path, start_line, max_lines)
        notes = [file_text.note]
        if is_lfs_pointer(blob.data):
            notes.append("a pointer: the content is in Git LFS, which is not read here")
        return _show_lines(page, name, blob.sha, uri, notes)
    kind = picture_type(blob.data[:HEAD_BYTES])
    if kind is not None:
        facts = f"{name}; {kind}, {len(blob.data):,} bytes; sha {blob.sha}"
        return await _prepare_picture(blob.data, kind, facts, uri)
    if len(blob.data) > _MAX_BINARY_BYTES:
        raise TooLarge(
            f"{quote(path.display_name)} is not text and has `{len(blob.data):,}` bytes, too many for an answer.",
            f"A host can read {quote(uri)}.",
        )
    return BinaryFile(uri, path.name, blob.sha, blob.data)


def _show_lines(page: _LinePage, name: str, sha: str, uri: str, notes: Sequence[str]) -> Text:
    """Return lines of a file, after one that says which they are and how to go on."""
    # Behind the last line too, which may be blank.
    body, removed = scrub_text("".join(f"{line}\n" for line in page.lines), code=True)
    first = page.first
    if not page.lines:
        first = 0
    head = [name, f"lines {first}-{page.last} of {page.total}", f"sha {sha}"]
    head += filter(None, notes)
    if removed:
        head.append(f"{removed} invisible characters removed")
    if page.last < page.total:
        head.append(f"truncated, continue with start_line={page.last + 1}")
    else:
        head.append("the end")
    head.append(uri)
    return Text("; ".join(head), body)


async def fetch_readme(api: Api, repo: Repo) -> str:
    """Return the text of the README."""
    data = await api.raw(
        f"{repo.path}/readme", f"the README of `{repo.full_name}`", _RAW_TYPE, repo=repo,
        max_bytes=_MAX_README_BYTES,
    )  # fmt: skip
    text, _ = scrub_text(data.decode("utf-8", "replace"))
    return text


def decode_blob(blob: Blob) -> str | None:
    """Return the text of a file, None if it is none or would lose some of its bytes."""
    file_text = decode_text(blob.data)
    if file_text is None or file_text.has_unknown_bytes:
        return None
    scrubbed, _ = scrub_text(file_text.text, code=True)
    return scrubbed


async def list_folder(
    api: Api, repo: Repo, path: FilePath, ref: Ref | None, *, recursive: bool, pattern: str | None,
    options: PageOptions,
) -> Listing:  # fmt: skip
    """Return what lies in a folder, or in everything beneath it."""
    if recursive:
        entries = await _entries_beneath(api, repo, path, ref)
    else:
        entries = await _entries_in(api, repo, path, ref)
    items = entries.items
    if pattern:
        glob = PathGlob(pattern)
        select = partial(_select_matches, items, glob, f"{path.display_name}/")
        items = await run_in_thread(select, description="Matching", long=True)
    ref_name = None
    if ref is not None:
        ref_name = ref.name
    scope = [repo.key, path.name, ref_name, recursive, pattern]
    start = 0
    if options.cursor:
        start = int(Cursor.decode("files", options.cursor, scope))
    columns = TREE.choose_columns(options.fields)
    rows = [TREE.to_row(item, columns) for item in items[start : start + options.limit]]
    rows = rows[: count_fitting_rows(rows, DEFAULT_PAGE_BYTES)]
    end = start + len(rows)
    cursor = None
    note = entries.note
    if end < len(items):
        cursor = Cursor.encode("files", end, scope)
        at_least = "At least " if entries.note else ""
        note = join_notes(note, f"{at_least}{len(items) - end} more.")
    total = len(items)
    if entries.note:
        total = None
    return Listing(cursor=cursor, note=note, total=total, columns=columns, rows=rows)


def _select_matches(
    items: Sequence[dict[str, Any]], glob: PathGlob, folder: str, cancel: CancelToken
) -> list[dict[str, Any]]:
    """Return the entries that a glob matches, be it written as seen from `folder` or from the top."""
    matches: list[dict[str, Any]] = []
    for item in items:
        cancel.check()
        path = str(item["path"])
        if glob.matches(path) or glob.matches(path.removeprefix(folder)):
            matches.append(item)
    return matches


async def _large_blob(api: Api, repo: Repo, path: FilePath, sha: str, *, internal: bool) -> bytes:
    """Return the bytes of a file that GitHub does not send beside its name."""
    data = api.blob_cache.get(repo, sha)
    if data is not None:
        return data
    blob_path = f"{repo.path}/git/blobs/{api.policy.ref(sha).path}"
    description = f"{quote(path.display_name)} in `{repo.full_name}`"
    data = await api.raw(blob_path, description, _RAW_TYPE, repo=repo, max_bytes=_MAX_FILE_BYTES, internal=internal)
    api.blob_cache.put(repo, sha, data)
    return data


async def _entries_in(api: Api, repo: Repo, path: FilePath, ref: Ref | None) -> _Entries:
    contents = await fetch_contents(api, repo, path, ref)
    if contents.get("type", "dir") != "dir":
        raise Invalid(f"{quote(path.display_name)} is a {contents['type']}, no folder.", "Use `read_file`.")
    items = [
        {**item, "type": "submodule"} if _is_submodule(item) else item
        for item in cast("list[dict[str, Any]]", contents.get("entries") or [])
    ]
    note = None
    if len(items) >= _MAX_FOLDER_ENTRIES:
        note = f"GitHub lists the first {_MAX_FOLDER_ENTRIES:,} of a folder: with `recursive` there may be more."
    return _Entries(items, note)


def _type_in_tree(entry: Mapping[str, Any]) -> str:
    """Return the type of an entry of a tree, in the words that GitHub has for those of a folder."""
    if entry.get("mode") == SYMLINK_MODE:
        return "symlink"
    kind = str(entry["type"])
    return _TYPES_BY_TREE_TYPE.get(kind, kind)


def _is_submodule(entry: Mapping[str, Any]) -> bool:
    """Return whether an entry of a folder is a submodule, which GitHub calls a file there, for older programs."""
    return entry.get("type") == "file" and "/git/trees/" in str(entry.get("git_url"))


async def _entries_beneath(api: Api, repo: Repo, path: FilePath, ref: Ref | None) -> _Entries:
    tree_path = f"{repo.path}/git/trees/{(ref or HEAD).segment}"
    description = f"the files of `{repo.full_name}`"
    if ref is not None:
        description += f" at {quote(ref.name)}"
    response = await api.get(tree_path, description, {"recursive": 1}, repo=repo, hint=_HINT)
    folder = ""
    if path.name:
        folder = f"{path.display_name}/"
    items: list[dict[str, Any]] = [
        {**item, "type": _type_in_tree(item)} for item in response.data["tree"] if item["path"].startswith(folder)
    ]
    is_cut = bool(response.data.get("truncated"))
    if folder and not items:
        if is_cut:
            raise TooLarge(
                f"GitHub cut the tree of `{repo.full_name}` before anything in {quote(path.display_name)}.",
                "List it without `recursive`.",
            )
        await require_path(api, repo, path, ref)
        raise Invalid(f"{quote(path.display_name)} is no folder.", "Use `read_file`.")
    if is_cut:
        return _Entries(items, "GitHub cut this tree: list folders one by one.")
    return _Entries(items)


def content_uri(repo: Repo, path: FilePath, ref: Ref | None) -> str:
    """Return the URI of a file's resource."""
    uri = f"{repo.uri}/contents/{path.path}"
    if ref is None:
        return uri
    return f"{uri}?ref={ref.path}"


def _require_readable_file(contents: Mapping[str, Any], path: FilePath) -> None:
    """Raise `Invalid` for what is no file, and `TooLarge` for what is not read here."""
    kind = str(contents.get("type", "dir"))
    name = quote(path.display_name)
    if kind == "dir":
        raise Invalid(f"{quote(path.display_name or '/')} is a folder.", "Use `list_files`.")
    if kind == "submodule":
        raise Invalid(f"{name} is a submodule: {quote(str(contents.get('submodule_git_url')))}.")
    if kind == "symlink" and contents.get("encoding") != "base64":
        raise Invalid(f"{name} is a link to {quote(str(contents.get('target')))}.", "Read that instead.")
    if int(contents.get("size") or 0) > _MAX_FILE_BYTES:
        raise TooLarge(f"{name} has `{contents['size']:,}` bytes, more than `{_MAX_FILE_BYTES:,}`.")


def _cut_lines(text: str, path: FilePath, start_line: int, max_lines: int | None) -> _LinePage:
    """Return the lines of a file from `start_line` on that fit an answer; at least one.

    Raises:
        Invalid: the file has no such line.
    """
    lines: list[str] = []
    if text:
        lines = text.removesuffix("\n").split("\n")
    if start_line > max(1, len(lines)):
        raise Invalid(f"{quote(path.display_name)} has {len(lines)} lines, so none is `{start_line}`.")
    end = len(lines)
    if max_lines is not None:
        end = start_line - 1 + max_lines
    fitting: list[str] = []
    size = 0
    for line in lines[start_line - 1 : end]:
        size += len(line.encode()) + 1
        if size > DEFAULT_PAGE_BYTES and fitting:
            break
        if len(line) > DEFAULT_PAGE_BYTES:
            line = f"{line[:DEFAULT_PAGE_BYTES]}… [line cut]"
        fitting.append(line)
    return _LinePage(fitting, start_line, len(lines))


async def _prepare_picture(data: bytes, kind: str, facts: str, uri: str) -> Text | Picture:
    """Return a picture in a form that models take, or why it is not shown."""
    try:
        return await run_in_thread(lambda cancel: prepare_apart(data, kind, cancel), description="Decoding", long=True)
    except NotShown as refused:
        reason = refused.refusal.reason("mcp-github")
        return Text(f"{facts}; not shown: {reason}; its bytes are the resource {uri}", "")
