"""Writes formulas of Office (ECMA-376, OMML) and of pages and OpenDocument (MathML) on one line: `((x-c)/v)^2`.

Both draw parts above, below and around others, so their characters alone say something else: `x-cv2`. An element
becomes text when it ends, from the texts of those in it, so that no formula is too deep.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from mcp_fs.engine.documents.formats.markup.package import local_name
from mcp_fs.engine.documents.formats.raised import raise_text

__all__ = ["FORMULAS", "Formula"]

FORMULAS = frozenset({"oMath", "math"})
# Elements whose characters are drawn.
_TOKENS = frozenset({"t", "mi", "mn", "mo", "mtext", "ms"})
# What is said a second time, is hidden, or was deleted.
_IGNORED = frozenset({"annotation", "annotation-xml", "mphantom", "del", "moveFrom"})
# What the parts of an element of MathML are, which it has in this order.
_ROLES: Mapping[str, Sequence[str]] = {
    "mfrac": ("num", "den"),
    "msub": ("e", "sub"),
    "msup": ("e", "sup"),
    "msubsup": ("e", "sub", "sup"),
    "munder": ("e", "sub"),
    "mover": ("e", "sup"),
    "munderover": ("e", "sub", "sup"),
    "mroot": ("e", "deg"),
}
_RELATIONS = frozenset("=<>≤≥≈≡≠∼∝→⇒⇔")
_ACCENTS = {
    "¯": "\u0305", "‾": "\u0305", "^": "\u0302", "ˆ": "\u0302", "~": "\u0303", "˜": "\u0303", "˙": "\u0307",
    "¨": "\u0308", "→": "\u20d7",
}  # fmt: skip
# Braces of a group, whose label is drawn beyond them.
_BRACES = frozenset("⏞⏟︷︸")
_HAT = "\u0302"
_LINE_ABOVE = "\u0305"
_LINE_BELOW = "\u0332"
# Operators that are not drawn, such as the one between two factors.
_INVISIBLE = re.compile("[\u2061-\u2064\xa0]")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)?")
_BRACKETS = {"(": ")", "[": "]", "{": "}"}


class _Kind(Enum):
    """What a text was made of, as far as it changes what is written beside it."""

    TEXT = auto()
    SCRIPT = auto()
    BARRED = auto()  # a fraction or a root, whose bar says how far it goes


@dataclass(frozen=True, slots=True)
class _Part:
    """An element that has ended, with its name, or its role in the one around it."""

    role: str
    text: str
    kind: _Kind = _Kind.TEXT


@dataclass(slots=True)
class _Element:
    """An element that is open, with the properties that its attributes give it, or elements of their own."""

    name: str
    properties: dict[str, str] = field(default_factory=dict[str, str])
    parts: list[_Part] = field(default_factory=list[_Part])

    def texts(self, role: str) -> list[str]:
        return [part.text for part in self.parts if part.role == role]

    def group(self, role: str) -> str:
        """Return a part that is above or below the line, in brackets where it would not end in time without them."""
        text = "".join(self.texts(role)).strip()
        if _is_whole(text):
            return text
        return f"({text})"

    def base(self) -> str:
        """Return the part that is on the line."""
        parts = [part for part in self.parts if part.role == "e"]
        if [part.kind for part in parts] == [_Kind.BARRED]:
            return f"({parts[0].text})"
        return _join(parts)

    def scripts(self) -> str:
        text = ""
        for role, mark in (("sub", "_"), ("lim", "_"), ("sup", "^")):
            script = self.group(role)
            if script and script not in _BRACES:
                text += mark + script
        return text


class Formula:
    """Takes the elements of one formula, from its own on."""

    def __init__(self) -> None:
        self._open: list[_Element] = []
        self._ignored = 0
        self._line = ""

    def start(self, name: str, attributes: Mapping[str, str | None]) -> None:
        name = local_name(name)
        if self._ignored or name in _IGNORED:
            self._ignored += 1
            return
        properties = {local_name(key): value or "" for key, value in attributes.items()}
        if len(self._open) > 1 and self._open[-1].name.endswith("Pr"):
            self._open[-2].properties[name] = properties.get("val", "")
        self._open.append(_Element(name, properties))

    def text(self, data: str) -> None:
        if self._ignored or not self._open or self._open[-1].name not in _TOKENS:
            return
        if self._open[-1].name != "t":
            data = re.sub(r"[ \t\r\n]+", " ", data.strip(" \t\r\n"))
        self._open[-1].parts.append(_Part("", _INVISIBLE.sub(" ", data)))

    def end(self, name: str) -> None:
        """End an element, and those in it that a page leaves open."""
        name = local_name(name)
        if self._ignored:
            self._ignored -= 1
        elif any(element.name == name for element in reversed(self._open)):
            while self._open[-1].name != name:
                self._end_element()
            self._end_element()

    def has_ended(self) -> bool:
        return not self._open

    def finish(self) -> str:
        """Return the formula, of which a page may lack the end."""
        while self._open:
            self._end_element()
        return self._line.strip()

    def _end_element(self) -> None:
        element = self._open.pop()
        if not self._open:
            self._line = _write(element).text
            return
        if element.name.endswith("Pr"):
            return
        part = _write(element)
        outer = self._open[-1]
        roles = _ROLES.get(outer.name, ())
        if len(outer.parts) < len(roles):
            part = _Part(roles[len(outer.parts)], part.text, part.kind)
        outer.parts.append(part)


def _write(element: _Element) -> _Part:
    """Return an element as text, from the texts of its parts."""
    name = element.name
    match name:
        case "f" | "mfrac":
            text = element.group("num") + _fraction_bar(element.properties) + element.group("den")
            return _Part(name, text, _Kind.BARRED)
        case "rad" | "mroot":
            return _Part(name, raise_text("0", element.group("deg")) + "√" + element.group("e"), _Kind.BARRED)
        case "msqrt":
            inner = _Element("", {}, [_Part("e", _join(element.parts))])
            return _Part(name, "√" + inner.group("e"), _Kind.BARRED)
        case "mover" if element.group("sup") in _ACCENTS:
            return _Part(name, element.group("e") + _ACCENTS[element.group("sup")])
        case "limUpp":
            return _Part(name, f"{element.base()}^{element.group('lim')}", _Kind.SCRIPT)
        case "sSub" | "sSup" | "sSubSup" | "limLow" | "msub" | "msup" | "msubsup" | "munder" | "mover" | "munderover":
            return _Part(name, element.base() + element.scripts(), _Kind.SCRIPT)
        case "mmultiscripts":
            return _Part(name, _write_scripts(element.parts), _Kind.SCRIPT)
        case "d" | "mfenced" | "mr" | "mtr" | "mlabeledtr" | "m" | "mtable" | "eqArr":
            return _Part(name, _write_list(element))
        case "nary" | "sPre" | "acc" | "bar" | "func":
            return _Part(name, _write_beside_base(element))
        case "phant" if element.properties.get("show") in ("0", "off", "false"):
            return _Part(name, "")
        case "br":
            return _Part(name, "\n")
        case _:
            kind = element.parts[0].kind if len(element.parts) == 1 else _Kind.TEXT
            return _Part(name, _join(element.parts), kind)


def _write_list(element: _Element) -> str:
    """Return what stands in brackets, the cells of a row, or the rows of a matrix or of several equations."""
    properties = element.properties
    match element.name:
        case "d":
            inner = properties.get("sepChr", "|").join(element.texts("e"))
            return properties.get("begChr", "(") + inner + properties.get("endChr", ")")
        case "mfenced":
            inner = properties.get("separators", ",")[:1].join(part.text for part in element.parts)
            return properties.get("open", "(") + inner + properties.get("close", ")")
        case "m" | "mtable":
            return "; ".join(part.text for part in element.parts)
        case "eqArr":  # whose `&` are places where its lines are aligned
            return "; ".join(part.text.replace("&", "") for part in element.parts)
        case _:
            return _join_cells(element.parts)


def _write_beside_base(element: _Element) -> str:
    """Return a base with what stands before it, as a sum's sign or a function's name, or an accent or line above it."""
    properties = element.properties
    match element.name:
        case "nary":
            sign = _Part("", properties.get("chr", "∫") + element.scripts(), _Kind.SCRIPT)
            return _join([sign, _Part("e", element.base())])
        case "sPre":
            return f"{element.scripts()} {element.base()}"
        case "func":
            return f"{''.join(element.texts('fName'))} {element.base()}"
        case "acc":
            return element.group("e") + properties.get("chr", _HAT)
        case _:
            line = _LINE_ABOVE if properties.get("pos") == "top" else _LINE_BELOW
            return element.group("e") + line


def _fraction_bar(properties: Mapping[str, str]) -> str:
    """Return what stands for the bar; without a bar, as in a binomial, that is a broken one."""
    if properties.get("type") == "noBar" or properties.get("linethickness", "").startswith("0"):
        return "¦"
    return "/"


def _write_scripts(parts: Sequence[_Part]) -> str:
    """Return a base, then pairs of scripts; those behind `mprescripts` stand before it."""
    names = [part.role for part in parts]
    middle = names.index("mprescripts") if "mprescripts" in names else len(parts)
    before = _write_pairs(parts[middle + 1 :])
    base = "".join(part.text for part in parts[:1])
    return f"{before} {base}{_write_pairs(parts[1:middle])}".strip()


def _write_pairs(parts: Sequence[_Part]) -> str:
    """Return scripts of which every second one is above the line."""
    text = ""
    for number, part in enumerate(parts):
        role = ("sub", "sup")[number % 2]
        text += _Element("", {}, [_Part(role, part.text)]).scripts()
    return text


def _join_cells(parts: Sequence[_Part]) -> str:
    """Return the cells of a row; what is set below a relation of other rows begins with one."""
    line = ""
    for number, part in enumerate(parts):
        if number and part.text[:1] not in _RELATIONS:
            line += ", "
        line += part.text
    return line


def _join(parts: Sequence[_Part]) -> str:
    """Return parts that stand beside each other, with a blank where they would say something else without it."""
    line = ""
    last = _Kind.TEXT
    for part in parts:
        if not part.text:
            continue
        if _is_apart(line[-1:], last, part):
            line += " "
        line += part.text
        last = part.kind
    return line


def _is_apart(end: str, last: _Kind, part: _Part) -> bool:
    """Return whether a part needs a blank before it, behind a part of another kind that ends so."""
    begin = part.text[0]
    if last is not _Kind.TEXT:
        return begin.isalnum() or begin in _BRACKETS
    if part.kind is _Kind.BARRED:
        return end.isalnum()
    return part.kind is _Kind.SCRIPT and end.isdecimal() and begin.isdecimal()


def _is_whole(text: str) -> bool:
    """Return whether a text is one thing: a character with its accents, a number, or all in brackets."""
    letters = [letter for letter in text if not unicodedata.combining(letter)]
    if len(letters) <= 1 or _NUMBER.fullmatch(text):
        return True
    closing = _BRACKETS.get(text[0])
    depth = 0
    for position, letter in enumerate(text):
        depth += (letter == text[0]) - (letter == closing)
        if depth == 0:
            return position == len(text) - 1
    return False
