"""Replaces texts in the files below a folder: tries all of them first, then writes all or none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Invalid, Refused, quote
from mcp_fs.engine.changing.file_edits import FileChange, change_files
from mcp_fs.engine.changing.notebook_edit import substitute_in_cells
from mcp_fs.engine.changing.replacing.attempt import Attempt, FileReplacement
from mcp_fs.engine.changing.replacing.line_differences import build_page
from mcp_fs.engine.changing.replacing.near_matches import NearMatches
from mcp_fs.engine.changing.replacing.substitution import Substitution
from mcp_fs.engine.handles.path_opening import refuse_archived
from mcp_fs.engine.journal.journal import JournalEntry
from mcp_fs.engine.listing.selection import (
    as_file_glob,
    compile_choosers,
    compile_relevance,
    refuse_part_of_matches,
)
from mcp_fs.engine.listing.walk import NOT_DOWNLOADED, Skipped, WalkFilter, walk
from mcp_fs.engine.listing.walk import entry_display_path as shown_path
from mcp_fs.engine.patterns.line_breaks import (
    ALL_BRANCHES_HINT,
    LINE_BREAK_HINT,
    leaves_line_in_branch,
    may_mean_line_breaks,
    spans_brackets,
)
from mcp_fs.models import ReplaceResult
from mcp_fs.policy import WritablePath

__all__ = ["replace_in_files"]

_MAX_TEXTS = 100
# Of more files than this, once they are written, only the lines of a few are shown, or their numbers.
_MAX_FILES_WITH_LINES = 8
_MAX_FILES_WITH_NUMBERS = 20
_EXAMPLE_FILES = 3
_MAX_UNMATCHED_NAMED = 10
_MAX_BINARY_NAMED = 5


def replace_in_files(
    start: WritablePath,
    glob: str,
    walk_filter: WalkFilter,
    substitution: Substitution,
    *,
    dry_run: bool,
    cancel: CancelToken,
    journal_entry: JournalEntry | None = None,
) -> ReplaceResult:
    """Replace in the text files below `start` whose path fits `glob`, all or none.

    Raises:
        Invalid: the glob or the expression can't be read, or nothing would change.
        TooLarge: more files would change than can be held open, or they would get too large.
        Problem: one of them can't be changed; nothing was written.
    """
    _check_replacements(substitution)
    refuse_archived(start)
    substitute = substitution.compile(cancel)
    near_matches = NearMatches(substitution)
    attempt = Attempt(substitute, near_matches, substitution.encoding, substitution.old_encoding, cancel)
    files = attempt.try_files(_iterate_files(start, glob, walk_filter, attempt.skipped, cancel))
    notes: list[str] = []
    if files:
        changes = [_to_file_change(file, attempt) for file in files]
        result = change_files(changes, dry_run=dry_run, shows_diffs=False, cancel=cancel, journal_entry=journal_entry)
        notes.extend(result.notes)
    else:
        refuse_part_of_matches(glob, for_change=True)
    notes.extend(_describe_attempt(attempt, substitution, files))
    summaries = [file.summary for file in files]
    page = _show_lines(files, substitution, dry_run)
    encoding = "" if substitution.encoding is None else str(substitution.encoding)
    return ReplaceResult(summaries, page, dry_run, notes, encoding, attempt.file_count)


def _check_replacements(substitution: Substitution) -> None:
    replacements = substitution.replacements
    if not replacements and substitution.encoding is not None:
        return
    if not 0 < len(replacements) <= _MAX_TEXTS:
        raise Invalid(
            f"`replacements` names {len(replacements):,} texts.", f"Name 1 to {_MAX_TEXTS} with their new ones."
        )
    if not all(replacements):
        raise Invalid("The text to replace is empty.", "Name some text or expression.")
    if substitution.by == "regex":
        return
    for old, new in replacements.items():
        if old == new:
            raise Invalid(f"The text {quote(old)} is replaced by the same text.")


def _iterate_files(
    start: WritablePath, glob: str, walk_filter: WalkFilter, skipped: Skipped, cancel: CancelToken
) -> Iterator[WritablePath]:
    (chooses,) = compile_choosers([start], as_file_glob(glob))
    skipped.is_relevant = compile_relevance([start], start, as_file_glob(glob), chooses)
    for visit in walk(start, walk_filter, cancel, skipped):
        folder = visit.folder
        prefix = "".join(part + "/" for part in visit.parts)
        for name in visit.files:
            if name in visit.links or name in visit.special_files or not chooses(prefix + name):
                continue
            if folder.path.policy.is_protected((*folder.path.parts, name)):
                skipped.add("protected", shown_path(folder.path, name))
                continue
            if name in visit.not_downloaded:
                skipped.add(NOT_DOWNLOADED, shown_path(folder.path, name))
                continue
            try:
                path = start.at(folder.path.root, (*folder.path.parts, name))
            except Refused:
                skipped.add("protected", shown_path(folder.path, name))
            else:
                yield path


def _to_file_change(file: FileReplacement, attempt: Attempt) -> FileChange:
    return FileChange(
        file.path,
        lambda text: attempt.substitute(text)[0],
        lambda notebook: substitute_in_cells(notebook, attempt.substitute)[0],
        encoding=attempt.encoding if file.old_encoding else None,
        old_encoding=attempt.old_encoding,
    )


def _describe_attempt(attempt: Attempt, substitution: Substitution, files: Sequence[FileReplacement]) -> list[str]:
    """Say what was left out, and what the old texts did not find."""
    skipped = attempt.skipped
    notes = [*skipped.notes(), *skipped.describe_excluded(named=not files), *skipped.describe_links()]
    unmatched = _find_unmatched(substitution, files)
    if _may_miss_lines(substitution, unmatched):
        notes.append(LINE_BREAK_HINT)
    if substitution.by == "regex" and any(map(leaves_line_in_branch, substitution.replacements)):
        notes.append(ALL_BRANCHES_HINT)
    if attempt.binary_paths and (not files or attempt.encoding is not None):
        notes.append(_describe_binary(attempt.binary_paths))
    if files and unmatched:
        notes.append(_describe_unmatched(unmatched))
    near_matches = attempt.near_matches.describe()
    if near_matches:
        notes.append(near_matches)
    return notes


def _find_unmatched(substitution: Substitution, files: Sequence[FileReplacement]) -> list[str]:
    """Return the old texts that no file has."""
    unmatched: list[str] = []
    for index, old in enumerate(substitution.replacements):
        if not any(file.counts[index] for file in files):
            unmatched.append(old)
    return unmatched


def _may_miss_lines(substitution: Substitution, unmatched: Sequence[str]) -> bool:
    """Return whether an expression may be meant to go over several lines, and does not."""
    if substitution.by != "regex":
        return False
    return any(map(may_mean_line_breaks, unmatched)) or any(map(spans_brackets, substitution.replacements))


def _describe_binary(paths: Sequence[str]) -> str:
    more = ", ..." if len(paths) > _MAX_BINARY_NAMED else ""
    return f"binary, not changed: {', '.join(paths[:_MAX_BINARY_NAMED])}{more}"


def _describe_unmatched(texts: Sequence[str]) -> str:
    named = ", ".join(map(quote, texts[:_MAX_UNMATCHED_NAMED]))
    more = ", ..." if len(texts) > _MAX_UNMATCHED_NAMED else ""
    return f"not found: {named}{more}"


def _show_lines(
    files: Sequence[FileReplacement], substitution: Substitution, dry_run: bool
) -> list[tuple[str, Sequence[str], bool]]:
    """Return the page of changed lines: of a few files as an example, if there are many and they are written."""
    shows_all = _shows_all_lines(substitution, dry_run)
    max_files = _MAX_FILES_WITH_LINES if shows_all else _MAX_FILES_WITH_NUMBERS
    shown_files = files
    if len(files) > max_files and not dry_run:
        shown_files = files[:_EXAMPLE_FILES]
    differences_by_path = [(file.path.display, file.changed_lines) for file in shown_files]
    return build_page(differences_by_path, None if shows_all else substitution.inside_words_pattern())


def _shows_all_lines(substitution: Substitution, dry_run: bool) -> bool:
    """Whether the answer shows every changed line and not only those where an old text is inside a longer word.

    Callers have named the old and the new text themselves, unless by an expression; a dry run is there to compare.
    """
    if dry_run or substitution.by == "regex" or substitution.ignore_case:
        return True
    return not all(substitution.replacements.values())
