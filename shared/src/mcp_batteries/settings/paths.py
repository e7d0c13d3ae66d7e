"""Paths as people write them into a command or the configuration file of a host."""

from __future__ import annotations

import os
import re
import sys
from typing import TypeVar

from pydantic import AfterValidator

from mcp_batteries.errors import quote

__all__ = ["ABSOLUTE", "absolute", "why_not_there"]

_VARIABLE = re.compile("%([^%]+)%")
_PLACEHOLDER = re.compile(r"\$\{[^{}]+\}|\$(?:env:)?[A-Za-z_]\w*|%[A-Za-z_]\w*%")
# Windows puts this before long paths; short ones do without it.
_LONG_FORM = re.compile(r"^\\\\\?\\(?:([A-Za-z]:)|UNC\\)(?=.{0,240}$)", re.IGNORECASE | re.DOTALL)
_UNIX_DRIVE = re.compile(r"[A-Za-z]:\\(?:mnt\\|cygdrive\\)?([A-Za-z])(\\.*)?", re.DOTALL)
_EXAMPLE = re.compile(r"[/\\]path[/\\]to[/\\]")
_P = TypeVar("_P", str, "tuple[str, ...]", None)


def absolute(path: str) -> str:
    r"""The absolute path that `path` means, with `~` and on Windows `%USERPROFILE%` replaced.

    A shell would replace them, but hosts start servers without a shell, in the hosts' folders.

    Raises:
        ValueError: it is empty, or a URL.
    """
    if not path.strip():  # A variable that a host leaves empty is not the folder it happens to start servers in.
        raise ValueError("a path is empty; name a file or folder, `.` for the current one")
    if re.match(r"(?!file:)[A-Za-z][A-Za-z\d+.-]+://", path):  # not repeated: it may hold a password
        raise ValueError("a path begins like a URL; name a file or folder of this machine")
    if sys.platform == "win32":
        # Of `"C:\my folder\"` the last quote arrives too, and no name can hold one.
        path = _VARIABLE.sub(lambda found: os.environ.get(found[1], found[0]), path.removesuffix('"'))
    return _LONG_FORM.sub(lambda found: found[1] or "\\\\", os.path.abspath(os.path.expanduser(path)))


def _absolute(value: _P) -> _P:
    if value is None:
        return value
    return absolute(value) if isinstance(value, str) else tuple(map(absolute, value))


# Marks, inside `Annotated`, a setting of one path or several. The path is made absolute when it is set, since hosts
# start servers in folders of their own.
ABSOLUTE = AfterValidator(_absolute)


def why_not_there(path: str) -> str:
    """A sentence on what a missing absolute `path` was probably meant to be; empty if that is unknown."""
    # What follows the current folder, in which it was taken for a relative path, is what was written.
    if found := _PLACEHOLDER.search(path):
        return f"{quote(found[0])} came as it is written, so the host does not replace it: write the whole path."
    if re.search(r"(^|[/\\])file:[/\\]", path):
        return "Write the path itself, without `file:`."
    # On Windows no name can hold a double quote, and `absolute` has taken the last one.
    if re.search(r"""(^|[/\\])(["'])[^"']*\2$""", path) or (sys.platform == "win32" and '"' in path):
        return "The quotes came as a part of the name: leave them out."
    if sys.platform != "win32" and (found := re.search(r"(?:^|/)[A-Za-z]:[/\\].*", path)):
        return (
            f"{quote(found[0].lstrip('/'))} is a path of Windows, and here it has another; in WSL, `wslpath` tells it."
        )
    if sys.platform == "win32" and (found := _UNIX_DRIVE.fullmatch(path)):
        meant = f"{found[1].upper()}:{found[2] or os.sep}"
        if os.path.exists(meant):
            return f"A drive is no folder here: write {quote(meant)}."
    if path != path.strip() or re.search(r"[/\\]\s+[/\\]", path):
        return "A blank at an end of it is a part of the name: leave it out."
    if _EXAMPLE.search(path):
        return "It is the path of an example: write your own."
    if found := re.search(r"(?:^|/)(~[^/]*)", path):
        return f"{quote(found[1])} means the home of another user, who is not known here; `~/` begins your own."
    between = re.finditer("[,;]" if sys.platform == "win32" else "[,;:]", path)
    if found := next((mark for mark in between if os.path.exists(path[: mark.start()].rstrip())), None):
        return f"{quote(found[0])} is a part of the name: give each path as an argument of its own."
    return ""
