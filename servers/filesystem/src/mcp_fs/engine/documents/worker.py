"""The process that extracts the text: it has two pipes, reads its file through them, and may be killed at any time.

A request is one line of JSON. Until it is done, the other side answers reads of the file. What comes back is frames,
each a letter, a length and that many bytes: R asks for bytes of the file, K says what kind of text follows, M names
the member that follows, T is text as UTF-8, B is bytes as they are, X says why the rest is missing, E is an error, D
the end.
"""

from __future__ import annotations

import io
import json
import os
import signal
import struct
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from itertools import chain
from typing import Any, BinaryIO, NamedTuple, cast

from mcp_batteries.media import pictures
from mcp_batteries.processes.resource_limits import limit_resources
from mcp_fs.engine.document_kinds import (
    CPU_SECONDS,
    CUT_AT_DAMAGE,
    CUT_AT_LIMIT,
    FRAME,
    LABELS,
    MAX_OUTPUT_BYTES,
    PAGE_CPU_SECONDS,
    RANGE,
    SAFE_PICTURE,
    TABLE_KINDS,
    Kind,
    kind_of,
)
from mcp_fs.engine.documents.formats.archives import (
    Archive,
    ArchiveEntry,
    DocumentParts,
    MemberNotFound,
    NotInstalled,
    OutOfTime,
    OutputTooLarge,
    Unreadable,
    Zip,
    decompress,
    is_truncated,
    open_archive,
    peek_head,
    read_all,
    read_beginning,
)
from mcp_fs.engine.documents.formats.fixed_pages.pdf import Pdf, render_pdf_page
from mcp_fs.engine.documents.formats.mails.messages import Mail, Notebook
from mcp_fs.engine.documents.formats.mails.outlook import OutlookMail
from mcp_fs.engine.documents.formats.mails.rich_text import RichText
from mcp_fs.engine.documents.formats.office.open_document import read_open_document
from mcp_fs.engine.documents.formats.office.slides import read_slides
from mcp_fs.engine.documents.formats.office.word import read_word
from mcp_fs.engine.documents.formats.pages import read_epub
from mcp_fs.engine.documents.formats.tables.databases import read_parquet, read_sqlite
from mcp_fs.engine.documents.formats.tables.workbook import Workbook
from mcp_fs.engine.name_folding import fold_name

__all__ = ["main"]

_MAX_MEMORY_BYTES = 1 << 30
# The readers of PDFs and workbooks stop by themselves before the time is over.
_SLOW_KINDS = frozenset({"pdf", "rtf", "sheet", "sqlite"})
_SLOW_OUTPUTS = frozenset({"page", "picture", "safety"})
_BLOCK_BYTES = 256 * 1024
_MOST_LISTED = 100_000
# What is read as a listing of its files.
_LISTED_KINDS = frozenset({"zip", "tar"})
# The name of what is no file in an archive but a part of a document: pages, a sheet, a range of cells.
_PART = ""
# What stands for a file that is not searched, as a binary one is not.
_BINARY = b"\0"


class _Pipes:
    """The two pipes, and how much of an answer is left."""

    def __init__(self, requests: BinaryIO, answers: BinaryIO) -> None:
        self._requests = requests
        self._answers = answers
        self.remaining_bytes = MAX_OUTPUT_BYTES

    def request(self) -> dict[str, Any] | None:
        line = self._requests.readline()
        self.remaining_bytes = MAX_OUTPUT_BYTES
        if not line:
            return None
        return json.loads(line)

    def send(self, letter: bytes, payload: bytes = b"") -> None:
        self._answers.write(FRAME.pack(letter, len(payload)) + payload)

    def flush(self) -> None:
        self._answers.flush()

    def send_content(self, letter: bytes, payload: bytes) -> None:
        """Send some of the answer.

        Raises:
            OutputTooLarge: there is no room for all of it; what fits was sent.
        """
        for begin in range(0, min(len(payload), self.remaining_bytes), _BLOCK_BYTES):
            self.send(letter, payload[begin : min(begin + _BLOCK_BYTES, self.remaining_bytes)])
        self.remaining_bytes -= len(payload)
        if self.remaining_bytes < 0:
            raise OutputTooLarge

    def bytes_at(self, offset: int, size: int) -> bytes:
        self.send(b"R", RANGE.pack(offset, size))
        self.flush()
        (length,) = struct.unpack(">I", self._requests.read(4))
        return self._requests.read(length)


