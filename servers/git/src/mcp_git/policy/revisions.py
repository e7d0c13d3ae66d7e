"""Names that a caller gives in a repository: a revision, a range, a new name, a file.

None of them can be read as an option, lead outside or contain a line end.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from mcp_batteries.errors import Invalid, Refused, quote
from mcp_git.path_quoting import quote_path, unquote_path

__all__ = [
    "HEAD",
    "TOP_FOLDER",
    "Author",
    "Expectation",
    "LineRange",
    "Message",
    "NewName",
    "Range",
    "RemoteName",
    "RepositoryPath",
    "Revision",
    "expect",
    "parse_author",
    "parse_expectation",
    "parse_lines",
    "parse_message",
    "parse_new_name",
    "parse_path",
    "parse_path_or_glob",
    "parse_paths",
    "parse_range",
    "parse_ref",
    "parse_remote_name",
    "parse_revision",
    "symmetric_range",
]  # fmt: skip

_MOST_REVISION = 250
# Each is looked at before the first is made, for which a call has only so much time.
_MOST_COMMITS = 200
_WORD = re.compile(r"(?:[^\s{]|\{[^}]*\}?)+")
# Stands for the parents of a commit, or leaves these out: of several commits each would leave out the others.
_PARENTS = re.compile(r"\^(?:[!@]|-\d*)$")
_STAGE = re.compile(r":[0-3]")
_LINES = re.compile(r"\s*L?(\d{1,9})(?:\s*(?:,|-|\.\.)\s*L?(\d{1,9}))?\s*", re.A)
_ABSOLUTE = re.compile(r"/|[A-Za-z]:|(?ai:file:/)")
_CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f]")
_EXPECTATION = re.compile(r"(HEAD|files|index|ref) (?:([^ ]+) )?([0-9a-f]{7,64})")
_WITHOUT_ADDRESS = re.compile(r"[^\s<>]+")
_AUTHOR = re.compile(r"[^\x00-\x1f\x7f<>]*[^\s\x00-\x1f\x7f<>] <[^\s\x00-\x1f\x7f<>]+>")
# Possessive, as many commas without an end of the braces would take the square of their number.
_BRACES = re.compile(r"\{([^{},]*+,[^{}]*+)\}")
_WILDCARD = re.compile("[*?]")
# Of the braces in one glob; each is a pathspec for git.
_MAX_CHOICES = 100
_MAX_BRACES_CHARACTERS = 10_000
# What git takes for more than a letter in a glob, beside the signs of ours.
_SPECIAL_IN_GLOB = re.compile(r"[\[\\]")
_NAME = re.compile(r"[^\x00-\x20\x7f:?*\[\\]+")


@dataclass(frozen=True)
class NewName:
    """A possible name for a new branch or tag."""

    text: str


@dataclass(frozen=True)
class Revision:
    """A name of one commit, tree or stage that does not look like an option."""

    text: str

    @property
    def is_conflict_side(self) -> bool:
        """Whether it is a side of a conflict in the index."""
        return self.text.startswith(":")

    @property
    def arguments(self) -> list[str]:
        """What names it to git."""
        return [self.text]


@dataclass(frozen=True)
class Range:
    """The range between two revisions.

    Attributes:
        dots: two for from `start` to `end`, three for from where they parted.
    """

    start: Revision
    dots: str
    end: Revision

    @property
    def text(self) -> str:
        return f"{self.start.text}{self.dots}{self.end.text}"

    @property
    def arguments(self) -> list[str]:
        """What names it to git."""
        return [self.text]


@dataclass(frozen=True)
class RevisionList:
    """Several revisions, in their order."""

    items: Sequence[Revision]

    @property
    def text(self) -> str:
        return " ".join(self.arguments)

    @property
    def arguments(self) -> list[str]:
        """What names them to git."""
        return [item.text for item in self.items]


@dataclass(frozen=True)
class RepositoryPath:
    """A file or folder of a repository, by its path from the top; empty for the top.

    Attributes:
        globs: those of which it stands for all paths that one matches; none for one file or folder. `*` and `?` stop
            at a slash, `**` does not, and a name without a slash is meant at any depth.
    """

    text: str
    globs: tuple[str, ...] = ()

    @property
    def is_glob(self) -> bool:
        return bool(self.globs)

    def as_literal(self) -> RepositoryPath:
        """Return the one file or folder that is called like this."""
        return RepositoryPath(self.text)

    @property
    def display(self) -> str:
        return quote_path(os.fsencode(self.text)) or "."

    @property
    def quoted(self) -> str:
        """The path in quotes, in which a caller's argument is no glob."""
        if self.display.startswith('"'):
            return self.display
        return f'"{self.display}"'

    @property
    def pathspec(self) -> str:
        """What names a path that is no glob to git."""
        return self.text or "."

    @property
    def pathspecs(self) -> list[str]:
        """What names it to git, which is to take only a glob for more than a path."""
        if not self.is_glob:
            return [self.pathspec]
        pathspecs: list[str] = []
        for glob in self.globs:
            pathspecs += _to_pathspecs(glob)
        return pathspecs


