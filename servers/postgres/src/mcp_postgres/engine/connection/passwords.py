"""Passwords that are fetched at each connect: from a file, or from a command such as a cloud's that makes short-lived
tokens.

AWS, Azure and Google each have a command that prints a token which PostgreSQL accepts as a password. So one switch
serves all of them, and future ones, without a cloud's library in this process.
"""

from __future__ import annotations

import functools
import logging
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import anyio.to_thread
from psycopg import pq

from mcp_batteries.errors import Unavailable, reason
from mcp_batteries.executables import NO_WINDOW
from mcp_batteries.redaction.own import add_secrets
from mcp_batteries.settings import open_text

__all__ = ["Passwords"]

logger = logging.getLogger(__name__)

_SECONDS = 30.0
"""What a command may take: some of them sign in over the network first."""
_WORD = re.compile(r"\{(host|port|user|dbname)\}")


class Passwords:
    """Where passwords come from that neither an address nor libpq's own sources give.

    Args:
        file: that has the password.
        command: that prints it; what stands for the connection in braces is put in.
    """

    def __init__(self, file: str | None = None, command: str | None = None) -> None:
        self._file, self._command = file, command

    async def __call__(self, words: Mapping[str, Any]) -> str | None:
        """The password for a connection by these words of libpq's; None where there is no source of any.

        Raises:
            Unavailable: the source gives none.
        """
        password = await self._find(words)
        if password is not None:
            add_secrets([password])
        return password

    async def _find(self, words: Mapping[str, Any]) -> str | None:
        if self._command is not None:
            return await anyio.to_thread.run_sync(
                functools.partial(_printed, _arguments(self._command, words)), abandon_on_cancel=True
            )
        if self._file is not None:
            return _written(self._file)
        return None


def _arguments(command: str, words: Mapping[str, Any]) -> list[str] | str:
    known = {item.keyword.decode(): (item.val or b"").decode() for item in pq.Conninfo.get_defaults()}
    known |= {name: str(value) for name, value in words.items()}
    if sys.platform == "win32":  # where a program gets one text, and the first word may have backslashes
        return _WORD.sub(lambda found: subprocess.list2cmdline([known.get(found[1], "")]), command)
    # Put in after the words are told apart: no value becomes two of them.
    return [_WORD.sub(lambda found: known.get(found[1], ""), word) for word in shlex.split(command)]


def _printed(arguments: list[str] | str) -> str:
    try:
        done = subprocess.run(
            arguments, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False,
            creationflags=NO_WINDOW,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise _failed(f"it took more than {_SECONDS:.0f} seconds") from None
    except OSError as error:
        raise _failed(reason(error)) from None
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    if said:
        logger.warning("The command of --password-command says: %s", said[-1][:500])
    if done.returncode:
        raise _failed(f"it ended with {done.returncode}")
    try:
        password = done.stdout.decode().strip("\r\n")
    except UnicodeDecodeError as error:
        # A password in which other characters stand would only be wrong, and could lock the role out.
        raise _failed(f"what it printed is not UTF-8 at byte {error.start + 1}") from None
    if not password:
        raise _failed("it printed nothing")
    return password


def _failed(why: str) -> Unavailable:
    return Unavailable(
        f"The command of `--password-command` gave no password: {why}.",
        "The operator finds what it said in the server's log.",
        retry_after=5,
    )


def _written(file: str) -> str:
    try:
        with open_text(file) as opened:
            return opened.read().strip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        why = reason(error) if isinstance(error, OSError) else str(error)
        raise Unavailable(f"The file of `--password-file` can't be read: {why}.") from None