class _RemoteFile(io.RawIOBase):
    """The file, which the other side has open."""

    def __init__(self, pipes: _Pipes, size: int) -> None:
        super().__init__()
        self._pipes = pipes
        self._size = size
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._position = max(0, offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence])
        return self._position

    def readinto(self, buffer: Any) -> int:
        length = min(len(buffer), _BLOCK_BYTES, max(0, self._size - self._position))
        data = b""
        if length:
            data = self._pipes.bytes_at(self._position, length)
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)


def main() -> None:
    """Answer requests until there are no more."""
    pipes = _Pipes(os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb"))
    # What a library prints goes nowhere, least of all between the frames.
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    limit_resources(_MAX_MEMORY_BYTES)
    while (request := pipes.request()) is not None:
        cpu_seconds = CPU_SECONDS
        if request["want"] in _SLOW_OUTPUTS:
            cpu_seconds = PAGE_CPU_SECONDS
        _set_cpu_timer(cpu_seconds)
        _answer_request(pipes, request)
        _set_cpu_timer(0)
        pipes.send(b"D")
        pipes.flush()


def _answer_request(pipes: _Pipes, request: dict[str, Any]) -> None:
    """Send what a request asks for, or why it can't be had."""
    try:
        _handle_request(pipes, request)
    except OutputTooLarge:
        pipes.send(b"X", CUT_AT_LIMIT.encode())
    except MemberNotFound as missing:
        _send_error(pipes, "missing", str(missing))
    except OutOfTime as late:
        pipes.send(b"X", str(late).encode())
    except NotInstalled as missing:
        _send_error(pipes, "not installed", str(missing))
    except Unreadable as unreadable:
        _send_damage(pipes, request["want"], str(unreadable))
    except MemoryError:
        # No damage: how much there is depends on what was read before.
        _send_error(pipes, "no memory", "takes more memory than it may")
    except EOFError:
        _send_damage(pipes, request["want"], "ends too early")
    except Exception as error:  # noqa: BLE001 - whatever a damaged file makes a library raise
        _send_damage(pipes, request["want"], f"is damaged: {type(error).__name__}")


def _send_damage(pipes: _Pipes, want: str, failure: str) -> None:
    """Say what is wrong; what was taken out before is of use as text, but no file that could be copied."""
    if want != "bytes" and pipes.remaining_bytes < MAX_OUTPUT_BYTES:
        pipes.send(b"X", CUT_AT_DAMAGE.encode())
    else:
        _send_error(pipes, "unreadable", failure)


def _send_error(pipes: _Pipes, kind: str, failure: str) -> None:
    pipes.send(b"E", json.dumps([kind, failure[:1000]]).encode())


def _set_cpu_timer(seconds: float) -> None:
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_PROF, seconds)  # its signal ends the process


def _handle_request(pipes: _Pipes, request: dict[str, Any]) -> None:
    file = cast("BinaryIO", io.BufferedReader(_RemoteFile(pipes, request["size"]), _BLOCK_BYTES))
    match request["want"]:
        case "page":
            pages, content = render_pdf_page(file, request["page"])
            pipes.send(b"K", str(pages).encode())
            pipes.send_content(b"B", content)
        case "picture":
            _send_picture(pipes, file, request["mime_type"])
        case "safety":
            verdict = ""
            if pictures.is_safe(file, request["mime_type"]):
                verdict = SAFE_PICTURE
            pipes.send(b"K", verdict.encode())
        case "photo":
            _send_photo_facts(pipes, file, request["mime_type"])
        case "names":
            file, _, kind = decompress(file, request["name"])
            _send_names(pipes, file, kind, request["path"])
        case "all":
            file, _, kind = decompress(file, request["name"])
            _send_all(pipes, file, kind, request["path"])
        case output:
            _send_contents(pipes, file, request["name"], request["path"], as_bytes=output == "bytes")


