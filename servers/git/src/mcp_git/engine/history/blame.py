"""Shows who last changed each line of a file, grouped by commit."""

from __future__ import annotations

import re

from mcp_batteries.errors import Invalid, NotFound, quote
from mcp_batteries.limits import DEFAULT_PAGE_BYTES, Stop
from mcp_git.engine.history.missing_paths import suggest_path
from mcp_git.engine.program.git import Git, GitFailed
from mcp_git.engine.program.output import clip, split_records
from mcp_git.engine.program.revisions import explain_failure
from mcp_git.models import Answer
from mcp_git.path_quoting import escape_line_breaks
from mcp_git.policy import HEAD, LineRange, Repository, RepositoryPath, Revision

__all__ = ["blame_lines", "resolve_lines"]

_HEAD = 120
_LINE = 300


def blame_lines(
    git: Git,
    repository: Repository,
    place: RepositoryPath,
    revision: Revision | None,
    first: int,
    last: int,
    stop: Stop,
) -> Answer:
    """The lines from `first` to `last`, as many as a page holds.

    Args:
        revision: None for the file as it is in the work tree.
    """
    if not place.text:
        raise Invalid("`path` names a folder.", "Name a file; `list_files` has them.")
    layout = git.layout(repository)
    if revision is None and layout.work_tree is None:
        revision = HEAD
    rev = [revision.text] if revision else []
    words = ["blame", "--porcelain", f"-L{first},{last}", *rev, "--", place.text]
    lines: list[str] = []
    heads: dict[str, dict[str, str]] = {}
    room, number, oid, before = DEFAULT_PAGE_BYTES, first - 1, "", ""
    following: int | None = None
    try:
        with git.stream(repository, words, stop, layout=layout) as pieces:
            for item in split_records(pieces, b"\n"):
                if not item.startswith(b"\t"):
                    key, _, value = item.decode("utf-8", "replace").partition(" ")
                    if len(key) >= 40 and value[:1].isdigit():
                        oid, number = key, int(value.split()[1])
                    elif oid:
                        heads.setdefault(oid, {})[key] = value
                    continue
                text = f"{number}: {clip(item[1:].decode('utf-8', 'replace').rstrip(chr(13)), _LINE)}"
                added = [_head(oid, heads.get(oid, {}))] * (oid != before) + [text]
                room -= sum(len(line.encode("utf-8", "replace")) + 1 for line in added)
                if room < 0 and lines:
                    following = number
                    break
                lines += added
                before = oid
    except GitFailed as failure:
        if first == 1 and "has only 0 lines" in failure.stderr:
            return Answer([f"{place.display} is empty"])
        raise _problem(failure, git, repository, place, revision, stop) from None
    shown_last = number - 1 if following else number
    facts = [f"{place.display} lines {first}-{shown_last}"]
    if following or shown_last == last:
        facts.append(f"for more, start_line={shown_last + 1}")
    return Answer(facts, lines)


def resolve_lines(
    git: Git,
    repository: Repository,
    place: RepositoryPath,
    revision: Revision,
    lines: LineRange,
    stop: Stop,
    commit: str = "",
) -> tuple[str, str]:
    """The numbers of lines of a file of a commit as git takes them, and how they are told.

    Of several functions with one name the first is meant.

    Args:
        commit: that `revision` was when the first page was made.
    """
    spans = [f"{lines.first},{lines.last}"]
    if lines.function:
        # Git takes a part of a name for the name: first those that nothing goes on before and behind.
        name, no_letter = re.sub(r"[][\\.*^$:]", r"\\\g<0>", lines.function), "[^A-Za-z0-9_]"
        ends = ((no_letter, no_letter), ("^", no_letter), (no_letter, "$"), ("^", "$"), ("", ""))
        spans = [f":{before}{name}{behind}" for before, behind in ends]
    failed: GitFailed | None = None
    for span in spans:
        words = ["blame", "--porcelain", f"-L{span}", f"{commit or revision.text}^!", "--", place.text]
        try:
            said = git.run(repository, words, stop).text
        except GitFailed as failure:
            failed = failure
            if "no match" not in failure.stderr:
                break
            continue
        numbers = re.findall(r"(?m)^[0-9a-f]{40,64} \d+ (\d+)", said)
        shown = f" lines {numbers[0]}-{numbers[-1]}"
        if lines.function:
            shown += f": {clip(escape_line_breaks(said.partition(chr(9))[2].partition(chr(10))[0].strip()), _HEAD)}"
        return f"{numbers[0]},{numbers[-1]}", shown
    assert failed is not None
    if "no match" in failed.stderr:
        fix = "Name its lines: `search_text` finds them."
        raise NotFound(f"Git sees no function {quote(lines.function)} in `{place.display}`.", fix)
    if "has only" in failed.stderr:
        raise Invalid(f"{failed}".rstrip(), "Name `lines` that the file has.")
    raise _problem(failed, git, repository, place, revision, stop)


def _head(oid: str, known: dict[str, str]) -> str:
    if not oid.strip("0"):
        return "not committed yet"
    date = _day(known.get("author-time", "0"), known.get("author-tz", "+0000"))
    return clip(escape_line_breaks(f"{oid[:9]} {date} {known.get('author', '')}: {known.get('summary', '')}"), _HEAD)


def _day(seconds: str, zone: str) -> str:
    """The author's day, where they were."""
    from datetime import UTC, datetime

    try:
        ahead = int(f"{zone[0]}{int(zone[1:-2]) * 60 + int(zone[-2:])}") * 60
        return datetime.fromtimestamp(int(seconds) + ahead, UTC).date().isoformat()
    except (ValueError, IndexError, OverflowError, OSError):
        return "?"


def _problem(
    failure: GitFailed, git: Git, repository: Repository, place: RepositoryPath, revision: Revision | None, stop: Stop
) -> Exception:
    if "has only" in failure.stderr:
        return Invalid(f"{failure}".rstrip(), "Name a `start_line` that the file has.")
    if re.search("no such path|unsupported file type", failure.stderr):
        named = f"{revision.text if revision else 'HEAD'}:{place.text}"
        if git.run(repository, ["cat-file", "-t", named], stop, exit_codes=(0, 128)).text.strip() == "tree":
            return Invalid(f"`{place.display}` is a folder.", "Name a file; `list_files` has them.")
        where = f"`{revision.text}`" if revision else "the work tree or `HEAD`"
        fix = suggest_path(git, repository, place, revision.text if revision else None, stop)
        return NotFound(f"There is no file `{place.display}` in {where}.", fix)
    # Without a revision it begins at HEAD all the same, and there may be none.
    return explain_failure(failure, git, repository, revision or HEAD, stop)
