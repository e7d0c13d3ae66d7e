"""JSON with comments and trailing commas."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from mcp_batteries.cli.formats.base import Malformed, Path, Splice, apply, is_same, line_break, nested, put_members
from mcp_batteries.cli.host_entry.spelling import spell, spell_json

__all__ = ["Jsonc"]

_MAX_DEPTH = 200
# Python refuses to make a number of an integer with more digits.
_MAX_DIGITS = 4000

_TOKEN = re.compile(
    r"""
      (?P<space> [ \t\r\n]+ )
    | (?P<comment> //[^\r\n]* | /\*.*?\*/ )
    | (?P<string> "(?: [^"\\\x00-\x1f] | \\(?: ["\\/bfnrt] | u[0-9a-fA-F]{4} ) )*" )
    | (?P<literal> (?: -?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)? | true | false | null )(?![\w.+-]) )
    | (?P<mark> [{}\[\]:,] )
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass
class _Node:
    """A value.

    Attributes:
        value: of a string, a number, true, false or null.
        members: of an object, or the elements of an array.
    """

    kind: Literal["object", "array", "scalar"]
    start: int
    end: int = 0
    value: Any = None
    members: list[_Member] = field(default_factory=list["_Member"])

    def member(self, key: str | int) -> _Member | None:
        """Return the member with a key, or the element at a position.

        Raises:
            Malformed: there are two of that key, or this is no container.
        """
        if isinstance(key, int):
            if self.kind != "array":
                raise Malformed("it has something else where a list belongs")
            return self.members[key] if key < len(self.members) else None
        if self.kind != "object":
            raise Malformed("it has something else where an object belongs")
        matches = [member for member in self.members if member.key == key]
        if len(matches) > 1:
            raise Malformed(f"it has the key `{key}` twice")
        return matches[0] if matches else None

    def plain(self) -> Any:
        """Return the value as Python's own types."""
        if self.kind == "object":
            return {member.key: member.node.plain() for member in self.members}
        if self.kind == "array":
            return [member.node.plain() for member in self.members]
        return self.value


@dataclass
class _Member:
    """A member of an object or an element of an array.

    Attributes:
        start: where its key begins, or the element.
        comma: where the comma behind it is.
    """

    start: int
    key: str | None
    node: _Node
    comma: int | None = None

    @property
    def end(self) -> int:
        if self.comma is None:
            return self.node.end
        return self.comma + 1


class _Token(str):
    """What is written at one place."""

    kind: str
    start: int
    end: int


class _Document:
    """A text taken apart.

    Attributes:
        root: None if there is nothing but comments.
        comments: where each begins and ends.
        trailing_commas: where each is.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.comments: list[tuple[int, int]] = []
        self.trailing_commas: list[int] = []
        self._tokens = self._tokenize()
        self._position = 0
        self.root: _Node | None = None
        if self._tokens:
            self.root = self._parse_value(0)
            if self._position < len(self._tokens):
                raise self._malformed("something follows behind the end", self._tokens[self._position].start)

    def _malformed(self, reason: str, position: int) -> Malformed:
        return Malformed(f"line {self.text.count(chr(10), 0, position) + 1}: {reason}")

    def _tokenize(self) -> list[_Token]:
        tokens: list[_Token] = []
        position = 0
        while position < len(self.text):
            match = _TOKEN.match(self.text, position)
            if match is None:
                raise self._malformed("this is not JSON", position)
            if match.lastgroup == "comment":
                self.comments.append(match.span())
            elif match.lastgroup != "space":
                token = _Token(match[0])
                token.kind = str(match.lastgroup)
                token.start, token.end = match.span()
                tokens.append(token)
            position = match.end()
        return tokens

    def _take(self) -> _Token:
        if self._position == len(self._tokens):
            raise self._malformed("it ends too early", len(self.text))
        token = self._tokens[self._position]
        self._position += 1
        return token

    def _next_is(self, mark: str) -> bool:
        return self._position < len(self._tokens) and self._tokens[self._position] == mark

    def _parse_value(self, depth: int) -> _Node:
        if depth > _MAX_DEPTH:
            raise Malformed("it is nested too deeply")
        token = self._take()
        if token == "{":
            return self._parse_members(_Node("object", token.start), "}", depth)
        if token == "[":
            return self._parse_members(_Node("array", token.start), "]", depth)
        if token.kind == "mark":
            raise self._malformed(f"`{token}` is where a value belongs", token.start)
        return _Node("scalar", token.start, token.end, _scalar(token))

    def _parse_members(self, node: _Node, closing: str, depth: int) -> _Node:
        while not self._next_is(closing):
            if node.members and node.members[-1].comma is None:
                raise self._malformed("a comma is missing", node.members[-1].node.end)
            node.members.append(self._parse_member(node.kind, depth))
            if self._next_is(","):
                node.members[-1].comma = self._take().start
        if node.members and node.members[-1].comma is not None:
            self.trailing_commas.append(node.members[-1].comma)
        node.end = self._take().end
        return node

    def _parse_member(self, kind: str, depth: int) -> _Member:
        if kind == "array":
            node = self._parse_value(depth + 1)
            return _Member(node.start, None, node)
        key = self._take()
        if key.kind != "string":
            raise self._malformed(f"`{key}` is where a key belongs", key.start)
        colon = self._take()
        if colon != ":":
            raise self._malformed(f"`{colon}` is where a colon belongs", colon.start)
        return _Member(key.start, json.loads(key), self._parse_value(depth + 1))

    def comment_ending_last(self, start: int, end: int) -> tuple[int, int] | None:
        """Return where the last comment between two places is."""
        inside = [comment for comment in self.comments if start <= comment[0] and comment[1] <= end]
        return inside[-1] if inside else None

    def node_at(self, path: Path) -> _Node:
        node = self.root
        for key in path:
            member = node.member(key) if node else None
            if member is None:
                raise Malformed(f"it has no `{key}`")
            node = member.node
        if node is None:
            raise Malformed("it is empty")
        return node


def _scalar(token: _Token) -> Any:
    if token.kind == "literal" and len(token) > _MAX_DIGITS:
        return str(token)
    return json.loads(token)


class Jsonc:
    """The editor for JSON.

    Args:
        allows_comments, allows_trailing_commas: what the host takes.
    """

    def __init__(self, *, allows_comments: bool = True, allows_trailing_commas: bool = True) -> None:
        self._allows_comments = allows_comments
        self._allows_trailing_commas = allows_trailing_commas

    def read(self, text: str) -> dict[str, Any]:
        document = _Document(text)
        if document.comments and not self._allows_comments:
            line = text.count("\n", 0, document.comments[0][0]) + 1
            raise Malformed(f"line {line}: there is a comment, and this host takes none")
        if document.trailing_commas and not self._allows_trailing_commas:
            line = text.count("\n", 0, document.trailing_commas[0]) + 1
            raise Malformed(f"line {line}: there is a comma before a closing bracket, and this host takes none")
        return _object(document)

    def is_readable(self, text: str) -> bool:
        try:
            self.read(text)
        except Malformed:
            return False
        return True

    def read_leniently(self, text: str) -> dict[str, Any]:
        return _object(_Document(text))

    def repair(self, text: str) -> str:
        if self._allows_trailing_commas:
            return text
        return apply(text, [Splice(comma, comma + 1) for comma in _Document(text).trailing_commas])

    def comments(self, text: str, path: Path = ()) -> list[str]:
        document = _Document(text)
        start = 0
        end = len(text)
        if path:
            node = document.node_at(path[:-1])
            member = node.member(path[-1])
            if member is None:
                return []
            start = member.start
            end = member.node.end
        return [text[first:last].rstrip() for first, last in document.comments if start <= first < end]

    def put(self, text: str, path: Path, value: Any) -> str:
        document = _Document(text)
        node = document.root
        if node is None:
            return _with_root(text, nested(path, value))
        for depth, key in enumerate(path):
            member = node.member(key)
            if member is None:
                missing = nested(path[depth + 1 :], value)
                return _with_member(document, node, None if isinstance(key, int) else key, missing)
            node = member.node
        current = node.plain()
        if is_same(current, value):
            return text
        if not (isinstance(value, dict) and node.kind == "object"):
            return apply(text, [Splice(node.start, node.end, _spell_at(document, node.start, value, node.start))])
        return put_members(self, text, path, current, cast("dict[str, Any]", value))

    def remove(self, text: str, path: Path) -> str:
        document = _Document(text)
        node = document.node_at(path[:-1])
        member = node.member(path[-1])
        if member is None:
            raise Malformed(f"it has no `{path[-1]}`")
        return apply(text, _removal(document, node, node.members.index(member)))


def _object(document: _Document) -> dict[str, Any]:
    if document.root is None:
        # Of a file with nothing but comments, hosts make an object.
        return {}
    if document.root.kind != "object":
        raise Malformed("it does not hold an object")
    for member in document.root.members:
        document.root.member(str(member.key))
    return document.root.plain()


def _with_root(text: str, value: Any) -> str:
    end = line_break(text)
    before = text
    if before and not before.endswith("\n"):
        before += end
    return before + spell_json(value).replace("\n", end) + end


def _indent_of(text: str, position: int) -> str:
    """Return the white space with which the line of a position begins."""
    start = text.rfind("\n", 0, position) + 1
    line = text[start:position]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _begins_line(text: str, position: int) -> bool:
    return not text[text.rfind("\n", 0, position) + 1 : position].strip(" \t")


def _indent_unit(document: _Document) -> str:
    root = document.root
    if root is not None and root.members and _begins_line(document.text, root.members[0].start):
        unit = _indent_of(document.text, root.members[0].start)
        if unit:
            return unit
    return "  "


def _is_on_one_line(text: str, node: _Node) -> bool:
    return bool(node.members) and "\n" not in text[node.start : node.end]


def _spell_at(document: _Document, line: int, value: Any, place: int) -> str:
    """Return a value as it is written at a place, on a line that begins before `line`."""
    indent = _indent_of(document.text, line)
    written = spell_json(value, _indent_unit(document)).replace("\n", "\n" + indent)
    holder = _innermost(document.root, place)
    if holder is not None and _is_on_one_line(document.text, holder):
        written = spell(value)
    return written.replace("\n", line_break(document.text))


def _innermost(node: _Node | None, place: int) -> _Node | None:
    """Return the innermost container around a place."""
    holder = None
    while node is not None and node.kind != "scalar" and node.start < place < node.end:
        holder = node
        node = next((member.node for member in node.members if member.node.start <= place < member.node.end), None)
    return holder


def _with_member(document: _Document, node: _Node, key: str | None, value: Any) -> str:
    """Return the text with one more member at the end of an object or array."""
    text = document.text
    end = line_break(text)
    prefix = "" if key is None else f"{spell(key)}: "
    if _is_on_one_line(text, node):
        return apply(text, _at_the_end(document, node, f" {prefix}{spell(value)}"))
    base = _indent_of(text, node.start)
    indent = base + _indent_unit(document)
    if node.members and _begins_line(text, node.members[0].start):
        indent = _indent_of(text, node.members[0].start)
    written = prefix + spell_json(value, _indent_unit(document)).replace("\n", "\n" + indent)
    piece = f"\n{indent}{written}".replace("\n", end)
    if node.members:
        return apply(text, _at_the_end(document, node, piece))
    comment = document.comment_ending_last(node.start, node.end)
    if comment is None:
        return apply(text, [Splice(node.start + 1, node.end - 1, f"{piece}{end}{base}")])
    if "\n" not in text[comment[1] : node.end]:
        piece += f"{end}{base}"
    return apply(text, [Splice(comment[1], comment[1], piece)])


def _at_the_end(document: _Document, node: _Node, piece: str) -> list[Splice]:
    """Return the splices that put a piece behind the last member and the comments behind it."""
    last = node.members[-1]
    comment = document.comment_ending_last(last.node.end, node.end)
    place = max(last.end, comment[1] if comment else 0)
    if last.comma is not None:
        return [Splice(place, place, f"{piece},")]
    if place == last.node.end:
        return [Splice(place, place, f",{piece}")]
    return [Splice(last.node.end, last.node.end, ","), Splice(place, place, piece)]


def _removal(document: _Document, node: _Node, index: int) -> list[Splice]:
    """Return the splices that take out a member; the comments around it stay."""
    if _is_alone(document, node):
        return [Splice(node.start + 1, node.end - 1)]
    text = document.text
    member = node.members[index]
    before = node.members[index - 1].end if index else node.start + 1
    comment = document.comment_ending_last(before, member.start)
    start = comment[1] if comment else before
    between = None
    if member.comma is not None:
        between = document.comment_ending_last(member.node.end, member.comma)
    end = member.node.end if between else member.end
    is_after_line_comment = comment is not None and text.startswith("//", comment[0])
    if is_after_line_comment and not re.compile(r"[ \t]*[\r\n]").match(text, end):
        # What follows would become a part of the comment.
        start = member.start
    splices = [Splice(start, end)]
    if between is not None:
        splices.append(Splice(member.end - 1, member.end))
    elif index and member.comma is None:
        comma = node.members[index - 1].comma
        assert comma is not None
        splices.append(Splice(comma, comma + 1))
    return splices


def _is_alone(document: _Document, node: _Node) -> bool:
    """Return whether there is one member, and no comment beside it."""
    if len(node.members) != 1:
        return False
    member = node.members[0]
    before = document.comment_ending_last(node.start, member.start)
    behind = document.comment_ending_last(member.node.end, node.end)
    return before is None and behind is None
