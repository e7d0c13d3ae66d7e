"""Results of tools, shaped for what hosts really show to models.

About half of today's hosts pass on only the text of a result, the other half only its structured content. So a text
answer is only text, once; a data answer is complete in both, as columns and arrays rather than a list of objects.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import groupby
from typing import Any, ClassVar, Protocol, cast, runtime_checkable

import pydantic_core
from mcp_types import BlobResourceContents, CallToolResult, ContentBlock, TextResourceContents
from pydantic import BaseModel, ConfigDict

from mcp_batteries.errors import well_formed

__all__ = [
    "CacheableContents",
    "DataResult",
    "Link",
    "ScriptAnswer",
    "TextResult",
    "answering_script",
    "clean",
    "group_by_folder",
    "is_answering_script",
    "to_call_result",
    "to_compact_json",
]


@dataclass(frozen=True)
class Link:
    """The subject of an answer, for hosts that let a person open it; `size` in bytes."""

    uri: str
    name: str
    mime_type: str | None = None
    size: int | None = None


_LINE_PREFIX = re.compile(r"\d+[:-]|[\d,]+ in all$|@@ |[-+]")
# A folder must save so many bytes to stand on a line of its own; a few paths read better whole.
_MIN_SAVED_BYTES = 20
_NOT_UTF_8 = (pydantic_core.PydanticSerializationError, UnicodeEncodeError)


@runtime_checkable
class TextResult(Protocol):
    """A result that is one text: file contents, a diff, a report. Implement `text` on a dataclass.

    Its dict `for_views`, if any, goes into `_meta` for clients that show views; models do not read it.
    """

    def text(self) -> str:
        """The whole answer. The first line says what was cut and how to continue."""
        ...


class DataResult(BaseModel):
    """A result that programs read too: structured content by the model's schema, and a complete text.

    Attributes:
        LEFT_OUT_OF_SCRIPTS: fields that a script has no use for, as the address to follow something by.
    """

    model_config = ConfigDict(frozen=True)
    LEFT_OUT_OF_SCRIPTS: ClassVar[frozenset[str]] = frozenset()

    def links(self) -> Sequence[Link]:
        """Resources behind the answer; put nothing only there, because some hosts drop links."""
        return ()

    def text(self) -> str:
        """The whole answer for hosts that pass on only text; compact JSON unless overridden."""
        return _to_json(clean(self.model_dump(mode="json", by_alias=True, exclude_none=True)))


@dataclass(frozen=True)
class CacheableContents:
    """A resource's content, and for how long it cannot change: `ttlMs` and `cacheScope` of 2026-07-28.

    Args:
        seconds: 0 when it may be outdated already.
        public: whether everybody sees the same.
    """

    contents: TextResourceContents | BlobResourceContents | Sequence[TextResourceContents | BlobResourceContents]
    seconds: float
    public: bool = False


@dataclass
class ScriptAnswer:
    """An answer that a script gets.

    Attributes:
        text: the answer of the tool, before what stands around tools added to it; empty without a `model_text`.
        model_text: the same as a model reads it; empty where this is hardly shorter.
    """

    text: str = ""
    model_text: str = ""

    def printed_text(self, text: str) -> str:
        """Return what the script prints of an answer that it prints as it came; empty if that is its text."""
        if text != self.text:
            return ""
        return self.model_text


# What a script printed of a longer answer would be cut anyway.
_MAX_PRINTED_CHARACTERS = 20_000
# A form of its own for a model must save so much, because the script prints that it is another one.
_MIN_SAVED_CHARACTERS = 80
_script_answer: ContextVar[ScriptAnswer | None] = ContextVar("script_answer", default=None)


@contextmanager
def answering_script() -> Generator[ScriptAnswer]:
    """Let answers be written for a script, which reads them line by line."""
    answer = ScriptAnswer()
    token = _script_answer.set(answer)
    try:
        yield answer
    finally:
        _script_answer.reset(token)


def is_answering_script() -> bool:
    """Return whether a script reads the answer: each line has whole paths, numbers and times, in the same columns."""
    return _script_answer.get() is not None


def _keep_model_text(result: TextResult, text: str) -> None:
    """Keep for the script what a model would read, whose paths and times do not stand whole on each line."""
    answer = _script_answer.get()
    if answer is None or len(text) > _MAX_PRINTED_CHARACTERS:
        return
    token = _script_answer.set(None)
    try:
        model_text = well_formed(result.text())
    finally:
        _script_answer.reset(token)
    if len(model_text) + _MIN_SAVED_CHARACTERS <= len(text):
        answer.text = well_formed(text)
        answer.model_text = model_text


def group_by_folder(entries: Iterable[tuple[str, str, Sequence[str]]]) -> list[str]:
    """Format entries, each a prefix, a path and the numbered lines below it, as lines.

    Long parts appear once: a path before a single line, otherwise above all its lines; a folder above the names of
    several files in a row, where each name begins with a space. A path that would read as another line begins with
    `./`.
    """
    if is_answering_script():
        return _whole_paths(entries)
    lines: list[str] = []
    for folder, rows in groupby(entries, key=lambda row: _folder(row[1])):
        files = list(rows)
        saved_bytes = (len(folder) - 1) * len(files) - len(folder) - 1
        has_folder_line = saved_bytes >= _MIN_SAVED_BYTES
        if has_folder_line:
            lines.append(folder)
        for prefix, path, numbered_lines in files:
            if has_folder_line:
                name = f" {prefix}{path[len(folder) :]}"
            elif not prefix and _looks_like_a_line(path, numbered_lines):
                name = f"./{path}"
            else:
                name = prefix + path
            if len(numbered_lines) == 1:
                lines.append(f"{name}:{numbered_lines[0]}")
            else:
                lines.append(name)
                lines.extend(numbered_lines)
    return lines


def _whole_paths(entries: Iterable[tuple[str, str, Sequence[str]]]) -> list[str]:
    lines: list[str] = []
    for prefix, path, numbered_lines in entries:
        if numbered_lines:
            lines.extend(f"{prefix}{path}:{line}" for line in numbered_lines)
        else:
            lines.append(prefix + path)
    return lines


def _looks_like_a_line(path: str, numbered_lines: Sequence[str]) -> bool:
    if path.startswith(" "):
        return True
    return bool(numbered_lines) and _LINE_PREFIX.match(path) is not None


def _folder(path: str) -> str:
    """Return the folder that contains `path`, with its slash; empty at the top or for a quoted path."""
    if path.startswith('"'):
        return ""
    return path[: path.rstrip("/").rfind("/") + 1]


def to_call_result(value: Any, *, views: bool = False) -> CallToolResult | dict[str, Any]:
    """Return the `CallToolResult` for what a tool method returned; already in wire form if we built it ourselves.

    Takes a `DataResult`, anything with `text()`, a string, content blocks (one or a sequence) or a ready
    `CallToolResult`.

    Args:
        views: whether the client shows views, which get extra data.

    Raises:
        TypeError: the method returned something else; a defect of the tool.
    """
    match value:
        case CallToolResult():
            return value
        case DataResult():
            return _data_to_wire(value)
        case str():
            return _wire(value)
        case BaseModel():
            return CallToolResult(content=[cast(ContentBlock, value)])
        case list() | tuple():
            blocks = cast("Sequence[ContentBlock]", value)
            return CallToolResult(content=list(blocks))
        # An `isinstance` of a protocol costs more than all the rest here.
        case _ if callable(getattr(value, "text", None)):
            result = cast("TextResult", value)
            text = result.text()
            _keep_model_text(result, text)
            if views and (view_data := getattr(value, "for_views", None)):
                return _wire(text, _meta=clean(view_data))
            return _wire(text)
        case _:
            raise TypeError(f"a tool returned {type(value).__name__}")


def _data_to_wire(result: DataResult) -> dict[str, Any]:
    """Return data in wire form, with their own text, or with themselves as JSON."""
    left_out = set(result.LEFT_OUT_OF_SCRIPTS if is_answering_script() else ())
    data: Any = result.model_dump(mode="json", by_alias=True, exclude_none=True, exclude=left_out)
    if type(result).text is not DataResult.text:
        return _wire(result.text(), result.links(), structuredContent=clean(data))
    try:
        text = _to_json(data)
    except _NOT_UTF_8:
        data = _replace_surrogates(data)
        text = _to_json(data)
    return _wire(text, result.links(), structuredContent=data)


def clean(data: Any) -> Any:
    """Return `data` (JSON-like) with lone surrogates in strings replaced; the same object when there are none."""
    try:
        pydantic_core.to_json(data)
    except _NOT_UTF_8:
        return _replace_surrogates(data)
    return data


def _replace_surrogates(data: Any) -> Any:
    match data:
        case str():
            return well_formed(data)
        case dict():
            items = cast("dict[str, Any]", data).items()
            return {well_formed(key): _replace_surrogates(value) for key, value in items}
        case list() | tuple():
            return [_replace_surrogates(value) for value in cast("Sequence[Any]", data)]
        case _:
            return data


def to_compact_json(data: Any) -> str:
    """Return `data` as JSON on one line without spaces; lone surrogates in strings stay as they are."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def _to_json(data: Any) -> str:
    return pydantic_core.to_json(data).decode()


def _wire(text: str, links: Sequence[Link] = (), **more: Any) -> dict[str, Any]:
    text = well_formed(text)
    # A script may write back what it read, which keeps the end of a file that has no line end.
    if not text.endswith("\n") and not is_answering_script():
        text += "\n"
    content: list[dict[str, Any]] = [{"type": "text", "text": text}]
    for link in links:
        content.append(_link(link))
    return {"content": content, "isError": False, "resultType": "complete", **more}


def _link(link: Link) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "resource_link", "uri": link.uri, "name": well_formed(link.name)}
    if link.mime_type is not None:
        block["mimeType"] = link.mime_type
    if link.size is not None:
        block["size"] = link.size
    return block
