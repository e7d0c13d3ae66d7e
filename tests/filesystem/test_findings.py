"""What a hostile reader found once and must not find again."""

import sys
from pathlib import Path

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import PromptReference, ResourceTemplateReference, TextContent, TextResourceContents

from mcp_batteries.settings import load
from mcp_fs.server import build
from mcp_fs.settings import Settings

pytestmark = pytest.mark.anyio


async def call(client: Client, tool: str, **arguments: object) -> tuple[bool, str]:
    result = await client.call_tool(tool, arguments)
    return bool(result.is_error), "".join(block.text for block in result.content if isinstance(block, TextContent))


def serving(*folders: Path) -> Client:
    return Client(build(Settings(folders=tuple(map(str, folders)))))


async def test_another_spelling_of_a_name_is_found_where_links_are_not_followed(tmp_path: Path) -> None:
    decomposed = "cafe\u0301.txt"
    (tmp_path / decomposed).write_text("old", "utf-8")
    (tmp_path / "a.txt").write_text("new", "utf-8")
    async with serving(tmp_path) as client:
        assert (await call(client, "copy_file", source="a.txt", target="caf\u00e9.txt"))[0]
        assert sorted(item.name for item in tmp_path.iterdir()) == ["a.txt", decomposed]
        assert not (await call(client, "get_info", path="caf\u00e9.txt"))[0]
        assert not (await call(client, "delete_file", path="caf\u00e9.txt"))[0]
        assert [item.name for item in tmp_path.iterdir()] == ["a.txt"]


async def test_a_common_text_is_replaced_in_linear_time_and_told_in_little_memory(tmp_path: Path) -> None:
    (tmp_path / "min.json").write_text('{"b":1},' * 200_000, "utf-8")
    async with serving(tmp_path) as client:
        edit = {"old_text": "b", "new_text": "c"}
        failed, said = await call(client, "edit_file", path="min.json", edits=[edit])
        assert failed and "more than 10 times" in said
        failed, said = await call(client, "edit_file", path="min.json", edits=[{**edit, "replace_all": True}])
        assert not failed, said
        assert (tmp_path / "min.json").read_text("utf-8") == '{"c":1},' * 200_000


async def test_line_ends_that_look_alike_make_a_text_ambiguous(tmp_path: Path) -> None:
    (tmp_path / "mixed").write_bytes(b"q\na\nb\nr\r\na\r\nb\r\n")
    async with serving(tmp_path) as client:
        failed, said = await call(client, "edit_file", path="mixed", edits=[{"old_text": "a\nb", "new_text": "x"}])
        assert failed and "2 times, at lines 2, 5" in said


async def test_a_patch_deletes_the_file_it_describes_or_nothing(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("1\n2\n3\n4\n", "utf-8")
    async with serving(tmp_path) as client:
        patch = "--- a/f\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-1\n-2\n"
        failed, said = await call(client, "edit_files", patch=patch)
        assert failed and "more than the patch removes" in said
        assert (tmp_path / "f").read_text("utf-8") == "1\n2\n3\n4\n"


async def test_a_folder_with_the_name_of_a_leftover_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / ".~mcp-fs-x" / ".env").mkdir(parents=True)
    async with serving(tmp_path) as client:
        failed, said = await call(client, "write_file", path="new.txt", content="x")
        assert not failed, said


async def test_a_name_that_is_not_utf8_is_completed_as_its_uri(tmp_path: Path) -> None:
    try:
        (tmp_path / "caf\udce9").write_text("", "utf-8")
    except OSError:
        pytest.skip("this file system takes only UTF-8 names")
    async with serving(tmp_path) as client:
        template = ResourceTemplateReference(type="ref/resource", uri="file:///{+path}")
        top = str(tmp_path).lstrip("/")
        for typed in (f"{top}/", f"{top}/caf"):
            found = await client.complete(template, {"name": "path", "value": typed})
            assert found.completion.values == [f"{top}/caf%E9"]


