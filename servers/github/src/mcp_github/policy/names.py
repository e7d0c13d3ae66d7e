"""Names that callers give inside a repository, or beside one: none can leave its place in a request."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote as percent

from mcp_batteries.errors import Invalid, quote
from mcp_github.invisible import escape_path, unescape_path

__all__ = ["HEAD", "FilePath", "Gist", "Ref", "file", "gist", "is_encodable", "node", "ref", "team", "workflow"]


@dataclass(frozen=True)
class Ref:
    """A branch, tag or commit."""

    name: str

    @property
    def path(self) -> str:
        return percent(self.name, safe="/")


HEAD = Ref("HEAD")
"""The tip of the default branch."""


@dataclass(frozen=True)
class FilePath:
    """A path inside a repository; empty for its top."""

    name: str

    @property
    def path(self) -> str:
        return percent(self.name, safe="/")

    @property
    def display_name(self) -> str:
        """The path with invisible characters written out."""
        return escape_path(self.name)


@dataclass(frozen=True)
class Gist:
    """A gist's id."""

    id: str


def ref(text: str) -> Ref:
    """A branch, tag or commit, by the rules of git-check-ref-format.

    Raises:
        Invalid: no branch, tag or commit can have that name.
    """
    text = text.removeprefix("refs/heads/")
    wrong = (
        not text or len(text) > 250 or text[0] in "/-" or text[-1] in "/." or ".." in text or "//" in text
        or "@{" in text or text == "@" or text.endswith(".lock") or "/." in text or text[0] == "."
        or any(char in " ~^:?*[\\" or ord(char) < 32 or ord(char) == 127 for char in text)
    )  # fmt: skip
    if wrong or not is_encodable(text):
        raise Invalid(f"{quote(text)} can't be a branch, tag or commit.", "Name one, such as `main`.")
    return Ref(text)


def file(text: str, *, is_escaped: bool = True) -> FilePath:
    """A path inside a repository.

    Args:
        spelt: whether `text` has invisible characters in their visible spelling.

    Raises:
        Invalid: it could leave its place in a request.
    """
    if "://" in text:
        raise Invalid(f"{quote(text)} is an address.", "Pass what follows the branch as `path`, the branch as `ref`.")
    name = (unescape_path(text) if is_escaped else text).removeprefix("./").strip("/")
    if any(part in ("", ".", "..") for part in name.split("/")) and name:
        raise Invalid(f"The path {quote(text)} has an empty, `.` or `..` part.", "Write it from the top down.")
    if "\0" in name or not is_encodable(name) or len(name) > 4000:
        raise Invalid(f"{quote(text)} can't be a path in a repository.")
    return FilePath(name)


def workflow(text: str) -> str:
    """A workflow's id or the name of its file."""
    text = text.removeprefix(".github/workflows/")
    if not re.fullmatch(r"\d{1,20}|[A-Za-z0-9_][A-Za-z0-9._ -]{0,200}\.ya?ml", text):
        raise Invalid(f"{quote(text)} is not a workflow.", "`list_actions` with kind=workflows shows them.")
    return percent(text, safe="")


def team(text: str) -> str:
    """A team's slug."""
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,100}", text):
        raise Invalid(f"{quote(text)} is not a slug of a team.", "`list_people` without arguments shows yours.")
    return text


def gist(text: str) -> Gist:
    """A gist's id, or its address."""
    text = text.rstrip("/").rpartition("/")[2] if text.startswith("https://gist.") else text
    if not re.fullmatch(r"[0-9a-zA-Z]{1,64}", text):
        raise Invalid(f"{quote(text)} is not an id of a gist.")
    return Gist(text)


def node(text: str) -> str:
    """An opaque id that GitHub issued, for GraphQL; its owner is checked before it is used."""
    if not re.fullmatch(r"[A-Za-z0-9_=-]{4,200}", text):
        raise Invalid(f"{quote(text)} is not an id from an earlier answer.")
    return text


def is_encodable(text: str) -> bool:
    """Whether `text` contains no lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
