"""Text files of the operator, as editors and shells of every system write them."""

from __future__ import annotations

import codecs
import io

__all__ = ["open_text"]

_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def open_text(path: str, *, errors: str = "strict") -> io.TextIOWrapper:
    """Open `path` as UTF-8, or with the encoding of its byte order mark: Windows PowerShell's `>` writes UTF-16.

    Raises:
        OSError: it cannot be opened; reading can raise `UnicodeDecodeError`.
    """
    file = open(path, "rb")  # noqa: SIM115 - the caller closes it, and it may be a pipe, which opens once
    try:
        encoding = "utf-16" if file.peek(2)[:2] in _UTF_16 else "utf-8-sig"
        return io.TextIOWrapper(file, encoding=encoding, errors=errors)
    except BaseException:
        file.close()
        raise
