"""What a person sees of a call before they consent: everything that matters, wherever it is.

A text is shown whole up to some kilobytes, otherwise its start and end with its length, whatever holds it: an argument,
a file of a gist, an edit. The whole text is searched for what a harmless start could hide: secrets, links, invisible
characters, and where it was read before.
"""

from __future__ import annotations

import json
import re
import unicodedata
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from html import unescape
from typing import Any, Literal, NamedTuple, cast
from urllib.parse import unquote

from mcp_batteries.errors import quote, well_formed
from mcp_batteries.redaction.text import holds_assignment
from mcp_batteries.redaction.tokens import ADDRESS_PASSWORD, PRIVATE_KEY, kind_patterns

__all__ = ["described", "remarkable", "visible"]

_WHOLE = 4000
_HEAD = 2000
_TAIL = 1000
"""Characters of one text: shown whole up to the first, else so many of its start and its end."""
# All texts of a call together are shown with at most so many characters.
_ALL = 8000
_SHORT = 120
_FILES = 40
_PATH_CHARACTERS = 200

# The form in which a text was read: with its gaps as they were, with them closed, or decoded from another alphabet.
_How = Literal["open", "closed", "decoded"]

_HOST = r"([^\s/\\?#<>\"'`()\[\]]+)"
_LINKS = [
    re.compile(pattern, re.I)
    for pattern in (
        r"\b[a-z][a-z0-9+.-]{1,20}://" + _HOST,
        # What browsers make of slashes that are too few, too many or the wrong way.
        r"\bhttps?:[/\\]+" + _HOST,
        r"(?:^|[\s(<=\"'])//([\w-]+(?:\.[\w-]+)+)",
        r"(?<![\w./@-])(www\.[\w.-]+\w)",
        r"\bmailto:[^\s@<>]+@([\w.-]+\w)",
    )
]
# Addresses with these schemes contain what they show or do.
_RUNS = re.compile(r"\b(data|javascript|vbscript):(?=[^\s:])", re.I)
# These characters disappear where a text is shown with its markup.
_BETWEEN = re.compile(r"<!--.{0,200}?-->|</?[a-z][^<>]{0,200}>|[*~`\\]", re.I | re.S)
_ENCODED = re.compile(r"[A-Za-z0-9+/_-]{24,}")
# At most so many characters of one text are decoded.
_DECODED = 200_000


def described(tool: str, arguments: Mapping[str, Any], origins: Sequence[str] = ()) -> str:
    """The call of `tool` with `arguments`, for a question to a person.

    Args:
        origins: where its texts were read before, in words.
    """
    short: list[str] = []
    long: list[str] = []
    room = _ALL
    for name, value in arguments.items():
        if files := _files(name, value):
            long += [f"{name}: {len(files)} file{'s' if len(files) > 1 else ''}", *_listed(files)]
            for file in files[:_FILES]:
                if file.text:
                    shown = _shortened(file.text, room)
                    room = max(0, room - len(shown))
                    long += _with_title(quote(visible(file.path), _PATH_CHARACTERS), file.text, shown)
            continue
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        if len(text) <= _SHORT and "\n" not in text:
            short.append(f"{name}={quote(visible(text), 8 * _SHORT)}")
            continue
        shown = _shortened(text, room)
        room = max(0, room - len(shown))
        long += _with_title(name, text, shown)
    notes = [*remarkable(arguments), *map(visible, origins)]
    said = [f"The call is {tool} ({', '.join(short)}).", *long]
    return "\n".join([*said, f"Note: {'; '.join(notes)}."] if notes else said)


def visible(text: str) -> str:
    """`text` with the characters that nobody can see written as `\\u{...}`; line ends and tabs stay."""
    return "".join(f"\\u{{{ord(char):x}}}" if _is_invisible(char) else char for char in well_formed(text))


def _is_invisible(char: str) -> bool:
    return char not in "\n\t" and unicodedata.category(char) in ("Cc", "Cf", "Co", "Zl", "Zp")


def _shortened(text: str, room: int) -> str:
    if len(text) <= min(_WHOLE, max(room, 2 * _SHORT)):
        return text
    head, tail = (_HEAD, _TAIL) if room > _HEAD + _TAIL else (_SHORT, _SHORT)
    return f"{text[:head]}\n[... {len(text) - head - tail:,} characters are not shown ...]\n{text[-tail:]}"


def _with_title(title: str, text: str, shown: str) -> list[str]:
    """Return the lines of a text, or of what is shown of it, below its title and its length."""
    return [f"{title} ({len(text):,} characters):", *(f"| {line}" for line in visible(shown).split("\n"))]


class _File(NamedTuple):
    """A file in an argument.

    Attributes:
        size: in words.
        text: what is written into it, or the edits as JSON; empty if it is deleted.
    """

    path: str
    size: str
    text: str


