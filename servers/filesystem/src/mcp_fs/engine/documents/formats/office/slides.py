"""Reads slides of ECMA-376, with what their notes, comments, charts and diagrams say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mcp_fs.engine.documents.formats.archives import Unreadable, Zip
from mcp_fs.engine.documents.formats.markup.lines import read_xml_lines
from mcp_fs.engine.documents.formats.markup.package import find_main_part, find_related_parts, read_elements
from mcp_fs.engine.documents.formats.office.drawings import read_drawings
from mcp_fs.engine.documents.formats.office.office_lines import OfficeLines

__all__ = ["read_slides"]


def read_slides(file: Zip) -> Iterator[str]:
    """Yield the slides in their order, each with its drawings, notes and comments."""
    main = find_main_part(file, "ppt/presentation.xml")
    targets = find_related_parts(file, main)
    presentation = file.member(main)
    if presentation is None:
        raise Unreadable("is damaged: it has no slides")
    number = 0
    for element, attributes in read_elements(presentation):
        slide = targets.get(attributes.get("r:id", ""), "")
        if element != "sldId" or not slide:
            continue
        number += 1
        yield from _read_slide(file, slide, number)


def _read_slide(file: Zip, slide: str, number: int) -> Iterator[str]:
    lines = _SlideLines()
    text = _read_part(file, slide, lines)
    if lines.is_hidden:
        yield f"[slide {number}, hidden]\n"
    else:
        yield f"[slide {number}]\n"
    yield text
    related_parts = find_related_parts(file, slide).values()
    yield from read_drawings(file, related_parts)
    for part in related_parts:
        if "/notesSlide" in part and file.member(part) is not None:
            yield "[notes]\n" + _read_part(file, part, _SlideLines())
    for part in related_parts:
        if "/comments/" in part and (text := _read_part(file, part, _SlideLines())):
            yield "[comments]\n" + text


def _read_part(file: Zip, name: str, lines: OfficeLines) -> str:
    """Return the text of a part, with a line end behind it; nothing for one that is not there."""
    stream = file.member(name)
    if stream is None:
        return ""
    text = "".join(read_xml_lines(stream, lines)).strip("\n")
    if not text:
        return ""
    return text + "\n"


class _SlideLines(OfficeLines):
    """The lines of a slide, its notes or its comments.

    Attributes:
        is_hidden: whether it is left out when the slides are shown.
    """

    def __init__(self) -> None:
        super().__init__()
        self.is_hidden = False

    def _start_element(self, name: str, parent: str, attributes: Mapping[str, str]) -> None:
        if name == "sld":
            self.is_hidden = attributes.get("show") in ("0", "false")
        elif name == "text" and parent == "cm":
            self._texts += 1
        super()._start_element(name, parent, attributes)

    def _end_element(self, name: str, parent: str) -> None:
        if name == "text" and parent == "cm":
            self._texts -= 1
            self._end_line()
        super()._end_element(name, parent)
