"""What users reported of other servers and agents that work with files, tried on mcp-fs with input of our own."""

import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from mcp_fs.server import build
from mcp_fs.settings import Settings

pytestmark = pytest.mark.anyio
_NEEDS_LINKS = pytest.mark.skipif(sys.platform == "win32", reason="a link is a privilege there")


def serving(folder: Path) -> Client:
    return Client(build(Settings(folders=(str(folder),))))


async def call(client: Client, tool: str, **arguments: Any) -> tuple[bool, str]:
    """Return whether a call failed, and what it says."""
    result = await client.call_tool(tool, arguments)
    return bool(result.is_error), "".join(getattr(block, "text", "") for block in result.content)


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder to be served, beside one whose name begins alike and that nobody serves."""
    for name in ("share", "share-secret"):
        (tmp_path / name).mkdir()
    (tmp_path / "share-secret" / "loot.md").write_text("the secret\n", "utf-8")
    return tmp_path / "share"


@pytest.mark.reported("modelcontextprotocol/servers#4157")
@pytest.mark.reported("bitbonsai/mcpvault#149")
@pytest.mark.parametrize("replacement", ["$$100", "$&", "$'", "$`", "$1", r"\1", "color=$'\\033[31m'"])
async def test_the_new_text_of_an_edit_is_no_pattern(replacement: str, tmp_path: Path) -> None:
    note = tmp_path / "price.txt"
    note.write_text("from TOKEN to\n", "utf-8")
    async with serving(tmp_path) as client:
        edits = [{"old_text": "TOKEN", "new_text": replacement}]
        assert not (await call(client, "edit_file", path="price.txt", edits=edits))[0]
    assert note.read_text("utf-8") == f"from {replacement} to\n"


@pytest.mark.reported("zcaceres/markdownify-mcp#123")
async def test_a_neighbour_whose_name_begins_alike_is_outside(shared: Path) -> None:
    loot = shared.with_name("share-secret") / "loot.md"
    async with serving(shared) as client:
        for path in (str(loot), "../share-secret/loot.md", f"{shared}-secret/loot.md"):
            failed, said = await call(client, "read_text", path=path)
            assert failed and "the secret" not in said


@_NEEDS_LINKS
@pytest.mark.reported("modelcontextprotocol/servers#1845")
async def test_a_link_to_the_outside_is_not_read(shared: Path) -> None:
    (shared / "notes.md").symlink_to(shared.with_name("share-secret") / "loot.md")
    async with serving(shared) as client:
        failed, said = await call(client, "read_text", path="notes.md")
        assert failed and "through a link" in said and "the secret" not in said
        assert "the secret" not in (await call(client, "search_text", pattern="secret"))[1]


@_NEEDS_LINKS
@pytest.mark.reported("wonderwhy-er/DesktopCommanderMCP#420")
async def test_a_new_file_is_not_made_beyond_a_link(shared: Path) -> None:
    outside = shared.with_name("share-secret")
    (shared / "out").symlink_to(outside)
    async with serving(shared) as client:
        for path in ("out/new.txt", "out/deep/new.txt"):
            assert (await call(client, "write_file", path=path, content="x"))[0]
    assert [item.name for item in outside.iterdir()] == ["loot.md"]


@_NEEDS_LINKS
@pytest.mark.reported("modelcontextprotocol/servers#3253")
async def test_a_folder_that_is_served_by_a_link_is_known_by_both_names(shared: Path) -> None:
    (shared / "a.txt").write_text("one\n", "utf-8")
    alias = shared.with_name("alias")
    alias.symlink_to(shared)
    async with serving(alias) as client:
        for folder in (alias, shared):
            failed, said = await call(client, "read_text", path=str(folder / "a.txt"))
            assert not failed and "one" in said
