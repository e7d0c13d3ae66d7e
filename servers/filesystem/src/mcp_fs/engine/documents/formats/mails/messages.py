"""Reads mails and notebooks, whose text is wrapped. Each is also an archive: of attachments, or of itself."""

from __future__ import annotations

import codecs
import email
import email.policy
import io
import itertools
import mimetypes
import re
from collections.abc import Iterator, Sequence
from email.message import EmailMessage, Message, MIMEPart
from typing import Any, BinaryIO, cast

from mcp_fs.engine.document_kinds import is_document
from mcp_fs.engine.documents.formats.archives import ArchiveEntry, read_all
from mcp_fs.engine.documents.formats.charsets import decode_page, decode_text, repair_header
from mcp_fs.engine.documents.formats.notebook import notebook_cells
from mcp_fs.engine.documents.formats.pages import read_html

__all__ = ["Mail", "Notebook", "clean_attachment_name", "unique_name"]

# Python's own table: those in /etc differ between machines, and this process may not read them.
_MIME_TYPES = mimetypes.MimeTypes()
_MIME_TYPES.add_type("text/calendar", ".ics")
_HEADERS = ("From", "To", "Cc", "Date", "Subject")
# Of lines that a mail program broke: their length, and what they begin with.
_SHORTEST_WRAPPED = 55
_LONGEST_WRAPPED = 80
_FEWEST_WORDS = 4
_PROSE_SHARE = 0.93
_QUOTE = re.compile(r"(?:> ?)*")
_LIST_MARK = re.compile(r"\(?\w{1,2}[.)] ")
_SIGNATURE = "-- "
# A name with blanks, brackets or commas that lacks its quotes, as many programs write it; and what is in quotes.
_UNQUOTED_NAME = re.compile(
    r""""(?:[^"\\]|\\.)*"|(\b(?:file)?name[ \t]*=[ \t]*)((?![\s"])[^";]*[^";\s])""", re.IGNORECASE | re.DOTALL
)
_EXTENDED_NAME = re.compile(r"(?<=name\*=)[^;]+", re.IGNORECASE)
# What a mail says, the better first.
_TEXTS = ("text/plain", "text/html")


class _LenientPolicy(email.policy.EmailPolicy):
    """Headers that the library stumbles over are as they are written, or not there if they say what a part is."""

    def header_fetch_parse(self, name: str, value: str) -> Any:
        value = repair_header(value)
        if name.lower() in ("content-disposition", "content-type"):
            value = _UNQUOTED_NAME.sub(_quote_name, value)
            value = _EXTENDED_NAME.sub(_escape_brackets, value)
        try:
            return super().header_fetch_parse(name, value)
        except Exception:  # noqa: BLE001 - it has no end of them, and the rest of the mail is fine
            written = "" if name.lower().startswith("content-") else value
            return super().header_fetch_parse(name if not written else "Subject", written)


def _quote_name(match: re.Match[str]) -> str:
    """Return a name in quotes, on one line; what has quotes already as it is."""
    if match[1] is None:
        return match[0]
    return f'{match[1]}"{" ".join(match[2].split())}"'


def _escape_brackets(match: re.Match[str]) -> str:
    """Return a name of RFC 2231 in which brackets begin no comment."""
    return match[0].replace("(", "%28").replace(")", "%29")


