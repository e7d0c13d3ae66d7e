"""Finds the paths that a caller's glob means: below which start, and in which spelling.

A glob holds from the searched folder on. Callers also write it as they write paths, from the top of the file
system or of what is served; and a name may be composed another way than they type it.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from mcp_batteries.errors import Invalid, NotFound, Problem, quote
from mcp_fs.engine.document_kinds import is_archive, is_document
from mcp_fs.engine.handles.path_opening import read_status
from mcp_fs.engine.handles.suggestions import CHANGE_UNPACKED
from mcp_fs.engine.name_folding import fold_name, may_have_another_spelling
from mcp_fs.engine.patterns.glob import path_glob, translate
from mcp_fs.engine.patterns.regex import compile_path_set
from mcp_fs.paths import split_names
from mcp_fs.policy import ReadablePath

__all__ = [
    "Chooser",
    "as_file_glob",
    "as_name_globs",
    "choose_in_any_case",
    "compile_chooser",
    "compile_choosers",
    "compile_choosers_or_exclusion",
    "compile_relevance",
    "exclude_chosen",
    "find_nested_starts",
    "is_named_by",
    "name_ending",
    "names_files_with_parts",
    "part_in_archive_error",
    "refuse_excluded_part",
    "refuse_nested_part",
    "refuse_part_of_matches",
]

# Whether a path below a start is meant.
Chooser = Callable[[str], bool]

_WINDOWS = sys.platform == "win32"
_SPECIAL = frozenset("*?[{\\")
_DRIVE = re.compile("[A-Za-z]:/")
# What comes before the end of a glob that stands for itself.
_PATTERN = re.compile(r".*[*?\[\]{},\\]", re.DOTALL)


def compile_relative_chooser(glob: str, *, dots_are_spelled: bool) -> Chooser:
    """Return which paths a glob means that is no absolute one: `/a` is the entry `a` of the start itself.

    Args:
        dots_are_spelled: whether no wildcard means the dot that a hidden name begins with, as in a shell.

    Raises:
        Invalid: it can't be read, or means nothing below the start.
    """
    glob = _with_slashes(fold_name(glob))
    _check_glob(glob)
    return compile_chooser([glob], dots_are_spelled=dots_are_spelled)


def compile_choosers(starts: Sequence[ReadablePath], glob: str) -> list[Chooser]:
    """Return for each of `starts` which paths below it `glob` means.

    Raises:
        Invalid: it can't be read, or means nothing below any of them.
    """
    glob = _with_slashes(fold_name(glob))
    _check_glob(glob)
    if glob.startswith("/") or _names_drive(glob):
        absolute_choosers = _compile_absolute(starts, glob)
        if absolute_choosers is not None:
            return _include_nested_starts(starts, absolute_choosers)
        _refuse_glob_outside(starts, glob)
    choosers = [compile_chooser([glob, *_strip_display_path(start, glob)]) for start in starts]
    return _include_nested_starts(starts, choosers)


def _check_glob(glob: str) -> None:
    """Refuse a glob that no path can fit.

    Raises:
        Invalid: it names nothing, or what lies elsewhere.
    """
    if not glob.strip("/"):
        raise Invalid(f"The glob {quote(glob)} names nothing.", "Use `*` for everything.")
    if "\0" in glob:
        raise Invalid("The glob holds a NUL, which no name does.", "Leave it out.")
    if glob[:6].lower() == "file:/":
        raise Invalid(f"The glob {quote(glob)} is a URI.", "Use the path alone.")
    if ".." in glob.split("/"):
        raise Invalid(
            f"The glob {quote(glob)} leads out of the searched folder.", "Name the folder to search as `path`."
        )


def _compile_absolute(starts: Sequence[ReadablePath], glob: str) -> list[Chooser] | None:
    """Return for each of `starts` what a glob means that begins with an absolute path; None if it is that of none."""
    choosers: list[Chooser] = []
    is_below_any = False
    for start in starts:
        relative_glob = _strip_absolute_path(start, glob)
        if relative_glob is None:
            choosers.append(_choose_nothing)
        else:
            is_below_any = True
            choosers.append(compile_chooser([relative_glob]))
    if not is_below_any:
        return None
    return choosers


def _include_nested_starts(starts: Sequence[ReadablePath], choosers: Sequence[Chooser]) -> list[Chooser]:
    """Return `choosers`, where a start that lies in another also has what is meant from there.

    Such a start is walked once, as its own.
    """
    combined: list[Chooser] = []
    for start, chooser in zip(starts, choosers, strict=True):
        outer_choosers: list[tuple[str, Chooser]] = []
        for outer, outer_chooser in zip(starts, choosers, strict=True):
            for names in find_nested_starts([start], outer):
                outer_choosers.append(("/".join((*names, "")), outer_chooser))
        if outer_choosers:
            chooser = _combine(chooser, outer_choosers)
        combined.append(chooser)
    return combined


def _combine(own: Chooser, above: Sequence[tuple[str, Chooser]]) -> Chooser:
    return lambda path: own(path) or any(chooses(prefix + path) for prefix, chooses in above)


def compile_chooser(globs: Sequence[str], *, dots_are_spelled: bool = False) -> Chooser:
    """Return whether a path fits one of `globs`, whatever way it is composed; brackets may be those of a name."""
    path_globs = [path_glob(glob) for glob in globs]
    to_expression = partial(translate, dots_are_spelled=dots_are_spelled, brackets_may_be_names=True)
    matching = compile_path_set([to_expression(glob, utf8=True) for glob in path_globs])
    matching_bytes = compile_path_set([to_expression(glob) for glob in path_globs])
    # Nearly all paths of a walk are told from those that are meant by how they end. `**/` may stand for nothing.
    endings = tuple(_PATTERN.sub("", glob).removeprefix("/") for glob in path_globs)

    def chooses(path: str) -> bool:
        if path.isascii() and not path.endswith(endings):
            return False
        path = fold_name(path)
        try:
            return bool(matching(path.encode()))
        except UnicodeEncodeError:
            return bool(matching_bytes(os.fsencode(path)))

    return chooses


def as_file_glob(glob: str) -> str:
    """Return `glob` where files are meant: one of folders means all that is in them."""
    normalized = _with_slashes(glob).removeprefix("./")
    if not normalized.endswith("/") or not normalized.strip("/"):
        return glob
    if "/" in _with_slashes(glob).rstrip("/"):
        return f"{glob}**"
    return f"**/{glob}**"


def compile_choosers_or_exclusion(starts: Sequence[ReadablePath], glob: str) -> list[Chooser]:
    """Return for each start whether a path is meant: by a glob, or behind `!` by all that a glob does not mean."""
    if not glob.startswith("!"):
        return compile_choosers(starts, glob)
    choosers = compile_choosers(starts, glob.removeprefix("!"))
    return [exclude_chosen(chooses, folders=glob.endswith("/")) for chooses in choosers]


def names_files_with_parts(glob: str) -> bool:
    """Return whether a glob can mean archives or documents, behind which `!/` names a part."""
    return is_archive(glob) or is_document(glob) or glob.endswith(("*", "}"))


def refuse_excluded_part(glob: str) -> None:
    """Check that no part of files is to be left out, which would leave out nothing.

    Raises:
        Invalid: it is.
    """
    file_glob, mark, part = glob.removeprefix("!").partition("!/")
    if glob.startswith("!") and mark and part and names_files_with_parts(file_glob):
        raise Invalid(
            f"The glob {quote(glob)} would leave out a part of files; only whole files are left out.",
            f"Write {quote('!' + file_glob)}, or name the parts that are wanted.",
        )


def refuse_part_of_matches(glob: str, *, for_change: bool) -> None:
    """Check that a glob which means no file does not name a part of files, where none can be named.

    Args:
        for_change: whether what it means is to be changed.

    Raises:
        Invalid: it does.
    """
    file_glob, mark, _ = glob.partition("!/")
    if not mark or not names_files_with_parts(file_glob):
        return
    failure = f"{quote(glob)} has a glob before `!/`, where one file is named."
    if for_change:
        raise Invalid(failure, CHANGE_UNPACKED)
    raise Invalid(failure, "`find_files` lists what is in archives by such a glob, `search_text` searches it.")


def refuse_nested_part(member_glob: str) -> None:
    """Check that a glob of files in an archive does not go into another archive in that.

    Raises:
        Invalid: it does.
    """
    inner_glob, mark, _ = member_glob.partition("!/")
    if mark and names_files_with_parts(inner_glob):
        raise part_in_archive_error()


def is_named_by(archive: ReadablePath, glob: str | None) -> bool:
    """Return whether a glob means an archive by its name, as when it found the archive and then stands beside it."""
    return glob is not None and compile_chooser([glob])(archive.name)


def part_in_archive_error() -> Invalid:
    return Invalid(
        "`glob` can't name a part of files in an archive.",
        "Name that file as `path`, such as `a.zip!/b.zip!` or `a.zip!/b.xlsx!/Sheet1`.",
    )


def choose_in_any_case(chooses_lower: Chooser) -> Chooser:
    """Return whether a path is meant in any case, by a glob in lower case."""
    return lambda path: chooses_lower(path.lower())


def exclude_chosen(chooses: Chooser, *, folders: bool) -> Chooser:
    """Return whether a path is kept: neither it nor a folder above it is what `chooses` means.

    Args:
        folders: whether only folders are meant.
    """
    decisions = {"": False}

    def is_excluded(folder: str) -> bool:
        if folder not in decisions:
            decisions[folder] = any(map(chooses, _with_folders_above(folder)))
        return decisions[folder]

    def is_kept(path: str) -> bool:
        if is_excluded(path.rpartition("/")[0]):
            return False
        return folders or not chooses(path)

    return is_kept


def _with_folders_above(folder: str) -> Iterator[str]:
    """Yield the folders on the way to a folder, then itself."""
    for position, character in enumerate(folder):
        if character == "/":
            yield folder[:position]
    yield folder


def compile_relevance(starts: Sequence[ReadablePath], start: ReadablePath, glob: str, chooses: Chooser) -> Chooser:
    """Return whether a path below `start`, or if it ends in a slash something below it, can be what `glob` means."""
    normalized = _with_slashes(fold_name(glob)).removeprefix("./")
    top = _fixed_folder(normalized)
    # A path may also begin above its start.
    is_nested = any(find_nested_starts([start], outer) for outer in starts if outer is not start)
    may_lie_anywhere = not top or is_nested or _may_be_absolute(start, normalized)
    folders = normalized.endswith("/")

    def is_relevant(path: str) -> bool:
        if not path.endswith("/"):
            return not folders and chooses(path)
        if may_lie_anywhere:
            return True
        folded = fold_name(path)
        return folded.startswith(f"{top}/") or f"{top}/".startswith(folded) or chooses(path.rstrip("/"))

    return is_relevant


def _fixed_folder(glob: str) -> str:
    """Return the folder that all paths lie in that a glob means; nothing for a name at any depth."""
    if "/" not in glob.rstrip("/"):
        return ""
    fixed_length = len(glob)
    for position, character in enumerate(glob):
        if character in _SPECIAL:
            fixed_length = position
            break
    return glob[:fixed_length].rpartition("/")[0]


def _may_be_absolute(start: ReadablePath, glob: str) -> bool:
    """Return whether a glob may begin above `start`."""
    return glob.startswith("/") or _names_drive(glob) or bool(_strip_display_path(start, glob))


def name_ending(glob: str) -> str:
    """Return how each name ends that `glob` means, if it is ASCII; empty where that can't be told."""
    glob = _with_slashes(fold_name(glob)).removeprefix("./").rstrip("/")
    if glob.startswith("/") or _names_drive(glob):
        return ""  # it may be the path of a start, and mean all that is in it
    return _PATTERN.sub("", glob).rpartition("/")[2]