def _send_contents(pipes: _Pipes, file: BinaryIO, name: str, parts: list[str], *, as_bytes: bool) -> None:
    """Send a file, or the member of an archive that `parts` name, as text or as it is."""
    file, name, kind = decompress(file, name)
    if parts:
        archive = _open_as_archive(file, kind)
        file, name = _open_member(archive, parts)
        if name == _PART:
            _send_text(pipes, [file.read().decode()], "part of a document")
            return
        if name.endswith("/"):
            innermost = _open_innermost_archive(archive, parts[: _depth_of_innermost_archive(parts)])
            _send_text(pipes, _list_members(innermost, name), "listing of a folder in an archive")
            return
    if as_bytes:
        _send_bytes(pipes, file)
        return
    if parts:
        file, _, kind = decompress(file, name)
    _send_file(pipes, file, kind)


def _send_names(pipes: _Pipes, file: BinaryIO, kind: Kind | None, parts: list[str]) -> None:
    """Send what each file of an archive, or of a folder in it, is called and how large it is.

    A line tells the names down to the archive that they lie in, as JSON; it is missing for what is no archive.
    """
    if not parts and kind not in _LISTED_KINDS:
        _send_text(pipes, [], "names")
        return
    outermost = _open_as_archive(file, kind)
    if parts and _names_archive(outermost, parts):
        parts = [*parts[:-1], parts[-1].removesuffix("!") + "!"]
    depth = _depth_of_innermost_archive(parts)
    archive = _open_innermost_archive(outermost, parts[:depth])
    folder = ""
    if parts[depth:]:
        _, folder = _open_member(archive, parts[depth:])
        if not folder.endswith("/"):
            _send_text(pipes, [], "names")
            return
    _send_text(pipes, chain([f"{json.dumps(parts[:depth])}\n"], _list_names(archive, folder)), "names")


def _list_names(archive: Archive, folder: str) -> Iterator[str]:
    """Yield a line for each file of a folder: its bytes and its name as JSON; one without a name for what is left."""
    prefix = fold_name(folder)
    for number, (entry, _) in enumerate(archive.entries()):
        if number >= _MOST_LISTED:
            yield "0\n"
            return
        if entry.name and entry.is_file and not entry.link_target and fold_name(entry.name).startswith(prefix):
            yield f"{entry.size}\t{json.dumps(entry.name)}\n"


def _send_picture(pipes: _Pipes, file: BinaryIO, mime_type: str) -> None:
    """Send a picture as it may leave, with what there is to say of it, or why it can't be shown."""
    try:
        picture = pictures.prepare(file, mime_type)
    except pictures.Refused as refused:
        pipes.send(b"K", json.dumps({"refusal": refused.refusal, "size": refused.size}).encode())
        return
    facts = {
        "mime_type": picture.mime_type,
        "size": (picture.width, picture.height),
        "frames": picture.frames,
        "is_reduced": picture.is_reduced,
    }
    pipes.send(b"K", json.dumps(facts).encode())
    pipes.send_content(b"B", picture.data)


def _send_photo_facts(pipes: _Pipes, file: BinaryIO, mime_type: str) -> None:
    """Send what a picture says of itself; nothing of one that can't be read."""
    try:
        facts = asdict(pictures.read_photo_facts(file, mime_type))
    except pictures.Refused:
        facts = {}
    pipes.send(b"K", json.dumps(facts).encode())


def _send_file(pipes: _Pipes, file: BinaryIO, kind: Kind | None) -> None:
    """Send a file as text where it is a document or an archive, else as it is."""
    if kind in _SLOW_KINDS:
        _set_cpu_timer(PAGE_CPU_SECONDS)
    if kind == "zip":
        _send_listing(pipes, Zip(file))
        return
    texts = _read_texts(file, kind)
    if texts is None or kind is None:
        _send_bytes(pipes, file)
    else:
        _send_text(pipes, texts, LABELS[kind])