class Mail:
    """A mail (RFC 5322) and what is attached to it."""

    RAW_MEMBER = "message.txt"

    def __init__(self, file: BinaryIO) -> None:
        self._data = read_all(file).read()
        self._bodies: list[MIMEPart] = []
        self._attachments: list[MIMEPart] = []
        data = self._data.removeprefix(codecs.BOM_UTF8)  # of which some programs make the name of the first header
        self._message = cast("EmailMessage", email.message_from_bytes(data, policy=_LenientPolicy()))
        self._classify_parts(self._message, None)
        if not self._bodies:
            self._bodies = [part for part in self._attachments if part.get_content_type() in _TEXTS][:1]

    def _classify_parts(self, part: MIMEPart, chosen: MIMEPart | None) -> None:
        """Tell what the mail says from what comes with it; of texts that are alternatives `chosen` says it."""
        if _is_multipart(part):
            if chosen is None and part.get_content_subtype() in ("alternative", "related"):
                chosen = _choose_text(list(_iterate_texts(part)))
            for inner in part.iter_parts():
                self._classify_parts(inner, chosen)
        elif not _is_text(part):
            self._attachments.append(part)
        elif chosen is None or part is chosen:
            self._bodies.append(part)

    def text(self) -> Iterator[str]:
        for name in _HEADERS:
            for value in self._message.get_all(name, []):
                yield f"{name}: {str(value).strip()}\n"
        for body in self._bodies:
            yield "\n" + _decode_body(body).rstrip("\n") + "\n"
        attached = [entry for entry, _ in self.entries() if entry.name != self.RAW_MEMBER]
        if attached:
            yield "\n[attached]\n"
        for entry in attached:
            yield f"{entry.name}\t{entry.size:,}\n"

    def entries(self) -> Iterator[tuple[ArchiveEntry, BinaryIO | None]]:
        yield ArchiveEntry(self.RAW_MEMBER, self.RAW_MEMBER, len(self._data)), io.BytesIO(self._data)
        names = {self.RAW_MEMBER}
        for number, part in enumerate(self._attachments, 1):
            name = unique_name(_attachment_name(part, number), number, names)
            content = _attachment_bytes(part)
            yield ArchiveEntry(name, name, len(content)), io.BytesIO(content)


def _attachment_name(part: MIMEPart, number: int) -> str:
    """Return the name of what is attached, or one of its number and type; of the sender's, only the end is taken."""
    file_name = part.get_filename() or ""
    name = clean_attachment_name(file_name) or f"part{number}"
    suffix = _MIME_TYPES.guess_extension(part.get_content_type()) or ""
    if not file_name:
        return name + suffix
    # By its suffix it is read as a document; the subject of a mail that is forwarded may have any dots.
    lacks_suffix = "." not in name or part.get_content_type() == "message/rfc822"
    if lacks_suffix and is_document(suffix) and not name.lower().endswith(suffix):
        return name + suffix
    return name


def clean_attachment_name(name: str) -> str:
    """Return the last name of a path, as it may be asked for; empty where nothing is left."""
    return re.split(r"[/\\]", name)[-1].strip("\0 .")


def unique_name(name: str, number: int, names: set[str]) -> str:
    """Return the name of an attachment, with its number before it where another has that name.

    Args:
        names: those before it; learns this one.
    """
    if name in names:
        name = f"{number}-{name}"
    names.add(name)
    return name


def _is_multipart(part: MIMEPart) -> bool:
    return part.get_content_maintype() == "multipart" and part.is_multipart()


def _is_text(part: MIMEPart) -> bool:
    """Return whether a part is there to be read, not to be saved."""
    return part.get_content_type() in _TEXTS and not (part.is_attachment() or part.get_filename())


def _choose_text(alternatives: Sequence[MIMEPart]) -> MIMEPart | None:
    """Return the one to read of several alternatives: the best that says something.

    Some programs leave the plain one empty. Pages take long to read, so the last is not tried.
    """
    best_first = sorted(alternatives, key=lambda text: _TEXTS.index(text.get_content_type()))
    for text in best_first[:-1]:
        if _decode_body(text).strip():
            return text
    return next(reversed(best_first), None)


def _iterate_texts(part: MIMEPart) -> Iterator[MIMEPart]:
    for inner in part.iter_parts():
        if _is_multipart(inner):
            yield from _iterate_texts(inner)
        elif _is_text(inner):
            yield inner


def _attachment_bytes(part: MIMEPart) -> bytes:
    """Return what is attached as a file, as it would be saved: of a mail that is forwarded all of it."""
    if not part.is_multipart():
        return _payload_bytes(part)
    messages = cast("list[Message]", part.get_payload())
    try:
        return b"\n".join(message.as_bytes(policy=email.policy.compat32) for message in messages)
    except UnicodeError:
        texts = [message.as_string(policy=email.policy.compat32) for message in messages]
        return b"\n".join(text.encode("utf-8", "replace") for text in texts)


