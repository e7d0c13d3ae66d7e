"""What users reported of other servers and agents that work with files, tried on mcp-fs with input of our own."""

import base64
import io
import os
import random
import stat
import sys
import unicodedata
import zipfile
from pathlib import Path
from typing import Any, Literal

import pytest
from mcp import Client
from mcp_types import ImageContent
from PIL import Image

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


@pytest.mark.reported("anthropics/claude-code#62723")
@pytest.mark.reported("anomalyco/opencode#49600")
@pytest.mark.reported("github/copilot-cli#3732")
async def test_an_edit_keeps_the_bytes_of_the_rest_whatever_their_encoding(tmp_path: Path) -> None:
    files = {
        "latin.c": (b"const x = 1;\n// caf\xe9 note\n", "x = 1", "x = 2"),
        "japan.ini": ("設定=値\n名前=テスト\n".encode("cp932"), "テスト", "試験"),
        "mixed.log": (b"first line\nbad \xff\xfe\x80 bytes \xc3\xa9\n", "first", "1st"),
    }
    async with serving(tmp_path) as client:
        for name, (data, old_text, new_text) in files.items():
            (tmp_path / name).write_bytes(data)
            edit = {"old_text": old_text, "new_text": new_text}
            failed, said = await call(client, "edit_file", path=name, edits=[edit])
            encoding = "cp932" if name == "japan.ini" else "ascii"
            assert not failed, said
            assert (tmp_path / name).read_bytes() == data.replace(old_text.encode(encoding), new_text.encode(encoding))
        before = (tmp_path / "latin.c").read_bytes()
        edit = {"old_text": "x = 2", "new_text": "x = 日本"}
        failed, said = await call(client, "edit_file", path="latin.c", edits=[edit])
        assert failed and "`日` can't be written in latin-1" in said and (tmp_path / "latin.c").read_bytes() == before


@pytest.mark.reported("microsoft/vscode#321345")
@pytest.mark.reported("sublimehq/sublime_merge#1403")
@pytest.mark.reported("PyYoshi/cChardet#101")
@pytest.mark.reported("notepad-plus-plus/notepad-plus-plus#431")
@pytest.mark.reported("notepad-plus-plus/notepad-plus-plus#12847")
async def test_letters_of_an_old_file_are_read_found_and_written_in_its_encoding(tmp_path: Path) -> None:
    form = "Мужчина\nГод рождения = 1959\nДень рождения = 31\n" + "А" * 60 + "\n"
    files = {
        "a.txt": ("Miś i Śnieg na Łące: ąćęłńóśźż\nkoniec\n", "cp1250", "koniec", "źródło"),
        "b.txt": ("Weź SLIMOK: Świeży ślimak, jeśli masz chęć.\nkoniec\n", "cp1250", "koniec", "Ślad"),
        "c.csv": (
            "Вольво Isitan R 1270х68 - 1700 евро\nВольво Isitan R 1270х75 - 2000 евро\n",
            "cp1251",
            "1700",
            "две",
        ),
        "d.txt": (form, "cp1251", "1959", "нет"),
    }
    async with serving(tmp_path) as client:
        for name, (text, codec, old_text, new_text) in files.items():
            (tmp_path / name).write_bytes(text.encode(codec))
            failed, said = await call(client, "read_text", path=name)
            assert not failed and said.partition("]\n")[2] == text, said
            edit = {"old_text": old_text, "new_text": new_text}
            failed, said = await call(client, "edit_file", path=name, edits=[edit])
            assert not failed, said
            assert (tmp_path / name).read_bytes() == text.replace(old_text, new_text).encode(codec)
            failed, said = await call(client, "search_text", pattern=new_text, path=name)
            assert not failed and said.startswith("[1 match "), said