def _to_pathspecs(glob: str) -> list[str]:
    pattern = _SPECIAL_IN_GLOB.sub(r"\\\g<0>", glob)
    if "/" not in pattern:
        pattern = f"**/{pattern}"
    pathspecs = [f":(glob){pattern}"]
    if not _WILDCARD.search(glob):
        # Without wildcards it may be a folder, as any path, and git takes no folder for its files below `**/`.
        pathspecs.append(f":(glob){pattern.rstrip('/')}/**")
    return pathspecs


@dataclass(frozen=True)
class LineRange:
    """Lines of a file, or a function in it.

    Attributes:
        function: empty if the lines are named by their numbers.
    """

    first: int = 1
    last: int = 1
    function: str = ""


@dataclass(frozen=True)
class Message:
    """A message of a commit, a tag or a stash, as git takes it."""

    text: str


@dataclass(frozen=True)
class Author:
    """Whom a commit names as its author, as git takes it."""

    text: str


@dataclass(frozen=True)
class Expectation:
    """What must still be so for a change to be made: an undo names it, so that it undoes nothing that came since.

    Attributes:
        branch: where HEAD is; empty if it is detached, or not looked at.
        head: the commit of HEAD.
        files: the tree or commit that the tracked files are like.
        index: the tree or commit that what is staged is like.
        ref: the object of the branch or tag that the call names.
    """

    branch: str = ""
    head: str = ""
    files: str = ""
    index: str = ""
    ref: str = ""

    @property
    def text(self) -> str:
        clauses: list[str] = []
        if self.head:
            clauses.append(f"HEAD {self.branch} {self.head}" if self.branch else f"HEAD {self.head}")
        for name, value in (("files", self.files), ("index", self.index), ("ref", self.ref)):
            if value:
                clauses.append(f"{name} {value}")
        return ", ".join(clauses)


def expect(*, branch: str = "", head: str = "", files: str = "", index: str = "", ref: str = "") -> Expectation:
    """Return the expectation of a state that this server has read itself."""
    return Expectation(branch, head, files, index, ref)


@dataclass(frozen=True)
class RemoteName:
    """A possible name of a remote."""

    text: str


HEAD = Revision("HEAD")
TOP_FOLDER = RepositoryPath("")


def parse_revision(text: str) -> Revision:
    """Return the revision that `text` names: a hash, branch, tag, `HEAD~2`, `stash@{1}`.

    Raises:
        Invalid: it can't be a revision.
    """
    if _STAGE.fullmatch(text):
        return Revision(text)
    _refuse_options(text)
    if ".." in text or text.startswith("^"):
        raise Invalid(f"{quote(text)} is a range, and one revision is wanted.", "Name one, such as `HEAD~2`.")
    if ":" in text.partition("{")[0] or not text:
        raise Invalid(f"{quote(text)} is not a revision.", "Give the path as `path`, the revision alone as `rev`.")
    return Revision(text)


