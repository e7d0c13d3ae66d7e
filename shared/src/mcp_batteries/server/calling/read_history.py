"""Where a text was read before, for the person who is asked whether it may be written.

It keeps no text: of each answer only hashes of short runs of its letters and digits remain. They show that a longer run
comes back, however it is quoted, indented or wrapped.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, cast

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

from mcp_batteries.errors import quote

__all__ = ["ReadHistory", "find_read_origins"]

# A run of 59 letters (some ten words) has at least four whole pieces, so it is always found.
_PIECE_LETTERS = 12
_MIN_COMMON_PIECES = 4
# All callers together have so many pieces remembered, which stand for some 3 MB of text.
_MAX_PIECES = 250_000
# So many characters of one text are considered.
_MAX_TEXT_CHARACTERS = 200_000
_MAX_NAMED_ORIGINS = 3
_SEPARATORS = re.compile(r"[\W_]+")
# These arguments choose how much of a thing is read, not which thing.
_PAGING_ARGUMENTS = {"cursor", "limit", "fields", "start_line", "lines", "line", "offset", "max_bytes", "wait", "since"}


@dataclass(frozen=True)
class _ReadText:
    """What is remembered of a text that a caller was shown.

    Attributes:
        source: the tool or resource.
        arguments: those of the tool that say which thing was read.
        author: who wrote the text, if the answer says so.
        pieces: hashes of short runs of its letters.
    """

    caller: str
    source: str
    arguments: Mapping[str, Any]
    author: str
    pieces: frozenset[int]

    def describe(self) -> str:
        description = quote(self.source, 100)
        if self.arguments:
            values = ", ".join(f"{name}={quote(str(value), 60)}" for name, value in self.arguments.items())
            description += f" ({values})"
        if self.author:
            description += f", by {quote(self.author, 60)}"
        return description

    def is_written_back(self, arguments: Mapping[str, Any], texts: Collection[str]) -> bool:
        """Return whether a call writes to the very thing from which the text was read."""
        if not self.arguments:
            return False
        for name, value in self.arguments.items():
            if arguments.get(name) != value and not (isinstance(value, str) and value in texts):
                return False
        return True


# Finds where the texts of the current call were read before; every request has its own caller.
_find_origins: ContextVar[Callable[[Mapping[str, Any]], Sequence[str]]] = ContextVar("find_origins")


class ReadHistory:
    """Middleware that remembers what each caller was shown.

    Args:
        reads: the tools whose answers count.
        caller: whose memory a message belongs to; None for those that cannot be told apart, who have no memory.
    """

    def __init__(self, reads: Collection[str], caller: Callable[[ServerRequestContext[Any]], str | None]) -> None:
        self._reads = reads
        self._caller = caller
        self._history: deque[_ReadText] = deque()
        self._piece_count = 0

    async def __call__(self, ctx: ServerRequestContext[Any], call_next: CallNext) -> HandlerResult:
        if ctx.method not in ("tools/call", "resources/read"):
            return await call_next(ctx)
        caller = self._caller(ctx)
        if caller is None:
            return await call_next(ctx)
        token = _find_origins.set(lambda arguments: self._find(caller, arguments))
        try:
            result = await call_next(ctx)
        finally:
            _find_origins.reset(token)
        params: Mapping[str, Any] = ctx.params or {}
        source = str(params.get("name") if ctx.method == "tools/call" else params.get("uri"))
        if isinstance(result, dict) and not result.get("isError") and (source in self._reads or "contents" in result):
            sent_arguments: Any = params.get("arguments")
            arguments: Mapping[str, Any] = {}
            if isinstance(sent_arguments, Mapping):
                arguments = cast("Mapping[str, Any]", sent_arguments)
            self._remember(caller, source, arguments, result)
        return result

    def _remember(self, caller: str, source: str, arguments: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        identifying = {
            name: value for name, value in arguments.items() if name not in _PAGING_ARGUMENTS and value is not None
        }
        contents: Any = result.get("structuredContent") or result.get("content") or result.get("contents")
        pieces_by_author: dict[str, set[int]] = {}
        for author, text in _texts(contents, ""):
            pieces_by_author.setdefault(author, set()).update(_hash_pieces(text, step=_PIECE_LETTERS))
        for author, pieces in pieces_by_author.items():
            if len(pieces) >= _MIN_COMMON_PIECES:
                self._history.append(_ReadText(caller, source, identifying, author, frozenset(pieces)))
                self._piece_count += len(pieces)
        while self._piece_count > _MAX_PIECES:
            self._piece_count -= len(self._history.popleft().pieces)

    def _find(self, caller: str, arguments: Mapping[str, Any]) -> Sequence[str]:
        """Return where parts of a call's texts were read, the largest part first."""
        texts = {text for _, text in _texts(arguments, "")}
        written: set[int] = set()
        for text in texts:
            # A piece that was read may begin at any letter of what is written.
            written.update(_hash_pieces(text, step=1))
        pieces_by_origin: dict[str, set[int]] = {}
        for read in reversed(self._history):
            if read.caller != caller or read.is_written_back(arguments, texts):
                continue
            common = read.pieces & written
            if len(common) >= _MIN_COMMON_PIECES:
                pieces_by_origin.setdefault(read.describe(), set()).update(common)
        notes: list[str] = []
        for origin, pieces in sorted(pieces_by_origin.items(), key=lambda item: -len(item[1])):
            notes.append(f"some {len(pieces) * _PIECE_LETTERS} letters of it were read before: {origin}")
        if len(notes) > _MAX_NAMED_ORIGINS:
            return [*notes[:_MAX_NAMED_ORIGINS], f"and in {len(notes) - _MAX_NAMED_ORIGINS} other answers"]
        return notes


def find_read_origins(arguments: Mapping[str, Any]) -> Sequence[str]:
    """Return where the texts in `arguments` of the current call were read before, in words."""
    find_origins = _find_origins.get(None)
    if find_origins is None:
        return []
    return find_origins(arguments)


def _hash_pieces(text: str, *, step: int) -> Iterator[int]:
    """Yield a hash of each run of letters and digits of the piece length, one every `step` letters."""
    letters = _SEPARATORS.sub("", text[:_MAX_TEXT_CHARACTERS].casefold())
    for start in range(0, len(letters) - _PIECE_LETTERS + 1, step):
        yield hash(letters[start : start + _PIECE_LETTERS])


def _texts(value: Any, author: str) -> Iterator[tuple[str, str]]:
    """Yield the author and each text in `value`; `author` is beside it in an object, or is a column of its row."""
    if isinstance(value, str):
        yield author, value
    elif isinstance(value, Mapping):
        members = cast("Mapping[str, Any]", value)
        author = _author_of(members) or author
        columns: Any = members.get("columns")
        rows: Any = members.get("rows")
        is_table = isinstance(columns, list) and isinstance(rows, list)
        for name, member in members.items():
            if name == "rows" and is_table:
                for row in cast("list[list[Any]]", rows):
                    yield from _texts(dict(zip(cast("list[str]", columns), row, strict=False)), author)
            else:
                yield from _texts(member, author)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _texts(item, author)


def _author_of(members: Mapping[str, Any]) -> str:
    author = members.get("author")
    trust = members.get("trust")
    if not isinstance(author, str):
        return ""
    if isinstance(trust, str):
        return f"{author} ({trust})"
    return author