def _send_listing(pipes: _Pipes, archive: Zip) -> None:
    label = LABELS["zip"]
    if archive.names_encoding is not None:
        label = f"{label}, names read as {archive.names_encoding}, which they look like"
    _send_text(pipes, _list_members(archive, ""), label)


_ZIP_READERS: dict[Kind, Callable[[Zip], Iterator[str]]] = {
    "word": read_word,
    "slides": read_slides,
    "odf": read_open_document,
    "epub": read_epub,
}


def _read_texts(file: BinaryIO, kind: Kind | None) -> Iterable[str] | None:
    """Return the text of a document or the listing of an archive; None for what is neither."""
    if kind in _ZIP_READERS:
        return _ZIP_READERS[kind](Zip(file))
    match kind:
        case "tar":
            return _list_members(_open_as_archive(file, kind), "")
        case "sheet":
            return Workbook(file).text()
        case "pdf":
            return Pdf(file).text()
        case "mail":
            return Mail(file).text()
        case "outlook":
            return OutlookMail(file).text()
        case "rtf":
            return RichText(file).text()
        case "sqlite":
            return read_sqlite(file)
        case "parquet":
            return read_parquet(file)
        case "notebook":
            cells = Notebook(file).text()
            if cells is None:
                file.seek(0)
            return cells
        case _:
            return None


def _send_text(pipes: _Pipes, texts: Iterable[str], label: str) -> None:
    pipes.send(b"K", label.encode())
    for text in texts:
        if text:
            pipes.send_content(b"T", _encode_text(text))


def _encode_text(text: str) -> bytes:
    """Return text as UTF-8.

    With a NUL in it, it would be taken for another encoding, or for no text. Where a word may be broken nobody sees,
    and no search would find the word.
    """
    return text.replace("\0", "\ufffd").replace("\xad", "").encode("utf-8", "replace")


def _send_bytes(pipes: _Pipes, file: BinaryIO) -> None:
    while block := file.read(_BLOCK_BYTES):
        pipes.send_content(b"B", block)
    if is_truncated(file):
        pipes.send(b"X", CUT_AT_DAMAGE.encode())


def _open_as_archive(file: BinaryIO, kind: Kind | None) -> Archive:
    match kind:
        case "mail":
            return Mail(file)
        case "outlook":
            return OutlookMail(file)
        case "notebook":
            return Notebook(file)
        case "rtf":
            return RichText(file)
        case "sheet":
            _set_cpu_timer(PAGE_CPU_SECONDS)
            return Workbook(file)
        case "pdf":
            _set_cpu_timer(PAGE_CPU_SECONDS)
            return Pdf(file)
        case _:
            archive = open_archive(file, kind or "")
    if archive is None:
        raise MemberNotFound("is not an archive that can be looked into")
    return archive


def _open_member(archive: Archive, parts: list[str]) -> tuple[BinaryIO, str]:
    """Return the content and the name of a member, through archives in archives.

    A folder's name has a slash, and that of pages or cells is `_PART`.
    """
    while True:
        part = _find_part(archive, parts)
        if part is not None:
            return io.BytesIO(_encode_text("".join(_read_in_time(part)))), _PART
        member = _find_member(archive, parts)
        if member is None:
            return io.BytesIO(), "/".join((*parts, ""))
        if not member.remaining_parts:
            return member.content, member.name
        inner, _, kind = decompress(member.content, member.name)
        archive = _open_as_archive(inner, kind)
        parts = member.remaining_parts


def _read_in_time(texts: Iterator[str]) -> Iterator[str]:
    """Yield what there is time for, and the way to the rest."""
    try:
        yield from texts
    except OutOfTime as late:
        yield f"[{late}]\n"


class _Member(NamedTuple):
    """A file in an archive.

    Attributes:
        remaining_parts: names to follow in it, if it is an archive itself.
    """

    content: BinaryIO
    name: str
    remaining_parts: list[str]


class _MemberPath(NamedTuple):
    """A name in an archive that some path may mean, and the names to follow in it."""

    name: str
    remaining_parts: list[str]