def parse_commits(text: str) -> Range | Revision | RevisionList:
    """Return a revision, a range, or several revisions with spaces between them.

    Raises:
        Invalid: it can't be any of these.
    """
    # A date in the braces of a reflog may have spaces too.
    words = _WORD.findall(text)
    for word in words:
        if _PARENTS.search(word):
            raise Invalid(
                f"{quote(word)} is a range, and commits are wanted.", "Name the commit alone, such as `HEAD~2`."
            )
    if len(words) > _MOST_COMMITS:
        raise Invalid(
            f"These are {len(words):,} commits, and one call takes {_MOST_COMMITS}.",
            "Name a range `a..b`, or the others in a second call.",
        )
    if len(words) > 1:
        return RevisionList([parse_revision(word) for word in words])
    return parse_range(text)


def parse_range(text: str) -> Range | Revision:
    """Return a revision, or two with `..` or `...` between them; a missing side is HEAD.

    Raises:
        Invalid: it can't be either.
    """
    _refuse_options(text)
    dots = "..." if "..." in text else ".."
    start, separator, end = text.partition(dots)
    if not separator:
        return parse_revision(text)
    return Range(parse_revision(start or "HEAD"), dots, parse_revision(end or "HEAD"))


def symmetric_range(one: Revision, other: Revision) -> Range:
    """Return the range of the commits that only one of two revisions has."""
    return Range(one, "...", other)


def parse_ref(name: str) -> Revision:
    """Return a name of a branch or tag, to list or follow it.

    Raises:
        Invalid: no branch can have it.
    """
    if not _NAME.fullmatch(name) or name.startswith("-") or ".." in name or "@{" in name:
        raise Invalid(f"{quote(name)} can't be the name of a branch or tag.", "`list_refs` has those there are.")
    return Revision(name)


def parse_remote_name(name: str) -> RemoteName:
    """Return a name that a remote can have.

    Raises:
        Invalid: none can.
    """
    return RemoteName(parse_ref(name).text)


def parse_new_name(name: str) -> NewName:
    """Return a name for a branch or tag; git has more rules, and says so.

    Raises:
        Invalid: it can't be one.
    """
    if name == "HEAD" or name.startswith("refs/"):
        raise Invalid(f"{quote(name)} is a name that git keeps for itself.", "Use another.")
    return NewName(parse_ref(name).text)


def parse_path(path: str) -> RepositoryPath:
    """Return the file or folder at `path`, from the top of a repository.

    Raises:
        Refused: it leads out of the repository, or into the git directory.
        Invalid: not a path.
    """
    return _to_path(unquote_path(path), path)


def parse_path_or_glob(path: str) -> RepositoryPath:
    """Return the file or folder at `path`, or the glob that it is; one in quotes, as answers have them, is none.

    Of a glob with `{a,b}` each choice is a glob, and so is the whole, as a name may have braces.

    Raises:
        Problem: as `parse_path`, of a choice too.
        Invalid: its braces name too many paths.
    """
    parsed = parse_path(path)
    if path.startswith('"'):
        return parsed
    if _BRACES.search(parsed.text):
        choices = [choice for choice in _expand_braces(parsed.text) if _to_path(choice, choice).text]
        return RepositoryPath(parsed.text, (parsed.text, *choices))
    if _WILDCARD.search(parsed.text):
        return RepositoryPath(parsed.text, (parsed.text,))
    return parsed


def _to_path(name: str, words: str) -> RepositoryPath:
    """Return the path that `name` is, which the caller wrote as `words`."""
    if "\0" in name:
        raise Invalid(f"{quote(words)} holds a NUL.", "Paths have none.")
    if os.sep != "/":
        name = name.replace(os.sep, "/")
    if _ABSOLUTE.match(name):
        raise Refused(f"{quote(words)} is absolute.", "Paths are relative to the top folder of the repository.")
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise Refused(f"{quote(words)} may lead out of the repository.", "Use a path from its top, without `..`.")
    if any(map(_is_git_dir, parts)):
        raise Refused(f"{quote(words)} is inside of the git directory.", "The tools show what is in it.")
    return RepositoryPath("/".join(parts))


