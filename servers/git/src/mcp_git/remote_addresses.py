"""Addresses of remotes: which of those in a repository's configuration git may use.

The repository's author wrote them. Git has schemes that run programs (`ext::`), old versions take a host that begins
with a dash for an option of ssh, and git opens whatever is at a path.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote

from mcp_batteries.errors import Refused, quote
from mcp_git.repository_paths import Layout, find_layout, is_inside_any

__all__ = ["Address", "hide_password", "parse_address"]

_HOST = r"(?:\w[\w.-]*|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?"
_USER = r"(?:[\w.+][\w.+-]*@)?"
_HTTPS = re.compile(rf"https://(?:[^\s@/\\]*@)?{_HOST}(?:/\S*)?", re.ASCII)
_SSH = re.compile(rf"(?:ssh|git\+ssh|ssh\+git)://{_USER}{_HOST}/\S+", re.ASCII)
_SHORT_SSH = re.compile(rf"{_USER}(?:\w[\w.-]+|\[[0-9A-Fa-f:.]+\]):(?![-:]).+", re.ASCII)
_SCHEME = re.compile(r"[\w.+-]*::|[\w.+-]+://")
_ODD = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\\\\\ud800-\udfff]")
# Up to the last @, because nobody has percent-encoded those of the password.
_PASSWORD = re.compile(r"(?i)\b([a-z][a-z0-9+.-]*)://([^\s/@]*:(?!\d{1,5}(?:[/\s'\"]|$))[^\s'\"]*|[^\s/]*)@")
# Tokens stand there too, by many names.
_QUERY = re.compile(r"(?i)(\bhttps?://[^\s?'\"]*[?#])[^\s'\"]+")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a remote is.

    Attributes:
        url: the form for git.
        layout: where the parts of a remote on this machine are.
    """

    url: str
    protocol: Literal["https", "ssh", "file"]
    layout: Layout | None = None

    @property
    def display(self) -> str:
        return hide_password(self.url)


def parse_address(url: str, top: str, folders: Sequence[str]) -> Address:
    """Return the address in a `url` of a configuration.

    Args:
        top: the base of relative paths.
        folders: real paths of the folders in which remotes may lie on this machine.

    Raises:
        Refused: it is of another kind, could be taken for an option, or is elsewhere.
    """
    plain = unquote(url) if "://" in url else url
    if _ODD.search(plain):
        raise Refused(f"The address {quote(hide_password(url))} holds characters that no address has.", _FIX)
    if _HTTPS.fullmatch(url):
        return Address(url, "https")
    if _SSH.fullmatch(url) or _is_short_ssh(url):
        return Address(url, "ssh")
    path = plain.removeprefix("file://") if url.startswith("file:///") else url
    if _SCHEME.match(path) or path.startswith("-"):
        kind = url.partition(":")[0]
        raise Refused(f"A remote is not reached by {quote(kind)} here, only by `https` and `ssh`.", _FIX)
    return _locate_remote(os.path.realpath(os.path.join(top, path)), folders)


def _is_short_ssh(url: str) -> bool:
    """Whether it is an address like `user@host:path`."""
    if "://" in url or "/" in url.partition(":")[0]:
        return False
    return _SHORT_SSH.fullmatch(url) is not None


def _locate_remote(path: str, folders: Sequence[str]) -> Address:
    """Return the address of a remote on this machine."""
    if not is_inside_any(path, folders):
        raise Refused(
            "This remote is a path on this machine, in none of the folders that may have remotes.",
            "The operator can name its folder: `--remote-folder`.",
        )
    layout = find_layout(path, folders)
    return Address(layout.common_dir, "file", layout)


def hide_password(text: str) -> str:
    """Return `text` without possible passwords in addresses and without their queries, which hold tokens too."""
    return _QUERY.sub(r"\1…", _PASSWORD.sub(_hide_user, text))


def _hide_user(match: re.Match[str]) -> str:
    if match[1].lower() in ("ssh", "git+ssh", "ssh+git") and ":" not in match[2]:
        return match[0]
    return f"{match[1]}://…@"


_FIX = "The operator can set another: `git remote set-url`."
