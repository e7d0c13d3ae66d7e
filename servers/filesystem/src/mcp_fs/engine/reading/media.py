"""Media files: images, sound, pages of PDFs; any other file is returned as bytes, page by page.

The first bytes decide what a file is, not its name. An image or a sound leaves only in a form that the models of all
hosts take, since a host sends the whole conversation each time: what the model's API refuses ends it.
"""

from __future__ import annotations

import importlib.util
import json
import os
from typing import BinaryIO

from mcp_batteries.errors import Invalid, Problem, TooLarge, quote
from mcp_batteries.limits import DEFAULT_PAGE_BYTES, Stop
from mcp_batteries.media.pictures import MOST_BYTES, MOST_FILE_BYTES, TYPES, Refusal
from mcp_batteries.media.png import SIGNATURE
from mcp_fs.engine.document_kinds import HEAD_BYTES, LABELS, SAFE_PICTURE, kind_of
from mcp_fs.engine.documents.converter import extract
from mcp_fs.engine.documents.source import is_document, open_content, to_anonymous_file
from mcp_fs.engine.listing.walk import display_path
from mcp_fs.engine.mime_types import UNKNOWN, mime_type
from mcp_fs.engine.sounds import AUDIBLE_TYPES, is_whole_sound
from mcp_fs.engine.text.encodings import SAMPLE_BYTES, detect_encoding
from mcp_fs.models import FullContents, Media, pluralize
from mcp_fs.policy import ReadablePath

__all__ = ["MAX_RESOURCE_BYTES", "is_media", "read_media", "with_safe_type"]

# Bytes of a file that can be read whole, as a resource.
MAX_RESOURCE_BYTES = 10 * 1024 * 1024

_MAX_PDF_BYTES = 64 * 1024 * 1024
_PAGE_BYTES = DEFAULT_PAGE_BYTES * 3 // 4  # in base64 a page


def read_media(place: ReadablePath, page: int = 1, stop: Stop | None = None) -> list[Media]:
    """Return the file at `place` as what can be shown of it; never nothing.

    Args:
        page: from 1. Of a PDF: its text, or its picture when there is no text on it. Of what is no picture or sound:
            its bytes, 7,500 a page.

    Raises:
        Invalid: the file is empty or text, or has no such page.
        Problem: it can't be opened.
    """
    stop = stop or Stop()
    with open_content(place, stop, raw=True) as (file, _):
        size = os.fstat(file.fileno()).st_size
        head = file.read(SAMPLE_BYTES)
        kind = mime_type(head, place.name)
        if not head:
            raise Invalid(f"{quote(place.display)} is empty.", "There is nothing to show.")
        if detect_encoding(head) is not None and kind != "application/pdf":
            raise Invalid(f"{quote(place.display)} is text ({kind}).", "Use `read_text`.")
        facts = f"{display_path(place)}: {kind}, {size:,} bytes"
        if is_document(place.name) and kind_of(place.name, head[:HEAD_BYTES]) in LABELS and kind != "application/pdf":
            facts += "; its text: `read_text`"
        if is_media(kind):
            _refuse_beyond(place, page, 1)
            if kind.startswith("image/"):
                return [_show_picture(place, file, size, kind, facts, stop)]
            return [_show_sound(place, file, size, kind, facts)]
        if kind == "application/pdf":
            if size > _MAX_PDF_BYTES:
                facts += f"; too large to show (limit {_MAX_PDF_BYTES:,})"
            else:
                page_or_reason = _show_pdf_page(place, file, page, facts, stop)
                if isinstance(page_or_reason, Media):
                    return [page_or_reason]
                facts += f"; {page_or_reason}"
        return [_show_bytes(place, file, size, page, kind, facts)]


def is_media(kind: str) -> bool:
    """Return whether a MIME type makes hosts show the file to the model as a picture or a sound."""
    return kind.startswith(("image/", "audio/"))


def with_safe_type(place: ReadablePath, contents: FullContents, stop: Stop) -> FullContents:
    """Return a whole file that is called a picture or a sound only if models take it as it is.

    Hosts give a model what a resource calls an image; of any other type they make no image.
    """
    if not is_media(contents.mime_type) or contents.text is not None:
        return contents
    if contents.mime_type in AUDIBLE_TYPES:
        is_safe = len(contents.data) <= MOST_BYTES and is_whole_sound(contents.data, contents.mime_type)
    else:
        is_safe = (
            contents.mime_type in TYPES and len(contents.data) <= MOST_BYTES and _is_safe_picture(place, contents, stop)
        )
    if is_safe:
        return contents
    return FullContents(UNKNOWN, None, contents.data)


def _is_safe_picture(place: ReadablePath, contents: FullContents, stop: Stop) -> bool:
    with to_anonymous_file(contents.data) as file:
        try:
            verdict = extract(file, place.name, (), "safety", place.display, stop, mime_type=contents.mime_type)
        except Problem:
            return False
    return verdict.label == SAFE_PICTURE


