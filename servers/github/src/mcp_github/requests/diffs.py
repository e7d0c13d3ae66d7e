"""Differences file by file: of a pull request, of a commit, or between two of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from mcp_batteries.clipping import DEFAULT_PAGE_BYTES
from mcp_batteries.cursors import Cursor
from mcp_batteries.errors import Invalid, NotFound, quote
from mcp_github.client.api import Api, select_paging_params
from mcp_github.invisible import escape_path, unescape_path
from mcp_github.listing.projections import clip, pick
from mcp_github.models import Text
from mcp_github.policy import Ref, Repo
from mcp_github.requests.path_globs import PathGlob

__all__ = ["MAX_COMPARED_FILES", "DiffSource", "diff_source", "read_differences"]

# Files that a comparison lists; of more GitHub keeps silent.
MAX_COMPARED_FILES = 300
# The same of a commit or a pull request.
_MAX_LISTED_FILES = 3000
_FILES_PER_PAGE = 100
_MAX_LINE_CHARACTERS = 2000
_MAX_INTRODUCTION_CHARACTERS = 1500
_GLOB_CHARACTERS = frozenset("*?[{")


@dataclass(frozen=True)
class DiffSource:
    """What differences are asked of: a pull request, a commit, or a comparison.

    Attributes:
        description: what it is, in words for messages.
        has_files_inside: whether the files are a field of the answer.
        counts_path: where the counts are, if not beside the files.
        is_comparison: whether all files there are stand on the first page: others have commits alone.
    """

    path: str
    description: str
    has_files_inside: bool
    counts_path: str = ""
    is_comparison: bool = False

    @property
    def max_files(self) -> int:
        """How many files GitHub lists at most."""
        if self.is_comparison:
            return MAX_COMPARED_FILES
        return _MAX_LISTED_FILES


def diff_source(repo: Repo, *, number: int | None, ref: Ref | None, base: Ref | None) -> DiffSource:
    """Return where the differences of a pull request, a commit, or from `base` to `ref` are."""
    if number is not None:
        path = f"{repo.path}/pulls/{number}"
        return DiffSource(f"{path}/files", f"pull request #{number} of {repo.full_name}", False, counts_path=path)
    if ref is None:
        raise Invalid("One of `number` and `ref` has to be given.")
    if base is not None:
        path = f"{repo.path}/compare/{base.path}...{ref.path}"
        return DiffSource(path, f"{base.name}...{ref.name} of {repo.full_name}", True, is_comparison=True)
    return DiffSource(f"{repo.path}/commits/{ref.path}", f"commit {ref.name} of {repo.full_name}", True)


@dataclass(frozen=True)
class _Position:
    """Where an answer begins.

    Attributes:
        paging: the parameters of GitHub's page.
        skip: how many files of that page were shown before.
        line: how many lines of the next file were shown before.
    """

    paging: Mapping[str, str] = field(default_factory=dict[str, str])
    skip: int = 0
    line: int = 0

    @classmethod
    def decode(cls, cursor: str, scope: Sequence[Any]) -> _Position:
        value: dict[str, Any] = Cursor.decode("diff", cursor, scope)
        return cls(value["q"], value["skip"], value["line"])

    def encode(self, scope: Sequence[Any]) -> str:
        return Cursor.encode("diff", {"q": self.paging, "skip": self.skip, "line": self.line}, scope)

    @property
    def files_before(self) -> int:
        """How many files are on GitHub's pages before this one."""
        return (int(self.paging.get("page", 1)) - 1) * _FILES_PER_PAGE


@dataclass(frozen=True)
class _FilePage:
    """One of GitHub's pages.

    Attributes:
        next_page: the parameters of the next; empty on the last.
        removed: how many invisible characters were taken out.
    """

    files: Sequence[Mapping[str, Any]]
    next_page: Mapping[str, str]
    removed: int


@dataclass(frozen=True)
class _FilePatch:
    """What of a file's difference fits.

    Attributes:
        text: empty if nothing fits.
        next_line: the line to go on with if the file had to be cut; None if it is whole.
    """

    text: str
    next_line: int | None = None