def as_name_globs(glob: str) -> list[str]:
    """Return `glob` for who compares names byte by byte and knows no slashes; nothing when it would miss some."""
    has_other_specials = bool(_SPECIAL.intersection(glob) - {"*", "{"})
    if not glob.isascii() or may_have_another_spelling(glob) or has_other_specials or "/" in glob:
        return []
    return [glob]


def _with_slashes(glob: str) -> str:
    r"""Return `glob` in the spelling of this module: on Windows a backslash parts names, as ripgrep has it there.

    A character is meant as itself in brackets: `[*]`, `[[]`.
    """
    if not _WINDOWS:
        return glob
    return glob.replace("\\", "/")


def _names_drive(glob: str) -> bool:
    return _WINDOWS and _DRIVE.match(glob) is not None


def _choose_nothing(_: str) -> bool:
    return False


def _strip_absolute_path(start: ReadablePath, glob: str) -> str | None:
    """Return the rest of a glob that begins with the absolute path of `start`; None for another."""
    for top in (start.root.path, start.root.real_path):
        base = _with_slashes(fold_name(os.path.join(top, *start.parts))).rstrip("/") + "/"
        if not glob.startswith(base) and not (_WINDOWS and glob.lower().startswith(base.lower())):
            continue
        if len(glob) == len(base):
            return "**"
        # An anchor, so that a bare name stays one of the start's own.
        return "/" + glob[len(base) :]
    return None