def _show_picture(place: ReadablePath, file: BinaryIO, size: int, kind: str, facts: str, stop: Stop) -> Media:
    """Return a picture in a form that models take, or what can be said of it."""
    resource_hint = _describe_resource(place, size)
    if size > MOST_FILE_BYTES:
        return _describe(
            place, kind, size, f"{facts}; too large to show (limit {MOST_FILE_BYTES:,} bytes){resource_hint}"
        )
    try:
        picture = extract(file, place.name, (), "picture", place.display, stop, mime_type=kind)
    except Invalid:
        return _describe(place, kind, size, f"{facts}; not shown: it is damaged{resource_hint}")
    except TooLarge:
        return _describe(
            place, kind, size, f"{facts}; not shown: decoding it takes too long or too much memory{resource_hint}"
        )
    label = json.loads(picture.label)
    if label.get("size"):
        facts += "; {:,} × {:,} pixels".format(*label["size"])
    if "refusal" in label:
        return _describe(
            place, kind, size, f"{facts}; not shown: {Refusal(label['refusal']).reason('mcp-fs')}{resource_hint}"
        )
    if label["is_reduced"]:
        facts += ", shown in small"
    if label["frames"] > 1:
        facts += f"; the first of {label['frames']:,} frames"
    if label["mime_type"] != kind:
        facts += f"; shown as {label['mime_type']}"
    return Media("image", place.display, place.uri, label["mime_type"], size, facts, picture.data)


def _show_sound(place: ReadablePath, file: BinaryIO, size: int, kind: str, facts: str) -> Media:
    """Return a sound that models take, or what can be said of it."""
    resource_hint = _describe_resource(place, size)
    if kind not in AUDIBLE_TYPES:
        return _describe(
            place, kind, size, f"{facts}; not played: models take WAV and MP3 only, so convert it first{resource_hint}"
        )
    if size > MOST_BYTES:
        return _describe(place, kind, size, f"{facts}; too large to play (limit {MOST_BYTES:,} bytes){resource_hint}")
    file.seek(0)
    data = file.read(MOST_BYTES)
    if not is_whole_sound(data, kind):
        return _describe(
            place, kind, size, f"{facts}; not played: it is damaged, ends too early, or has a rare codec{resource_hint}"
        )
    return Media("audio", place.display, place.uri, kind, size, facts, data)


def _describe(place: ReadablePath, kind: str, size: int, note: str) -> Media:
    return Media("text", place.display, place.uri, kind, size, note)


def _describe_resource(place: ReadablePath, size: int) -> str:
    """Return how a person gets at a file that is not shown."""
    if not (size <= MAX_RESOURCE_BYTES):
        return ""
    return f"; its bytes are the resource {place.uri}"


def _is_installed(library: str) -> bool:
    return importlib.util.find_spec(library) is not None


def _show_bytes(place: ReadablePath, file: BinaryIO, size: int, page: int, kind: str, facts: str) -> Media:
    """Return the file's bytes, whole when they are a page at most."""
    pages = max(1, -(-size // _PAGE_BYTES))
    _refuse_beyond(place, page, pages)
    begin = (page - 1) * _PAGE_BYTES
    file.seek(begin)
    data = file.read(_PAGE_BYTES)
    if pages == 1:
        return Media("blob", place.display, place.uri, kind, size, facts, data)
    end = begin + len(data)
    note = f"{facts}; bytes {begin + 1:,}-{end:,}, page {page} of {pages:,}"
    if page < pages:
        note += f", continue with page={page + 1}"
    if size <= MAX_RESOURCE_BYTES:
        note += f"; whole as the resource {place.uri}"
    part = f"{place.uri}#bytes={begin}-{end - 1}"  # what a part of a file is, its first bytes do not say
    return Media("blob", place.display, part, UNKNOWN, size, note, data)


def _refuse_beyond(place: ReadablePath, page: int, pages: int) -> None:
    if page > pages:
        raise Invalid(f"{quote(place.display)} has {pluralize(pages, 'page')}.", "Use a smaller `page`.")


def _show_pdf_page(place: ReadablePath, file: BinaryIO, number: int, facts: str, stop: Stop) -> Media | str:
    """Return a page of a PDF, or why it can't be shown."""
    if not _is_installed("pypdfium2"):
        return "its pages can be read once mcp-fs is installed as mcp-fs[pdf]"
    try:
        extracted = extract(file, place.name, (), "page", place.display, stop, page=number)
    except Invalid as problem:
        return "it " + problem.what.removeprefix(quote(place.display)).strip(" .")
    except TooLarge:
        return "its pages take too long or too much memory to show"
    pages = int(extracted.label)
    _refuse_beyond(place, number, pages)
    more = ""
    if number < pages:
        more = f"; continue with page={number + 1}"
    note = f"{facts}; page {number} of {pages}{more}"
    size = os.fstat(file.fileno()).st_size
    if extracted.data.startswith(SIGNATURE):
        return Media("image", place.display, place.uri, "image/png", size, note + "; no text on it", extracted.data)
    return Media("text", place.display, place.uri, "application/pdf", size, note, body=extracted.data.decode())
