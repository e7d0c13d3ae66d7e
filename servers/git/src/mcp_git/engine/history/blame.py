"""Shows who last changed each line of a file, grouped by commit."""

from __future__ import annotations

import re

from mcp_batteries.errors import Invalid, NotFound, quote
from mcp_batteries.limits import DEFAULT_PAGE_BYTES, Stop
from mcp_git.engine.history.missing_paths import next_move
from mcp_git.engine.program.git import Failed, Git
from mcp_git.engine.program.output import clip, items
from mcp_git.engine.program.revisions import explained
from mcp_git.models import Answer
from mcp_git.path_quoting import one_line
from mcp_git.policy import HEAD, Lines, Place, Repository, Revision

__all__ = ["blame", "find_lines"]

_HEAD = 120
_LINE = 300


def blame(
    git: Git, repository: Repository, place: Place, revision: Revision | None, first: int, last: int, stop: Stop
) -> Answer:
    """The lines from `first` to `last`, as many as a page holds.

    Args:
        revision: None for the file as it is in the work tree.
    """
    if not place.path:
        raise Invalid("`path` names a folder.", "Name a file; `list_files` has them.")
    layout = git.layout(repository)
    if revision is None and layout.work_tree is None:
        revision = HEAD
    rev = [revision.text] if revision else []
    words = ["blame", "--porcelain", f"-L{first},{last}", *rev, "--", place.path]
    lines: list[str] = []
    heads: dict[str, dict[str, str]] = {}
    room, number, oid, before = DEFAULT_PAGE_BYTES, first - 1, "", ""
    following: int | None = None
    try:
        with git.pieces(repository, words, stop, layout=layout) as pieces:
            for item in items(pieces, b"\n"):
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
    except Failed as failure:
        if first == 1 and "has only 0 lines" in failure.said:
            return Answer([f"{place.display} is empty"])
        raise _problem(failure, git, repository, place, revision, stop) from None
    shown_last = number - 1 if following else number
    facts = [f"{place.display} lines {first}-{shown_last}"]
    if following or shown_last == last:
        facts.append(f"for more, start_line={shown_last + 1}")
    return Answer(facts, lines)


def find_lines(
    git: Git, repository: Repository, place: Place, revision: Revision, lines: Lines, stop: Stop, commit: str = ""
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
    failed: Failed | None = None
    for span in spans:
        words = ["blame", "--porcelain", f"-L{span}", f"{commit or revision.text}^!", "--", place.path]
        try:
            said = git.run(repository, words, stop).text
        except Failed as failure:
            failed = failure
            if "no match" not in failure.said:
                break
            continue
        numbers = re.findall(r"(?m)^[0-9a-f]{40,64} \d+ (\d+)", said)
        shown = f" lines {numbers[0]}-{numbers[-1]}"
        if lines.function:
            shown += f": {clip(one_line(said.partition(chr(9))[2].partition(chr(10))[0].strip()), _HEAD)}"
        return f"{numbers[0]},{numbers[-1]}", shown
    assert failed is not None
    if "no match" in failed.said:
        fix = "Name its lines: `search_text` finds them."
        raise NotFound(f"Git sees no function {quote(lines.function)} in `{place.display}`.", fix)
    if "has only" in failed.said:
        raise Invalid(f"{failed}".rstrip(), "Name `lines` that the file has.")
    raise _problem(failed, git, repository, place, revision, stop)


def _head(oid: str, known: dict[str, str]) -> str:
    if not oid.strip("0"):
        return "not committed yet"
    date = _day(known.get("author-time", "0"), known.get("author-tz", "+0000"))
    return clip(one_line(f"{oid[:9]} {date} {known.get('author', '')}: {known.get('summary', '')}"), _HEAD)


def _day(seconds: str, zone: str) -> str:
    """The author's day, where they were."""
    from datetime import UTC, datetime

    try:
        ahead = int(f"{zone[0]}{int(zone[1:-2]) * 60 + int(zone[-2:])}") * 60
        return datetime.fromtimestamp(int(seconds) + ahead, UTC).date().isoformat()
    except (ValueError, IndexError, OverflowError, OSError):
        return "?"


def _problem(
    failure: Failed, git: Git, repository: Repository, place: Place, revision: Revision | None, stop: Stop
) -> Exception:
    if "has only" in failure.said:
        return Invalid(f"{failure}".rstrip(), "Name a `start_line` that the file has.")
    if re.search("no such path|unsupported file type", failure.said):
        named = f"{revision.text if revision else 'HEAD'}:{place.path}"
        if git.run(repository, ["cat-file", "-t", named], stop, fine=(0, 128)).text.strip() == "tree":
            return Invalid(f"`{place.display}` is a folder.", "Name a file; `list_files` has them.")
        where = f"`{revision.text}`" if revision else "the work tree or `HEAD`"
        fix = next_move(git, repository, place, revision.text if revision else None, stop)
        return NotFound(f"There is no file `{place.display}` in {where}.", fix)
    # Without a revision it begins at HEAD all the same, and there may be none.
    return explained(failure, git, repository, revision or HEAD, stop)
