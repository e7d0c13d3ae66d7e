"""Insert an entry into the text of a host's configuration file (JSON, TOML or YAML) and change nothing else."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from mcp_batteries.errors import Conflict, Problem, Unavailable, quote

__all__ = ["Piece", "check", "inserted", "pieces"]

_MARK = "\ufeff"
"""What some editors on Windows put before a file in UTF-8; it stays there."""


_EXTENSIONS = r"""\ufeff?(?:extensions|"extensions"|'extensions')[ \t]*:"""


class Piece(NamedTuple):
    """What is inserted.

    Attributes:
        at: its position in the new text, in characters.
    """

    at: int
    text: str


def pieces(host: str, name: str, before: str, text: str, path: Path) -> Iterator[Piece]:
    """What to insert into `before`, ordered by position, with its line ends.

    Raises:
        Conflict: there is another server of that name.
        Unavailable: the file cannot be understood.
    """
    # An editor would make them all alike, and the entry be another than the one that was written.
    end = "\r\n" if 0 < before.count("\n") == before.count("\r\n") else "\n"
    shift = 0
    for at, piece in _pieces(host, name, before, text, path):
        own = piece.replace("\n", end)
        yield Piece(at + shift, own)
        shift += len(own) - len(piece)


def _pieces(host: str, name: str, before: str, text: str, path: Path) -> Iterator[Piece]:
    if not before.strip().strip(_MARK):
        yield Piece(len(before), text + "\n")
        return
    if host == "codex":
        servers = _toml(before, path).get("mcp_servers", {})
        if not isinstance(servers, dict):
            raise Unavailable(f"{path} has something else under `mcp_servers`.", "Mend the file, then try again.")
        if name in servers:
            raise _taken(name, path)
        yield Piece(len(before), ("" if before.endswith("\n") else "\n") + f"\n{text}\n")
        return
    if host == "goose":
        yield _in_yaml(name, before, text, path)
        return
    data = cast("dict[str, Any]", json.loads(text))
    found = _Json(before, path)
    if found.start < 0:
        yield Piece(len(before), ("" if before.endswith("\n") else "\n") + text + "\n")
        return
    shift = 0
    for at, piece in sorted(_in_json(found, name, data, path)):
        yield Piece(at + shift, piece)
        shift += len(piece)


def inserted(text: str, pieces: Sequence[Piece]) -> str:
    """`text` with `pieces` inserted; they are ordered by position."""
    for at, piece in pieces:
        text = text[:at] + piece + text[at:]
    return text


def check(host: str, name: str, after: str, path: Path) -> None:
    """Read the new text as the host would, before anything is written.

    Raises:
        Unavailable: the entry is not in it.
    """
    if host == "codex":
        try:
            held = name in _toml(after, path)["mcp_servers"]
        except Unavailable:  # It was valid before: TOML does not allow additions to a table in braces.
            raise Unavailable(
                f"{path} lists its servers on one line.", "Give each a table of its own, then try again."
            ) from None
    elif host == "goose":
        held = re.search(rf"^\s+{re.escape(name)}:", after, re.MULTILINE) is not None
    else:
        held = any(name in value for value in _Json(after, path).value.values() if isinstance(value, dict))
    if not held:
        raise Unavailable(f"{path} cannot take the entry.", f"Paste what --print-config {host} prints.")


def _in_json(found: _Json, name: str, data: Mapping[str, Any], path: Path) -> Iterator[tuple[int, str]]:
    missing: dict[str, Any] = {}
    for key, value in data.items():
        span = found.members.get(key)
        if key in found.value and not isinstance(found.value[key], type(value)):
            raise Unavailable(f"{path} has something else under {quote(key)}.", "Mend the file, then try again.")
        if span is None:
            missing[key] = value
        elif isinstance(value, list):
            known = {item.get("id") for item in cast("list[dict[str, Any]]", found.value.get(key) or [])}
            fresh = [item for item in cast("list[dict[str, Any]]", value) if item["id"] not in known]
            if fresh:
                inside = ",\n".join(_indented(item, 2) for item in fresh)
                yield span, f"\n{inside}" + ("," if found.value[key] else "\n  ")
        else:
            if name in cast("dict[str, Any]", found.value.get(key) or {}):
                raise _taken(name, path)
            inside = ",\n".join(f"    {json.dumps(one)}: {_indented(it, 2).lstrip()}" for one, it in value.items())
            yield span, f"\n{inside}" + ("," if found.value[key] else "\n  ")
    if missing:
        inside = ",\n".join(f"  {json.dumps(key)}: {_indented(value, 1).lstrip()}" for key, value in missing.items())
        yield found.start, f"\n{inside}" + ("," if found.value else "\n")


def _indented(value: Any, depth: int) -> str:
    pad = "  " * depth
    return pad + json.dumps(value, indent=2, ensure_ascii=False).replace("\n", "\n" + pad)


class _Json:
    """JSON with comments and trailing commas, as hosts write it: where its outermost members begin."""

    _TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/|[{}\[\]:,\ufeff]|[^\s{}\[\]:,"/\ufeff]+', re.DOTALL)

    def __init__(self, text: str, path: Path) -> None:
        self.members: dict[str, int] = {}
        """By key, the place behind the bracket that opens the member's object or array."""
        self.start = -1
        """The place behind the first brace."""
        plain: list[str] = []
        depth, key = 0, ""  # the key as written: its meaning is known once everything is parsed
        spans: dict[str, int] = {}
        for found in self._TOKEN.finditer(text):
            token = found[0]
            if token.startswith(("//", "/*")) or token == _MARK:
                continue
            if token in "}]" and plain and plain[-1] == ",":
                plain.pop()
            if token in "{[":
                if depth == 0:
                    self.start = found.end()
                elif depth == 1 and plain[-1] == ":":
                    spans[key] = found.end()
                depth += 1
            elif token in "}]":
                depth -= 1
            elif depth == 1 and token.startswith('"') and plain[-1] in "{,":
                key = token
            plain.append(token)
        try:
            # Of a file with nothing but comments the host makes an object.
            value = json.loads(" ".join(plain) or "{}")
        except (ValueError, RecursionError) as error:
            raise Unavailable(f"{path} cannot be understood: {error}.", "Mend the file, then try again.") from None
        if not isinstance(value, dict):
            raise Unavailable(f"{path} does not hold an object.", "Mend the file, then try again.")
        self.value = cast("dict[str, Any]", value)
        self.members |= {cast("str", json.loads(key)): at for key, at in spans.items()}


