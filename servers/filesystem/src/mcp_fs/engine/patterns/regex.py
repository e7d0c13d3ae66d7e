"""Regular expressions that can't blow up: RE2, whose time is linear in the text whatever the pattern.

The only module that knows the library, which carries no types and is loaded on first use.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any

from mcp_batteries.errors import Invalid, quote
from mcp_fs.engine.patterns.unicode_classes import expand_boundaries, expand_classes
from mcp_fs.engine.text.encodings import replace_undecodable

__all__ = [
    "LineSearch",
    "NextMatch",
    "PathSet",
    "SearchText",
    "TextMatches",
    "compile_byte_filter",
    "compile_group_reader",
    "compile_line_search",
    "compile_path_prefilter",
    "compile_path_set",
    "compile_replacement",
]

LineSearch = Callable[[bytes, int], tuple[int, int] | None]
"""(text, offset) -> where the first match from the offset on begins and ends; it lies in one line unless asked for."""

NextMatch = Callable[[int], tuple[int, int, str] | None]
"""Offset -> where the first match from there on begins and ends, and what takes its place; offsets never go back."""


class SearchText:
    """A text that expressions are searched for in; they share its bytes."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def readable_text(self) -> str:
        """As the library takes it: damaged bytes are lone surrogates, for which it sees U+FFFD, of the same length."""
        return replace_undecodable(self.text)

    @cached_property
    def data(self) -> bytes:
        return self.readable_text.encode()


TextMatches = Callable[[SearchText], NextMatch]

PathSet = Callable[[bytes], list[int] | None]
"""path -> indices of the expressions that match all of it, in no order; nothing or None when there are none."""

_MAX_MEMORY_BYTES = 64 << 20


def compile_line_search(pattern: str, *, literal: bool, ignore_case: bool, multiline: bool = False) -> LineSearch:
    """The search for `pattern` in UTF-8 text, line by line: `^` and `$` are the ends of a line.

    Args:
        several: whether a match may go over several lines.

    Raises:
        Invalid: not RE2 syntax (no look-around, no back-references), or too large.
    """
    if literal and not ignore_case:
        return _compile_literal(pattern.encode("utf-8", "surrogateescape"))
    import re2 as library

    re2: Any = library
    options = _text_options(re2, ignore_case=ignore_case, multiline=multiline)
    source = re.escape(pattern) if literal else f"(?m:{pattern})"

    def compiled(source: str) -> Any:
        return re2.compile(source.encode("utf-8", "surrogateescape"), options).search

    try:
        search = compiled(source)
    except re2.error as error:
        syntax_error = error.args[0].decode("utf-8", "replace") if error.args else "not understood"
        syntax_error = syntax_error.replace(source, pattern)
        raise Invalid(
            f"The regular expression {quote(pattern)} is not RE2 syntax: {syntax_error}.",
            "There are no look-arounds and no back-references; `literal=true` searches for the text itself.",
        ) from None

    def find(text: bytes, offset: int) -> tuple[int, int] | None:
        match = search(text, offset)
        return None if match is None else match.span()

    wide_pattern, group = expand_boundaries(pattern)
    if literal or wide_pattern == pattern:
        return find
    try:
        search_wide = compiled(f"(?m:{wide_pattern})")
    except re2.error:  # too large with classes of all scripts
        return find
    last_text, is_ascii = b"", True

    def find_in_any_script(text: bytes, offset: int) -> tuple[int, int] | None:
        nonlocal last_text, is_ascii
        if text is not last_text:
            last_text, is_ascii = text, text.isascii()
        if is_ascii:  # where both find the same, and the other is faster
            return find(text, offset)
        match = search_wide(text, offset)
        return None if match is None else match.span(group)

    return find_in_any_script


def compile_group_reader(
    pattern: str, *, ignore_case: bool, multiline: bool = False
) -> Callable[[bytes, int], Iterator[bytes]] | None:
    """(text, offset) -> what the named groups of each match hold, parted by tabs; None without such groups.

    What a group `sum` holds comes last, behind a NUL.

    Args:
        pattern: one that `line_search` takes.
    """
    import re2 as library

    re2: Any = library
    wide, match_group = expand_boundaries(pattern)
    try:
        compiled = re2.compile(
            f"(?m:{wide})".encode("utf-8", "surrogateescape"),
            _text_options(re2, ignore_case=ignore_case, multiline=multiline),
        )
    except re2.error:  # too large with classes of all scripts
        return None
    named = {name.decode(): group for name, group in compiled.groupindex.items()}
    summed = named.pop("sum", None)
    groups = sorted(named.values())

    def read_groups(text: bytes, offset: int) -> Iterator[bytes]:
        while (match := compiled.search(text, offset)) is not None:
            found = b"\t".join(match.group(group) for group in groups if match.start(group) >= 0)
            yield found if summed is None else b"\0".join((found, match.group(summed) or b""))
            begin, end = match.span(match_group)
            offset = max(end, begin + 1)
            while begin == end and offset < len(text) and 0x80 <= text[offset] < 0xC0:  # within a character
                offset += 1
            if offset > len(text):
                return

    return read_groups if groups or summed is not None else None


