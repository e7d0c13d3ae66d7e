"""Media files: images, sound, pages of PDFs; any other file is returned as bytes, page by page.

The first bytes decide what a file is, not its name. An image or a sound leaves only in a form that the models of all
hosts take, since a host sends the whole conversation each time: what the model's API refuses ends it.
"""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

from mcp_batteries.clipping import DEFAULT_PAGE_BYTES
from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Invalid, Problem, TooLarge, quote
from mcp_batteries.media.pictures import MOST_BYTES, MOST_FILE_BYTES, TYPES, Refusal
from mcp_fs.engine.document_kinds import HEAD_BYTES, LABELS, SAFE_PICTURE, kind_of
from mcp_fs.engine.documents.converter import Extracted, Output, extract
from mcp_fs.engine.documents.source import open_content, to_anonymous_file
from mcp_fs.engine.listing.walk import display_path
from mcp_fs.engine.mime_types import UNKNOWN, mime_type
from mcp_fs.engine.sounds import AUDIBLE_TYPES, is_whole_sound
from mcp_fs.engine.text.encodings import SAMPLE_BYTES, detect_encoding
from mcp_fs.models import FullContents, Media, pluralize
from mcp_fs.policy import ReadablePath

__all__ = ["MAX_RESOURCE_BYTES", "is_media", "read_media", "with_safe_type"]

# Bytes of a file that can be read whole, as a resource.
MAX_RESOURCE_BYTES = 10 * 1024 * 1024

_PDF = "application/pdf"
_MAX_PDF_BYTES = 64 * 1024 * 1024
_PAGE_BYTES = DEFAULT_PAGE_BYTES * 3 // 4  # in base64 a page
_HEX_LINES = 8
_HEX_LINE_BYTES = 16


def read_media(path: ReadablePath, page: int | None = None, cancel: CancelToken | None = None) -> list[Media]:
    """Return the file at `path` as what can be shown of it; never nothing.

    Args:
        page: from 1. Of a PDF: its picture. Of what is no picture or sound: its bytes, 7,500 a page, and for None how
            it begins: a model can do little with base64.

    Raises:
        Invalid: the file is empty or text, or has no such page.
        Problem: it can't be opened.
    """
    cancel = cancel or CancelToken()
    with open_content(path, cancel, raw=True) as (contents, _):
        head = contents.read(SAMPLE_BYTES)
        file = _describe_file(path, contents, head)
        if is_media(file.kind):
            _refuse_beyond(path, page or 1, 1)
            if file.kind.startswith("image/"):
                return [_show_picture(file, cancel)]
            return [_show_sound(file)]
        if file.kind == _PDF:
            return [_show_pdf(file, page, cancel)]
        return [_show_bytes(file, page)]


@dataclass(frozen=True, slots=True)
class _MediaFile:
    """An open file that is shown.

    Attributes:
        contents: its bytes.
        size: of them.
        kind: its MIME type.
        facts: what is said of it in any case.
    """

    place: ReadablePath
    contents: BinaryIO
    size: int
    kind: str
    facts: str

    @property
    def resource_hint(self) -> str:
        """How a person gets at a file that is not shown."""
        if self.size > MAX_RESOURCE_BYTES:
            return ""
        return f"; its bytes are the resource {self.place.uri}"

    def with_fact(self, fact: str) -> _MediaFile:
        return replace(self, facts=f"{self.facts}; {fact}")

    def describe(self, reason: str) -> Media:
        """Return what is said of a file that is not shown."""
        return self.as_media("text", self.kind, f"{self.facts}; {reason}{self.resource_hint}")

    def as_media(self, content_kind: str, mime_type: str, note: str, data: bytes = b"") -> Media:
        return Media(content_kind, self.place.display, self.place.uri, mime_type, self.size, note, data)

    def extract(self, output: Output, cancel: CancelToken, *, page: int = 0, mime_type: str = "") -> Extracted:
        """Return what the other process makes of the file."""
        return extract(
            self.contents, self.place.name, (), output, self.place.display, cancel, page=page, mime_type=mime_type
        )