def _strip_display_path(start: ReadablePath, glob: str) -> list[str]:
    """Return the rest of a glob that begins with the path of `start` in answers, which may also be a path below it."""
    prefix = fold_name(start.display) + "/"
    glob = glob.removeprefix("./")
    if glob.startswith(prefix) and glob != prefix:
        return ["/" + glob.removeprefix(prefix)]
    return []


def _refuse_glob_outside(starts: Sequence[ReadablePath], glob: str) -> None:
    """Refuse a glob with a slash in front that can mean nothing directly below any of `starts`.

    Raises:
        Invalid: there is no such entry.
    """
    if not _names_drive(glob):
        name = glob.split("/")[1]
        if _SPECIAL.intersection(name) or any(_may_have_entry(start, name) for start in starts):
            return
    labels = ", ".join(quote(start.display) for start in starts[:3])
    raise Invalid(
        f"The glob {quote(glob)} can't match anything below {labels}, the searched folder.",
        "Write it from that folder on, or name another folder as `path`.",
    )


def _may_have_entry(start: ReadablePath, name: str) -> bool:
    try:
        read_status(start / name, follow=False)
    except NotFound:
        return False
    except Problem:
        return True
    return True


def find_nested_starts(starts: Sequence[ReadablePath], start: ReadablePath) -> frozenset[tuple[str, ...]]:
    """Return those of `starts` that lie below `start`, by their names below it: what is in them would be told twice."""
    above = split_names(os.path.join(start.root.real_path, *start.parts))
    paths = [split_names(os.path.join(other.root.real_path, *other.parts)) for other in starts]
    return frozenset(path[len(above) :] for path in paths if len(path) > len(above) and path[: len(above)] == above)
