"""Reads files of any commit, or of a side of a conflict."""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Iterable, Sequence

from mcp_batteries.errors import Invalid, NotFound, TooLarge, quote
from mcp_batteries.limits import DEFAULT_PAGE_BYTES, Cursor, Stop
from mcp_batteries.server.results import below
from mcp_git.engine.history.missing_paths import refuse_missing_path, suggest_path
from mcp_git.engine.history.page_position import decode_position
from mcp_git.engine.history.patterns import refuse_foreign_syntax
from mcp_git.engine.program.git import Git, GitFailed
from mcp_git.engine.program.output import clip, split_records
from mcp_git.engine.program.revisions import explain_failure, resolve_commits
from mcp_git.models import Answer, count
from mcp_git.path_quoting import escape_line_breaks, quote_path
from mcp_git.policy import Repository, RepositoryPath, Revision

__all__ = ["complete_paths", "list_files", "read_contents", "read_file", "search_text"]

_LINE = 2000
_MOST_WHOLE = 8 * 1024 * 1024
_SNIFFED = 8000
_ROW = 300


def _spec(revision: Revision, place: RepositoryPath) -> str:
    return f"{revision.text}:{place.text}"


def read_file(
    git: Git,
    repository: Repository,
    revision: Revision,
    place: RepositoryPath,
    first: int,
    last: int | None,
    stop: Stop,
) -> Answer:
    """The lines of a file from `first` on, at most a page.

    Raises:
        Invalid: the last line is before the first.
    """
    if last is not None and last < first:
        raise Invalid("`end_line` is before `start_line`.", "Exchange them.")
    lines: list[str] = []
    room, number, size = DEFAULT_PAGE_BYTES, 0, 0
    cut = False
    try:
        with git.stream(repository, ["cat-file", "blob", _spec(revision, place)], stop) as pieces:
            for line in split_records(pieces, b"\n"):
                number += 1
                if b"\0" in line and size < _SNIFFED:
                    return Answer([f"{place.display} at {revision.text} is binary", "its bytes are not shown"])
                size += len(line) + 1
                if number < first:
                    continue
                if last is not None and number > last:
                    cut = True
                    break
                text = clip(line.decode("utf-8", "replace").rstrip("\r"), _LINE)
                room -= len(text.encode("utf-8", "replace")) + 1
                if room < 0 and lines:
                    cut = True
                    break
                lines.append(text)
    except GitFailed as failure:
        raise _problem(failure, git, repository, revision, place, stop) from None
    end = first + len(lines) - 1
    if not lines:
        facts = [f"{place.display} at {escape_line_breaks(revision.text)} has {count(number, 'line')}"]
    else:
        facts = [
            f"{place.display} at {escape_line_breaks(revision.text)}, lines {first}-{end}"
            + ("" if cut else f" of {end}")
        ]
    if cut:
        facts.append(f"continue with start_line={end + 1}")
    return Answer(facts, lines)


def read_contents(git: Git, repository: Repository, revision: Revision, place: RepositoryPath, stop: Stop) -> bytes:
    """All of a file.

    Raises:
        TooLarge: it is larger than a resource may be.
    """
    try:
        found = git.run(repository, ["cat-file", "blob", _spec(revision, place)], stop, max_bytes=_MOST_WHOLE)
    except GitFailed as failure:
        raise _problem(failure, git, repository, revision, place, stop) from None
    if found.is_cut:
        raise TooLarge(f"{quote(place.display)} is larger than 8 MB.", "Read lines of it with `read_file`.")
    return found.stdout


def list_files(
    git: Git,
    repository: Repository,
    revision: Revision,
    place: RepositoryPath,
    *,
    recursive: bool,
    limit: int,
    cursor: str | None,
    stop: Stop,
) -> Answer:
    """A page of the files and folders in a folder; sizes of files in bytes.

    The pages behind the first one are of the commit that it was of, wherever the branch is then.
    """
    scope = [revision.text, place.text, recursive]
    (skip, _), begun = decode_position("tree", cursor, scope)
    words = ["ls-tree", "-z", "--long", *(["-r"] if recursive else []), f"{(begun or [revision.text])[0]}:{place.text}"]
    rows: list[tuple[str, str, Sequence[str]]] = []
    number = 0
    more = None
    try:
        with git.stream(repository, words, stop) as pieces:
            for item in split_records(pieces):
                number += 1
                if number <= skip:
                    continue
                if len(rows) == limit:
                    begun = begun or resolve_commits(git, repository, revision, stop)
                    more = Cursor.encode("tree", [skip + limit, 0, begun], scope)
                    break
                described, _, name = item.partition(b"\t")
                mode, kind, _, size = described.split()
                end = {b"tree": "/", b"commit": " (submodule)"}.get(kind, " (link)" if mode == b"120000" else "")
                # A partial clone knows no size of what it does not have.
                rows.append((f"{size.decode()} " if size.isdigit() else "", f"{quote_path(name)}{end}", ()))
    except GitFailed as failure:
        raise _problem(failure, git, repository, revision, place, stop) from None
    what = f"entries {skip + 1:,}-{skip + len(rows):,}" if more or skip else count(len(rows), "entry")
    return Answer([f"{place.display} at {escape_line_breaks(revision.text)}, {what}"], below(rows), more)


