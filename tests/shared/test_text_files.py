"""What the operator keeps in text files is read as editors and shells of every system write it."""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.server.request_state import RequestStateSecurity

from mcp_batteries.server.assemble import _read_state_keys
from mcp_batteries.settings import load, open_text
from mcp_batteries.sql.saved_queries import SavedQueries
from mcp_batteries.subscriptions.config_file import ConfigFile
from mcp_batteries.transports.http.auth.tokens import Tokens, create_token
from mcp_github.client.credentials import _read_secret_file
from mcp_github.watch.webhook_deliveries import _read_secret
from mcp_postgres.engine.connection.passwords import _read_file
from mcp_sqlite.settings import Settings

TOKEN, LINE = create_token("someone read")
KEY = "0123456789abcdef" * 4


class Table(ConfigFile[str]):
    def entries(self, content: dict[str, Any]) -> dict[str, str]:
        return content


def by_variable(path: Path) -> object:
    os.environ["MCP_SQLITE_BUS_FILE"] = str(path)
    try:
        return load(Settings, []).bus
    finally:
        del os.environ["MCP_SQLITE_BUS_FILE"]


def knows(path: Path) -> bool:
    return anyio.run(Tokens(str(path)).verify_token, TOKEN) is not None


def keys(path: Path) -> bool:
    """Whether what was sealed with the key is opened."""
    guard = _read_state_keys(str(path))
    assert guard is not None
    sealed = RequestStateSecurity(keys=[KEY]).codec.seal(b"state")
    return guard.codec.unseal(sealed) == b"state"


def saved(path: Path) -> list[str]:
    async def compile_(query: object) -> None:
        pass

    queries = SavedQueries(str(path.parent), compile_)
    anyio.run(queries.refresh)
    return [query.sql for query in queries.queries.values()]


KEPT: dict[str, tuple[str, Callable[[Path], object]]] = {
    "a variable's file": ("redis://:pä@host\n", by_variable),
    "tokens": (f"# ä\n{LINE}\n", knows),
    "state keys": (f"{KEY}\n", keys),
    "a table": ('place = "Köln"\n', lambda path: Table(str(path), "The file").all()),
    "saved queries": ("-- Ä title\nSELECT 1", saved),
    "a token of GitHub": ("ghp_0123456789\n", lambda path: _read_secret_file(str(path), "token")),
    "a secret of GitHub": ("s3crät\n", lambda path: _read_secret(str(path))),
    "a password": ("p wörd\n", lambda path: _read_file(str(path))),
}


@pytest.mark.parametrize("what", KEPT)
def test_what_windows_writes_says_the_same(what: str, tmp_path: Path) -> None:
    """Notepad's mark before UTF-8, and UTF-16 from `>` in Windows PowerShell, both with CR LF."""
    text, read = KEPT[what]
    path = tmp_path / "kept.sql"
    path.write_bytes(text.encode())
    expected = read(path)
    assert expected
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        path.write_bytes(text.replace("\n", "\r\n").encode(encoding))
        assert read(path) == expected, encoding
    path.write_bytes(b"\xff\xfeb")
    with pytest.raises(UnicodeDecodeError), open_text(str(path)) as file:
        file.read()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are of POSIX")
def test_a_pipe_is_opened_once(tmp_path: Path) -> None:
    """As of `--token-file <(program)`."""
    os.mkfifo(pipe := tmp_path / "pipe")  # pyright: ignore[reportAttributeAccessIssue]
    writer = threading.Thread(target=pipe.write_text, args=("a",))
    writer.start()
    with open_text(str(pipe)) as file:
        assert file.read() == "a"
    writer.join()