def _describe_file(path: ReadablePath, contents: BinaryIO, head: bytes) -> _MediaFile:
    """Return what is known of an open file that begins with `head`.

    Raises:
        Invalid: it is empty or text, which `read_text` shows.
    """
    size = os.fstat(contents.fileno()).st_size
    kind = mime_type(head, path.name)
    if not head:
        raise Invalid(f"{quote(path.display)} is empty.", "There is nothing to show.")
    facts = f"{display_path(path)}: {kind}, {size:,} bytes"
    if kind != _PDF:
        if detect_encoding(head) is not None:
            raise Invalid(f"{quote(path.display)} is text ({kind}).", "Use `read_text`.")
        if kind_of(path.name, head[:HEAD_BYTES]) in LABELS:
            facts += "; its text: `read_text`"
    return _MediaFile(path, contents, size, kind, facts)


def is_media(kind: str) -> bool:
    """Return whether a MIME type makes hosts show the file to the model as a picture or a sound."""
    return kind.startswith(("image/", "audio/"))


def with_safe_type(path: ReadablePath, contents: FullContents, cancel: CancelToken) -> FullContents:
    """Return a whole file that is called a picture or a sound only if models take it as it is.

    Hosts give a model what a resource calls an image; of any other type they make no image.
    """
    if not is_media(contents.mime_type) or contents.text is not None:
        return contents
    if _is_safe(path, contents, cancel):
        return contents
    return FullContents(UNKNOWN, None, contents.data)


def _is_safe(path: ReadablePath, contents: FullContents, cancel: CancelToken) -> bool:
    """Return whether models take a picture or a sound as it is."""
    if len(contents.data) > MOST_BYTES:
        return False
    if contents.mime_type in AUDIBLE_TYPES:
        return is_whole_sound(contents.data, contents.mime_type)
    return contents.mime_type in TYPES and _is_safe_picture(path, contents, cancel)


def _is_safe_picture(path: ReadablePath, contents: FullContents, cancel: CancelToken) -> bool:
    with to_anonymous_file(contents.data) as file:
        try:
            verdict = extract(file, path.name, (), "safety", path.display, cancel, mime_type=contents.mime_type)
        except Problem:
            return False
    return verdict.label == SAFE_PICTURE


def _show_picture(file: _MediaFile, cancel: CancelToken) -> Media:
    """Return a picture in a form that models take, or what can be said of it."""
    if file.size > MOST_FILE_BYTES:
        return file.describe(f"too large to show (limit {MOST_FILE_BYTES:,} bytes)")
    try:
        picture = file.extract("picture", cancel, mime_type=file.kind)
    except Invalid:
        return file.describe("not shown: it is damaged")
    except TooLarge:
        return file.describe("not shown: decoding it takes too long or too much memory")
    label = json.loads(picture.label)
    if label.get("size"):
        file = file.with_fact("{:,} × {:,} pixels".format(*label["size"]))
    if "refusal" in label:
        return file.describe(f"not shown: {Refusal(label['refusal']).reason('mcp-fs')}")
    note = file.facts + _describe_conversion(label, file.kind)
    return file.as_media("image", label["mime_type"], note, picture.data)


def _describe_conversion(label: Mapping[str, Any], kind: str) -> str:
    """Say how what is shown differs from the picture in the file."""
    note = ""
    if label["is_reduced"]:
        note += ", shown in small"
    if label["frames"] > 1:
        note += f"; the first of {label['frames']:,} frames"
    if label["mime_type"] != kind:
        note += f"; shown as {label['mime_type']}"
    return note


