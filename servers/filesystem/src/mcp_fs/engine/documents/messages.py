"""Mails and notebooks: text files whose text is wrapped. Each also is an archive: of attachments, or of itself."""

from __future__ import annotations

import email
import email.policy
import io
import json
import re
from collections.abc import Iterator
from email.message import MIMEPart
from typing import Any, BinaryIO, cast

from mcp_fs.engine.documents.archives import Entry, Unreadable, held
from mcp_fs.engine.documents.office import page_text

__all__ = ["Mail", "Notebook"]

_HEADERS = ("From", "To", "Cc", "Date", "Subject")
_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class Mail:
    """A mail (RFC 5322) and what is attached to it."""

    OWN = "message.txt"

    def __init__(self, file: BinaryIO) -> None:
        self._data = held(file).read()
        self._message = email.message_from_bytes(self._data, policy=email.policy.default)

    def text(self) -> Iterator[str]:
        for name in _HEADERS:
            for value in self._message.get_all(name, []):
                yield f"{name}: {str(value).strip()}\n"
        yield "\n"
        body = self._message.get_body(("plain", "html"))
        if body is not None:
            text = _decoded(body)
            if body.get_content_type() == "text/html":
                text = "".join(page_text(io.BytesIO(text.encode("utf-8", "replace"))))
            yield text.replace("\r\n", "\n").rstrip("\n") + "\n"
        attached = [entry for entry, _ in self.entries() if entry.name != self.OWN]
        if attached:
            yield "\n[attached]\n"
        for entry in attached:
            yield f"{entry.name}\t{entry.size:,}\n"

    def entries(self) -> Iterator[tuple[Entry, BinaryIO | None]]:
        yield Entry(self.OWN, self.OWN, len(self._data)), io.BytesIO(self._data)
        seen = {self.OWN}
        for number, part in enumerate(self._message.walk()):
            if part.is_multipart() or not (part.is_attachment() or part.get_filename()):
                continue
            # A name is the sender's: only its end is taken.
            name = re.split(r"[/\\]", part.get_filename() or "")[-1].strip("\0 .") or f"part{number}"
            name = name if name not in seen else f"{number}-{name}"
            seen.add(name)
            data = part.get_payload(decode=True)
            content = data if isinstance(data, bytes) else b""
            yield Entry(name, name, len(content)), io.BytesIO(content)


def _decoded(part: MIMEPart) -> str:
    data = part.get_payload(decode=True)
    raw = data if isinstance(data, bytes) else b""
    try:
        return raw.decode(part.get_content_charset("utf-8"), "replace")
    except LookupError:
        return raw.decode("utf-8", "replace")


class Notebook:
    """A notebook of Jupyter (nbformat 3 and 4): its cells, without its pictures."""

    OWN = "notebook.json"

    def __init__(self, file: BinaryIO) -> None:
        self._data = held(file).read()

    def text(self) -> Iterator[str]:
        try:
            book = json.loads(self._data)
            cells: list[Any] = book["cells"] if "cells" in book else book["worksheets"][0]["cells"]
            for number, cell in enumerate(cells, 1):
                yield f"[cell {number}, {cell['cell_type']}]\n"
                yield _ended(_joined(cell["source"] if "source" in cell else cell.get("input", "")))
                for output in cell.get("outputs", []):
                    yield from _output(output)
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            raise Unreadable(f"is no notebook as nbformat has it: {type(error).__name__}") from None

    def entries(self) -> Iterator[tuple[Entry, BinaryIO | None]]:
        yield Entry(self.OWN, self.OWN, len(self._data)), io.BytesIO(self._data)


def _output(output: dict[str, Any]) -> Iterator[str]:
    kind = output.get("output_type")
    if kind in ("error", "pyerr"):
        yield f"[error]\n{_ended(_COLOURS.sub('', chr(10).join(output.get('traceback', []))))}"
        return
    data: dict[str, Any] = output.get("data", output)
    text = data.get("text/plain", data.get("text"))
    pictures = [name for name in data if name.startswith(("image/", "application/pdf")) or name in ("png", "jpeg")]
    if text is not None:
        yield f"[output]\n{_ended(_COLOURS.sub('', _joined(text)))}"
    for name in pictures:
        yield f"[{name} left out]\n"


def _joined(text: Any) -> str:
    return "".join(map(str, cast("list[Any]", text))) if isinstance(text, list) else str(text)


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"