def _possible_members(parts: list[str]) -> dict[str, _MemberPath]:
    """Return what `parts` may name, by folded names: each `x!` on the way may be an archive called `x`."""
    paths = [_MemberPath("/".join(parts), [])]
    for number, part in enumerate(parts):
        if part.endswith("!") and len(part) > 1:
            paths.append(_MemberPath("/".join((*parts[:number], part[:-1])), parts[number + 1 :]))
    # Of two that fold to one name, the first stays.
    return {fold_name(path.name): path for path in reversed(paths)}


def _find_member(archive: Archive, parts: list[str]) -> _Member | None:
    """Return what `parts` name in an archive; None for a folder of it.

    Raises:
        MemberNotFound: they name nothing, or a link.
    """
    search = _MemberSearch(archive, parts)
    damage: Unreadable | None = None
    try:
        for entry, content in archive.entries():
            search.add(entry, content)
    except Unreadable as error:
        damage = error  # what stands before it is whole
    if search.best is not None:
        return search.best._replace(content=read_beginning(search.best.content))
    if search.is_folder:
        return None
    if damage is not None:
        raise MemberNotFound(f"is not in what can be read of the archive, which {damage}")
    raise MemberNotFound("is not in the archive" + _name_similar(search.names, parts[-1]))


class _MemberSearch:
    """The search for what `parts` name among the members of an archive.

    Attributes:
        best: the member that they name, as far as it is known.
        is_folder: whether they name a folder.
        names: of all members.
    """

    def __init__(self, archive: Archive, parts: list[str]) -> None:
        self.best: _Member | None = None
        self.is_folder = not parts
        self.names: list[str] = []
        self._paths = _possible_members(parts)
        self._folder_prefix = fold_name("/".join((*parts, "")))
        self._best_rank = (0, False)
        self._has_lasting_contents = isinstance(archive, Zip)

    def add(self, entry: ArchiveEntry, content: BinaryIO | None) -> None:
        """Compare a member with what is named.

        Raises:
            MemberNotFound: it is named, and a link.
        """
        self.names.append(entry.name)
        name = fold_name(entry.name)
        self.is_folder = self.is_folder or name.startswith(self._folder_prefix)
        path = self._paths.get(name)
        if path is None:
            return
        if entry.link_target:
            raise MemberNotFound(f"is a link in the archive ({entry.link_target}), which is not followed")
        # The last of a name is the one that unpacking would leave, and the longest path is the nearest.
        rank = (len(name), entry.name == path.name)
        if content is None or (self.best is not None and rank < self._best_rank):
            return
        if not self._has_lasting_contents:
            content = read_beginning(content)
        self._best_rank = rank
        self.best = _Member(content, name.rpartition("/")[2], path.remaining_parts)


def _name_similar(names: list[str], name: str) -> str:
    """Return the members of that name in other folders, as the end of a sentence."""
    similar = [path for path in names if fold_name(path.rpartition("/")[2]) == fold_name(name)]
    if not similar:
        return ""
    return f"; near it are {', '.join(similar[:3])}"


def _list_members(archive: Archive, folder: str) -> Iterator[str]:
    prefix = fold_name(folder).lstrip("/")
    for number, (entry, _) in enumerate(archive.entries()):
        if number >= _MOST_LISTED:
            yield "[more are not listed]\n"
            return
        if fold_name(entry.name).startswith(prefix) and (entry.is_file or entry.link_target):
            yield _format_entry(entry)


def _format_entry(entry: ArchiveEntry) -> str:
    name = "".join(map(_on_one_line, entry.name or entry.raw_name))
    if entry.link_target:
        return f"{name}\tlink\n"
    size = "not readable: its path leads out, or is not text"
    if entry.name:
        size = f"{entry.size:,}"
    return f"{name}\t{size}\n"


def _on_one_line(character: str) -> str:
    """Return a character of a name, so that a line of a listing stays one line."""
    if character.isprintable() or fold_name(character) == " ":
        return character
    return "?"