def _expand_braces(glob: str) -> list[str]:
    """Return the globs without braces that a glob means: of `{a,b}.py` these are `a.py` and `b.py`.

    Raises:
        Invalid: there are too many, or they are too long.
    """
    if len(glob) > _MAX_BRACES_CHARACTERS:
        raise Invalid(
            f"{quote(glob)} is longer than a path with braces may be.",
            f"Use at most {_MAX_BRACES_CHARACTERS:,} characters.",
        )
    # Those with others inside come last, so a choice has no braces.
    braces = _BRACES.search(glob)
    if braces is None:
        return [glob]
    too_many = Invalid(f"The braces of {quote(glob)} name too many paths.", f"Name at most {_MAX_CHOICES}.")
    if glob.count("{") > _MAX_CHOICES:
        raise too_many
    globs: list[str] = []
    for choice in braces[1].split(","):
        globs += _expand_braces(f"{glob[: braces.start()]}{choice}{glob[braces.end() :]}")
        if len(globs) > _MAX_CHOICES:
            raise too_many
    return globs


def parse_paths(paths: list[str]) -> list[RepositoryPath]:
    """Return the files or folders at `paths`, as `parse_path` does."""
    return [parse_path(path) for path in paths]


def _is_git_dir(name: str) -> bool:
    """Whether some file system takes a name for that of the git directory."""
    return name.casefold().rstrip(" .") in (".git", "git~1")


def parse_lines(text: str) -> LineRange:
    """Return the lines that `text` names: `10-20`, or the function of that name.

    Raises:
        Invalid: it can't be either.
    """
    match = _LINES.fullmatch(text)
    if match is None:
        name = text.strip().removeprefix(":").removesuffix("()")
        if name and name.isprintable():
            return LineRange(function=name)
    else:
        first = int(match[1])
        last = int(match[2] or first)
        if 0 < first <= last:
            return LineRange(first, last)
    raise Invalid(f"{quote(text)} names no `lines`.", "Write `10-20`, or the name of a function.")


def parse_expectation(text: str) -> Expectation:
    """Return what an undo expects: `HEAD main 1a2b3c4`, `files 1a2b3c4`, `index 1a2b3c4`, `ref 1a2b3c4`, with commas.

    Raises:
        Invalid: it can't be that.
    """
    values: dict[str, str] = {}
    for clause in text.split(", "):
        match = _EXPECTATION.fullmatch(clause)
        if match is None or (match[2] and match[1] != "HEAD"):
            raise Invalid(f"{quote(text)} is not an `only_if`.", "Copy it from the undo, or leave it out.")
        name = match[1].lower()
        values[name] = match[3]
        if match[2]:
            values["branch"] = match[2]
    return Expectation(**values)


def parse_message(text: str) -> Message:
    """Return a message of a commit, a tag or a stash; invalid characters become `?`.

    Raises:
        Invalid: it holds a NUL.
    """
    if "\0" in text:
        raise Invalid("The `message` holds a NUL.", "Leave it out.")
    return Message(text.encode("utf-8", "replace").decode())


def parse_author(text: str) -> Author | Revision:
    """Return whom a commit is to name as its author, or the commit whose author that is.

    Raises:
        Invalid: it is neither a name with an address nor a revision.
    """
    if _AUTHOR.fullmatch(text):
        return Author(text.encode("utf-8", "replace").decode())
    if _WITHOUT_ADDRESS.fullmatch(text):
        return parse_revision(text)
    raise Invalid(
        f"{quote(text)} is not an author.", "Write the name and the address: `Ada <ada@example.org>`, or name a commit."
    )


def _refuse_options(text: str) -> None:
    if text.startswith("-"):
        raise Invalid(f"{quote(text)} begins with a dash, as no revision does.", "`list_refs` has names of revisions.")
    if len(text) > _MOST_REVISION or _CONTROL_CHARACTER.search(text):
        raise Invalid(f"{quote(text)} is not a revision.", "Use a hash, a branch, a tag, `HEAD~2`.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Invalid(f"{quote(text)} is not text.", "Use a hash instead.") from None