def complete_paths(git: Git, repository: Repository, start: str, stop: Stop) -> list[str]:
    """Paths in HEAD and the folders on their way that begin with `start`, one level deep."""
    above, slash, _ = start.rpartition("/")
    try:
        listed = git.run(repository, ["ls-tree", "-z", f"HEAD:{above}"], stop)
    except GitFailed:
        return []
    found: list[str] = []
    for item in split_records([listed.stdout]):
        described, _, name = item.partition(b"\t")
        path = above + slash + os.fsdecode(name) + ("/" if b" tree " in described else "")
        if path.startswith(start):
            found.append(quote_path(os.fsencode(path)))
    return found


def search_text(
    git: Git,
    repository: Repository,
    revision: Revision,
    place: RepositoryPath,
    pattern: str,
    *,
    literal: bool,
    ignore_case: bool,
    limit: int,
    cursor: str | None,
    stop: Stop,
) -> Answer:
    """A page of the lines that match in the files of a commit: `path:line:text`, or several below their path."""
    if not pattern or re.search(r"[\0\n]", pattern):
        raise Invalid(f"{quote(pattern)} is not one line to look for.", "Give a pattern without a line end.")
    if not literal:
        refuse_foreign_syntax(pattern)
    scope = [revision.text, place.text, pattern, literal, ignore_case]
    (skip, _), begun = decode_position("search", cursor, scope)
    searched = (begun or [revision.text])[0]
    words = ["grep", "-I", "-n", "-z", "--no-color", "-F" if literal else "-E", *(["-i"] if ignore_case else [])]
    words += ["-e", pattern, searched, "--", *([place.text] if place.text else [])]
    rows: dict[str, list[str]] = {}
    number, found, room = 0, 0, DEFAULT_PAGE_BYTES
    more = None
    prefix = os.fsencode(f"{searched}:")
    remarks: list[str] = []
    try:
        with git.stream(repository, words, stop, exit_codes=(0, 1), remarks=remarks) as pieces:
            for name, line, text in _matches(pieces):
                number += 1
                if number <= skip:
                    continue
                row = clip(text.decode("utf-8", "replace").rstrip("\r"), _ROW)
                row = f"{line.decode('ascii', 'replace')}:{row}"
                path = quote_path(name.removeprefix(prefix))
                room -= len(row.encode("utf-8", "replace")) + 1 + (len(path.encode()) + 1) * (path not in rows)
                if found == limit or (room < 0 and found):
                    begun = begun or resolve_commits(git, repository, revision, stop)
                    more = Cursor.encode("search", [skip + found, 0, begun], scope)
                    break
                rows.setdefault(path, []).append(row)
                found += 1
    except GitFailed as failure:
        raise explain_failure(failure, git, repository, revision, stop) from None
    if not number:
        refuse_missing_path(git, repository, place, [revision.text], stop)
    what = f"matches {skip + 1:,}-{skip + found:,}" if more or skip else count(found, "match")
    lacking = ["files that are not here were not searched"] * any("unable to read" in said for said in remarks)
    lines = below(("", path, matches) for path, matches in rows.items())
    return Answer([f"{what} in {escape_line_breaks(revision.text)}", *lacking], lines, more)


def _matches(pieces: Iterable[bytes]) -> Generator[tuple[bytes, bytes, bytes]]:
    """Path, number and text of each line; a path may hold line ends, and its end is a NUL."""
    rest = b""
    for piece in pieces:
        rest += piece
        while len(parts := rest.split(b"\0", 2)) == 3 and b"\n" in parts[2]:
            text, _, rest = parts[2].partition(b"\n")
            yield parts[0], parts[1], text


def _problem(
    failure: GitFailed, git: Git, repository: Repository, revision: Revision, place: RepositoryPath, stop: Stop
) -> Exception:
    if revision.is_conflict_side:
        fix = "`get_status` has what is in conflict; a side that deleted it has none."
        return NotFound(f"`{place.display}` has no side `{revision.text}`.", fix)
    told = explain_failure(failure, git, repository, revision, stop)
    if isinstance(told, NotFound):
        return told
    where = quote(revision.text)
    spec = _spec(revision, place)
    try:
        kind = git.run(repository, ["cat-file", "-t", spec], stop).text.strip()
    except GitFailed:
        fix = suggest_path(git, repository, place, revision.text, stop)
        return NotFound(f"There is no `{place.display}` in {where}.", fix)
    if kind == "tree":
        return Invalid(f"`{place.display}` is a folder in {where}.", "Use `list_files` for it.")
    if kind == "blob":
        return Invalid(f"`{place.display}` is a file in {where}.", "Use `read_file` for it.")
    return Invalid(f"`{place.display}` is a submodule in {where}.", "Serve the submodule's folder as well.")
