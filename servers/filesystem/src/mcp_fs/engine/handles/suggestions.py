"""Suggests what a path that does not exist was meant to be, in one sentence that saves a call."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from urllib.parse import unquote

from mcp_batteries.errors import quote
from mcp_fs.engine.document_kinds import is_archive
from mcp_fs.paths import resolve_dots, split_names
from mcp_fs.policy import ReadablePath, WritablePath

__all__ = ["CHANGE_UNPACKED", "ListNames", "is_in_archive", "suggest_below_file", "suggest_next_move"]

# Lists what a folder holds and may be read; None when it is not a folder that can be listed.
ListNames = Callable[[ReadablePath], list[str] | None]

CHANGE_UNPACKED = "What is in an archive can't be changed: unpack it with `copy_file`, source `a.zip!/`."
_MAX_COMPARED_NAMES = 5000
_MAX_SIMILAR_NAMES = 3
_WRAPPING_CHARACTERS = " \t\r\n\"'`<>"
_OTHER_PREFIX = re.compile(r"^(?:@|~/|\$HOME/|[A-Za-z]:/)")


def is_in_archive(path: ReadablePath, list_names: ListNames) -> bool:
    """Whether a path means what is in an archive, which no folder holds."""
    if not any(name.endswith("!") for name in path.parts):
        return False
    for above in (path, *_iterate_parents(path)):
        if above.name.endswith("!"):
            names = list_names(above.parent) or ()
            return above.name[:-1] in names and above.name not in names
    return False


def suggest_below_file(path: ReadablePath, list_names: ListNames) -> str:
    """Suggest a next move where a folder was expected and a file stands at `path` or above it."""
    return _suggest_archive_member(path, list_names) or "Files are read with `read_text`."


def _suggest_archive_member(path: ReadablePath, list_names: ListNames) -> str | None:
    for above in (path, *_iterate_parents(path)):
        if is_archive(above.name) and above.name in (list_names(above.parent) or ()) and list_names(above) is None:
            member_path = "/".join(path.parts[len(above.parts) :]) or "NAME"
            member = quote(f"{above.display}!/{member_path}")
            return f"`read_text` lists an archive, and reads what is in it as {member}."
    return None


def suggest_next_move(path: ReadablePath, list_names: ListNames) -> str:
    """Suggest a next move after `path` was not found; it names only what may be read."""
    names = list_names(path.parent)
    if names is not None and path.name in names:
        return "It is a link whose target does not exist."
    if is_in_archive(path, list_names):
        if isinstance(path, WritablePath):
            return CHANGE_UNPACKED
        return (
            "What is in an archive is found by `find_files`, searched by `search_text` and read by `read_text`. "
            "`copy_file` unpacks zip archives only: write texts out of others with `write_file`."
        )
    for parts in _iterate_spellings(path):
        candidate = _find_ignoring_case(path, parts, list_names)
        if candidate is not None:
            return f"Did you mean {quote(candidate.display)}?"
    if any(character in path.name for character in "*?"):
        return "A path is not a glob; `find_files` and `search_text` take one as `glob`."
    if names is None:
        # Windows does not tell what lies below a file from what is not there.
        member_suggestion = _suggest_archive_member(path, list_names)
        if member_suggestion is not None:
            return member_suggestion
        return _suggest_nearest_folder(path, list_names)
    return _suggest_similar_names(path, names)


def _suggest_nearest_folder(path: ReadablePath, list_names: ListNames) -> str:
    nearest_folder = next(
        (above for above in _iterate_parents(path) if list_names(above) is not None),
        path.policy.root_path(path.root),
    )
    return (
        f"The nearest folder that does is {quote(nearest_folder.display)}; "
        f"`find_files` finds {quote(path.name)} anywhere."
    )


def _suggest_similar_names(path: ReadablePath, names: Sequence[str]) -> str:
    """Suggest the most similar of the names in its folder."""
    names_by_folded: dict[str, list[str]] = {}
    for name in names[:_MAX_COMPARED_NAMES]:
        names_by_folded.setdefault(name.casefold(), []).append(name)
    similar_names: list[str] = []
    for close in get_close_matches(path.name.casefold(), names_by_folded, n=_MAX_SIMILAR_NAMES):
        similar_names.extend(names_by_folded[close])
    if not similar_names:
        return f"Use `list_directory` to see what is there, or `find_files` to find {quote(path.name)} anywhere."
    suggested_paths = [quote((path.parent / name).display) for name in similar_names[:_MAX_SIMILAR_NAMES]]
    return f"Near it are: {', '.join(suggested_paths)}."


def _iterate_parents(path: ReadablePath) -> Iterator[ReadablePath]:
    while path.parts:
        path = path.parent
        yield path


def _iterate_spellings(path: ReadablePath) -> Iterator[tuple[str, ...]]:
    """Other spellings of the path: another case, quoted, escaped, from a home or a drive, as Windows writes it."""
    yield path.parts
    text = unquote("/".join(path.parts).strip(_WRAPPING_CHARACTERS).replace("\\", "/"), errors="surrogateescape")
    parts = resolve_dots(split_names(_OTHER_PREFIX.sub("", text)))
    if parts and "\0" not in text:
        yield parts
        if parts[0] == path.root.name:
            yield parts[1:]


def _find_ignoring_case(path: ReadablePath, parts: tuple[str, ...], list_names: ListNames) -> ReadablePath | None:
    """Find the entry at `parts` below the served folder of `path`, in whatever case its names are."""
    candidate = path.policy.root_path(path.root)
    for part in parts:
        names = list_names(candidate)
        if names is None:
            return None
        matching_names = [part]
        if part not in names:
            matching_names = [name for name in names if name.casefold() == part.casefold()]
        if len(matching_names) != 1:
            return None
        candidate = candidate / matching_names[0]
    if not parts or candidate.parts == path.parts:
        return None
    return candidate
