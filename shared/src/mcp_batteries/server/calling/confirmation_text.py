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
from dataclasses import dataclass, field
from html import unescape
from typing import Any, Literal, NamedTuple, cast
from urllib.parse import unquote

from mcp_batteries.errors import quote, well_formed
from mcp_batteries.redaction.text import holds_assignment
from mcp_batteries.redaction.tokens import ADDRESS_PASSWORD, PRIVATE_KEY, kind_patterns

__all__ = ["describe_call", "escape_invisible", "find_warnings"]

# A text of at most so many characters is shown in full, a longer one with its start and its end.
_MAX_FULL_TEXT = 4000
_HEAD = 2000
_TAIL = 1000
# All texts of a call together are shown with at most so many characters.
_MAX_CHARACTERS = 8000
_SHORT = 120
_MAX_FILES = 40
_PATH_CHARACTERS = 200
_MAX_HOSTS = 5

# The form in which a text was read: with its gaps as they were, with them closed, or decoded from another alphabet.
_Form = Literal["open", "closed", "decoded"]

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
_ACTIVE_ADDRESS = re.compile(r"\b(data|javascript|vbscript):(?=[^\s:])", re.I)
# These characters disappear where a text is shown with its markup.
_MARKUP = re.compile(r"<!--.{0,200}?-->|</?[a-z][^<>]{0,200}>|[*~`\\]", re.I | re.S)
_ENCODED = re.compile(r"[A-Za-z0-9+/_-]{24,}")
# At most so many characters of one text are decoded.
_MAX_DECODED = 200_000


def describe_call(tool: str, arguments: Mapping[str, Any], origins: Sequence[str] = ()) -> str:
    """Describe the call of `tool` with `arguments`, for a question to a person.

    Args:
        origins: where its texts were read before, in words.
    """
    summary = _Summary()
    for name, value in arguments.items():
        files = _files_in(name, value)
        if files:
            summary.add_files(name, files)
        else:
            summary.add_value(name, value)
    lines = [f"The call is {tool} ({', '.join(summary.short)}).", *summary.long]
    notes = [*find_warnings(arguments), *map(escape_invisible, origins)]
    if notes:
        lines.append(f"Note: {'; '.join(notes)}.")
    return "\n".join(lines)


@dataclass
class _Summary:
    """What is shown of a call's arguments.

    Attributes:
        short: arguments that fit into the first line.
        long: the lines below it.
        remaining: how many characters of texts may still be shown.
    """

    short: list[str] = field(default_factory=list[str])
    long: list[str] = field(default_factory=list[str])
    remaining: int = _MAX_CHARACTERS

    def add_value(self, name: str, value: Any) -> None:
        if isinstance(value, str):
            text = value
        else:
            text = json.dumps(value, ensure_ascii=False, default=str)
        if len(text) <= _SHORT and "\n" not in text:
            self.short.append(f"{name}={quote(escape_invisible(text), 8 * _SHORT)}")
        else:
            self._add_text(name, text)

    def add_files(self, name: str, files: list[_File]) -> None:
        plural = "s" if len(files) > 1 else ""
        self.long.append(f"{name}: {len(files)} file{plural}")
        self.long.extend(_list_files(files))
        for file in files[:_MAX_FILES]:
            if file.text:
                self._add_text(quote(escape_invisible(file.path), _PATH_CHARACTERS), file.text)

    def _add_text(self, title: str, text: str) -> None:
        """Add the lines of a text, or of as much as may be shown of it, below its title and its length."""
        excerpt = _shorten(text, self.remaining)
        self.remaining = max(0, self.remaining - len(excerpt))
        self.long.append(f"{title} ({len(text):,} characters):")
        self.long.extend(f"| {line}" for line in escape_invisible(excerpt).split("\n"))


def escape_invisible(text: str) -> str:
    """Return `text` with the characters that nobody can see written as `\\u{...}`; line ends and tabs stay."""
    return "".join(f"\\u{{{ord(char):x}}}" if _is_invisible(char) else char for char in well_formed(text))


