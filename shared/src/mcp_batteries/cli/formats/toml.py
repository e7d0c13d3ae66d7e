"""TOML: `tomllib` says what a text means, this module where it is said."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from mcp_batteries.cli.formats.base import (
    Malformed,
    Path,
    Splice,
    apply,
    is_same,
    line_break,
    nested,
    put_members,
    value_at,
)
from mcp_batteries.cli.host_entry.spelling import spell

__all__ = ["Toml"]

_STRING = (
    r'''"""(?:[^"\\]|\\.|"{1,2}(?!"))*"{3,5}|\'\'\'(?:[^']|'{1,2}(?!'))*'{3,5}|"(?:[^"\\\n]|\\.)*"|'[^'\n]*' '''.strip()
)
_NAME = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""
_KEY = rf"{_NAME}(?:[ \t]*\.[ \t]*{_NAME})*"
_HEADER = re.compile(rf"\[(\[)?[ \t]*({_KEY})[ \t]*\]")
_ASSIGNMENT = re.compile(rf"({_KEY})[ \t]*=[ \t]*")
_VALUE_TOKEN = re.compile(
    rf"(?P<string>{_STRING})|(?P<comment>#[^\n]*)|(?P<mark>[\[\]{{}},\n])|[^\[\]{{}},\n\"'#]+", re.DOTALL
)
_COMMENT = re.compile(rf"(?P<string>{_STRING})|#[^\r\n]*", re.DOTALL)


@dataclass(frozen=True)
class _Statement:
    """A header or an assignment, with the lines it stands on.

    Attributes:
        path: from the root.
        value: where the value of an assignment begins and ends.
    """

    start: int
    end: int
    path: tuple[str, ...]
    value: tuple[int, int] | None = None


@dataclass(frozen=True)
class _InlineMember:
    """An assignment inside braces.

    Attributes:
        end: behind the value.
        comma: where the comma behind it is.
    """

    path: tuple[str, ...]
    start: int
    value: int
    end: int
    comma: int | None


def _names(key: str) -> tuple[str, ...]:
    """Return the parts of a key as written, such as `a."b.c"`."""
    table: Any = tomllib.loads(f"{key} = 0")
    names: list[str] = []
    while isinstance(table, dict):
        ((name, table),) = cast("dict[str, Any]", table).items()
        names.append(name)
    return tuple(names)


def _value_end(text: str, position: int) -> tuple[int, int]:
    """Return where the value that begins at a position ends, and where the comma or line break behind it is."""
    depth = 0
    end = position
    while position < len(text):
        match = _VALUE_TOKEN.match(text, position)
        assert match is not None, "tomllib has read it"
        token = match[0]
        if depth == 0 and (token in ("\n", ",", "}", "]") or match.lastgroup == "comment"):
            return end, position
        if token in ("[", "{"):
            depth += 1
        elif token in ("]", "}"):
            depth -= 1
        position = match.end()
        if token.strip():
            end = match.start() + len(token.rstrip())
    return end, position


def _statements(text: str) -> Iterator[_Statement]:
    table: tuple[str, ...] = ()
    position = 0
    while position < len(text):
        line_end = text.find("\n", position) + 1 or len(text)
        line = text[position:line_end]
        begin = position + len(line) - len(line.lstrip())
        if not line.strip() or text[begin] == "#":
            position = line_end
            continue
        header = _HEADER.match(text, begin)
        if header is not None:
            table = _names(header[2])
            yield _Statement(position, line_end, table)
            position = line_end
            continue
        assignment = _ASSIGNMENT.match(text, begin)
        assert assignment is not None, "tomllib has read it"
        end, behind = _value_end(text, assignment.end())
        line_end = text.find("\n", behind) + 1 or len(text)
        yield _Statement(position, line_end, (*table, *_names(assignment[1])), (assignment.end(), end))
        position = line_end


def _inline_members(text: str, start: int) -> Iterator[_InlineMember]:
    """Return what is inside the braces of the inline table that begins at `start`."""
    position = start + 1
    while True:
        blank = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*").match(text, position)
        position = blank.end() if blank else position
        assignment = _ASSIGNMENT.match(text, position)
        if assignment is None:
            return
        end, behind = _value_end(text, assignment.end())
        separator = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*").match(text, behind)
        behind = separator.end() if separator else behind
        comma = behind if text[behind : behind + 1] == "," else None
        yield _InlineMember(_names(assignment[1]), position, assignment.end(), end, comma)
        if comma is None:
            return
        position = comma + 1


def _spell_value(value: Any) -> str:
    if isinstance(value, dict):
        pairs = ", ".join(
            f"{_spell_key(key)} = {_spell_value(item)}" for key, item in cast("dict[str, Any]", value).items()
        )
        return f"{{ {pairs} }}" if pairs else "{}"
    if isinstance(value, list):
        return f"[{', '.join(_spell_value(item) for item in cast('list[Any]', value))}]"
    if not isinstance(value, str | int | float):
        raise Malformed(f"its entry has a value that the editor cannot write: {value}")
    return spell(value)


def _spell_key(key: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9_-]+", key):
        return key
    return spell(key)


class Toml:
    """The editor for TOML 1.0."""

    def read(self, text: str) -> dict[str, Any]:
        try:
            return tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise Malformed(str(error)) from None

    read_leniently = read

    def is_readable(self, text: str) -> bool:
        try:
            self.read(text)
        except Malformed:
            return False
        return True

    def repair(self, text: str) -> str:
        return text

    def comments(self, text: str, path: Path = ()) -> list[str]:
        spans = [(0, len(text))]
        if path:
            self.read(text)
            spans = [(one.start, one.end) for one in _statements(text) if one.path[: len(path)] == tuple(path)]
        comments: list[str] = []
        for match in _COMMENT.finditer(text):
            is_inside = any(start <= match.start() < end for start, end in spans)
            if match.lastgroup is None and is_inside:
                comments.append(match[0].rstrip())
        return comments

    def put(self, text: str, path: Path, value: Any) -> str:
        document = self.read(text)
        for depth in range(1, len(path)):
            if not isinstance(value_at(document, path[:depth]) or {}, dict):
                raise Malformed(f"it has something else under `{'.'.join(map(str, path[:depth]))}`")
        existing = value_at(document, path)
        if existing is None:
            return self._add(text, tuple(map(str, path)), value)
        if is_same(existing, value):
            return text
        for statement in _statements(text):
            if statement.path == tuple(path) and statement.value is not None:
                return apply(text, [Splice(*statement.value, _spell_value(value))])
        if isinstance(existing, dict) and isinstance(value, dict) and self._has_header(text, path):
            return put_members(self, text, path, cast("dict[str, Any]", existing), cast("dict[str, Any]", value))
        return self.put(self.remove(text, path), path, value)

    def remove(self, text: str, path: Path) -> str:
        self.read(text)
        splices: list[Splice] = []
        for statement in _statements(text):
            if statement.path[: len(path)] == tuple(path):
                start = statement.start
                if statement.value is None:
                    start -= _blank_line_before(text, start)
                splices.append(Splice(start, statement.end))
            elif statement.value is not None and statement.path == tuple(path[: len(statement.path)]):
                splices += _inline_removal(text, statement.value[0], tuple(map(str, path[len(statement.path) :])))
        if not splices:
            raise Malformed(f"it has no `{'.'.join(map(str, path))}`")
        return apply(text, splices)

    def _has_header(self, text: str, path: Path) -> bool:
        return any(one.value is None and one.path == tuple(path) for one in _statements(text))

    def _add(self, text: str, path: tuple[str, ...], value: Any) -> str:
        """Return the text with a value where there was none: in the table around it, or as a table at the end."""
        statements = list(_statements(text))
        inline_table = _find_inline_table(statements, path)
        if inline_table is not None:
            return _add_inline(text, inline_table, path, value)
        if isinstance(value, dict):
            return _add_table(text, path, cast("dict[str, Any]", value))
        return _add_line(text, _find_section(statements, path[:-1]), path, value)


class _InlineTable(NamedTuple):
    """Where the value of the inline table at `path` starts."""

    path: tuple[str, ...]
    start: int


def _find_inline_table(statements: Sequence[_Statement], path: tuple[str, ...]) -> _InlineTable | None:
    """Return the inline table that a path leads into; None if it leads into none."""
    table: _InlineTable | None = None
    for statement in statements:
        if statement.value is not None and statement.path == path[: len(statement.path)]:
            table = _InlineTable(statement.path, statement.value[0])
    return table


def _find_section(statements: Sequence[_Statement], table: tuple[str, ...]) -> _Statement | None:
    """Return the last statement of the table under a header: its header, or its last value; None without a header."""
    section: _Statement | None = None
    for statement in statements:
        is_header = statement.value is None and statement.path == table
        is_inside = section is not None and statement.value is not None and statement.path[:-1] == table
        if is_header or is_inside:
            section = statement
    return section


def _add_inline(text: str, table: _InlineTable, path: tuple[str, ...], value: Any) -> str:
    key, *inner_keys = path[len(table.path) :]
    return apply(text, _inline_addition(text, table.start, key, nested(tuple(inner_keys), value)))


def _add_line(text: str, section: _Statement | None, path: tuple[str, ...], value: Any) -> str:
    if section is None:
        raise Malformed(f"it has no table `{'.'.join(path[:-1])}`")
    end = line_break(text)
    line = f"{_spell_key(path[-1])} = {_spell_value(value)}{end}"
    if not text[section.start : section.end].endswith("\n"):
        line = end + line
    return apply(text, [Splice(section.end, section.end, line)])


def _add_table(text: str, path: tuple[str, ...], table: dict[str, Any]) -> str:
    """Return the text with a table at its end, behind an empty line."""
    end = line_break(text)
    lines = [f"[{'.'.join(map(_spell_key, path))}]"]
    for key, item in table.items():
        lines.append(f"{_spell_key(key)} = {_spell_value(item)}")
    piece = end.join(lines) + end
    if text.strip():
        piece = end + piece
    if text and not text.endswith("\n"):
        piece = end + piece
    return text + piece


def _blank_line_before(text: str, position: int) -> int:
    """Return how long the blank line is that ends at a position: 0 if the line there is not blank."""
    start = text.rfind("\n", 0, max(position - 1, 0)) + 1
    if position == 0 or text[start:position].strip():
        return 0
    return position - start


def _inline_addition(text: str, start: int, key: str, value: Any) -> list[Splice]:
    members = list(_inline_members(text, start))
    written = f"{_spell_key(key)} = {_spell_value(value)}"
    for member in members:
        if member.path == (key,) and text[member.value] == "{":
            ((name, item),) = value.items()
            return _inline_addition(text, member.value, name, item)
    if members:
        return [Splice(members[-1].end, members[-1].end, f", {written}")]
    return [Splice(start, text.index("}", start) + 1, f"{{ {written} }}")]


def _inline_removal(text: str, start: int, path: tuple[str, ...]) -> list[Splice]:
    if text[start] != "{":
        return []
    members = list(_inline_members(text, start))
    doomed = [member.path[: len(path)] == path for member in members]
    remaining = [member for member, is_doomed in zip(members, doomed, strict=True) if not is_doomed]
    if not any(doomed):
        for member in members:
            if member.path == path[: len(member.path)]:
                return _inline_removal(text, member.value, path[len(member.path) :])
        return []
    if not remaining:
        return [Splice(start, _value_end(text, start)[0], "{}")]
    body = ", ".join(text[member.start : member.end] for member in remaining)
    return [Splice(members[0].start, members[-1].end, body)]
