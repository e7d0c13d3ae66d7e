"""Reads the XML of the Common Alerting Protocol 1.2, and the feeds (RSS 2.0, Atom) that list its messages.

Both become JSON with the protocol's own names, as MeteoAlarm has it, so that one reader serves all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree as Xml

__all__ = ["read_cap_xml"]

_MESSAGE_TEXTS = ("identifier", "sender", "sent", "status", "msgType", "references")
_INFO_TEXTS = (
    "language", "event", "urgency", "severity", "effective", "onset", "expires", "senderName", "headline",
    "description", "instruction",
)  # fmt: skip
_ENTRIES = ("item", "entry")


class _UndeclaredTree(Xml.TreeBuilder):
    """Builds the tree of a document without a document type: no message and no feed has one, and it can hold entities.

    The parser says that there is one, because the bytes of `<!DOCTYPE` differ by the encoding.
    """

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        """Refuse the document."""
        raise ValueError("A document type is declared.")


def read_cap_xml(body: bytes) -> dict[str, Any] | None:
    """Return a message as `alert`, or a feed's `entries`; None if `body` is neither."""
    try:
        root = Xml.fromstring(body, Xml.XMLParser(target=_UndeclaredTree()))
    except (Xml.ParseError, ValueError):
        return None
    match _local_name(root):
        case "alert":
            return {"alert": _read_message(root)}
        case "rss":
            channel = next(_elements(root, "channel"), None)
            return None if channel is None else _read_index(channel)
        case "feed":
            return _read_index(root)
        case _:
            return None


def _read_index(index: Xml.Element) -> dict[str, Any] | None:
    """Return the entries of a feed; None without the title that each has: an empty one would say that all is well."""
    if next(_elements(index, "title"), None) is None:
        return None
    return {"entries": [_read_entry(entry) for entry in _elements(index, *_ENTRIES)]}


def _read_message(message: Xml.Element) -> dict[str, Any]:
    return {**_read_texts(message, _MESSAGE_TEXTS), "info": [_read_info(info) for info in _elements(message, "info")]}


def _read_info(info: Xml.Element) -> dict[str, Any]:
    return {
        **_read_texts(info, _INFO_TEXTS),
        "responseType": [_text(item) for item in _elements(info, "responseType")],
        "parameter": [_read_texts(item, ("valueName", "value")) for item in _elements(info, "parameter")],
        "area": [_read_area(area) for area in _elements(info, "area")],
    }


def _read_area(area: Xml.Element) -> dict[str, Any]:
    return {
        **_read_texts(area, ("areaDesc",)),
        "polygon": [_text(item) for item in _elements(area, "polygon")],
        "circle": [_text(item) for item in _elements(area, "circle")],
        "geocode": [_read_texts(item, ("valueName", "value")) for item in _elements(area, "geocode")],
    }


def _read_entry(entry: Xml.Element) -> dict[str, Any]:
    """Return where the message is, which RSS has as a text and Atom as `href`, and when it expires, if that is said."""
    link = next(_elements(entry, "link"), None)
    expires = next(_elements(entry, "expires"), None)
    return {
        "link": None if link is None else link.get("href") or _text(link),
        "expires": None if expires is None else _text(expires),
    }


def _read_texts(element: Xml.Element, names: tuple[str, ...]) -> dict[str, str]:
    """Return the texts of the children with these names; of several the first."""
    texts: dict[str, str] = {}
    for child in _elements(element, *names):
        texts.setdefault(_local_name(child), _text(child))
    return texts


def _elements(parent: Xml.Element, *names: str) -> Iterator[Xml.Element]:
    """Yield the children with these names, in any namespace: feeds put those of the protocol beside their own."""
    return (child for child in parent if _local_name(child) in names)


def _local_name(element: Xml.Element) -> str:
    # A comment has a function for its tag.
    return str(element.tag).rpartition("}")[2]


def _text(element: Xml.Element) -> str:
    return (element.text or "").strip()