def _send_all(pipes: _Pipes, file: BinaryIO, kind: Kind | None, parts: list[str]) -> None:
    """Send every file of an archive, or of a folder in it: documents as text, archives not at all."""
    if not parts and kind not in ("zip", "tar", "mail", "outlook", "notebook", "rtf"):
        pipes.send(b"M")
        _send_file(pipes, file, kind)
        return
    depth = _depth_of_innermost_archive(parts)
    archive_parts = parts[:depth]
    inner_parts = parts[depth:]
    archive = _open_innermost_archive(_open_as_archive(file, kind), archive_parts)
    not_found = MemberNotFound("is not in the archive")
    part = None
    try:
        part = _find_part(archive, inner_parts)
    except MemberNotFound as error:
        not_found = error
    if part is not None:
        pipes.send(b"M")
        pipes.send_content(b"T", _encode_text("".join(_read_in_time(part))))
        return
    if inner_parts and _names_archive(archive, inner_parts):
        _send_all(pipes, file, kind, [*parts[:-1], f"{parts[-1]}!"])
        return
    has_members = _send_folder(pipes, archive, archive_parts, inner_parts)
    if inner_parts and not has_members:
        raise not_found


def _send_folder(pipes: _Pipes, archive: Archive, archive_parts: list[str], folder_parts: list[str]) -> bool:
    """Send the files of a folder in an archive; return whether there are any.

    Args:
        archive_parts: that lead to the archive.
        folder_parts: that lead to the folder in it; none for its top.
    """
    folder = fold_name("/".join(folder_parts))
    has_members = False
    for entry, content in archive.entries():
        if content is None or not _is_in_folder(entry, folder) or _is_archive_itself(archive, entry, folder):
            continue
        has_members = True
        pipes.send_content(b"M", "/".join((*archive_parts, entry.name)).encode("utf-8", "replace"))
        _send_member(pipes, content, entry.name.rpartition("/")[2])
    return has_members


def _names_archive(archive: Archive, parts: list[str]) -> bool:
    """Return whether names lead to an archive in another, perhaps without the `!` behind it."""
    try:
        content, name = _open_member(archive, parts)
    except MemberNotFound:
        return False
    _, _, kind = decompress(content, name)
    return kind in _LISTED_KINDS


def _find_part(archive: Archive, parts: list[str]) -> Iterator[str] | None:
    """Return the text of the part of a document that names lead to; None where they mean a member, or all of it.

    Raises:
        MemberNotFound: they mean nothing.
    """
    if isinstance(archive, DocumentParts) and parts:
        return archive.part("/".join(parts))
    return None


def _open_innermost_archive(archive: Archive, parts: list[str]) -> Archive:
    """Return the archive that `parts`, the last of which ends in `!`, name in another; without any, the other."""
    if not parts:
        return archive
    *folders, name = parts
    content, name = _open_member(archive, [*folders, name.removesuffix("!")])
    content, _, kind = decompress(content, name)
    return _open_as_archive(content, kind)


def _depth_of_innermost_archive(parts: list[str]) -> int:
    """Return how many names lead to the last archive on the way; 0 if all of them are in the file itself."""
    depth = 0
    for number, part in enumerate(parts, 1):
        if part.endswith("!"):
            depth = number
    return depth


def _is_in_folder(entry: ArchiveEntry, folder: str) -> bool:
    """Return whether a member can be asked for and lies in a folder; the top of an archive has no name."""
    if not entry.name:
        return False
    return not folder or fold_name(f"{entry.name}/").startswith(f"{folder}/")


def _is_archive_itself(archive: Archive, entry: ArchiveEntry, folder: str) -> bool:
    """Return whether a member is the file of a mail or a notebook as it is written."""
    return isinstance(archive, Mail | Notebook | RichText) and entry.name == archive.RAW_MEMBER and not folder


def _send_member(pipes: _Pipes, content: BinaryIO, name: str) -> None:
    try:
        data = read_all(content)
        kind = kind_of(name, peek_head(data))
        if kind is None or (kind in LABELS and kind not in TABLE_KINDS | _LISTED_KINDS):
            _send_file(pipes, data, kind)
        else:
            pipes.send_content(b"B", _BINARY)
    except (Unreadable, NotInstalled):
        pipes.send_content(b"B", _BINARY)
