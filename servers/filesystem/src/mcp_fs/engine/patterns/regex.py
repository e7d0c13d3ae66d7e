"""Regular expressions that can't blow up: RE2, whose time is linear in the text whatever the pattern.

The only module that knows the library, which carries no types and is loaded on first use.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mcp_batteries.errors import Invalid, quote
from mcp_fs.engine.patterns.line_breaks import asks_for_line_breaks
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

# (text, offset) -> where the first match from the offset on begins and ends; it lies in one line unless asked for.
LineSearch = Callable[[bytes, int], tuple[int, int] | None]

# Offset -> where the first match from there on begins and ends, and what replaces it; offsets never go back.
NextMatch = Callable[[int], tuple[int, int, str] | None]


class SearchText:
    """A text that expressions are searched for in; they share its bytes."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def readable_text(self) -> str:
        """The text as the library takes it: damaged bytes are lone surrogates, for which it sees U+FFFD."""
        return replace_undecodable(self.text)

    @cached_property
    def data(self) -> bytes:
        return self.readable_text.encode()


TextMatches = Callable[[SearchText], NextMatch]

# path -> indices of the expressions that match all of it, in no order; nothing or None when there are none.
PathSet = Callable[[bytes], list[int] | None]

_MAX_MEMORY_BYTES = 64 << 20
# In a replacement a group by number or, as Python writes it, in brackets also by name; and the escapes of patterns.
_ESCAPE = re.compile(r"\\(?:g<(\w+)>|(\d)|([\\afnrtv]|x[0-9A-Fa-f]{2}|x\{[0-9A-Fa-f]{1,6}\}))")
_ESCAPED_CHARACTERS = {"\\": "\\", "a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
# How other languages write a group in a replacement.
_DOLLAR_GROUP = re.compile(r"\$(?:(\d)|\{(\w+)\}|<(\w+)>)")
# How some write there that a group is to be in capital or small letters.
_CASE_CHANGE = re.compile(r"(?<!\\)(?:\\\\)*(\\[ULul])(?=\\(?:\d|g<))")


def compile_line_search(pattern: str, *, literal: bool, ignore_case: bool, multiline: bool = False) -> LineSearch:
    """Return the search for `pattern` in UTF-8 text, line by line: `^` and `$` are the ends of a line.

    Args:
        multiline: whether a match may go over several lines.

    Raises:
        Invalid: not RE2 syntax (no look-around, no back-references), or too large.
    """
    if literal and not ignore_case and pattern.isascii():
        return _compile_literal(pattern.encode())
    import re2 as library

    re2: Any = library
    options = _text_options(re2, ignore_case=ignore_case, multiline=multiline)
    if literal:
        pattern = re.escape(pattern)
    source = f"(?m:{pattern})"
    try:
        search = re2.compile(_encode_source(source), options).search
    except re2.error as error:
        advice = "There are no look-arounds and no back-references; `literal=true` searches for the text itself."
        raise _syntax_error(pattern, _error_text(error).replace(source, pattern), advice) from None

    def find(text: bytes, offset: int) -> tuple[int, int] | None:
        match = search(text, offset)
        if match is None:
            return None
        return match.span()

    wide_pattern, group = expand_boundaries(pattern)
    if wide_pattern == pattern:
        return find
    try:
        search_wide = re2.compile(_encode_source(f"(?m:{wide_pattern})"), options).search
    except re2.error:  # too large with classes of all scripts
        return find
    return _search_by_script(find, search_wide, group)


def _search_by_script(find_in_ascii: LineSearch, search_wide: Any, group: int) -> LineSearch:
    """Return the search that asks for letters of all scripts where a text has some.

    Args:
        group: what the match is in a match of `search_wide`.
    """
    last_text = b""
    is_ascii = True

    def find(text: bytes, offset: int) -> tuple[int, int] | None:
        nonlocal last_text, is_ascii
        if text is not last_text:
            last_text = text
            is_ascii = text.isascii()
        if is_ascii:  # where both find the same, and the other is faster
            return find_in_ascii(text, offset)
        match = search_wide(text, offset)
        if match is None:
            return None
        return match.span(group)

    return find


def _encode_source(source: str) -> bytes:
    return source.encode("utf-8", "surrogateescape")


def _syntax_error(pattern: str, description: str, advice: str) -> Invalid:
    return Invalid(f"The regular expression {quote(pattern)} is not RE2 syntax: {description}.", advice)


def compile_group_reader(pattern: str, *, ignore_case: bool, multiline: bool = False) -> GroupReader | None:
    """Return what reads the named groups of each match; None without such groups.

    Args:
        pattern: one that `compile_line_search` takes.
    """
    import re2 as library

    re2: Any = library
    wide_pattern, match_group = expand_boundaries(pattern)
    options = _text_options(re2, ignore_case=ignore_case, multiline=multiline)
    try:
        compiled = re2.compile(_encode_source(f"(?m:{wide_pattern})"), options)
    except re2.error:  # too large with classes of all scripts
        return None
    if not compiled.groupindex:
        return None
    return GroupReader(compiled, match_group)


class GroupReader:
    """Reads what the named groups of an expression hold: (text, offset) -> of each match, parted by tabs.

    What a group `sum` holds comes last, behind a NUL, and what a group `times` holds with it, behind another.

    Args:
        match_group: what the match is in a match of `compiled`.
    """

    def __init__(self, compiled: Any, match_group: int) -> None:
        named_groups = {name.decode(): group for name, group in compiled.groupindex.items()}
        self._number_groups: list[int] = []
        if "sum" in named_groups:
            self._number_groups = [named_groups.pop(name) for name in ("sum", "times") if name in named_groups]
        self._groups = sorted(named_groups.values())
        self._search = compiled.search
        self._match_group = match_group

    @property
    def number_count(self) -> int:
        """How many numbers come with each text."""
        return len(self._number_groups)

    def __call__(self, text: bytes, offset: int) -> Iterator[bytes]:
        while offset <= len(text):
            match = self._search(text, offset)
            if match is None:
                return
            yield self._values_of(match)
            begin, end = match.span(self._match_group)
            offset = end
            if begin == end:
                offset = _next_character(text, begin)

    def _values_of(self, match: Any) -> bytes:
        values = b"\t".join(match.group(group) for group in self._groups if match.start(group) >= 0)
        return b"\0".join((values, *(match.group(group) or b"" for group in self._number_groups)))


def _next_character(text: bytes, offset: int) -> int:
    """Return where the character behind the one at `offset` begins."""
    offset += 1
    while offset < len(text) and 0x80 <= text[offset] < 0xC0:
        offset += 1
    return offset


def compile_replacement(pattern: str, template: str, *, ignore_case: bool) -> TextMatches:
    """Return the search for `pattern`, with what replaces its matches; `^` and `$` are the ends of a line.

    A match goes over several lines only if the expression asks for line breaks, as in a search.

    Args:
        template: with `\\1` or `\\g<1>` for the first group; `\\n`, `\\t` and the like are what they are in a pattern.

    Raises:
        Invalid: not RE2 syntax, or `template` names a group that is not there, or in the form of another language.
    """
    import re2 as library

    re2: Any = library
    options = _text_options(re2, ignore_case=ignore_case, multiline=asks_for_line_breaks(pattern))
    plain_source = f"(?m:{expand_classes(pattern)})"
    wide_pattern, match_group = expand_boundaries(pattern)
    wide_source = f"(?m:{wide_pattern})"
    try:
        compiled = re2.compile(plain_source.encode(), options)
        search = compiled.search
        if match_group:
            search = re2.compile(wide_source.encode(), options).search
    except re2.error as error:
        description = _error_text(error).replace(wide_source, pattern).replace(plain_source, pattern)
        advice = "There are no look-arounds and no back-references; `by=text` replaces the text itself."
        raise _syntax_error(pattern, description, advice) from None
    parsed = _parse_template(template, compiled)
    if parsed is None:
        raise Invalid(
            f"{quote(template)} names a group that {quote(pattern)} does not have.", "Use `\\1` for the first."
        )
    if compiled.groups and not any(isinstance(group, int) for group in parsed.groups):
        _refuse_dollar_groups(template)
    case_change = _CASE_CHANGE.search(template)
    if case_change:
        raise Invalid(
            f"{quote(template)} asks for another letter case by {quote(case_change[1])}, which stands for itself here.",
            "Name each text with its new one in `replacements`, or edit the files in a script.",
        )
    matches_last_end = r"\z" in pattern

    def start(searched: SearchText) -> NextMatch:
        return _ReplacementSearch(search, searched, parsed, match_group, matches_last_end).find_next

    return start


def _error_text(error: Exception) -> str:
    """Return what the library says of a pattern that it does not take."""
    if not error.args:
        return "not understood"
    return error.args[0].decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class _Template:
    """What replaces a match.

    Attributes:
        texts: what stands before each group, and behind the last.
        groups: the number of each, or the character that an escape stands for.
    """

    texts: Sequence[str]
    groups: Sequence[int | str]


def _parse_template(template: str, compiled: Any) -> _Template | None:
    """Return a template with the numbers of its groups; None if it names one that the expression does not have."""
    pieces = _ESCAPE.split(template)
    groups: list[int | str] = []
    for named, short, character in zip(pieces[1::4], pieces[2::4], pieces[3::4], strict=True):
        if character:
            groups.append(_unescape(character))
            continue
        mark = named or short
        try:
            number = int(compiled.groupindex.get(mark.encode(), mark))
        except ValueError:
            return None
        if number > compiled.groups:
            return None
        groups.append(number)
    return _Template(pieces[::4], groups)


def _unescape(escape: str) -> str:
    """Return the character that an escape without its backslash stands for; the escape itself where there is none."""
    if not escape.startswith("x"):
        return _ESCAPED_CHARACTERS[escape]
    code = int(escape[1:].strip("{}"), 16)
    if code > sys.maxunicode or 0xD800 <= code <= 0xDFFF:
        return "\\" + escape
    return chr(code)


def _refuse_dollar_groups(template: str) -> None:
    """Raise Invalid if a replacement names groups as other languages do: it would be written as it stands."""
    intended_template = _DOLLAR_GROUP.sub(_to_backslash_group, template)
    if intended_template != template:
        raise Invalid(
            f"{quote(template)} names a group with `$`, which stands for itself here.",
            f"Write {quote(intended_template)}. If a `$` is meant, make the groups of the expression `(?:...)`.",
        )


def _to_backslash_group(match: re.Match[str]) -> str:
    number, *names = match.groups()
    if number:
        return f"\\{number}"
    return f"\\g<{names[0] or names[1]}>"


class _ReplacementSearch:
    """The matches in one text, one after the other, with what takes their place.

    The library counts in bytes and callers in characters: the end of the last match is known in both.
    """

    def __init__(
        self, search: Any, searched: SearchText, template: _Template, match_group: int, matches_last_end: bool
    ) -> None:
        self._search = search
        self._text = searched.text
        self._readable_text = searched.readable_text
        self._data = searched.data
        self._template = template
        self._match_group = match_group
        self._matches_last_end = matches_last_end
        self._known_character = 0
        self._known_byte = 0

    def find_next(self, offset: int) -> tuple[int, int, str] | None:
        data = self._data
        search_from = self._known_byte + len(self._readable_text[self._known_character : offset].encode())
        match = self._search(data, search_from)
        if match is None:
            return None
        start, end = match.span(self._match_group)
        if start == end == len(data) and data.endswith(b"\n") and not self._matches_last_end:
            return None  # behind the last line there is none, of which this would be the beginning or the end
        begin = offset + len(data[search_from:start].decode())
        self._known_character = begin
        self._known_byte = start
        return begin, begin + len(data[start:end].decode()), self._fill_template(match)

    def _fill_template(self, match: Any) -> str:
        pieces: list[str] = []
        for text, group in zip(self._template.texts, self._template.groups, strict=False):
            pieces.append(text)
            if isinstance(group, str):
                pieces.append(group)
            else:
                pieces.append(self._group_text(match, group))
        pieces.append(self._template.texts[-1])
        return "".join(pieces)

    def _group_text(self, match: Any, group: int) -> str:
        first, last = match.span(group + self._match_group)
        if first < 0:
            return ""
        begin = self._known_character + len(self._data[self._known_byte : first].decode())
        return self._text[begin : begin + len(self._data[first:last].decode())]


def compile_byte_filter(pattern: str | None, *, ignore_case: bool) -> Callable[[bytes], bool]:
    """Return whether an expression from `prefilter.byte_pattern` matches somewhere; always, without one."""
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
    """Return all of `patterns` (over bytes, each for a whole path) as one automaton."""
    import re2 as library

    re2: Any = library
    automaton = re2.Set.FullMatchSet(_path_options(re2))
    for pattern in patterns:
        automaton.Add(pattern)
    automaton.Compile()
    return automaton.Match


def compile_path_prefilter(patterns: Iterable[bytes]) -> Callable[[bytes], bool]:
    """Return whether some of many paths, one a line, may match some of `patterns`; False is certain.

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
        begin = text.find(needle, offset)
        if begin < 0:
            return None
        return (begin, begin + length)

    return find
