"""Globs as ripgrep reads them, in files of ignore rules and in arguments alike.

No library reads this dialect (braces, `**` only as a whole name, bytes that need not be UTF-8) at the speed of a
walk over 50,000 names: here a glob becomes an RE2 expression, and all of one file one automaton (`regex.path_set`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcp_batteries.errors import Invalid, quote

__all__ = ["GlobError", "expand_braces", "names_hidden", "path_glob", "translate"]

_CHARACTER = rb"(?:[^/\x80-\xff]|[\xc2-\xf4][\x80-\xbf]+)"
# A whole one where the bytes are UTF-8, else one byte.
_CHARACTER_OR_BYTE = rb"(?:[^/\x80-\xff]|[\xc2-\xf4][\x80-\xbf]+|[\x80-\xff])"
_RECURSIVE = re.compile(rb"(/?)\*\*(?:/\*\*)*(/|$|(?=[,}]))")
# Of `**`: whether a slash stands before it and behind it -> any number of names.
_NAMES_BETWEEN = {
    (False, False): rb".*",
    (False, True): rb"(?:/?|.*/)",
    (True, False): rb"/.*",
    (True, True): rb"(?:/|/.*/)",
}
_VISIBLE_NAME = rb"[^./][^/]*"
# The same, of names that do not begin with a dot.
_VISIBLE_NAMES_BETWEEN = {
    (False, False): rb"(?:%(name)b(?:/%(name)b)*)?" % {b"name": _VISIBLE_NAME},
    (False, True): rb"/?(?:%b/)*" % _VISIBLE_NAME,
    (True, False): rb"/(?:%(name)b(?:/%(name)b)*)?" % {b"name": _VISIBLE_NAME},
    (True, True): rb"/(?:%b/)*" % _VISIBLE_NAME,
}
_HIDDEN_NAME = re.compile(r"(?:^|/)\.(?![./]|$)")
_TOKEN = re.compile(r"\\.|\[[!^]?.[^\]]*\]|.", re.DOTALL)
_SPECIAL = frozenset(b"\\.+*?()|[]{}^$")


class GlobError(ValueError):
    """Raised when a glob has an open bracket or brace, or ends in a backslash."""


def path_glob(glob: str) -> str:
    """Return a caller's glob as one over paths below the searched folder: without a slash it is a name at any depth.

    Raises:
        Invalid: it can't be read.
    """
    if glob.startswith("./"):
        glob = glob[1:]
        if not glob.strip("./"):
            glob = ""
    path_pattern = "**/" + glob
    if "/" in glob.rstrip("/"):
        path_pattern = glob.removeprefix("/")
    path_pattern = path_pattern.removesuffix("/") or "**"
    try:
        translate(path_pattern)
    except GlobError as error:
        raise Invalid(
            f"The glob {quote(glob)} {error}.", "Put a character meant as itself in brackets: `[{]`."
        ) from None
    return path_pattern


def names_hidden(glob: str) -> bool:
    """Return whether a glob without braces spells the dot that a hidden name begins with."""
    return _HIDDEN_NAME.search(glob) is not None


def expand_braces(glob: str) -> Iterator[str]:
    """Yield what a glob means, without braces: of `{a,b}.txt` that is `a.txt` and `b.txt`."""
    depth = 0
    first = 0
    choices: list[str] = []
    prefix = ""
    for token in _TOKEN.finditer(glob):
        match token[0]:
            case "{":
                depth += 1
                if depth == 1:
                    prefix = glob[: token.start()]
                    first = token.end()
            case "," if depth == 1:
                choices.append(glob[first : token.start()])
                first = token.end()
            case "}" if depth:
                depth -= 1
                if depth == 0:
                    choices.append(glob[first : token.start()])
                    break
            case _:
                pass
    else:
        yield glob
        return
    suffix = glob[token.end() :]
    for choice in choices:
        for rest in expand_braces(choice + suffix):
            yield prefix + rest


def translate(
    glob: str, *, utf8: bool = False, dots_are_spelled: bool = False, brackets_may_be_names: bool = False
) -> bytes:
    """Return the regular expression (RE2, over bytes) of a glob.

    `*` and `?` stop at slashes; `**` as a whole name is any number of names; `[a-z]`, `[!a-z]`, `{a,b}`, `\\x`.

    Args:
        utf8: for paths that are UTF-8, whose characters stay whole.
        dots_are_spelled: whether no wildcard means the dot that a hidden name begins with, as in a shell.
        brackets_may_be_names: whether `[id]` is also itself, as the folder of a web page's route is called.

    Raises:
        GlobError: it can't be read.
    """
    single_character = _CHARACTER_OR_BYTE
    if utf8:
        single_character = _CHARACTER
    translator = _Translator(glob.encode("utf-8", "surrogateescape"), single_character)
    translator.dots_are_spelled = dots_are_spelled
    translator.brackets_may_be_names = brackets_may_be_names
    return translator.translate()


class _Translator:
    def __init__(self, glob: bytes, single_character: bytes) -> None:
        self.glob = glob
        self.single_character = single_character
        self.position = 0
        self.depth = 0
        self.dots_are_spelled = False
        self.brackets_may_be_names = False

    def translate(self) -> bytes:
        out: list[bytes] = []
        while self.position < len(self.glob):
            out.append(self.translate_token())
        if self.depth:
            raise GlobError("has an open brace")
        return b"".join(out)

    def translate_token(self) -> bytes:
        char = self.glob[self.position : self.position + 1]
        if char in b"*/" and (recursive := self.translate_double_star()):
            return recursive
        begins_name = self.dots_are_spelled and self.is_at_begin_of_name()
        self.position += 1
        match char:
            case b"*":
                return self.translate_star(begins_name=begins_name)
            case b"?" if begins_name:
                return self.single_character.replace(b"[^/", b"[^./")
            case b"?":
                return self.single_character
            case b"[":
                return self.translate_bracket(begins_name=begins_name)
            case b"{":
                self.depth += 1
                return rb"(?:"
            case b"," if self.depth:
                return rb"|"
            case b"}" if self.depth:
                self.depth -= 1
                return rb")"
            case b"\\":
                return self.translate_escape()
            case _:
                return _escape_byte(char[0])

    def translate_star(self, *, begins_name: bool) -> bytes:
        while self.glob[self.position : self.position + 1] == b"*":
            self.position += 1
        if begins_name:
            return rb"(?:%b)?" % _VISIBLE_NAME
        return rb"[^/]*"

    def translate_escape(self) -> bytes:
        if self.position == len(self.glob):
            raise GlobError("ends in a backslash")
        self.position += 1
        return _escape_byte(self.glob[self.position - 1])

    def translate_double_star(self) -> bytes:
        """Translate any number of names, when `**` stands here as a whole name; nothing otherwise."""
        match = _RECURSIVE.match(self.glob, self.position)
        if match is None:
            return b""
        slash_before, slash_after = match.groups()
        if not slash_before and not self.is_at_begin():
            return b""
        if not slash_after and match.end() != len(self.glob) and not self.depth:
            return b""
        self.position = match.end()
        names_between = _NAMES_BETWEEN
        if self.dots_are_spelled:
            names_between = _VISIBLE_NAMES_BETWEEN
        return names_between[bool(slash_before), bool(slash_after)]

    def is_at_begin_of_name(self) -> bool:
        before = self.glob[self.position - 1 : self.position]
        return self.is_at_begin() or before == b"/"

    def is_at_begin(self) -> bool:
        """Return whether a path may begin here: at the beginning of the glob, or of a choice in braces."""
        if not self.position:
            return True
        return self.depth > 0 and self.glob[self.position - 1] in b"{,"

    def translate_bracket(self, *, begins_name: bool) -> bytes:
        is_negated = self.glob[self.position : self.position + 1] in (b"!", b"^")
        first = self.position + is_negated
        end = self.glob.find(b"]", first + 1)
        if end < 0:
            raise GlobError("has an open bracket")
        bracket = self.glob[self.position - 1 : end + 1]
        self.position = end + 1
        ranges = b"".join(_translate_ranges(self.glob[first:end]))
        one_of = b"[" + ranges + b"]"
        if is_negated:
            excluded = b"/."[: 1 + begins_name]
            one_of = b"[^" + excluded + ranges + b"]"
        if not self.brackets_may_be_names:
            return one_of
        return b"(?:" + one_of + b"|" + b"".join(map(_escape_byte, bracket)) + b")"


def _translate_ranges(inner: bytes) -> Iterator[bytes]:
    """Yield each item between brackets as a range.

    Raises:
        GlobError: a range is in the wrong order.
    """
    index = 0
    while index < len(inner):
        low = inner[index]
        high = low
        if inner[index + 1 : index + 2] == b"-" and index + 2 < len(inner):
            index += 2
            high = inner[index]
        if low > high:
            raise GlobError("has a range in the wrong order")
        yield b"\\x%02x-\\x%02x" % (low, high)
        index += 1


def _escape_byte(byte: int) -> bytes:
    if byte in _SPECIAL:
        return b"\\%c" % byte
    return b"%c" % byte
