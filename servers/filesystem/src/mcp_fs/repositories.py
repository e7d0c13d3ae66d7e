"""Which names and folders belong to a repository itself: programs run what its configuration and hooks say.

Git runs the programs that `.git/config` and `.git/hooks` name, Mercurial those of `.hg/hgrc`, Jujutsu those of its own
configuration. Who can write there can run programs as the user, so these files are read but not written.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache

__all__ = ["COMPLETES_GIT_FOLDER", "is_git_folder", "is_repository_folder"]

_FOLDER_NAMES = frozenset({".git", ".hg", ".jj"})
_SHORT_NAME = re.compile(r"(?:git|hg|jj)~\d+")
_STREAM_SEPARATOR = ":"
_MAX_CACHED_NAMES = 8192

# The names by which Git knows a folder of its own, in lower case (gitrepository-layout(5)).
COMPLETES_GIT_FOLDER = frozenset({"head", "commondir", "objects", "refs"})


@lru_cache(_MAX_CACHED_NAMES)
def is_repository_folder(name: str) -> bool:
    """Return whether some file system takes `name` for the folder of a repository.

    File systems of Windows ignore the letter case, blanks and dots at the end and what follows a colon, and know a
    second, short name. Those of macOS ignore the letter case and characters that can't be seen. A file of that name
    counts too: it tells where the folder is.
    """
    return any(_is_repository_name(part) for part in name.split("\\"))


def _is_repository_name(name: str) -> bool:
    if not name.isascii():
        name = _without_ignored_characters(name)
    name = name.partition(_STREAM_SEPARATOR)[0].rstrip(" .").casefold()
    return name in _FOLDER_NAMES or _SHORT_NAME.fullmatch(name) is not None


def _without_ignored_characters(name: str) -> str:
    """Return `name` without what file systems may ignore: format characters, accents, variants of letters."""
    characters = unicodedata.normalize("NFKD", name).replace("\u0131", "i")
    return "".join(one for one in characters if unicodedata.category(one) not in ("Cf", "Mn", "Cc"))


def is_git_folder(has_entry: Callable[[str], bool]) -> bool:
    """Return whether Git takes a folder for its own, whatever its name: a bare repository, or what `gitdir:` names.

    Args:
        has_entry: tells whether the folder has an entry of that name.
    """
    if not has_entry("HEAD"):
        return False
    return has_entry("commondir") or (has_entry("objects") and has_entry("refs"))