def _is_invisible(char: str) -> bool:
    return char not in "\n\t" and unicodedata.category(char) in ("Cc", "Cf", "Co", "Zl", "Zp")


def _shorten(text: str, remaining: int) -> str:
    """Return `text`, or its start and end if it is too long for what may still be shown."""
    if len(text) <= min(_MAX_FULL_TEXT, max(remaining, 2 * _SHORT)):
        return text
    head = _SHORT
    tail = _SHORT
    if remaining > _HEAD + _TAIL:
        head = _HEAD
        tail = _TAIL
    return f"{text[:head]}\n[... {len(text) - head - tail:,} characters are not shown ...]\n{text[-tail:]}"


class _File(NamedTuple):
    """A file in an argument.

    Attributes:
        size: in words.
        text: what is written into it, or the edits as JSON; empty if it is deleted.
    """

    path: str
    size: str
    text: str


def _files_in(name: str, value: Any) -> list[_File]:
    """Return the files in an argument: a list of objects with a `path`, or `texts` by file name."""
    match value:
        case list():
            return _files_in_list(cast("list[Any]", value))
        case dict() if name == "texts":
            return _files_in_texts(cast("dict[str, Any]", value))
        case _:
            return []


def _files_in_list(items: Sequence[Any]) -> list[_File]:
    """Return a file for each object with a `path`; none if an item is something else."""
    if not all(isinstance(item, dict) and "path" in item for item in items):
        return []
    objects = cast("Sequence[dict[str, Any]]", items)
    return [_File(str(item["path"]), _describe_size(item), _text_of(item)) for item in objects]


def _files_in_texts(texts: Mapping[str, Any]) -> list[_File]:
    """Return a file for each text, which is None where the file is deleted; none if a name has no ending."""
    if not all("." in name and isinstance(text, str | None) for name, text in texts.items()):
        return []
    return [_File(name, _describe_size({"content": text}), text or "") for name, text in texts.items()]


def _text_of(item: Mapping[str, Any]) -> str:
    """Return all that a file's object holds besides its path."""
    members = {name: value for name, value in item.items() if name not in ("path", "sha") and value is not None}
    if list(members) in (["content"], ["body"]):
        text = next(iter(members.values()))
        if isinstance(text, str):
            return text
    if not members or members.get("delete"):
        return ""
    return json.dumps(members, ensure_ascii=False, default=str)


def _describe_size(item: Mapping[str, Any]) -> str:
    members = {
        name: value for name, value in item.items() if name not in ("path", "sha") and value not in (None, [], False)
    }
    if not members or members.get("delete"):
        return "deleted"
    edits = members.get("edits")
    if isinstance(edits, list):
        return f"{len(cast('list[Any]', edits))} edits"
    text = str(members.get("content", members.get("body", "")))
    line_count = text.count("\n") + 1
    return f"{line_count:,} lines, {len(text):,} characters"


def _list_files(files: list[_File]) -> Iterator[str]:
    for file in files[:_MAX_FILES]:
        yield f"| {quote(escape_invisible(file.path), _PATH_CHARACTERS)}: {file.size}"
    if len(files) > _MAX_FILES:
        characters = sum(len(file.text) for file in files[_MAX_FILES:])
        yield f"| and {len(files) - _MAX_FILES} more, whose {characters:,} characters are not shown"


def find_warnings(arguments: Mapping[str, Any]) -> list[str]:
    """Return notes on what is remarkable in any of the texts, at any depth and position."""
    texts = list(_texts_in(arguments))
    notes = [f"it holds what looks like {kind}" for kind in _secret_kinds(texts)]
    # Links are looked for in each text as it is written, and as a page shows it.
    readable: list[str] = []
    for text in texts:
        readable.append(text)
        readable.append(_unescape(text))
    notes.extend(_note_links(readable))
    notes.extend(_note_active_addresses(readable))
    notes.extend(_note_invisible(texts))
    return notes


