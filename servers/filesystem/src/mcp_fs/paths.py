"""Paths as strings: splits what a caller can write into names. Lexical only, without the file system."""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from collections.abc import Iterable
from urllib.parse import quote_from_bytes, unquote_to_bytes

from mcp_batteries.errors import Invalid, Refused, quote

__all__ = [
    "detect_typo",
    "file_uri",
    "fold_names",
    "is_absolute",
    "is_uri",
    "path_of_uri",
    "refuse_impossible_path",
    "resolve_dots",
    "split_names",
    "to_native",
    "to_system_path",
]

_WINDOWS = sys.platform == "win32"
_FOLDS_CASE = sys.platform in ("win32", "darwin")
# Longest path that every call of Windows takes; most take 259 characters, those that make a folder fewer.
_MAX_PATH_CHARACTERS = 247


_TYPOS = {
    "a backslash": re.compile(r"\\"),
    "a blank at an end": re.compile(r"^\s|\s$"),
    "a control character": re.compile(r"[\x00-\x1f\x7f-\x9f]"),
}
_OTHER_PREFIX = re.compile(r"~|[A-Za-z]:|\$[A-Z_]+|\$\{[^{}]*\}|%[A-Za-z_]+%")
_QUOTES = "\"'`"
_UNIX_DRIVE = re.compile("/(?:mnt/|cygdrive/)?([A-Za-z])(?:/|$)")


def file_uri(path: str) -> str:
    """The `file:` URI (RFC 8089) of an absolute path, every byte but the unreserved ones percent-encoded."""
    if _WINDOWS:
        path = path.replace("\\", "/")
        # A share stands behind four slashes (RFC 8089, E.3.2): `file:///` begins every URI of ours.
        path = path if path.startswith("//") else "/" + path
        return "file://" + quote_from_bytes(path.encode("utf-8", "surrogatepass"), safe="/:")
    return "file://" + quote_from_bytes(os.fsencode(path), safe="/")


def to_system_path(path: str) -> str:
    """The absolute, native `path` as calls of the system take it, however long it is."""
    if not _WINDOWS or len(path) <= _MAX_PATH_CHARACTERS or path.startswith("\\\\?\\"):
        return path
    return f"\\\\?\\UNC{path[1:]}" if path.startswith("\\\\") else f"\\\\?\\{path}"


def is_absolute(path: str) -> bool:
    """Whether `path` begins at a root; on Windows also without a drive, which Python since 3.13 calls relative."""
    return os.path.isabs(path) or (_WINDOWS and path.startswith(("/", "\\")))


def to_native(path: str, drives: Iterable[str]) -> str:
    """`path`, on Windows with its drive: as Git Bash, WSL and Cygwin spell it, or the only one of `drives`."""
    if not _WINDOWS or not path.startswith(("/", "\\")) or path[1:2] in ("/", "\\"):
        return path
    if drive_match := _UNIX_DRIVE.match(path):
        return f"{drive_match[1]}:/{path[drive_match.end() :]}"
    only_drive, *other_drives = set(drives)
    return path if other_drives else only_drive + path


def split_names(path: str) -> tuple[str, ...]:
    """The names in a path, without empty ones and `.`; a drive counts as a name."""
    if _WINDOWS:
        path = path.replace("\\", "/")
        if path.startswith("//?/"):
            path = path[4:]
    return tuple(part for part in path.split("/") if part not in ("", "."))


def resolve_dots(parts: Iterable[str]) -> tuple[str, ...] | None:
    """`parts` with each `..` taken back together with the name before it (RFC 3986, 5.2.4); None when that leaves."""
    names: list[str] = []
    for part in parts:
        if part != "..":
            names.append(part)
        elif names:
            names.pop()
        else:
            return None
    return tuple(names)


