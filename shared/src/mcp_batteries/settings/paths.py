"""Paths as people write them into a command or the configuration file of a host."""

from __future__ import annotations

import os
import re
import sys
from typing import TypeVar

from pydantic import AfterValidator

from mcp_batteries.errors import quote

__all__ = ["ABSOLUTE", "explain_missing_path", "to_absolute_path"]

_VARIABLE = re.compile("%([^%]+)%")
_PLACEHOLDER = re.compile(r"\$\{[^{}]+\}|\$(?:env:)?[A-Za-z_]\w*|%[A-Za-z_]\w*%")
# Windows puts this before long paths; short ones do without it.
_LONG_FORM = re.compile(r"^\\\\\?\\(?:([A-Za-z]:)|UNC\\)(?=.{0,240}$)", re.IGNORECASE | re.DOTALL)
_UNIX_DRIVE = re.compile(r"[A-Za-z]:\\(?:mnt\\|cygdrive\\)?([A-Za-z])(\\.*)?", re.DOTALL)
_EXAMPLE = re.compile(r"[/\\]path[/\\]to[/\\]")
_P = TypeVar("_P", str, "tuple[str, ...]", None)


def to_absolute_path(path: str) -> str:
    r"""Return the absolute path that `path` means, with `~` and on Windows `%USERPROFILE%` replaced.

    A shell would replace them, but hosts start servers without a shell, in the hosts' folders.

    Raises:
        ValueError: it is empty, a URL, or below a current folder that is gone.
    """
    if not path.strip():  # A variable that a host leaves empty is not the folder it happens to start servers in.
        raise ValueError("a path is empty; name a file or folder, `.` for the current one")
    if re.match(r"(?!file:)[A-Za-z][A-Za-z\d+.-]+://", path):  # It is not repeated, because it may hold a password.
        raise ValueError("a path begins like a URL; name a file or folder of this machine")
    if sys.platform == "win32":
        # Of `"C:\my folder\"` the last quote arrives too, and no name can hold one.
        path = _VARIABLE.sub(lambda match: os.environ.get(match[1], match[0]), path.removesuffix('"'))
    try:
        absolute_path = os.path.abspath(os.path.expanduser(path))
    except FileNotFoundError:
        raise ValueError("the current folder does not exist any more; name a whole path") from None
    return _LONG_FORM.sub(lambda match: match[1] or "\\\\", absolute_path)


def _make_absolute(value: _P) -> _P:
    if value is None:
        return value
    if isinstance(value, str):
        return to_absolute_path(value)
    return tuple(map(to_absolute_path, value))


# Marks, inside `Annotated`, a setting of one path or several. The path is made absolute when it is set, since hosts
# start servers in folders of their own.
ABSOLUTE = AfterValidator(_make_absolute)


def explain_missing_path(path: str) -> str:
    """Say in a sentence what a missing absolute `path` was probably meant to be; empty if that is unknown."""
    return (
        _explain_placeholder(path)
        or _explain_spelling(path)
        or _explain_other_system(path)
        or _explain_blank(path)
        or _explain_example(path)
        or _explain_several(path)
    )


def _explain_placeholder(path: str) -> str:
    # What follows the current folder, in which it was taken for a relative path, is what was written.
    placeholder = _PLACEHOLDER.search(path)
    if placeholder is None:
        return ""
    return f"{quote(placeholder[0])} came as it is written, so the host does not replace it: write the whole path."


def _explain_spelling(path: str) -> str:
    if re.search(r"(^|[/\\])file:[/\\]", path):
        return "Write the path itself, without `file:`."
    # On Windows no name can hold a double quote, and `absolute` has taken the last one.
    has_quotes = re.search(r"""(^|[/\\])(["'])[^"']*\2$""", path) is not None
    if has_quotes or (sys.platform == "win32" and '"' in path):
        return "The quotes came as a part of the name: leave them out."
    return ""


def _explain_other_system(path: str) -> str:
    """Explain a path of Windows elsewhere, and a path of a Unix shell on Windows."""
    if sys.platform != "win32":
        windows_path = re.search(r"(?:^|/)[A-Za-z]:[/\\].*", path)
        if windows_path is None:
            return ""
        quoted_path = quote(windows_path[0].lstrip("/"))
        return f"{quoted_path} is a path of Windows, and here it has another; in WSL, `wslpath` tells it."
    drive = _UNIX_DRIVE.fullmatch(path)
    if drive is None:
        return ""
    windows_path = f"{drive[1].upper()}:{drive[2] or os.sep}"
    if not os.path.exists(windows_path):
        return ""
    return f"A drive is no folder here: write {quote(windows_path)}."


def _explain_blank(path: str) -> str:
    if path != path.strip() or re.search(r"[/\\]\s+[/\\]", path):
        return "A blank at an end of it is a part of the name: leave it out."
    return ""


def _explain_example(path: str) -> str:
    if _EXAMPLE.search(path):
        return "It is the path of an example: write your own."
    home = re.search(r"(?:^|/)(~[^/]*)", path)
    if home is None:
        return ""
    return f"{quote(home[1])} means the home of another user, who is not known here; `~/` begins your own."


def _explain_several(path: str) -> str:
    """Explain several paths in one, with a separator behind one that exists."""
    separators = "[,;]" if sys.platform == "win32" else "[,;:]"
    for separator in re.finditer(separators, path):
        if os.path.exists(path[: separator.start()].rstrip()):
            return f"{quote(separator[0])} is a part of the name: give each path as an argument of its own."
    return ""
