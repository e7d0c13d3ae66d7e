"""Suggests what a path that does not exist was meant to be, in one sentence that saves a call."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from difflib import get_close_matches
from urllib.parse import unquote

from mcp_batteries.errors import Problem, quote
from mcp_fs.engine.document_kinds import is_archive
from mcp_fs.paths import split, without_dots
from mcp_fs.policy import Readable

if sys.platform == "win32":
    from mcp_fs.engine.handles.windows import resolve
else:
    from mcp_fs.engine.handles.posix import resolve

__all__ = ["advice", "below_file", "is_in_archive"]

_LOOKED_AT = 5000
_WRAPPING = " \t\r\n\"'`<>"
_ELSEWHERE = re.compile(r"^(?:@|~/|\$HOME/|[A-Za-z]:/)")


def is_in_archive(place: Readable) -> bool:
    """Whether a path means what is in an archive, which no folder holds."""
    for above in (place, *_above(place)):
        if above.name.endswith("!"):
            names = _names(above.parent) or ()
            return above.name[:-1] in names and above.name not in names
    return False


def below_file(place: Readable) -> str:
    """The next move where a folder was wanted and a file stands at `place` or above it."""
    return _archived(place) or "Files are read with `read_text`."


def _archived(place: Readable) -> str | None:
    for above in (place, *_above(place)):
        if is_archive(above.name) and above.name in (_names(above.parent) or ()) and _names(above) is None:
            inside = "/".join(place.parts[len(above.parts) :]) or "NAME"
            return f"What is in an archive is read by `read_text` as {quote(f'{above.display}!/{inside}')}."
    return None


def advice(place: Readable) -> str:
    """The next move after `place` was not found; names only what may be read."""
    names = _names(place.parent)
    if names is not None and place.name in names:
        return "It is a link whose target does not exist."
    if is_in_archive(place):
        return "What is in an archive is read by `read_text` and searched by `search_text`."
    for parts in _readings(place):
        if (meant := _find(place, parts)) is not None:
            return f"Did you mean {quote(meant.display)}?"
    if any(character in place.name for character in "*?"):
        return "A path is not a glob; `find_files` and `search_text` take one as `glob`."
    if names is None:
        # Windows does not tell what lies below a file from what is not there.
        if archived := _archived(place):
            return archived
        above = next((above for above in _above(place) if _names(above) is not None), place.policy.top(place.root))
        return (
            f"The nearest folder that does is {quote(above.display)}; `find_files` finds {quote(place.name)} anywhere."
        )
    alike: dict[str, list[str]] = {}
    for name in names[:_LOOKED_AT]:
        alike.setdefault(name.casefold(), []).append(name)
    near = [name for close in get_close_matches(place.name.casefold(), alike, n=3) for name in alike[close]][:3]
    if not near:
        return f"Use `list_directory` to see what is there, or `find_files` to find {quote(place.name)} anywhere."
    return f"Near it are: {', '.join(quote((place.parent / name).display) for name in near)}."


def _names(place: Readable) -> list[str] | None:
    """What the folder `place` holds and may be read; None when it is not a folder that can be listed."""
    try:
        spot = resolve(place)
        with spot.folder, spot.folder.folder(spot.name) as folder:
            return [name for name in folder.names() if not place.policy.protected((*folder.place.parts, name))]
    except (OSError, Problem):
        return None


def _above(place: Readable) -> Iterator[Readable]:
    while place.parts:
        place = place.parent
        yield place


def _readings(place: Readable) -> Iterator[tuple[str, ...]]:
    """Other spellings of the path: another case, quoted, escaped, from a home or a drive, as Windows writes it."""
    yield place.parts
    text = unquote("/".join(place.parts).strip(_WRAPPING).replace("\\", "/"), errors="surrogateescape")
    parts = without_dots(split(_ELSEWHERE.sub("", text)))
    if parts and "\0" not in text:
        yield parts
        if parts[0] == place.root.name:
            yield parts[1:]


def _find(place: Readable, parts: tuple[str, ...]) -> Readable | None:
    """The entry at `parts` below the served folder of `place`, in whatever case its names are."""
    found = place.policy.top(place.root)
    for part in parts:
        names = _names(found)
        if names is None:
            return None
        fitting = [part] if part in names else [name for name in names if name.casefold() == part.casefold()]
        if len(fitting) != 1:
            return None
        found = found / fitting[0]
    return found if parts and found.parts != place.parts else None
