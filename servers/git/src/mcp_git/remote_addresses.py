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
from mcp_git.repository_paths import Layout, find_layout, is_inside

__all__ = ["Address", "hide_password", "parse_address"]

_HOST = r"(?:\w[\w.-]*|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?"
_USER = r"(?:[\w.+][\w.+-]*@)?"
_HTTPS = re.compile(rf"https://(?:[^\s@/\\]*@)?{_HOST}(?:/\S*)?", re.ASCII)
_SSH = re.compile(rf"(?:ssh|git\+ssh|ssh\+git)://{_USER}{_HOST}/\S+", re.ASCII)
_SHORT_SSH = re.compile(rf"{_USER}(?:\w[\w.-]+|\[[0-9A-Fa-f:.]+\]):(?![-:]).+", re.ASCII)
_ODD = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\\\\\ud800-\udfff]")
# Up to the last @, because nobody has percent-encoded those of the password.
_PASSWORD = re.compile(r"(?i)\b([a-z][a-z0-9+.-]*)://([^\s/@]*:(?!\d{1,5}(?:[/\s'\"]|$))[^\s'\"]*|[^\s/]*)@")


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
    if _SSH.fullmatch(url) or (_SHORT_SSH.fullmatch(url) and "/" not in url.partition(":")[0] and "://" not in url):
        return Address(url, "ssh")
    path = plain.removeprefix("file://") if url.startswith("file:///") else url
    if re.match(r"[\w.+-]*::|[\w.+-]+://", path) or path.startswith("-"):
        kind = url.partition(":")[0]
        raise Refused(f"A remote is not reached by {quote(kind)} here, only by `https` and `ssh`.", _FIX)
    place = os.path.realpath(os.path.join(top, path))
    if not any(is_inside(place, folder) for folder in folders):
        raise Refused(
            "This remote is a path on this machine, in none of the folders that may have remotes.",
            "The operator can name its folder: `--remote-folder`.",
        )
    layout = find_layout(place, folders)
    return Address(layout.common_dir, "file", layout)


def hide_password(text: str) -> str:
    """`text` without possible passwords in addresses; a token can be in the place of the user."""

    def replace(match: re.Match[str]) -> str:
        plain = match[1].lower() in ("ssh", "git+ssh", "ssh+git") and ":" not in match[2]
        return match[0] if plain else f"{match[1]}://…@"

    return _PASSWORD.sub(replace, text)


_FIX = "The operator can set another: `git remote set-url`."