def fold_names(parts: tuple[str, ...]) -> tuple[str, ...]:
    """A form that is equal for all spellings of one path on this system's usual file systems."""
    # Where the file system finds names in either letter case, so must the comparison with a served folder.
    if not _FOLDS_CASE:
        return parts
    return tuple(unicodedata.normalize("NFC", part).casefold() for part in parts)


def refuse_impossible_path(path: str) -> None:
    """Check that the system could take a string as a path.

    Raises:
        Invalid: it could not.
    """
    if "\0" in path:
        raise Invalid(f"{quote(path)} is not a path: it holds a NUL character.")
    try:
        # fsencode() would let it pass on Windows, whose names need not be UTF-16.
        _ = path.encode() if _WINDOWS else os.fsencode(path)
    except UnicodeEncodeError:
        raise Invalid(f"{quote(path)} is not a path: it holds a lone surrogate.") from None
    if _WINDOWS:
        drive, rest = os.path.splitdrive(path)
        if drive.endswith(":") and not rest.startswith(("\\", "/")):
            raise Invalid(f"{quote(path)} depends on the drive's current folder.", "Write the whole path.")


def path_of_uri(uri: str) -> str:
    """The native path in a `file:` URI: `file:///x`, `file://localhost/x`, `file:/x` (RFC 8089)."""
    scheme, _, rest = uri.partition(":")
    if scheme.lower() != "file" or not rest.startswith("/"):
        raise Invalid(f"{quote(uri)} is not a `file://` URI.")
    if "?" in rest or "#" in rest:
        raise Invalid(f"{quote(uri)} has a query or fragment.", "Write `?` as %3F and `#` as %23 in names.")
    host = ""
    if rest.startswith("//"):
        host, slash, rest = rest[2:].partition("/")
        rest = slash + rest
    raw = unquote_to_bytes(rest or "/")
    if not _WINDOWS:
        if host.lower() not in ("", "localhost"):
            raise Refused(f"{quote(uri)} names another machine.", "Use `file:///` and an absolute path.")
        return os.fsdecode(raw)
    try:
        path = raw.decode().replace("/", "\\")
    except UnicodeDecodeError:
        raise Invalid(f"{quote(uri)} is not UTF-8 once decoded.", "Encode names as UTF-8, then as %XX.") from None
    if host.lower() not in ("", "localhost"):
        return f"\\\\{host}{path}"
    return path[1:] if path[2:3] == ":" else path


def is_uri(path: str) -> bool:
    """Whether `path` is spelt as a `file:` URI, in which nothing is written by a slip."""
    return path[:6].lower() == "file:/"


def detect_typo(parts: tuple[str, ...]) -> tuple[int, str, str] | None:
    """What nearly always makes another path than was meant, where there is nothing yet: a path of another system,
    what a shell or a host would have replaced, or what stood around it.

    Returns:
        How many names lead to the first such name, what it has, and the path that was meant; empty if that lies
        elsewhere.
    """
    text = "/".join(parts)
    intended_path = _guess_intended_path(text)
    if _is_quoted(text):
        return 1, "a quotation mark", intended_path
    if parts and _OTHER_PREFIX.fullmatch(parts[0]):
        return 1, quote(parts[0]), ""
    for depth, name in enumerate(parts, 1):
        for mistake, pattern in _TYPOS.items():
            if pattern.search(name):
                return depth, mistake, intended_path
    return None


def _is_quoted(text: str) -> bool:
    """Whether it stands between two equal quotation marks, and there is anything between them."""
    return text[:1] in _QUOTES and text[-1:] == text[:1] and bool(text.strip(_QUOTES))


def _guess_intended_path(text: str) -> str:
    """Return the path without quotation marks, blanks and backslashes; empty if it lies elsewhere."""
    names = [name.strip() for name in text.strip(_QUOTES).replace("\\", "/").split("/")]
    intended_names = resolve_dots(name for name in names if name not in ("", ".")) or ("~",)
    if _OTHER_PREFIX.fullmatch(intended_names[0]):
        return ""
    return "/".join(intended_names)