class _PathFilter:
    """The file, the folder or the glob that a caller's `path` names."""

    def __init__(self, path: str) -> None:
        self._plain_path = escape_path(unescape_path(path)).strip("/")
        self._glob: PathGlob | None = None
        # Without such a character a name is that of one file, at the top.
        if not _GLOB_CHARACTERS.isdisjoint(self._plain_path):
            self._glob = PathGlob(self._plain_path)

    def matches(self, name: str) -> bool:
        if name == self._plain_path or name.startswith(f"{self._plain_path}/"):
            return True
        return self._glob is not None and self._glob.matches(name)


@dataclass
class _Answer:
    """The differences as they grow.

    Attributes:
        next_position: where the next page of GitHub's or the next answer begins; None after the last.
        first_page: of GitHub's, once one is read.
        listed_count: how many files GitHub listed up to here.
        removed: how many invisible characters were taken out.
    """

    path_filter: _PathFilter | None
    summary: bool
    max_bytes: int
    next_position: _Position | None
    first_page: _FilePage | None = None
    patches: list[str] = field(default_factory=list[str])
    size: int = 0
    listed_count: int = 0
    removed: int = 0

    @property
    def is_full(self) -> bool:
        return self.size >= self.max_bytes

    def add(self, page: _FilePage, position: _Position) -> None:
        """Add the files of one of GitHub's pages from `position` on, as many as fit."""
        if self.first_page is None:
            self.first_page = page
        self.removed += page.removed
        self.listed_count = position.files_before + len(page.files)
        self.next_position = None
        if page.next_page:
            self.next_position = _Position(page.next_page)
        line = position.line
        for number, file in enumerate(page.files[position.skip :], position.skip):
            if self.path_filter is None or self.path_filter.matches(file["filename"]):
                patch = self._cut(file, line)
                if patch.text:
                    self.patches.append(patch.text)
                    self.size += len(patch.text.encode("utf-8", "surrogatepass"))
                if patch.next_line is not None:
                    self.next_position = _Position(position.paging, number, patch.next_line)
                    self.size = self.max_bytes
                    return
            line = 0

    def _cut(self, file: Mapping[str, Any], line: int) -> _FilePatch:
        room = self.max_bytes
        if self.patches:
            room = self.max_bytes - self.size
        if self.summary:
            return _summarize(file, room)
        return _cut_patch(file, line, room)


async def read_differences(
    api: Api, repo: Repo, source: DiffSource, *, path: str | None, summary: bool, cursor: str | None,
    max_bytes: int = DEFAULT_PAGE_BYTES, introduces: bool = False,
) -> Text:  # fmt: skip
    """Return differences file by file, each whole if it fits, as many as fit.

    Args:
        introduces: whether what a pull request says of itself stands before its differences.
    """
    if source.counts_path:
        await api.require_insiders(source.counts_path, source.description)
    scope = [source.path, path, summary]
    start = _Position()
    if cursor:
        start = _Position.decode(cursor, scope)
    path_filter = _PathFilter(path) if path else None
    answer = _Answer(path_filter, summary, max_bytes, start)
    await _fill(answer, api, repo, source)
    if path and not answer.patches and answer.next_position is None:
        raise _no_such_file(path, source, answer.listed_count)
    head = [source.description]
    body: list[str] = []
    is_begin_of_all_files = cursor is None and path is None
    if is_begin_of_all_files:
        if introduces and source.counts_path:
            response = await api.get(source.counts_path, source.description, repo=repo)
            body += _introduce_pull(response.data)
        if answer.next_position is not None and answer.first_page is not None:
            head.append(await _count_all(api, source, answer.first_page))
    head += _describe_gaps(source, answer, scope)
    body += answer.patches or ["No differences."]
    return Text("; ".join(head), "\n".join(body))


async def _fill(answer: _Answer, api: Api, repo: Repo, source: DiffSource) -> None:
    """Read one of GitHub's pages after the other until the answer is full or has all."""
    while answer.next_position is not None and not answer.is_full:
        position = answer.next_position
        page = await _fetch_page(api, repo, source, position)
        answer.add(page, position)


def _introduce_pull(pull: Mapping[str, Any]) -> list[str]:
    """Return the title and the text of a pull request as quoted lines, which nobody takes for a difference."""
    state = pull.get("state")
    if pull.get("merged"):
        state = "merged"
    # The label goes with the account of a fork that is gone.
    head = pick(pull, "head.label") or f"ghost:{pick(pull, 'head.ref')}"
    lines = [f"> {pull.get('title')} ({state}, {head} into {pick(pull, 'base.ref')})"]
    text = str(pick(pull, clip("body", _MAX_INTRODUCTION_CHARACTERS)) or "").strip()
    if text:
        lines += [f"> {line}".rstrip() for line in text.splitlines()]
    return lines