def compile_replacement(pattern: str, template: str, *, ignore_case: bool) -> TextMatches:
    """The matches of `pattern`, with what takes their place; `^` and `$` are the ends of a line.

    Args:
        new: with `\\1` or `\\g<1>` for the first group; `\\\\` is one backslash.

    Raises:
        Invalid: not RE2 syntax, or `new` names a group that is not there.
    """
    import re2 as library

    re2: Any = library
    options = _text_options(re2, ignore_case=ignore_case, multiline=True)
    wide, edged = expand_boundaries(pattern)
    try:
        compiled = re2.compile(f"(?m:{expand_classes(pattern)})".encode(), options)
        search = re2.compile(f"(?m:{wide})".encode(), options).search if edged else compiled.search
    except re2.error as error:
        syntax_error = error.args[0].decode("utf-8", "replace") if error.args else "not understood"
        for ours in (f"(?m:{wide})", f"(?m:{expand_classes(pattern)})"):
            syntax_error = syntax_error.replace(ours, pattern)
        raise Invalid(
            f"The regular expression {quote(pattern)} is not RE2 syntax: {syntax_error}.",
            "There are no look-arounds and no back-references; `by=text` replaces the text itself.",
        ) from None
    # Python's `\\g<1>` and `\\g<name>` too, which models write before a digit.
    pieces = re.split(r"\\(?:g<(\w+)>|(\d|\\))", template)
    marks = [named or short for named, short in zip(pieces[1::3], pieces[2::3], strict=True)]
    try:
        groups = [mark if mark == "\\" else int(compiled.groupindex.get(mark.encode(), mark)) for mark in marks]
    except ValueError:
        groups = [compiled.groups + 1]
    if any(group > compiled.groups for group in groups if isinstance(group, int)):
        raise Invalid(
            f"{quote(template)} names a group that {quote(pattern)} does not have.", "Use `\\1` for the first."
        )

    def matches(searched: SearchText) -> NextMatch:
        text, data, known = searched.readable_text, searched.data, (0, 0)  # a place, in characters and in bytes

        def held(match: Any, group: int) -> str:
            (at, start), (first, last) = known, match.span(group + edged)
            if first < 0:
                return ""
            begin = at + len(data[start:first].decode())
            return searched.text[begin : begin + len(data[first:last].decode())]

        def filled(match: Any) -> str:
            found = (group if isinstance(group, str) else held(match, group) for group in groups)
            return "".join(text + part for text, part in zip(pieces[::3], [*found, ""], strict=True))

        def following(offset: int) -> tuple[int, int, str] | None:
            nonlocal known
            last = known[1] + len(text[known[0] : offset].encode())
            match = search(data, last)
            if match is None:
                return None
            start, end = match.span(edged)
            if start == end == len(data) and data.endswith(b"\n") and r"\z" not in pattern:
                return None  # behind the last line there is none, of which this would be the beginning or the end
            begin = offset + len(data[last:start].decode())
            known = begin, start
            return begin, begin + len(data[start:end].decode()), filled(match)

        return following

    return matches


def compile_byte_filter(pattern: str | None, *, ignore_case: bool) -> Callable[[bytes], bool]:
    """Whether an expression from `hints.byte_pattern` matches somewhere; always, without one."""
    if pattern is None:
        return lambda text: True
    import re2 as library

    re2: Any = library
    options = _path_options(re2)
    options.case_sensitive = not ignore_case
    try:
        search = re2.compile(f"(?m:{pattern})".encode("ascii"), options).search
    except re2.error:
        return lambda text: True
    return lambda text: search(text) is not None


def compile_path_set(patterns: Iterable[bytes]) -> PathSet:
    """All of `patterns` (over bytes, each for a whole path) as one automaton."""
    import re2 as library

    re2: Any = library
    automaton = re2.Set.FullMatchSet(_path_options(re2))
    for pattern in patterns:
        automaton.Add(pattern)
    automaton.Compile()
    return automaton.Match


def compile_path_prefilter(patterns: Iterable[bytes]) -> Callable[[bytes], bool]:
    """Whether some of many paths, one a line, may match some of `patterns`; False is certain.

    One call for a whole folder: most folders hold nothing that is ignored.
    """
    import re2 as library

    re2: Any = library
    search = re2.compile(b"(?m:^(?:" + b"|".join(patterns) + b")$)", _path_options(re2)).search
    return lambda lines: search(lines) is not None


def _text_options(re2: Any, *, ignore_case: bool, multiline: bool) -> Any:
    options = re2.Options()
    options.never_nl = not multiline
    options.log_errors = False
    options.max_mem = _MAX_MEMORY_BYTES
    options.case_sensitive = not ignore_case
    return options


def _path_options(re2: Any) -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1  # names need not be UTF-8
    options.dot_nl = True
    options.log_errors = False
    options.max_mem = _MAX_MEMORY_BYTES
    return options


def _compile_literal(needle: bytes) -> LineSearch:
    length = len(needle)

    def find(text: bytes, offset: int) -> tuple[int, int] | None:
        found = text.find(needle, offset)
        return None if found < 0 else (found, found + length)

    return find