def _in_yaml(name: str, before: str, text: str, path: Path) -> Piece:
    lines = text.split("\n")
    begun = re.sub(r"\A(?:[\ufeff\s]|#[^\n]*\n)*(?:---(?=\s|\Z)(?:\s|#[^\n]*\n)*)?", "", before)
    if re.match(r"[{\[]|-\s", begun) or re.search(r"^(?:\.\.\.|---)(?=\s|\Z)", begun, re.MULTILINE):
        raise Unavailable(f"{path} is not one list of lines `key: value`.", "Mend the file, then try again.")
    head = re.search(rf"^{_EXTENSIONS}[ \t]*(#[^\n]*)?(\r?\n|\Z)", before, re.MULTILINE)
    if head is None:
        if re.search(rf"^{_EXTENSIONS}", before, re.MULTILINE):
            raise Unavailable(
                f"{path} lists its extensions on one line.", "Give each a line of its own, then try again."
            )
        return Piece(len(before), ("" if before.endswith("\n") else "\n") + text + "\n")
    rest = before[head.end() :]
    block = re.match(r"(?:[ \t]+[^\n]*\n?|[ \t]*#[^\n]*\n|\r?\n)*", rest)
    members = block[0] if block else ""
    if re.match(r"(?:\s|#[^\n]*\n)*-\s", rest):
        raise Unavailable(f"{path} has something else under `extensions`.", "Mend the file, then try again.")
    indented = re.search(r"^([ \t]+)[^\s#]", members, re.MULTILINE)
    indent = indented[1] if indented else "  "
    if re.search(rf"^{indent}[\"']?{re.escape(name)}[\"']?:", members, re.MULTILINE):
        raise _taken(name, path)
    own = [indent + line[2:] if not line.startswith("    ") else indent * 2 + line[4:] for line in lines[1:]]
    return Piece(head.end(), ("" if head[0].endswith("\n") else "\n") + "\n".join(own) + "\n")


def _toml(text: str, path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text.removeprefix(_MARK))
    except tomllib.TOMLDecodeError as error:
        raise Unavailable(f"{path} cannot be understood: {error}.", "Mend the file, then try again.") from None


def _taken(name: str, path: Path) -> Problem:
    return Conflict(f"{path} has another server {quote(name)}.", "Remove or rename that entry, then try again.")
