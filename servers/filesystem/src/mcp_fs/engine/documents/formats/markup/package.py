"""Packages of ECMA-376 and their like: XML in a zip archive, whose parts name each other."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from typing import BinaryIO, Protocol
from xml.parsers import expat

from mcp_fs.engine.documents.formats.archives import Unreadable, Zip

__all__ = [
    "ElementHandler",
    "create_parser",
    "find_links",
    "find_main_part",
    "find_related_parts",
    "local_name",
    "read_blocks",
    "read_elements",
]

_BLOCK_BYTES = 256 * 1024
_MOST_PARTS = 8 * 1024 * 1024


class ElementHandler(Protocol):
    """Takes the elements of a part one after the other, by names as `namespace name`."""

    def start(self, name: str, attributes: Mapping[str, str]) -> None: ...

    def end(self, name: str) -> None: ...

    def text(self, data: str) -> None: ...


def create_parser(handler: ElementHandler | None = None) -> expat.XMLParserType:
    """Return a parser of names as `namespace name` that takes no entities: a few bytes of them can become gigabytes."""
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    if handler is not None:
        parser.StartElementHandler = handler.start
        parser.EndElementHandler = handler.end
        parser.CharacterDataHandler = handler.text

    def refuse(*_: object) -> None:
        raise Unreadable("declares entities of its own, which are not read")

    parser.EntityDeclHandler = refuse
    return parser


def local_name(name: str) -> str:
    return name.rpartition(" ")[2]


def read_blocks(stream: BinaryIO | None) -> Iterator[bytes]:
    """Yield a part piece by piece; nothing for one that is not there."""
    while stream is not None and (block := stream.read(_BLOCK_BYTES)):
        yield block


def read_elements(stream: BinaryIO | None) -> list[tuple[str, dict[str, str]]]:
    """Return the elements of a small part, with their attributes, by their local names."""
    elements: list[tuple[str, dict[str, str]]] = []
    if stream is None:
        return elements
    parser = create_parser()

    def start(name: str, attributes: dict[str, str]) -> None:
        local_attributes = {
            "r:id" if key.endswith("relationships id") else local_name(key): at for key, at in attributes.items()
        }
        elements.append((local_name(name), local_attributes))

    parser.StartElementHandler = start
    try:
        while len(elements) < _MOST_PARTS // 100 and (block := stream.read(_BLOCK_BYTES)):
            parser.Parse(block)
    except expat.ExpatError as error:
        raise Unreadable(f"is damaged: {error}") from None
    return elements


def find_main_part(file: Zip, usual: str) -> str:
    """Return the part that a package is about, which some programs name otherwise."""
    if usual in file.names():
        return usual
    return find_related_parts(file, "", key="Type").get("officeDocument", usual)


def find_links(file: Zip, part: str) -> dict[str, str]:
    """Return the addresses outside the package that a part refers to, by their names in it."""
    folder, name = posixpath.split(part)
    return {
        attributes.get("Id", ""): attributes.get("Target", "")
        for element, attributes in read_elements(file.member(posixpath.join(folder, "_rels", f"{name}.rels")))
        if element == "Relationship" and attributes.get("TargetMode") == "External"
    }


def find_related_parts(file: Zip, part: str, *, key: str = "Id") -> dict[str, str]:
    """Return the parts that another, or the package, refers to.

    Args:
        key: `Id` for their names in that part, `Type` for the ends of their types.
    """
    folder, name = posixpath.split(part)
    parts: dict[str, str] = {}
    for element, attributes in read_elements(file.member(posixpath.join(folder, "_rels", f"{name}.rels"))):
        is_inside = element == "Relationship" and attributes.get("TargetMode") != "External"
        if is_inside and key in attributes and "Target" in attributes:
            target = posixpath.normpath(posixpath.join("/" + folder, attributes["Target"]))
            parts[attributes[key].rpartition("/")[2]] = target.lstrip("/")
    return parts