@pytest.mark.reported("langchain-ai/deepagents#5589")
@pytest.mark.reported("MoonshotAI/kimi-cli#2631")
@pytest.mark.parametrize("replace_all", [True, False])
async def test_an_empty_old_text_changes_nothing(replace_all: bool, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("abc\n", "utf-8")
    async with serving(tmp_path) as client:
        edit = {"old_text": "", "new_text": "X", "replace_all": replace_all}
        assert (await call(client, "edit_file", path="a.txt", edits=[edit]))[0]
        assert (await call(client, "replace_text", glob="a.txt", replacements={"": "X"}))[0]
    assert (tmp_path / "a.txt").read_text("utf-8") == "abc\n"


@pytest.mark.reported("defilantech/LLMKube#1487")
@pytest.mark.reported("anthropics/claude-code#78827")
async def test_a_match_in_a_line_of_a_megabyte_is_shown_with_what_is_around_it(tmp_path: Path) -> None:
    (tmp_path / "three.min.js").write_text(f"{'x' * 600_000}needle{'y' * 500_000}\n", "utf-8")
    async with serving(tmp_path) as client:
        _, said = await call(client, "search_text", pattern="needle")
        assert "xneedley" in said and "[cut: 1,100,006 bytes]" in said and len(said) < 2000


@pytest.mark.reported("langchain-ai/deepagents#3031")
async def test_an_edit_that_expects_a_last_line_end_is_told_that_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo", "utf-8")
    async with serving(tmp_path) as client:
        for old_text, is_told in (("two\n", True), ("one\ntwo\n", True), ("one\ntwO", False), ("onE\n", False)):
            edit = {"old_text": old_text, "new_text": "2\n"}
            failed, said = await call(client, "edit_file", path="a.txt", edits=[edit])
            assert failed and ("without a line end" in said) == is_told, said


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


@pytest.mark.reported("earendil-works/pi#9697")
@pytest.mark.reported("use-agent-os/agent-os#2290")
@pytest.mark.reported("NousResearch/hermes-agent#56211")
async def test_matches_that_overlap_are_ambiguous_and_are_replaced_one_behind_the_other(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("foo\nfoo\nfoo\n", "utf-8")
    async with serving(tmp_path) as client:
        edit = {"old_text": "foo\nfoo\n", "new_text": "new\n"}
        failed, said = await call(client, "edit_file", path="a.txt", edits=[edit])
        assert failed and "2 times, at lines 1, 2" in said and file.read_text("utf-8") == "foo\nfoo\nfoo\n"
        file.write_text("aaaa aaa\n", "utf-8")
        edit = {"old_text": "aa", "new_text": "b", "replace_all": True}
        failed, said = await call(client, "edit_file", path="a.txt", edits=[edit])
        assert not failed and file.read_text("utf-8") == "bb ba\n", said


async def patched(folder: Path, before: str, *lines: str) -> tuple[str, str]:
    """Return what a file holds after a patch without line numbers, and what the answer says."""
    file = folder / "a.txt"
    file.write_bytes(before.encode())
    patch = "\n".join(["*** Begin Patch", "*** Update File: a.txt", *lines, "*** End Patch"])
    async with serving(folder) as client:
        _, said = await call(client, "edit_files", patch=patch)
    return file.read_bytes().decode(), said


@pytest.mark.reported("use-agent-os/agent-os#1577")
@pytest.mark.reported("deer-flow/llm-space#174")
async def test_an_empty_line_of_a_patch_is_context_where_it_is_not_the_end(tmp_path: Path) -> None:
    assert (await patched(tmp_path, "foo\n\nbar\n", "@@", " foo", "", "-bar", "+baz"))[0] == "foo\n\nbaz\n"
    assert (await patched(tmp_path, "foo\nbar\n\nbaz\n", "@@", " foo", "-bar", "+new", ""))[0] == "foo\nnew\n\nbaz\n"


@pytest.mark.reported("use-agent-os/agent-os#1907")
@pytest.mark.reported("HKUDS/nanobot#4266")
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("marked", [True, False])
async def test_a_line_behind_one_without_an_end_is_a_line_of_its_own(
    line_end: str, marked: bool, tmp_path: Path
) -> None:
    end = ["*** End of File"] if marked else []
    after, said = await patched(tmp_path, f"hello{line_end}world", "@@", " world", "+tail", *end)
    assert after == f"hello{line_end}world{line_end}tail", said
    after, said = await patched(tmp_path, f"hello{line_end}world", "@@", "+tail", "*** End of File")
    assert after == f"hello{line_end}world{line_end}tail", said


@pytest.mark.reported("openai/openai-agents-python#4660")
@pytest.mark.reported("openclaw/openclaw#124379")
async def test_the_end_of_the_file_says_which_lines_a_patch_means(tmp_path: Path) -> None:
    end = "*** End of File"
    assert (await patched(tmp_path, "a\nb\n", "@@", "+c", end))[0] == "a\nb\nc\n"
    assert (await patched(tmp_path, "x\nfoo\ny\nfoo\n", "@@", " foo", "+new", end))[0] == "x\nfoo\ny\nfoo\nnew\n"
    assert (await patched(tmp_path, "a\nb\n", "@@", "-b", "+c", "@@", "+d", end))[0] == "a\nc\nd\n"
    # A hunk does not take again what one before it has taken.
    after, said = await patched(tmp_path, "A\nB\nC\n", "@@", "-A", "-B", "-C", "+ABC", "@@", "-C", "+X", end)
    assert after == "A\nB\nC\n" and "its lines are not in the file" in said


@pytest.mark.reported("openclaw/openclaw#116124")
async def test_context_that_is_not_exact_changes_no_line(tmp_path: Path) -> None:
    before = "tail  \nit\u2019s\n\tTab\nold\n"
    after, said = await patched(tmp_path, before, "@@", " tail", " it's", "     Tab", "-old", "+new")
    assert after == before and "copy it exactly, blanks included" in said


@pytest.mark.reported("githubnext/copilot-workspace-user-manual#79")
@pytest.mark.reported("dotansimha/graphql-code-generator#3058")
async def test_a_folder_with_brackets_in_its_name_is_found_and_changed(tmp_path: Path) -> None:
    page = tmp_path / "app/issues/[id]/page.tsx"
    page.parent.mkdir(parents=True)
    page.write_text("old\n", "utf-8")
    path = "app/issues/[id]/page.tsx"
    async with serving(tmp_path) as client:
        assert not (await call(client, "edit_file", path=path, edits=[{"old_text": "old", "new_text": "new"}]))[0]
        for tool, arguments in (
            ("find_files", {"glob": "app/**/[id]/*.tsx"}),
            ("search_text", {"pattern": "new", "glob": path}),
            ("read_files", {"paths": ["app/issues/[id]/*"]}),
            ("replace_text", {"replacements": {"new": "newer"}, "glob": path}),
            ("delete_file", {"paths": ["app/issues/[id]/*.tsx"]}),
        ):
            failed, said = await call(client, tool, **arguments)
            assert not failed and path in said, said
    assert not page.exists()


@pytest.mark.reported("anthropics/claude-code#84161")
@pytest.mark.reported("ggreer/the_silver_searcher#287")
@pytest.mark.reported("ggreer/the_silver_searcher#1563")
async def test_what_rules_hide_from_a_search_is_told(tmp_path: Path) -> None:
    for name, text in (
        (".gitignore", "scripts/*\n"),
        ("scripts/writer.py", "needle\n"),
        ("foo/.gitignore", "bar/haystack\n"),
        ("foo/bar/haystack", "needle\n"),
        ("odd/.gitignore", "*\n!*.*\n!*/\n"),
        ("odd/binary", "needle\n"),
        ("odd/src/main.c", "needle\n"),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    async with serving(tmp_path) as client:
        for path, hidden in (("scripts", "scripts/writer.py"), ("foo/bar", "foo/bar/haystack")):
            _, said = await call(client, "search_text", pattern="needle", path=path)
            assert said.startswith(f"[0 files match; left out 1 ignored ({hidden})"), said
        _, said = await call(client, "search_text", pattern="needle", path="odd")
        assert said.splitlines()[1:] == ["odd/src/main.c:1:needle"]


@pytest.mark.reported("zhayujie/CowAgent#2943")
@pytest.mark.reported("langchain-ai/deepagents#4730")
async def test_the_last_line_is_the_one_before_the_last_line_end(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("line1\nline2\nline3\n", "utf-8")
    async with serving(tmp_path) as client:
        assert (await call(client, "read_text", path="a.txt", tail=1))[1].splitlines()[1:] == ["line3"]
        assert (await call(client, "read_text", path="a.txt", tail=2))[1].splitlines()[1:] == ["line2", "line3"]
        failed, said = await call(client, "read_text", path="a.txt", start_line=4)
        assert not failed and said.startswith("[no line 4 yet, 3 lines")


@_NEEDS_LINKS
@pytest.mark.reported("omkarcloud/botasaurus#303")
@pytest.mark.reported("weichsel/ZIPFoundation#282")
async def test_no_archive_is_unpacked_through_a_link(shared: Path) -> None:
    outside = shared.with_name("share-secret")
    (shared / "out").symlink_to(outside)
    with zipfile.ZipFile(shared / "a.zip", "w") as archive:
        link = zipfile.ZipInfo("sub")
        link.create_system = 3
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, str(outside))
        archive.writestr("sub/new.txt", "x")
    async with serving(shared) as client:
        for target in ("out", "out/", "out/new"):
            assert (await call(client, "copy_file", source="a.zip!/", target=target))[0]
        failed, said = await call(client, "copy_file", source="a.zip!/", target="there")
        assert not failed and "links: sub" in said, said
    assert [item.name for item in outside.iterdir()] == ["loot.md"]
    assert not (shared / "there/sub").is_symlink()


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="needs a folder that can't be read")
@pytest.mark.reported("xcjy8bao/baoer_signal_grep#46")
@pytest.mark.reported("gmickel/gno#183")
async def test_a_folder_that_can_not_be_read_stops_no_search(tmp_path: Path) -> None:
    for name in ("ok", "locked"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.md").write_text("needle here\n", "utf-8")
    (tmp_path / "locked").chmod(0)
    try:
        async with serving(tmp_path) as client:
            failed, said = await call(client, "search_text", pattern="needle")
            assert not failed and "ok/a.md:1:needle here" in said and "could not be opened: locked" in said
    finally:
        (tmp_path / "locked").chmod(0o700)


def write_old_zip(path: Path, encoding: str, files: dict[str, str]) -> None:
    """Write an archive whose names are in an encoding that it does not say, as Windows of other languages do."""
    raw_names = {name: name.encode(encoding) for name in files}
    places = {name: f"{number:@>{len(raw_names[name])}}" for number, name in enumerate(files)}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(places[name], content)
    data = path.read_bytes()
    for name, place in places.items():
        data = data.replace(place.encode(), raw_names[name])
    path.write_bytes(data)


@pytest.mark.reported("kuba--/zip#233")
@pytest.mark.reported("nih-at/libzip#212")
@pytest.mark.reported("ib/xarchiver#224")
@pytest.mark.parametrize(
    ("encoding", "names", "label"),
    [
        ("gbk", ["蝴蝶代码与烧录工具/说明.txt", "报告2026.csv"], "gbk"),
        ("gbk", ["照片.jpg"], "gbk"),
        ("shift_jis", ["新しいフォルダ/新しいテキスト ドキュメント.txt", "ソ835C.txt"], "cp932"),
        ("big5", ["尤里的陰謀v1.0/二月.pdf"], "big5"),
        ("cp949", ["보고서.hwp", "사진/여행.jpg", "새 폴더/문서.txt"], "cp949"),
        ("cp866", ["Документы/Отчёт за год.txt", "ОТЧЕТ.DOC"], "cp866"),
        ("utf-8", ["Müller/说明.txt"], ""),
        ("cp437", ["Müller/Straße.txt", "Größe/Größe.xls", "élève à côté.txt", "première pièce.doc", "ÄÖÜ.txt"], ""),
        ("cp437", ["señor/año.txt", "naïve forêt.txt"], ""),
    ],
)
async def test_names_in_an_archive_are_read_in_the_encoding_that_they_look_like(
    encoding: str, names: list[str], label: str, tmp_path: Path
) -> None:
    write_old_zip(tmp_path / "a.zip", encoding, {name: f"in {name}" for name in names})
    async with serving(tmp_path) as client:
        failed, listing = await call(client, "read_text", path="a.zip")
        assert not failed and [line.split("\t")[0] for line in listing.splitlines()[1:] if line] == names, listing
        first_line = listing.splitlines()[0]
        assert (f"names read as {label}, which they look like" in first_line) if label else "read as" not in first_line
        for name in names:
            assert f"in {name}" in (await call(client, "read_text", path=f"a.zip!/{name}"))[1]
        failed, unpacked = await call(client, "copy_file", source="a.zip!/", target="there")
        assert not failed and bool(label) == ("names read as" in unpacked), unpacked
    assert {str(path.relative_to(tmp_path / "there")) for path in (tmp_path / "there").rglob("*.*")} >= {
        str(Path(name)) for name in names
    }


@pytest.mark.reported("toolscode/findinfiles#9")
@pytest.mark.reported("lidge-jun/aside-codemode#30")
@pytest.mark.parametrize("asked_form", ["NFC", "NFD"])
@pytest.mark.parametrize(
    ("word", "options"),
    [
        ("Käse", {}),
        ("Käse", {"literal": True}),
        ("KÄSE", {"literal": True, "ignore_case": True}),
        (r"\bKäse\b", {}),
        ("K(ä)+se", {}),
        ("학점인정", {}),
    ],
)
async def test_a_word_is_found_however_its_letters_are_composed(
    asked_form: Literal["NFC", "NFD"], word: str, options: dict[str, bool], tmp_path: Path
) -> None:
    text = "der Käse 학점인정 hier\n"
    (tmp_path / "composed.txt").write_text(text, "utf-8")
    (tmp_path / "apart.txt").write_text(unicodedata.normalize("NFD", text), "utf-8")
    (tmp_path / "apart.csv").write_text(unicodedata.normalize("NFD", text), "utf-16")
    (tmp_path / "other.txt").write_text("der Kase\n", "utf-8")
    pattern = unicodedata.normalize(asked_form, word)
    async with serving(tmp_path) as client:
        failed, said = await call(client, "search_text", pattern=pattern, files_only=True, **options)
    assert not failed and said.split("\n")[1:4] == ["apart.csv", "apart.txt", "composed.txt"], said


@pytest.mark.parametrize("sign", ["\u2126", "\u212b", "\uf90a"])
@pytest.mark.reported("lidge-jun/aside-codemode#30")
async def test_a_sign_that_other_forms_replace_is_found_as_itself(sign: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(f"10 {sign}\n", "utf-8")
    (tmp_path / "b.txt").write_text(unicodedata.normalize("NFC", f"10 {sign}\n"), "utf-8")
    async with serving(tmp_path) as client:
        for options in ({}, {"literal": True}):
            said = (await call(client, "search_text", pattern=f"0 {sign}", files_only=True, **options))[1]
            assert said.split("\n")[1:3] == ["a.txt", "b.txt"]


@pytest.mark.reported("lidge-jun/aside-codemode#30")
@pytest.mark.parametrize("by", ["text", "word", "regex"])
async def test_a_word_is_replaced_however_its_letters_are_composed(by: str, tmp_path: Path) -> None:
    for form in ("NFC", "NFD"):
        (tmp_path / form).write_text(unicodedata.normalize(form, "ein Käse\n"), "utf-8")
    async with serving(tmp_path) as client:
        failed, _ = await call(client, "replace_text", replacements={"Käse": "Brot"}, glob="*", by=by)
    assert not failed and {path.read_text("utf-8") for path in tmp_path.iterdir()} == {"ein Brot\n"}


@pytest.mark.reported("firasdib/Regex101#1330")
@pytest.mark.reported("rmlockwood/FLExTrans#1350")
@pytest.mark.parametrize("new_text", [r"\U\1", r"<\u\g<1>>", r"\L\0\E"])
async def test_a_replacement_that_asks_for_capitals_is_not_written_as_it_stands(new_text: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("left arrow\n", "utf-8")
    async with serving(tmp_path) as client:
        failed, said = await call(client, "replace_text", replacements={r"(\w+)": new_text}, glob="*", by="regex")
        assert failed and "asks for another letter case" in said
        path = {r"(\w+) arrow": r"C:\\Users\\\1"}
        assert not (await call(client, "replace_text", replacements=path, glob="*", by="regex"))[0]
    assert (tmp_path / "a.txt").read_text("utf-8") == "C:\\Users\\left\n"


@pytest.mark.reported("vybestack/llxprt-code#3597")
async def test_a_hunk_above_the_one_before_is_not_applied_to_lines_that_look_alike(tmp_path: Path) -> None:
    text = "".join("    send(error)\n" if number in (5, 40) else f"line {number}\n" for number in range(1, 51))
    (tmp_path / "http.rs").write_text(text, "utf-8")
    hunks = ["@@ -20,2 +20,1 @@\n-line 20\n line 21\n", "@@ -5 +5 @@\n-    send(error)\n+    send(error).await\n"]
    async with serving(tmp_path) as client:
        failed, said = await call(client, "edit_files", patch="--- http.rs\n+++ http.rs\n" + "".join(hunks))
        assert failed and "Hunk 2 of `http.rs` is above the hunk before" in said
        assert (tmp_path / "http.rs").read_text("utf-8") == text
        assert not (await call(client, "edit_files", patch="--- http.rs\n+++ http.rs\n" + "".join(hunks[::-1])))[0]
    lines = (tmp_path / "http.rs").read_text("utf-8").splitlines()
    assert [lines[4], lines[38]] == ["    send(error).await", "    send(error)"]


@pytest.mark.reported("can1357/oh-my-pi#10454")
async def test_a_patch_changes_no_lines_above_the_one_that_it_stands_under(tmp_path: Path) -> None:
    text = "class A:\n    def f(self):\n        return 1\n\nclass B:\n    def f(self):\n        return 2\n"
    (tmp_path / "a.py").write_text(text, "utf-8")
    patch = "*** Begin Patch\n*** Update File: a.py\n@@ class B:\n-        return 1\n+        return 3\n*** End Patch"
    async with serving(tmp_path) as client:
        failed, said = await call(client, "edit_files", patch=patch)
        assert failed and "its lines are at line 3, above `class B:` at line 5" in said
        assert (tmp_path / "a.py").read_text("utf-8") == text
        assert not (await call(client, "edit_files", patch=patch.replace("class B:", "class A:")))[0]
        # Among the lines of the hunk itself it says where they are.
        within = patch.replace(
            "-        return 1\n+        return 3", " \n class B:\n-    def f(self):\n+    def g(self):"
        )
        assert not (await call(client, "edit_files", patch=within))[0]
    assert (tmp_path / "a.py").read_text("utf-8") == text.replace("return 1", "return 3").replace(
        "B:\n    def f", "B:\n    def g"
    )


@pytest.mark.reported("holon-run/holon#2741")
async def test_of_a_long_text_that_is_not_there_the_lines_that_differ_are_shown(tmp_path: Path) -> None:
    lines = [f"line {number}\n" for number in range(1, 60)]
    (tmp_path / "a.txt").write_text("".join(lines), "utf-8")
    old_text = "".join([*lines[9:30], "line thirty-one\n", *lines[31:40]])
    async with serving(tmp_path) as client:
        edits = [{"old_text": old_text, "new_text": "x\n"}]
        failed, said = await call(client, "edit_file", path="a.txt", edits=edits)
    assert failed and "The nearest is at line 10, and differs from line 31 on" in said
    assert said.splitlines()[1:3] == ["line 31", "line 32"]


@pytest.mark.reported("fivethirtyeight/data#287")
@pytest.mark.reported("WarrenWilkinson/read-csv#7")
async def test_a_table_whose_lines_end_in_cr_alone_is_not_told_as_one_line_without_a_word(tmp_path: Path) -> None:
    (tmp_path / "mac.csv").write_bytes(b"name,qty\rA,1\rB,2\r")
    (tmp_path / "one.csv").write_bytes(b"name,qty\r\n")
    async with serving(tmp_path) as client:
        assert "lines that end in CR alone are one here" in (await call(client, "read_text", path="mac.csv"))[1]
        assert "CR alone" not in (await call(client, "read_text", path="one.csv"))[1]
        replacements = {"\r": "\n"}
        assert not (await call(client, "replace_text", replacements=replacements, glob="mac.csv"))[0]
    assert (tmp_path / "mac.csv").read_bytes() == b"name,qty\nA,1\nB,2\n"


@pytest.mark.reported("openclaw/openclaw#14452")
@pytest.mark.parametrize("append", [False, True])
async def test_line_ends_that_are_written_out_are_told(append: bool, tmp_path: Path) -> None:
    (tmp_path / "b.md").write_text("# Old\n", "utf-8")
    name = "b.md" if append else "a.md"
    content = r"# Plan\n- one\n- two"
    async with serving(tmp_path) as client:
        failed, said = await call(client, "write_file", path=name, content=content, append=append)
        assert not failed and r"it is one line, in which \n stands 2 times as two characters" in said
        for right in ("one\ntwo", r'{"text": "one\ntwo\nthree"}', r"printf 'one\n'", "print(r'\\n\\n')\nx\n"):
            said = (await call(client, "write_file", path=name, content=right, overwrite=True))[1]
            assert "two characters" not in said
            assert (tmp_path / name).read_text("utf-8") == right


@pytest.mark.reported("logrotate/logrotate#363")
async def test_the_end_of_a_log_that_was_cut_while_it_was_written_is_read(tmp_path: Path) -> None:
    # Its writer goes on where it was, and a hole of NUL bytes is before that.
    (tmp_path / "app.log").write_bytes(b"\0" * 70_000 + b"".join(b"line %d\n" % number for number in range(200)))
    async with serving(tmp_path) as client:
        failed, said = await call(client, "read_text", path="app.log", tail=2)
        assert not failed and said.endswith("\nline 198\nline 199\n")
        assert ":200:line 199" in (await call(client, "search_text", pattern="line 199", path="app.log"))[1]


@pytest.mark.reported("BurntSushi/ripgrep#2770")
@pytest.mark.parametrize("rule", ["**/bar/*", "/foo/bar/", "foo/*/*"])
async def test_the_rules_of_the_root_hold_in_a_folder_that_is_searched_alone(rule: str, tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text(f"{rule}\n", "utf-8")
    (tmp_path / "foo" / "bar").mkdir(parents=True)
    for path in ("foo/bar/baz", "foo/seen"):
        (tmp_path / path).write_text("quux\n", "utf-8")
    async with serving(tmp_path) as client:
        for tool, options in (("search_text", {"pattern": "quux", "files_only": True}), ("find_files", {"glob": "*"})):
            assert (await call(client, tool, path="foo", **options))[1].split("\n")[1:] == ["foo/seen", ""]


@pytest.mark.reported("vybestack/llxprt-code#3033")
async def test_a_patch_deletes_no_file_that_holds_more_than_it_says(tmp_path: Path) -> None:
    (tmp_path / "a.ts").write_text("a\nb\nc\n", "utf-8")
    async with serving(tmp_path) as client:
        patch = "--- a/a.ts\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n"
        failed, said = await call(client, "edit_files", patch=patch)
        assert failed and "`a.ts` holds more than the patch removes" in said
        assert (tmp_path / "a.ts").read_text("utf-8") == "a\nb\nc\n"
        assert not (await call(client, "edit_files", patch=patch.replace("1,2", "1,3") + "-c\n"))[0]
    assert not (tmp_path / "a.ts").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="no other system does nothing there")
@pytest.mark.reported("metabrainz/picard#1674")
async def test_another_spelling_is_given_where_the_kernel_takes_both_for_one_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    one, other = (unicodedata.normalize(form, "é.txt") for form in ("NFD", "NFC"))
    (tmp_path / one).write_text("whole\n", "utf-8")
    # As on FAT and SMB shares, which the kernels of tests seldom know.
    monkeypatch.setattr("mcp_fs.engine.handles.posix.Folder.rename", lambda *_: None)
    async with serving(tmp_path) as client:
        assert not (await call(client, "move_file", targets={one: other}))[0]
    assert os.listdir(tmp_path) == [other] and (tmp_path / other).read_text("utf-8") == "whole\n"


@pytest.mark.reported("bellard/quickjs#179")
@pytest.mark.parametrize(
    ("texts", "options"),
    [
        (["_x", "1", "a", "A", "ä", "b", "B", "Straße", "z", "Z"], ""),
        (["f1.md", "f2.md", "F10.md", "f010a.md"], ", undefined, {numeric: true}"),
    ],
)
async def test_a_script_sorts_names_as_people_do(texts: list[str], options: str, tmp_path: Path) -> None:
    script = f"print({texts[::-1]}.sort((one, other) => one.localeCompare(other{options})).join(' '))"
    async with serving(tmp_path) as client:
        failed, said = await call(client, "call_tools", script=script)
    assert not failed and said.split() == texts


@pytest.mark.reported("bellard/quickjs#179")
@pytest.mark.parametrize(
    ("comparison", "is_equal"),
    [
        ("'a'.localeCompare('A', 'en', {sensitivity: 'base'})", True),
        ("'STRASSE'.localeCompare('Straße', 'de', {sensitivity: 'base'})", True),
        ("'é'.localeCompare('E', undefined, {sensitivity: 'base'})", True),
        ("'é'.localeCompare('E', undefined, {sensitivity: 'accent'})", False),
        ("'a'.localeCompare('A')", False),
    ],
)
async def test_a_script_compares_names_by_what_it_says_counts(comparison: str, is_equal: bool, tmp_path: Path) -> None:
    async with serving(tmp_path) as client:
        failed, said = await call(client, "call_tools", script=f"print({comparison} === 0)")
    assert not failed and said.strip() == str(is_equal).lower()


@pytest.mark.reported("facebook/hermes#431")
@pytest.mark.reported("oracle/graaljs#377")
@pytest.mark.reported("bellard/quickjs#344")
@pytest.mark.parametrize(
    "form",
    [
        "toLocaleString('en-US', {timeZone: 'America/New_York'})",
        "toLocaleTimeString('en-US', {hour12: false})",
        "toLocaleDateString('en-US', {month: 'long'})",
        "toLocaleDateString('en-CA')",
    ],
)
async def test_a_script_gets_no_date_in_another_form_than_it_asked_for(form: str, tmp_path: Path) -> None:
    async with serving(tmp_path) as client:
        failed, said = await call(client, "call_tools", script=f"print(new Date('2026-07-01T23:30:00Z').{form})")
        assert failed and "take toISOString(), in UTC" in said
        plain = await call(client, "call_tools", script="print(new Date('2026-07-01T23:30:00Z').toLocaleDateString())")
    assert not plain[0] and "07/01/2026" in plain[1]


@pytest.mark.reported("CursorTouch/Windows-MCP#155")
@pytest.mark.reported("PrefectHQ/fastmcp#1036")
@pytest.mark.reported("mobile-next/mobile-mcp#169")
@pytest.mark.reported("trycua/cua#884")
@pytest.mark.parametrize("name", ["screen.png", "photo.jpg", "scan.pdf"])
async def test_a_picture_is_shown_in_an_answer_that_hosts_take(name: str, tmp_path: Path) -> None:
    size = (2560, 1440)
    picture = Image.frombytes("RGB", size, random.Random(1).randbytes(size[0] * size[1] * 3))
    picture.save(tmp_path / name)
    async with serving(tmp_path) as client:
        result = await client.call_tool("read_media", {"path": name})
    [shown] = [block for block in result.content if isinstance(block, ImageContent)]
    assert len(result.model_dump_json()) <= 1_048_576
    with Image.open(io.BytesIO(base64.b64decode(shown.data))) as decoded:
        assert max(decoded.size) <= 2000