async def test_a_prompt_completes_names_that_work_and_no_secrets(tmp_path: Path) -> None:
    for name in ("caf\udce9", "cafe\u0301.txt", "cafe.env", ".env"):
        try:
            (tmp_path / name).write_text("", "utf-8")
        except OSError:
            pytest.skip("this file system takes only UTF-8 names")
    async with serving(tmp_path) as client:
        reference = PromptReference(type="ref/prompt", name="review_file")
        found = await client.complete(reference, {"name": "path", "value": "caf"})
        assert found.completion.values == ["cafe\u0301.txt", f"{tmp_path.as_uri()}/caf%E9"]
        for path in found.completion.values:
            assert not (await call(client, "get_info", path=path))[0]
        found = await client.complete(reference, {"name": "path", "value": "caf\u00e9."})
        assert found.completion.values == ["cafe\u0301.txt"]
        assert (await client.complete(reference, {"name": "path", "value": ".e"})).completion.values == []


@pytest.mark.skipif(sys.platform == "win32", reason="a folder in use can't be renamed there")
async def test_a_served_folder_that_was_replaced_says_so(tmp_path: Path) -> None:
    served = tmp_path / "served"
    served.mkdir()
    async with serving(served) as client:
        served.rename(tmp_path / "old")
        served.mkdir()
        failed, said = await call(client, "list_directory")
        assert failed and "`served` was moved, removed or replaced" in said


ELSEWHERE = ("SRC/Main.py", "src\\main.py")
"""Paths that are right on Windows."""


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        *([] if sys.platform == "win32" else [(path, "Did you mean `src/main.py`?") for path in ELSEWHERE]),
        ('"src/main.py"', "Did you mean `src/main.py`?"),
        ("`src/main.py`\n", "Did you mean `src/main.py`?"),
        ("~/src/main.py", "Did you mean `src/main.py`?"),
        ("src/main%2Epy", "Did you mean `src/main.py`?"),
        ("top/src/main.py", "Did you mean `src/main.py`?"),
        ("lib/main.py", "The nearest folder that does is `.`; `find_files` finds `main.py` anywhere."),
        ("src/*.py", "`find_files` and `search_text` take one as `glob`"),
        ("zzz", "`find_files` to find `zzz` anywhere"),
    ],
)
async def test_a_path_that_leads_nowhere_is_answered_with_what_was_meant(
    tmp_path: Path, written: str, meant: str
) -> None:
    (tmp_path / "top/src").mkdir(parents=True)
    (tmp_path / "top/src/main.py").touch()
    (tmp_path / "top/src/id_rsa").touch()
    async with serving(tmp_path / "top") as client:
        failed, said = await call(client, "read_text", path=written)
        assert failed and meant in said


async def test_a_name_in_another_case_does_not_tell_of_a_secret(tmp_path: Path) -> None:
    (tmp_path / "id_rsa").touch()
    (tmp_path / "Id_Rsa_notes").touch()
    async with serving(tmp_path) as client:
        failed, said = await call(client, "read_text", path='"id_rsa')
        assert failed and "`id_rsa`" not in said


async def test_a_glob_that_fits_no_file_is_not_taken_for_a_text_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/main.py").write_text("def f(): ...\n", "utf-8")
    async with serving(tmp_path) as client:
        assert "no file fits" in (await call(client, "search_text", pattern="def", glob="src"))[1]
        assert "no file fits" not in (await call(client, "search_text", pattern="zzz", glob="*.py"))[1]
        for counted in ({"count_only": True}, {"only_matching": True}):
            assert "no file fits" not in (await call(client, "search_text", pattern="zzz", glob="*.py", **counted))[1]
        assert "1 match" in (await call(client, "search_text", pattern="def", file_type="Python"))[1]
        assert "`*part*`" in (await call(client, "find_files", glob="MAIN"))[1]
        assert "`*part*`" not in (await call(client, "find_files", glob="main.py"))[1]


@pytest.mark.parametrize("data", [b"\0", b"a\0b\n", b"\0\1\2\3"])
async def test_a_few_bytes_with_a_zero_are_no_text(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "few").write_bytes(data)
    async with serving(tmp_path) as client:
        failed, said = await call(client, "read_text", path="few")
        assert failed and "is binary" in said
        (tmp_path / "few").write_bytes("hi\n".encode("utf-16-le"))
        assert "utf-16-le" in (await call(client, "read_text", path="few"))[1]


