"""What users reported of other servers and agents that work with files, tried on mcp-fs with input of our own."""

import os
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


@pytest.mark.reported("CherryHQ/cherry-studio#15202")
async def test_a_file_that_others_wrote_is_read_as_it_is_now(tmp_path: Path) -> None:
    note = tmp_path / "播放.kt"
    async with serving(tmp_path) as client:
        await call(client, "write_file", path=note.name, content="one\ntwo\n")
        assert "two" in (await call(client, "read_text", path=note.name))[1]
        before = note.stat()
        # Of the same size, with the old time of change, under the same name.
        note.write_text("one\nnew\n", "utf-8")
        os.utime(note, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert (await call(client, "read_text", path=note.name))[1].endswith("\none\nnew\n")
        other = tmp_path / "other"
        other.write_text("1\n" * 276, "utf-8")
        other.replace(note)
        assert (await call(client, "read_text", path=note.name))[1].startswith("[lines 1-276 of 276,")


@pytest.mark.reported("wonderwhy-er/DesktopCommanderMCP#554")
async def test_an_edit_that_makes_a_file_longer_keeps_its_end(tmp_path: Path) -> None:
    text = "".join(f"line {number} {'x' * (number % 3000)}\n" for number in range(1100)) + "\\end{document}"
    file = tmp_path / "paper.tex"
    file.write_text(text, "utf-8")
    async with serving(tmp_path) as client:
        for number in (3, 500, 1099):
            edits = [{"old_text": f"line {number} ", "new_text": f"line {number} {'longer ' * 100}"}]
            assert not (await call(client, "edit_file", path="paper.tex", edits=edits))[0]
            text = text.replace(f"line {number} ", f"line {number} {'longer ' * 100}")
    assert file.read_text("utf-8") == text


@pytest.mark.reported("MarcusJellinghaus/mcp-workspace#96")
@pytest.mark.reported("mario-andreschak/FLUJO#187")
@pytest.mark.reported("Digital-Process-Tools/claude-supertool#1049")
@pytest.mark.parametrize("file_end", ["\n", "\r\n"])
@pytest.mark.parametrize("said_end", ["\n", "\r\n"])
async def test_an_edit_keeps_the_line_ends_of_the_file(file_end: str, said_end: str, tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(b"one\ntwo\nthree\nfour\n".replace(b"\n", file_end.encode()))
    edit = {"old_text": "two\nthree".replace("\n", said_end), "new_text": "2\n2.5\n3".replace("\n", said_end)}
    async with serving(tmp_path) as client:
        failed, said = await call(client, "edit_file", path="a.py", edits=[edit])
        assert not failed, said
    assert file.read_bytes() == b"one\n2\n2.5\n3\nfour\n".replace(b"\n", file_end.encode())


@pytest.mark.reported("bytedance/UI-TARS-desktop#1977")
async def test_a_move_replaces_nothing_unasked(tmp_path: Path) -> None:
    for name in ("source.txt", "target.txt"):
        (tmp_path / name).write_text(name, "utf-8")
    async with serving(tmp_path) as client:
        for arguments in (
            {"source": "source.txt", "destination": "target.txt"},
            {"targets": {"source.txt": "target.txt"}},
        ):
            failed, said = await call(client, "move_file", **arguments)
            assert failed and "exists already; nothing was moved" in said
    assert [(tmp_path / name).read_text("utf-8") for name in ("source.txt", "target.txt")] == [
        "source.txt",
        "target.txt",
    ]


@pytest.mark.reported("modelcontextprotocol/servers#4666")
@pytest.mark.parametrize("boundary", [1024, 4096, 8192, 65536, 262144])
async def test_a_character_across_a_block_stays_whole(boundary: int, tmp_path: Path) -> None:
    for shift in (1, 2, 3):
        head = "a" * (boundary - shift) + "界" + "\n"
        tail = "界" + "b" * (boundary - shift) + "\n"
        (tmp_path / "a.txt").write_text(head + "middle\n" * 3 + tail, "utf-8")
        async with serving(tmp_path) as client:
            for arguments in ({"head": 2}, {"tail": 2}, {"start_line": 1, "end_line": 5}):
                failed, said = await call(client, "read_text", path="a.txt", max_bytes=1_000_000, **arguments)
                assert not failed and "�" not in said and "界" in said


@pytest.mark.skipif(sys.platform == "win32", reason="has no modes")
@pytest.mark.reported("modelcontextprotocol/servers#4115")
@pytest.mark.reported("modelcontextprotocol/servers#4512")
async def test_a_change_keeps_the_mode_and_says_what_it_can_not_keep(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text("echo a\n", "utf-8")
    script.chmod(0o751)
    async with serving(tmp_path) as client:
        edits = [{"old_text": "a", "new_text": "b"}]
        for tool, arguments in (
            ("edit_file", {"edits": edits}),
            ("write_file", {"content": "echo c\n", "overwrite": True}),
            ("write_file", {"content": "echo d\n", "append": True}),
        ):
            assert not (await call(client, tool, path="run.sh", **arguments))[0]
            assert script.stat().st_mode & 0o777 == 0o751
        (tmp_path / "second").hardlink_to(script)
        _, said = await call(client, "write_file", path="run.sh", content="new\n", overwrite=True)
        assert "it had 2 hard links; the other names keep the old content" in said, said


@_NEEDS_LINKS
@pytest.mark.reported("modelcontextprotocol/servers#734")
@pytest.mark.reported("dmlc/dmlc-core#358")
async def test_what_lies_deep_behind_a_link_is_reached_and_a_dead_link_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "real/src/deep").mkdir(parents=True)
    (tmp_path / "real/src/deep/readme.md").write_text("deep\n", "utf-8")
    (tmp_path / "linked").symlink_to(tmp_path / "real")
    (tmp_path / "linked/.#lock").symlink_to("user@host.1234")
    (tmp_path / "dead").symlink_to("none")
    async with serving(tmp_path) as client:
        assert "deep/" in (await call(client, "list_directory", path="linked/src"))[1]
        assert (await call(client, "read_text", path="linked/src/deep/readme.md"))[1].endswith("\ndeep\n")
        assert "readme.md" in (await call(client, "find_files", path="linked", glob="*.md"))[1]
        for tool in ("list_directory", "list_tree"):
            for path in (".", "linked"):
                failed, said = await call(client, tool, path=path)
                assert not failed and ("dead" in said or "src/" in said), said


@pytest.mark.reported("github/copilot-cli#3389")
@pytest.mark.reported("cline/cline#2651")
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
async def test_a_byte_order_mark_neither_comes_nor_doubles(mark: bytes, tmp_path: Path) -> None:
    file = tmp_path / "a.md"
    file.write_bytes(mark + b"# t\r\nold\r\n")
    async with serving(tmp_path) as client:
        for old, new in (("# t", "# new"), ("old", "ö")):
            await call(client, "edit_file", path="a.md", edits=[{"old_text": old, "new_text": new}])
        await call(client, "replace_text", glob="a.md", replacements={"# new": "# last"})
        assert file.read_bytes() == mark + "# last\r\nö\r\n".encode()
        if mark:
            edit = {"old_text": "\ufeff# last", "new_text": "\ufeff# end", "lookalike": True}
            failed, said = await call(client, "edit_file", path="a.md", edits=[edit])
            assert not failed and file.read_bytes() == mark + "# end\r\nö\r\n".encode(), said
        await call(client, "write_file", path="a.md", content="\ufeff# written\n", overwrite=True)
        assert file.read_bytes() == b"\xef\xbb\xbf# written\r\n"


@_NEEDS_LINKS
@pytest.mark.reported("nicobailon/pi-mcp-adapter#597")
async def test_a_link_that_is_written_to_stays_one(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    target = tmp_path / "dotfiles/mcp.json"
    target.write_text("{}\n", "utf-8")
    link = tmp_path / "mcp.json"
    link.symlink_to("dotfiles/mcp.json")
    async with serving(tmp_path) as client:
        for tool, arguments in (
            ("write_file", {"content": '{"a": 1}\n', "overwrite": True}),
            ("edit_file", {"edits": [{"old_text": "1", "new_text": "2"}]}),
            ("write_file", {"content": "\n", "append": True}),
        ):
            failed, said = await call(client, tool, path="mcp.json", **arguments)
            assert not failed and link.is_symlink(), said
    assert target.read_text("utf-8") == '{"a": 2}\n\n'


@pytest.mark.reported("modelcontextprotocol/servers#735")
@pytest.mark.parametrize("pattern", ["*.ts", "**/*.ts", "src/**/*.ts", "src/*/*.{ts,tsx}"])
async def test_a_pattern_of_names_is_a_glob(pattern: str, tmp_path: Path) -> None:
    for name in ("src/a/x.ts", "src/a/x.tss", "node_modules/y.js"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("", "utf-8")
    async with serving(tmp_path) as client:
        assert (await call(client, "find_files", pattern=pattern))[1].split() == ["[1", "found]", "src/a/x.ts"]


@pytest.mark.reported("indexable-inc/index#943")
async def test_lines_in_the_middle_of_a_long_file_are_read(tmp_path: Path) -> None:
    (tmp_path / "long.py").write_text("".join(f"line {number}\n" for number in range(1, 2044)), "utf-8")
    async with serving(tmp_path) as client:
        _, said = await call(client, "read_text", path=str(tmp_path / "long.py"), start_line=1220, end_line=1340)
        assert said.splitlines()[1:] == [f"line {number}" for number in range(1220, 1341)]
        failed, said = await call(client, "read_text", path="long.py", start_line=3000)
        assert "no line 3,000 yet" in said
        failed, said = await call(client, "read_text", path=".")
        assert failed and "list_directory" in said