def _files(name: str, value: Any) -> list[_File]:
    """Return the files in an argument: a list of objects with a `path`, or `texts` by file name."""
    if isinstance(value, list):
        items = cast("list[Any]", value)
        if items and all(isinstance(item, dict) and "path" in item for item in items):
            return [
                _File(str(item["path"]), _size(item), _written(item)) for item in cast("list[dict[str, Any]]", items)
            ]
    if name == "texts" and isinstance(value, dict):
        texts = cast("dict[str, Any]", value)
        if texts and all("." in name and isinstance(text, str | None) for name, text in texts.items()):
            return [_File(name, _size({"content": text}), text or "") for name, text in texts.items()]
    return []


def _written(item: Mapping[str, Any]) -> str:
    """Return all that a file's object holds besides its path."""
    rest = {name: value for name, value in item.items() if name not in ("path", "sha") and value is not None}
    if list(rest) in (["content"], ["body"]):
        text = rest.popitem()[1]
        if isinstance(text, str):
            return text
    if not rest or rest.get("delete"):
        return ""
    return json.dumps(rest, ensure_ascii=False, default=str)


def _size(item: Mapping[str, Any]) -> str:
    said = {
        name: value for name, value in item.items() if name not in ("path", "sha") and value not in (None, [], False)
    }
    if not said or said.get("delete"):
        return "deleted"
    if isinstance(edits := said.get("edits"), list):
        return f"{len(cast('list[Any]', edits))} edits"
    text = said.get("content", said.get("body", ""))
    return f"{str(text).count(chr(10)) + 1:,} lines, {len(str(text)):,} characters"


def _listed(files: list[_File]) -> Iterator[str]:
    for file in files[:_FILES]:
        yield f"| {quote(visible(file.path), _PATH_CHARACTERS)}: {file.size}"
    if len(files) > _FILES:
        characters = sum(len(file.text) for file in files[_FILES:])
        yield f"| and {len(files) - _FILES} more, whose {characters:,} characters are not shown"


def remarkable(arguments: Mapping[str, Any]) -> list[str]:
    """What is remarkable in any of the texts, at any depth and position."""
    texts = list(_texts(arguments))
    views = [view for text in texts for view in _views(text)]
    notes = [f"it holds what looks like {kind}" for kind in _kinds(views)]
    # As written, and as a page shows it.
    shown = [form for text in texts for form in (text, _folded(text))]
    links = (host for text in shown for link in _LINKS for host in link.findall(text))
    hosts = dict.fromkeys(host.lower().rstrip(".,;:!") for host in links)
    if hosts:
        more = f" and {len(hosts) - 5} more" if len(hosts) > 5 else ""
        notes.append(f"it links to {', '.join(quote(visible(host), 80) for host in list(hosts)[:5])}{more}")
    if runs := sorted({name.lower() for text in shown for name in _RUNS.findall(text)}):
        notes.append(f"it has an address that begins with {', '.join(quote(f'{name}:') for name in runs)}")
    if hidden := sum(_is_invisible(char) and char != "\r" for text in texts for char in text):
        notes.append(f"it has {hidden} invisible character{'s' if hidden > 1 else ''}")
    return notes


def _kinds(views: Sequence[tuple[str, _How]]) -> list[str]:
    """Return the kinds of secrets in `views`."""
    kinds: dict[str, None] = {}
    for text, how in views:
        # What stands before a token in a decoded text is arbitrary.
        for kind, pattern in kind_patterns(inside_words=how == "decoded").items():
            if kind not in kinds and pattern.search(text):
                kinds[kind] = None
        if re.search(PRIVATE_KEY, text):
            kinds["a private key"] = None
        # In a text whose gaps were closed words of a sentence can look like a password; a token looks like nothing
        # else.
        if how == "open":
            if holds_assignment(text):
                kinds["a password"] = None
            if re.search(ADDRESS_PASSWORD, text):
                kinds["a password in an address"] = None
    return list(kinds)


def _folded(text: str) -> str:
    """`text` with decoded entities and percent escapes, normalised widths and no invisible characters."""
    plain = unquote(unescape(unicodedata.normalize("NFKC", text)))
    return "".join(char for char in plain if char in "\n\t" or not _is_invisible(char))


def _views(text: str) -> Iterator[tuple[str, _How]]:
    """`text` in the forms in which a secret may hide in it."""
    folded = _folded(text)
    bare = _BETWEEN.sub("", folded)
    for form in (text, folded, bare):
        yield form, "open"
    yield re.sub(r"\s+", "", bare), "closed"
    room = _DECODED
    for run in _ENCODED.findall(re.sub(r"\n\s*", "", folded)):
        for start in range(4):
            part = run[start:][:room].replace("-", "+").replace("_", "/")
            room -= len(part)
            part = part if len(part) % 4 != 1 else part[:-1]
            yield b64decode(part + "=" * (-len(part) % 4)).decode("latin-1"), "decoded"
        if re.fullmatch("[0-9a-fA-F]+", run):
            yield bytes.fromhex(run[: len(run) // 2 * 2]).decode("latin-1"), "decoded"
        if room <= 0:
            return


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, item in cast("Mapping[str, Any]", value).items():
            yield str(name)
            yield from _texts(item)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _texts(item)