async def test_an_empty_file_is_not_edited_but_written(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    async with serving(tmp_path) as client:
        failed, said = await call(client, "edit_file", path="empty", edits={"oldText": "", "newText": "x"})
        assert failed and "`write_file`" in said


async def test_the_instructions_name_the_second_of_two_folders_of_one_name(tmp_path: Path) -> None:
    for folder in ("a/same", "b/same"):
        (tmp_path / folder).mkdir(parents=True)
    async with serving(tmp_path / "a/same", tmp_path / "b/same") as client:
        assert client.instructions is not None
        assert f"{tmp_path / 'a/same'}, {tmp_path / 'b/same'} (as same-2)." in client.instructions


@pytest.mark.parametrize(
    ("options", "is_named"),
    [([], True), (["--read-only"], False), (["--undo-megabytes=0"], False), (["--tools=read_text"], False)],
)
async def test_the_instructions_name_the_way_back_if_there_is_one(
    tmp_path: Path, options: list[str], is_named: bool
) -> None:
    async with Client(build(load(Settings, [str(tmp_path), *options]))) as client:
        assert client.instructions is not None
        assert ("`undo_changes`" in client.instructions) is is_named
        assert "Search before reading" in client.instructions


async def test_a_file_is_read_by_every_spelling_of_its_uri(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("it", "utf-8")
    path = (tmp_path / "a.txt").as_uri().removeprefix("file://")
    async with serving(tmp_path) as client:
        for before in ("file://", "file:", "FILE://", "file://localhost", "File://LOCALHOST"):
            found = (await client.read_resource(f"{before}{path}")).contents[0]
            assert isinstance(found, TextResourceContents) and found.text == "it"
        for other in (f"file://elsewhere{path}", f"http:{path}", path):
            with pytest.raises(MCPError):
                await client.read_resource(other)


@pytest.mark.anyio
@pytest.mark.parametrize("pattern", ["arr[0]", "foo(bar)", "$x", "if (a) {2}"])
@pytest.mark.parametrize("counts", [{}, {"count_only": True}, {"files_only": True}])
async def test_a_pattern_that_was_meant_as_text_is_said_to_be_one(
    tmp_path: Path, pattern: str, counts: dict[str, bool]
) -> None:
    """A reader of code writes what it sees; 0 matches of it as an expression looked like the truth."""
    (tmp_path / "c.js").write_text("x = arr[0] + foo(bar) * 2;\nif (a?.c) { $x }\nif (a) {2}\n")
    async with serving(tmp_path) as client:
        _, said = await call(client, "search_text", pattern=pattern, **counts)
        assert "as text it is in c.js: set `literal`" in said, said
        _, said = await call(client, "search_text", pattern=pattern, literal=True)
        assert "1 match in 1 file" in said and "as text" not in said, said
        _, said = await call(client, "search_text", pattern="nothing.(at|all)")
        assert "as text" not in said, said


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("glob", "found"),
    [
        ("!node_modules/", {"a.json", "src/b.json", "src/c.txt"}),
        ("!node_modules/**", {"a.json", "src/b.json", "src/c.txt"}),
        ("!*.json", {"src/c.txt", "node_modules/p/n.txt"}),
        ("!src/*.json", {"a.json", "src/c.txt", "node_modules/p/n.txt", "node_modules/p/package.json"}),
    ],
)
async def test_a_glob_behind_an_exclamation_mark_leaves_out(tmp_path: Path, glob: str, found: set[str]) -> None:
    for name in ("a.json", "src/b.json", "src/c.txt", "node_modules/p/n.txt", "node_modules/p/package.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    async with serving(tmp_path) as client:
        for sort in ("path", "size"):
            _, said = await call(client, "find_files", glob=glob, sort=sort)
            paths: set[str] = set()
            folder = ""
            for line in said.split("\n")[1:]:
                name = line.split("\t")[0]
                if name.endswith("/"):
                    folder = name
                elif name:
                    paths.add(folder + name.strip() if name.startswith(" ") else name)
            assert paths == found, said
