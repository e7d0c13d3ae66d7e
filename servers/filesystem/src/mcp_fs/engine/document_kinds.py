"""Shared by both processes: which files are documents or archives, their protocol, and the limits.

Nothing heavy is imported here: this is all that the server needs of the formats.
"""

from __future__ import annotations

import struct

__all__ = [
    "CPU_SECONDS",
    "CUT_AT_DAMAGE",
    "CUT_AT_LIMIT",
    "FRAME",
    "HEAD_BYTES",
    "LABELS",
    "MAX_OUTPUT_BYTES",
    "OLE",
    "PAGE_CPU_SECONDS",
    "RANGE",
    "RAW_MEMBERS",
    "SAFE_PICTURE",
    "SUFFIXES",
    "TABLE_KINDS",
    "Kind",
    "can_hold_files",
    "is_archive",
    "is_document",
    "kind_of",
]  # fmt: skip

Kind = str
HEAD_BYTES = 1024
# The head of what the other process sends: a letter and a length; which bytes of the file it asks for.
FRAME = struct.Struct(">cI")
RANGE = struct.Struct(">QI")
# Of processor time, for one request; for the picture of a page.
CPU_SECONDS = 2.0
PAGE_CPU_SECONDS = 6.0
# The label of a picture that models take as it is.
SAFE_PICTURE = "safe"
# Of one answer, and of what is held in memory.
MAX_OUTPUT_BYTES = 64 * 1024 * 1024
# Why the rest of a text is missing.
CUT_AT_LIMIT = f"cut after {MAX_OUTPUT_BYTES:,} bytes"
CUT_AT_DAMAGE = "cut where the file is damaged or ends too early"

_NAMES: dict[Kind, str] = {
    "word": "docx docm dotx",
    "slides": "pptx pptm ppsx potx",
    "odf": "odt ott odp otp ods ots",
    "sheet": "xlsx xlsm xlsb xls",
    "epub": "epub",
    "pdf": "pdf",
    "mail": "eml mht mhtml",
    "outlook": "msg",
    "notebook": "ipynb",
    "rtf": "rtf",
}
# Kinds of documents, whose text a search looks through wherever they are; archives are not among them.
SUFFIXES: dict[str, Kind] = {}
for _kind, _suffixes in _NAMES.items():
    SUFFIXES.update(dict.fromkeys(_suffixes.split(), _kind))

LABELS: dict[Kind, str] = {
    "word": "text of a document",
    "slides": "text of slides",
    "odf": "text of a document",
    "sheet": "cells of a workbook",
    "epub": "text of a book",
    "pdf": "text of a PDF",
    "mail": "text of a mail",
    "outlook": "text of a mail",
    "rtf": "text of a document",
    "sqlite": "tables of a SQLite database, with the first rows of each",
    "parquet": "columns of a Parquet table, with its first rows",
    "notebook": "cells of a notebook",
    "zip": "listing of a zip archive",
    "tar": "listing of a tar archive",
}

# Where the file itself is read, of what people write as text and read in another form.
RAW_MEMBERS: dict[Kind, str] = {"mail": "message.txt", "notebook": "notebook.json", "rtf": "source.txt"}
# Of these only the first rows are read, so a search does not say that it has seen them.
TABLE_KINDS = frozenset({"sqlite", "parquet"})

_ARCHIVES = frozenset({"zip", "jar", "war", "whl", "tar", "tgz", "gz", "tbz", "tbz2", "bz2", "txz", "xz"})
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
# How files of Office before 2007 begin, and newer ones that are locked.
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_STARTS: dict[bytes, Kind] = {
    b"\x1f\x8b\x08": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"SQLite format 3\x00": "sqlite",
    b"PAR1": "parquet",
}
_FILE_HOLDERS = frozenset({"zip", "tar", "gzip", "bzip2", "xz"})


def is_archive(name: str) -> bool:
    """Return whether a name is that of an archive, or of something compressed."""
    return name.rpartition(".")[2].lower() in _ARCHIVES


def is_document(name: str) -> bool:
    """Return whether a name is that of a document, whatever is in it."""
    return name.rpartition(".")[2].lower() in SUFFIXES


def kind_of(name: str, head: bytes) -> Kind | None:
    """Return what a file of this name that begins with `head` is; None for what is read as it is."""
    kind = SUFFIXES.get(name.rpartition(".")[2].lower())
    if kind is not None and _begins_as(kind, head):
        return kind
    if head.startswith(_ZIP):
        return "zip"
    if _is_tar(head):
        return "tar"
    for start, other_kind in _STARTS.items():
        if head.startswith(start):
            return other_kind
    return None


def can_hold_files(kind: Kind | None) -> bool:
    """Return whether a file of this kind is an archive, or compressed."""
    return kind in _FILE_HOLDERS


def _begins_as(kind: Kind, head: bytes) -> bool:
    """Return whether a document of a kind can begin with `head`."""
    match kind:
        case "odf" | "epub":
            return head.startswith(_ZIP)
        case "word" | "slides" | "sheet":
            return head.startswith((*_ZIP, OLE))
        case "pdf":
            return b"%PDF-" in head
        case "mail":
            return bool(head) and b"\0" not in head
        case "outlook":
            return head.startswith(OLE)
        case "notebook":
            return head.lstrip()[:1] == b"{"
        case "rtf":
            return head.startswith(b"{\\rtf")
        case _:
            return False


def _is_tar(head: bytes) -> bool:
    """Return whether `head` begins with the header of a member, which has a sum of its bytes; the oldest no mark."""
    try:
        checksum = int(head[148:156].strip(b"\0 ") or b"-1", 8)
    except ValueError:
        return False
    return len(head) >= 512 and checksum == sum(head[:148]) + 8 * 32 + sum(head[156:512])