def _note_links(texts: Sequence[str]) -> Iterator[str]:
    hosts: dict[str, None] = {}
    for text in texts:
        for link in _LINKS:
            for host in link.findall(text):
                hosts[host.lower().rstrip(".,;:!")] = None
    if not hosts:
        return
    names = ", ".join(quote(escape_invisible(host), 80) for host in list(hosts)[:_MAX_HOSTS])
    if len(hosts) > _MAX_HOSTS:
        names += f" and {len(hosts) - _MAX_HOSTS} more"
    yield f"it links to {names}"


def _note_active_addresses(texts: Sequence[str]) -> Iterator[str]:
    schemes: set[str] = set()
    for text in texts:
        schemes.update(scheme.lower() for scheme in _ACTIVE_ADDRESS.findall(text))
    if schemes:
        yield f"it has an address that begins with {', '.join(quote(f'{scheme}:') for scheme in sorted(schemes))}"


def _note_invisible(texts: Sequence[str]) -> Iterator[str]:
    count = 0
    for text in texts:
        for char in text:
            if _is_invisible(char) and char != "\r":
                count += 1
    if count:
        plural = "s" if count > 1 else ""
        yield f"it has {count} invisible character{plural}"


def _secret_kinds(texts: Sequence[str]) -> list[str]:
    """Return the kinds of secrets in the texts."""
    kinds: dict[str, None] = {}
    for text in texts:
        for reading, form in _readings(text):
            kinds.update(dict.fromkeys(_secret_kinds_in(reading, form)))
    return list(kinds)


def _secret_kinds_in(text: str, form: _Form) -> Iterator[str]:
    # What stands before a token in a decoded text is arbitrary.
    for kind, pattern in kind_patterns(inside_words=form == "decoded").items():
        if pattern.search(text):
            yield kind
    if re.search(PRIVATE_KEY, text):
        yield "a private key"
    # With the gaps closed, words of a sentence can look like a password; a token looks like nothing else.
    if form == "open":
        if holds_assignment(text):
            yield "a password"
        if re.search(ADDRESS_PASSWORD, text):
            yield "a password in an address"


def _unescape(text: str) -> str:
    """Return `text` with decoded entities and percent escapes, normalised widths and no invisible characters."""
    plain = unquote(unescape(unicodedata.normalize("NFKC", text)))
    return "".join(char for char in plain if char in "\n\t" or not _is_invisible(char))


def _readings(text: str) -> Iterator[tuple[str, _Form]]:
    """Yield `text` in the forms in which a secret may hide in it."""
    unescaped = _unescape(text)
    without_markup = _MARKUP.sub("", unescaped)
    for reading in (text, unescaped, without_markup):
        yield reading, "open"
    yield re.sub(r"\s+", "", without_markup), "closed"
    remaining = _MAX_DECODED
    for run in _ENCODED.findall(re.sub(r"\n\s*", "", unescaped)):
        # The encoded text may begin at any of four positions.
        for start in range(4):
            encoded = run[start:][:remaining]
            remaining -= len(encoded)
            yield _decode_base64(encoded), "decoded"
        if re.fullmatch("[0-9a-fA-F]+", run):
            yield bytes.fromhex(run[: len(run) // 2 * 2]).decode("latin-1"), "decoded"
        if remaining <= 0:
            return


def _decode_base64(text: str) -> str:
    text = text.replace("-", "+").replace("_", "/")
    if len(text) % 4 == 1:  # No encoded text has this length.
        text = text[:-1]
    return b64decode(text + "=" * (-len(text) % 4)).decode("latin-1")


def _texts_in(value: Any) -> Iterator[str]:
    """Yield all texts in a JSON value, names of members too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, item in cast("Mapping[str, Any]", value).items():
            yield str(name)
            yield from _texts_in(item)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _texts_in(item)