def _describe_gaps(source: DiffSource, answer: _Answer, scope: Sequence[Any]) -> list[str]:
    """Return what is missing in an answer, and how to go on."""
    gaps: list[str] = []
    if answer.listed_count >= source.max_files:
        gaps.append(f"GitHub lists the first {source.max_files:,} files only")
    if answer.removed:
        gaps.append(f"{answer.removed} invisible characters removed")
    if answer.next_position is not None:
        gaps.append(f"truncated, continue with cursor={answer.next_position.encode(scope)}")
    return gaps


async def _fetch_page(api: Api, repo: Repo, source: DiffSource, position: _Position) -> _FilePage:
    params = {"per_page": _FILES_PER_PAGE, **select_paging_params(position.paging)}
    response = await api.get(source.path, source.description, params, repo=repo)
    files: Any = response.data
    if source.has_files_inside:
        files = response.data.get("files") or []
    page = _FilePage(cast("list[dict[str, Any]]", files), response.next_page, response.removed)
    if source.is_comparison:
        # Its later pages have commits alone.
        return replace(page, next_page={})
    return page


async def _count_all(api: Api, source: DiffSource, first_page: _FilePage) -> str:
    """Return how much the whole difference is, of which only a part is shown."""
    if first_page.next_page and source.counts_path:
        response = await api.get(source.counts_path, source.description, internal=True)
        counts = response.data
        return f"{counts['changed_files']} files, +{counts['additions']} -{counts['deletions']} in all"
    additions = sum(int(file["additions"]) for file in first_page.files)
    deletions = sum(int(file["deletions"]) for file in first_page.files)
    totals = f"{len(first_page.files)} files, +{additions} -{deletions} in all"
    if first_page.next_page or len(first_page.files) >= source.max_files:
        return f"at least {totals}"
    return totals


def _no_such_file(path: str, source: DiffSource, listed_count: int) -> NotFound:
    if listed_count >= source.max_files:
        return NotFound(
            f"No file at {quote(path)} is among the first {source.max_files:,} of {source.description}, and GitHub "
            "lists no more.",
            "Compare with `read_file` at both ends, or take single commits.",
        )
    return NotFound(f"No file at {quote(path)} differs in {source.description}.", "Leave `path` out to see all.")


def _headline(file: Mapping[str, Any]) -> str:
    origin = ""
    if file.get("previous_filename"):
        origin = f" from {file['previous_filename']}"
    return f"=== {file['filename']} ({file['status']}{origin}, +{file['additions']} -{file['deletions']})"


def _summarize(file: Mapping[str, Any], room: int) -> _FilePatch:
    """Return the headline of a file, if there is room for it."""
    headline = _headline(file)
    if len(headline) > room:
        return _FilePatch("", 0)
    return _FilePatch(headline)


def _cut_patch(file: Mapping[str, Any], start: int, room: int) -> _FilePatch:
    """Return the difference of a file from the line `start` on, as much as there is room for."""
    headline = _headline(file)
    patch = file.get("patch")
    if patch is None:
        note = "no text difference: binary, renamed only, or too large; read_file shows it"
        if len(headline) + len(note) > room:
            return _FilePatch("", 0)
        return _FilePatch(f"{headline}\n[{note}]")
    lines = str(patch).split("\n")
    fitting: list[str] = []
    size = len(headline.encode("utf-8", "surrogatepass")) + 1
    for line in lines[start:]:
        if len(line) > _MAX_LINE_CHARACTERS:
            line = f"{line[:_MAX_LINE_CHARACTERS]}… [line cut]"
        size += len(line.encode("utf-8", "surrogatepass")) + 1
        if size > room:
            break
        fitting.append(line)
    if start:
        headline = f"{headline}, continued"
    text = "\n".join([headline, *fitting])
    end = start + len(fitting)
    if end == len(lines):
        return _FilePatch(text)
    # A file that is cut is cut at the start of an answer's room, or not begun at all.
    if not fitting or (not start and room < DEFAULT_PAGE_BYTES // 2):
        return _FilePatch("", start)
    return _FilePatch(text, end)
