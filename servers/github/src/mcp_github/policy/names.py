"""Names that callers give inside a repository, or beside one: none can leave its place in a request."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote as percent

from mcp_batteries.errors import Invalid, Unavailable, quote
from mcp_github.invisible import escape_path, unescape_path

__all__ = [
    "HEAD", "LOGIN", "FilePath", "Gist", "LabelName", "NodeId", "Ref", "TeamSlug", "Workflow", "file", "gist",
    "is_encodable", "label", "node", "parse_owner_setting", "ref", "refs", "require_logins", "team", "workflow",
]  # fmt: skip

LOGIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}(?:\[bot\])?")

_MAX_REF_CHARACTERS = 250
_REF_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f ~^:?*\[\\]")
_MAX_PATH_CHARACTERS = 4000


@dataclass(frozen=True)
class Ref:
    """A branch, tag or commit."""

    name: str

    @property
    def path(self) -> str:
        return percent(self.name, safe="/")

    @property
    def segment(self) -> str:
        """The name as a single part of a path: GitHub finds the tree of `feature/x` only as that."""
        return percent(self.name, safe="")


# The tip of the default branch.
HEAD = Ref("HEAD")


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


@dataclass(frozen=True)
class LabelName:
    """The name of a label that may exist."""

    text: str

    @property
    def path(self) -> str:
        return percent(self.text, safe="")


@dataclass(frozen=True)
class NodeId:
    """An opaque id that GitHub issued, for GraphQL; its owner is checked before it is used."""

    text: str


@dataclass(frozen=True)
class TeamSlug:
    """The slug of a team."""

    text: str


@dataclass(frozen=True)
class Workflow:
    """A workflow's id or the name of its file, as it stands in a path."""

    path: str


def ref(text: str) -> Ref:
    """Return a branch, tag or commit, by the rules of git-check-ref-format.

    Raises:
        Invalid: no branch, tag or commit can have that name.
    """
    name = text.removeprefix("refs/heads/")
    if not _is_ref_name(name):
        raise Invalid(f"{quote(name)} can't be a branch, tag or commit.", "Name one, such as `main`.")
    return Ref(name)


def refs(texts: list[str]) -> list[Ref]:
    """Return branches, tags or commits; as `ref`."""
    return [ref(text) for text in texts]


def _is_ref_name(name: str) -> bool:
    if not name or len(name) > _MAX_REF_CHARACTERS or name == "@":
        return False
    if name.startswith(("/", "-", ".")) or name.endswith(("/", ".", ".lock")):
        return False
    if any(sequence in name for sequence in ("..", "//", "@{", "/.")):
        return False
    return _REF_FORBIDDEN.search(name) is None and is_encodable(name)


def file(text: str, *, is_escaped: bool = True) -> FilePath:
    """Return a path inside a repository.

    Args:
        is_escaped: whether `text` has invisible characters in their visible spelling.

    Raises:
        Invalid: it could leave its place in a request.
    """
    if "://" in text:
        raise Invalid(f"{quote(text)} is an address.", "Pass what follows the branch as `path`, the branch as `ref`.")
    name = text
    if is_escaped:
        name = unescape_path(text)
    name = name.removeprefix("./").strip("/")
    if name and any(part in ("", ".", "..") for part in name.split("/")):
        raise Invalid(f"The path {quote(text)} has an empty, `.` or `..` part.", "Write it from the top down.")
    if "\0" in name or not is_encodable(name) or len(name) > _MAX_PATH_CHARACTERS:
        raise Invalid(f"{quote(text)} can't be a path in a repository.")
    return FilePath(name)


def workflow(text: str) -> Workflow:
    """Return a workflow's id or the name of its file, as it stands in a path."""
    text = text.removeprefix(".github/workflows/")
    if not re.fullmatch(r"\d{1,20}|[A-Za-z0-9_][A-Za-z0-9._ -]{0,200}\.ya?ml", text):
        raise Invalid(f"{quote(text)} is not a workflow.", "`list_actions` with kind=workflows shows them.")
    return Workflow(percent(text, safe=""))


def team(text: str) -> TeamSlug:
    """Return a team's slug."""
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,100}", text):
        raise Invalid(f"{quote(text)} is not a slug of a team.", "`list_people` without arguments shows yours.")
    return TeamSlug(text)


def gist(text: str) -> Gist:
    """Return the gist with this id or address."""
    if text.startswith("https://gist."):
        text = text.rstrip("/").rpartition("/")[2]
    if not re.fullmatch(r"[0-9a-zA-Z]{1,64}", text):
        raise Invalid(f"{quote(text)} is not an id of a gist.")
    return Gist(text)


def label(text: str) -> LabelName:
    """Return the name of a label that may exist."""
    if text in (".", ".."):
        raise Invalid(f"{quote(text)} is not a label.")
    return LabelName(text)


def node(text: str) -> NodeId:
    """Return an opaque id that GitHub issued, for GraphQL."""
    if not re.fullmatch(r"[A-Za-z0-9_=-]{4,200}", text):
        raise Invalid(f"{quote(text)} is not an id from an earlier answer.")
    return NodeId(text)


def is_encodable(text: str) -> bool:
    """Return whether `text` contains no lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def require_logins(texts: Sequence[str]) -> None:
    """Raise `Invalid` unless these are people to assign, request or mention; they need not own anything served."""
    for text in texts:
        if not LOGIN.fullmatch(text):
            raise Invalid(f"{quote(text)} is not a login.")


def parse_owner_setting(text: str, setting: str) -> str:
    """Return a login in `setting`, in the form for comparison."""
    login = text.strip().removeprefix("@").lower()
    if not LOGIN.fullmatch(login):
        raise Unavailable(f"{quote(text)} in {setting} is not a login.", "Name users or organisations.")
    return login
