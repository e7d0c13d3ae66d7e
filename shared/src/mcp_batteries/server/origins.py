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

__all__ = ["Origins", "origins_of"]

_PIECE = 12
_LEAST = 4
"""Letters of a piece; pieces that have to come back. A run of 59 letters (some ten words) is always found."""
# All callers together have so many pieces remembered, which stand for some 3 MB of text.
_PIECES = 250_000
# So many characters of one text are considered.
_LONGEST = 200_000
_NAMED = 3
_PLAIN = re.compile(r"[\W_]+")
# These arguments choose how much of a thing is read, not which thing.
_PAGING = {"cursor", "limit", "fields", "start_line", "lines", "line", "offset", "max_bytes", "wait", "since"}


@dataclass(frozen=True)
class _Read:
    """What is kept of a text that was shown.

    Attributes:
        where: the tool or resource, and its arguments.
        by: who wrote it, if the answer says so.
    """

    who: str
    where: str
    arguments: Mapping[str, Any]
    by: str
    pieces: frozenset[int]


_asking: ContextVar[Callable[[Mapping[str, Any]], Sequence[str]]] = ContextVar("asking")


class Origins:
    """Middleware that remembers what each caller saw.

    Args:
        reads: the tools whose answers count.
        caller: whose memory a message belongs to; None for those that cannot be told apart, who have no memory.
    """

    def __init__(self, reads: Collection[str], caller: Callable[[ServerRequestContext[Any]], str | None]) -> None:
        self._reads = reads
        self._caller = caller
        self._seen: deque[_Read] = deque()
        self._pieces = 0

    async def __call__(self, ctx: ServerRequestContext[Any], call_next: CallNext) -> HandlerResult:
        if ctx.method not in ("tools/call", "resources/read") or (who := self._caller(ctx)) is None:
            return await call_next(ctx)
        before = _asking.set(lambda arguments: self._found(who, arguments))
        try:
            result = await call_next(ctx)
        finally:
            _asking.reset(before)
        params: Mapping[str, Any] = ctx.params or {}
        name = str(params.get("name") if ctx.method == "tools/call" else params.get("uri"))
        if isinstance(result, dict) and not result.get("isError") and (name in self._reads or "contents" in result):
            given: Any = params.get("arguments")
            arguments = dict(cast("Mapping[str, Any]", given)) if isinstance(given, Mapping) else {}
            self._remember(who, name, arguments, result)
        return result

    def _remember(self, who: str, where: str, arguments: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        place = {name: value for name, value in arguments.items() if name not in _PAGING and value is not None}
        shown: Any = result.get("structuredContent") or result.get("content") or result.get("contents")
        texts: dict[str, list[str]] = {}
        for by, text in _texts(shown, ""):
            texts.setdefault(by, []).append(text)
        for by, parts in texts.items():
            plain = [_plain(text) for text in parts]
            pieces = frozenset(
                hash(text[start : start + _PIECE])
                for text in plain
                for start in range(0, len(text) - _PIECE + 1, _PIECE)
            )
            if len(pieces) >= _LEAST:
                self._seen.append(_Read(who, where, place, by, pieces))
                self._pieces += len(pieces)
        while self._pieces > _PIECES:
            self._pieces -= len(self._seen.popleft().pieces)

    def _found(self, who: str, arguments: Mapping[str, Any]) -> Sequence[str]:
        """Where parts of a call's texts were read, the largest part first."""
        wanted: set[int] = set()
        texts = {text for _, text in _texts(arguments, "")}
        for text in texts:
            plain = _plain(text)
            wanted.update(hash(plain[start : start + _PIECE]) for start in range(len(plain) - _PIECE + 1))
        found: dict[str, set[int]] = {}
        for read in reversed(self._seen):
            # What goes back to where it was read is nothing to be told of.
            back = bool(read.arguments) and all(
                arguments.get(name) == item or (isinstance(item, str) and item in texts)
                for name, item in read.arguments.items()
            )
            if read.who == who and not back and len(common := read.pieces & wanted) >= _LEAST:
                found.setdefault(_named(read), set()).update(common)
        ranked = sorted(found.items(), key=lambda item: -len(item[1]))
        notes = [f"some {len(pieces) * _PIECE} letters of it were read before: {where}" for where, pieces in ranked]
        more = [f"and in {len(notes) - _NAMED} other answers"] if len(notes) > _NAMED else []
        return notes[:_NAMED] + more


def origins_of(arguments: Mapping[str, Any]) -> Sequence[str]:
    """Where the texts in `arguments` of the current call were read before, in words."""
    asking = _asking.get(None)
    return asking(arguments) if asking is not None else []


def _named(read: _Read) -> str:
    given = ", ".join(f"{name}={quote(str(value), 60)}" for name, value in read.arguments.items())
    return f"{quote(read.where, 100)}{f' ({given})' if given else ''}{f', by {quote(read.by, 60)}' if read.by else ''}"


def _plain(text: str) -> str:
    return _PLAIN.sub("", text[:_LONGEST].casefold())


def _texts(value: Any, by: str) -> Iterator[tuple[str, str]]:
    """Each text in `value` with its author: `author` is beside it in an object, or is a column of its row."""
    if isinstance(value, str):
        yield by, value
    elif isinstance(value, Mapping):
        item = cast("Mapping[str, Any]", value)
        by = _author(item) or by
        columns = item.get("columns")
        rows = item.get("rows")
        for name, part in item.items():
            if name == "rows" and isinstance(columns, list) and isinstance(rows, list):
                for row in cast("list[list[Any]]", rows):
                    yield from _texts(dict(zip(cast("list[str]", columns), row, strict=False)), by)
            else:
                yield from _texts(part, by)
    elif isinstance(value, list):
        for part in cast("list[Any]", value):
            yield from _texts(part, by)


def _author(item: Mapping[str, Any]) -> str:
    author = item.get("author")
    trust = item.get("trust")
    if not isinstance(author, str):
        return ""
    return f"{author} ({trust})" if isinstance(trust, str) else author
