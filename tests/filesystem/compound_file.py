"""Writes files of OLE (MS-CFB), as Outlook stores mails: every stream in sectors of its own, padded with zeros."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import cast

_SECTOR_BYTES = 512
_SMALLEST_STREAM_BYTES = 4096
_FREE = 0xFFFFFFFF
_END = 0xFFFFFFFE
_FAT = 0xFFFFFFFD
_STORAGE = 1
_STREAM = 2
_ROOT = 5

Tree = dict[str, "bytes | Tree"]


@dataclass
class _Entry:
    name: str
    kind: int
    data: bytes = b""
    child: int = _FREE
    sibling: int = _FREE


@dataclass
class _Writer:
    entries: list[_Entry] = field(default_factory=list[_Entry])

    def add(self, name: str, kind: int, tree: Tree) -> int:
        """Add a storage with all that is in it; return its number."""
        number = len(self.entries)
        entry = _Entry(name, kind)
        self.entries.append(entry)
        for inner_name, content in tree.items():
            if isinstance(content, bytes):
                inner = len(self.entries)
                self.entries.append(_Entry(inner_name, _STREAM, content.ljust(_SMALLEST_STREAM_BYTES, b"\0")))
            else:
                inner = self.add(inner_name, _STORAGE, cast("Tree", content))
            self.entries[inner].sibling = entry.child
            entry.child = inner
        return number


def compound_file(tree: Tree) -> bytes:
    """Return a file with the streams (bytes) and storages (dictionaries) of a tree."""
    writer = _Writer()
    writer.add("Root Entry", _ROOT, tree)
    directory_sectors = -(-len(writer.entries) * 128 // _SECTOR_BYTES)
    stream_sectors = sum(-(-len(entry.data) // _SECTOR_BYTES) for entry in writer.entries)
    fat_sectors = -(-(directory_sectors + stream_sectors + 8) // 127)
    fat = [_FAT] * fat_sectors + _chain(fat_sectors, directory_sectors)
    directory = b""
    contents = b""
    for entry in writer.entries:
        start = _END
        if entry.data:
            start = len(fat)
            data = entry.data + b"\0" * (-len(entry.data) % _SECTOR_BYTES)
            fat += _chain(start, len(data) // _SECTOR_BYTES)
            contents += data
        name = (entry.name + "\0").encode("utf-16-le")
        directory += name.ljust(64, b"\0") + struct.pack(
            "<HBBIII", len(name), entry.kind, 1, _FREE, entry.sibling, entry.child
        )
        directory += b"\0" * 36 + struct.pack("<IQ", start, len(entry.data))
    directory = directory.ljust(directory_sectors * _SECTOR_BYTES, b"\0")
    fat += [_FREE] * (fat_sectors * 128 - len(fat))
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 16 + struct.pack("<HHHHH", 0x3E, 3, 0xFFFE, 9, 6) + b"\0" * 6
    header += struct.pack("<IIIIIIIII", 0, fat_sectors, fat_sectors, 0, _SMALLEST_STREAM_BYTES, _END, 0, _END, 0)
    header += struct.pack("<109I", *range(fat_sectors), *([_FREE] * (109 - fat_sectors)))
    return header + struct.pack(f"<{len(fat)}I", *fat) + directory + contents


def _chain(first: int, length: int) -> list[int]:
    return [*range(first + 1, first + length), _END]