def _decode_body(part: MIMEPart) -> str:
    """Return the text of a part, that of a page without its tags."""
    data = _payload_bytes(part)
    charset = part.get_content_charset()
    if part.get_content_type() == "text/html":
        return "".join(read_html(decode_page(data, charset)))
    text = decode_text(data, charset).replace("\r\n", "\n")
    if str(part.get_param("format", "")).lower() == "flowed":
        return _join_flowed(text, part.get_param("delsp", "") == "yes")
    return _join_wrapped(text)


def _join_flowed(text: str, is_blank_deleted: bool) -> str:
    """Return a text with its lines joined where they end in a blank (RFC 3676)."""
    lines: list[str] = []
    flows_from = ""
    is_flowing = False
    for line in text.split("\n"):
        quote = _quote_of(line)
        content = line[len(quote) :]
        if content.startswith(" ") and not quote:
            content = content[1:]  # put before a line that would look like a quote
        is_signature = content == _SIGNATURE
        if is_flowing and quote == flows_from and not is_signature:
            lines[-1] += content
        else:
            lines.append(quote + content)
        is_flowing = content.endswith(" ") and not is_signature
        flows_from = quote
        if is_flowing and is_blank_deleted:
            lines[-1] = lines[-1][:-1]
    return "\n".join(lines)


def _join_wrapped(text: str) -> str:
    """Return a text with its lines joined where only their length broke them.

    That is where the first word of the next would have made a line longer than the longest of its paragraph.
    """
    body, mark, signature = f"\n{text}".partition(f"\n{_SIGNATURE}\n")
    paragraphs = body[1:].split("\n\n")
    return "\n\n".join(map(_join_paragraph, paragraphs)) + mark + signature


def _join_paragraph(paragraph: str) -> str:
    lines = paragraph.split("\n")
    width = max(map(len, lines))
    if not _SHORTEST_WRAPPED <= width <= _LONGEST_WRAPPED:
        return paragraph
    joined = [lines[0]]
    for line, following in itertools.pairwise(lines):
        quote = _quote_of(line)
        continuation = following[len(quote) :]
        if quote == _quote_of(following) and _wraps(line[len(quote) :], continuation, width - len(quote)):
            joined[-1] += " " + continuation
        else:
            joined.append(following)
    return "\n".join(joined)


def _wraps(line: str, following: str, width: int) -> bool:
    """Return whether a line goes on in the next one, which begins with a word."""
    if line.endswith((".", "!", "?", ":")) and len(following) < width / 2:
        return False  # as a greeting behind the last sentence
    return (
        len(line.split()) >= _FEWEST_WORDS
        and line[:1].isalnum()
        and sum(map(_is_prose, line)) >= _PROSE_SHARE * len(line)
        and following[:1].isalpha()
        and _LIST_MARK.match(following) is None
        and len(line) + 1 + len(following.split(" ", 1)[0]) > width
    )


def _is_prose(character: str) -> bool:
    return character.isalnum() or character in " ,.-'\"’"


def _quote_of(line: str) -> str:
    """Return the marks of a quote that a line begins with."""
    match = _QUOTE.match(line)
    if match is None:
        return ""
    return match[0]


def _payload_bytes(part: MIMEPart) -> bytes:
    data = part.get_payload(decode=True)
    if isinstance(data, bytes):
        return data
    return b""


class Notebook:
    """A notebook of Jupyter, as an archive that holds its file."""

    RAW_MEMBER = "notebook.json"

    def __init__(self, file: BinaryIO) -> None:
        self._data = read_all(file).read()

    def text(self) -> list[str] | None:
        """Return its cells; None of what is not a notebook as nbformat has it."""
        cells = notebook_cells(self._data)
        if cells is None:
            return None
        return [cell.text for cell in cells]

    def entries(self) -> Iterator[tuple[ArchiveEntry, BinaryIO | None]]:
        yield ArchiveEntry(self.RAW_MEMBER, self.RAW_MEMBER, len(self._data)), io.BytesIO(self._data)
