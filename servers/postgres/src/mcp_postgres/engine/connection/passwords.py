"""Passwords that are fetched at each connect: from a file, or from a command such as a cloud's that makes short-lived
tokens.

AWS, Azure and Google each have a command that prints a token which PostgreSQL accepts as a password. So one switch
serves all of them, and future ones, without a cloud's library in this process.
"""

from __future__ import annotations

import functools
import logging
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio.to_thread
from psycopg import pq

from mcp_batteries.errors import Unavailable, describe_os_error
from mcp_batteries.executables import NO_WINDOW
from mcp_batteries.redaction.own import add_secrets
from mcp_batteries.settings import open_text
from mcp_postgres.operator_sql import READER_ROLE

__all__ = ["Passwords", "reader_password_file"]

logger = logging.getLogger(__name__)

# What a command may take: some of them sign in over the network first.
_COMMAND_SECONDS = 30.0
_PLACEHOLDER = re.compile(r"\{(host|port|user|dbname)\}")


class Passwords:
    """Where passwords come from that neither an address nor libpq's own sources give.

    Args:
        file: that has the password.
        command: that prints it; what stands for the connection in braces is put in.
    """

    def __init__(self, file: str | None = None, command: str | None = None) -> None:
        self._file = file
        self._command = command

    async def __call__(self, parameters: Mapping[str, Any]) -> str | None:
        """Return the password for a connection by these words of libpq's; None where there is no source of any.

        Raises:
            Unavailable: the source gives none.
        """
        password = await self._find(parameters)
        if password is not None:
            add_secrets([password])
        return password

    async def _find(self, parameters: Mapping[str, Any]) -> str | None:
        if self._command is not None:
            return await anyio.to_thread.run_sync(
                functools.partial(_run_command, _fill_command(self._command, parameters)), abandon_on_cancel=True
            )
        if self._file is not None:
            return _read_file(self._file)
        return None


def reader_password_file(parameters: Mapping[str, Any], folder: Path) -> Path:
    """Return the file in which `--create-reader` keeps its role's password for the server of a connection."""
    values = (str(parameters.get(key) or os.environ.get(f"PG{key.upper()}") or key) for key in ("host", "port"))
    server = re.sub(r"[^A-Za-z0-9.-]+", "_", "-".join(values))
    return folder / f"{server}-{READER_ROLE}.password"


def _fill_command(command: str, parameters: Mapping[str, Any]) -> list[str] | str:
    values = {item.keyword.decode(): (item.val or b"").decode() for item in pq.Conninfo.get_defaults()}
    values |= {name: str(value) for name, value in parameters.items()}
    if sys.platform == "win32":  # where a program gets one text, and the first word may have backslashes
        return _PLACEHOLDER.sub(lambda match: subprocess.list2cmdline([values.get(match[1], "")]), command)
    # Put in after the words are told apart: no value becomes two of them.
    return [_PLACEHOLDER.sub(lambda match: values.get(match[1], ""), word) for word in shlex.split(command)]


def _run_command(arguments: list[str] | str) -> str:
    try:
        process = subprocess.run(
            arguments, stdin=subprocess.DEVNULL, capture_output=True, timeout=_COMMAND_SECONDS, check=False,
            creationflags=NO_WINDOW,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise _command_failure(f"it took more than {_COMMAND_SECONDS:.0f} seconds") from None
    except OSError as error:
        raise _command_failure(describe_os_error(error)) from None
    complaints = process.stderr.decode("utf-8", "replace").strip().splitlines()
    if complaints:
        logger.warning("The command of --password-command says: %s", complaints[-1][:500])
    if process.returncode:
        raise _command_failure(f"it ended with {process.returncode}")
    try:
        password = process.stdout.decode().strip("\r\n")
    except UnicodeDecodeError as error:
        # A password in which other characters stand would only be wrong, and could lock the role out.
        raise _command_failure(f"what it printed is not UTF-8 at byte {error.start + 1}") from None
    if not password:
        raise _command_failure("it printed nothing")
    return password


def _command_failure(reason_text: str) -> Unavailable:
    return Unavailable(
        f"The command of `--password-command` gave no password: {reason_text}.",
        "The operator finds what it said in the server's log.",
        retry_after=5,
    )


def _read_file(file: str) -> str:
    try:
        with open_text(file) as stream:
            return stream.read().strip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError):
            reason_text = describe_os_error(error)
        else:
            reason_text = str(error)
        raise Unavailable(f"The file of `--password-file` can't be read: {reason_text}.") from None