def _show_sound(file: _MediaFile) -> Media:
    """Return a sound that models take, or what can be said of it."""
    if file.kind not in AUDIBLE_TYPES:
        return file.describe("not played: models take WAV and MP3 only, so convert it first")
    if file.size > MOST_BYTES:
        return file.describe(f"too large to play (limit {MOST_BYTES:,} bytes)")
    file.contents.seek(0)
    data = file.contents.read(MOST_BYTES)
    if not is_whole_sound(data, file.kind):
        return file.describe("not played: it is damaged, ends too early, or has a rare codec")
    return file.as_media("audio", file.kind, file.facts, data)


def _is_installed(library: str) -> bool:
    return importlib.util.find_spec(library) is not None


def _show_bytes(file: _MediaFile, page: int | None) -> Media:
    """Return the file's bytes, whole when they are a page at most; without a page how it begins."""
    pages = max(1, -(-file.size // _PAGE_BYTES))
    if page is None:
        return _show_head(file, f"no text or picture; `page=1` of {pages:,} sends its bytes in base64")
    _refuse_beyond(file.place, page, pages)
    begin = (page - 1) * _PAGE_BYTES
    file.contents.seek(begin)
    data = file.contents.read(_PAGE_BYTES)
    if pages == 1:
        return file.as_media("blob", file.kind, file.facts, data)
    end = begin + len(data)
    note = f"{file.facts}; bytes {begin + 1:,}-{end:,}, page {page} of {pages:,}"
    if page < pages:
        note += f", continue with page={page + 1}"
    if file.size <= MAX_RESOURCE_BYTES:
        note += f"; whole as the resource {file.place.uri}"
    uri = f"{file.place.uri}#bytes={begin}-{end - 1}"
    # Of what type a part of a file is, the first bytes of the file do not say.
    return Media("blob", file.place.display, uri, UNKNOWN, file.size, note, data)


def _show_head(file: _MediaFile, reason: str) -> Media:
    """Return the first bytes of a file as a hex dump, and why that is all."""
    file.contents.seek(0)
    head = file.contents.read(_HEX_LINES * _HEX_LINE_BYTES)
    lines: list[str] = []
    for offset in range(0, len(head), _HEX_LINE_BYTES):
        piece = head[offset : offset + _HEX_LINE_BYTES]
        text = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in piece)
        lines.append(f"{offset:08x}  {piece.hex(' '):<{3 * _HEX_LINE_BYTES}} {text}")
    return replace(file.describe(reason), body="\n".join(lines))


def _refuse_beyond(path: ReadablePath, page: int, pages: int) -> None:
    if page > pages:
        raise Invalid(f"{quote(path.display)} has {pluralize(pages, 'page')}.", "Use a smaller `page`.")


def _show_pdf(file: _MediaFile, page: int | None, cancel: CancelToken) -> Media:
    """Return a page of a PDF, or why it can't be shown: whoever asks for a page means no base64."""
    if file.size > _MAX_PDF_BYTES:
        return _show_head(file, f"too large to show (limit {_MAX_PDF_BYTES:,} bytes)")
    page_or_reason = _show_pdf_page(file, page or 1, cancel)
    if isinstance(page_or_reason, Media):
        return page_or_reason
    return _show_head(file, page_or_reason)


def _show_pdf_page(file: _MediaFile, number: int, cancel: CancelToken) -> Media | str:
    """Return a page of a PDF, or why it can't be shown."""
    if not _is_installed("pypdfium2"):
        return "its pages can be read once mcp-fs is installed as mcp-fs[documents]"
    try:
        extracted = file.extract("page", cancel, page=number)
    except Invalid as problem:
        return "it " + problem.failure.removeprefix(quote(file.place.display)).strip(" .")
    except TooLarge:
        return "its pages take too long or too much memory to show"
    pages = int(extracted.label)
    _refuse_beyond(file.place, number, pages)
    note = f"{file.facts}; page {number} of {pages}"
    if number < pages:
        note += f"; continue with page={number + 1}"
    kind = mime_type(extracted.data, "")
    return file.as_media("image", kind, f"{note}; its text: `read_text`", extracted.data)
