"""What scripts get of the tools that a model gets in another form."""

from __future__ import annotations

from pathlib import Path

import pytest
from mcp import Client
from mcp_types import TextContent

from filesystem.documents import pdf
from filesystem.reading import fill
from mcp_batteries.settings import load
from mcp_fs.engine.reading import text_page
from mcp_fs.server import build
from mcp_fs.settings import Settings

pytestmark = pytest.mark.anyio


async def run(folder: Path, script: str) -> list[str]:
    """Return the lines of the answer of a script."""
    async with Client(build(load(Settings, [str(folder)]))) as client:
        answer = await client.call_tool("call_tools", {"script": script})
    (content,) = answer.content
    assert isinstance(content, TextContent)
    return content.text.splitlines()


async def test_any_number_of_files_are_objects_by_one_call(tmp_path: Path) -> None:
    fill(tmp_path, {f"notes/{number:04}.txt": f"{number}\n" for number in range(1100)})
    fill(tmp_path, {"old.txt": "caf\xe9, caf\xe9\r\nyes".encode("cp1252"), "bom.txt": "\ufeffx\n"})
    script = """
        const rows = read_files.all({paths: ["notes/*", "old.txt", "bom.txt:-1"]});
        print(rows.length, rows[1099]);
        print(rows.slice(-2));
    """
    assert await run(tmp_path, script) == [
        "[read whole: read_files 1,102 rows]",
        '1102 {"path":"notes/1099.txt","encoding":"utf-8","text":"1099\\n"}',
        '[{"path":"old.txt","encoding":"latin-1","text":"café, café\\r\\nyes"},'
        '{"path":"bom.txt","encoding":"utf-8 with BOM","text":"x\\n"}]',
    ]


async def test_files_that_can_not_be_read_are_told(tmp_path: Path) -> None:
    fill(tmp_path, {"a.txt": "a\n", "b.bin": b"\0\1\2", "c.pdf": pdf("Invoice 7")})
    script = """
        print(read_files.all({paths: ["a.txt", "none.txt", "*.{bin,pdf}"]}).map(({path}) => path).join(" "), remark);
        read_files.all({paths: ["none.txt"]});
    """
    assert await run(tmp_path, script) == [
        "[the script failed after 2 calls: line 3: Error: read_files: "
        "`none.txt` does not exist. Near it are: `a.txt`.]",
        "a.txt c.pdf [rows: 2 files; 2 not read: none.txt: `none.txt` does not exist. b.bin: `b.bin` is binary, "
        "3 bytes.]",
    ]


async def test_files_with_bytes_that_do_not_decode_are_told(tmp_path: Path) -> None:
    fill(tmp_path, {"a.txt": "a\n", "b.txt": "line \xe9\n".encode() * 400 + b"tail \xff\xfe\n"})
    lines = await run(tmp_path, 'print(read_files.all({paths: ["a.txt", "b.txt"]}).length, remark);')
    assert lines[-1] == "2 [rows: 2 files; 1 with undecodable bytes as \ufffd: b.txt]"


async def test_files_are_never_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_page, "MAX_PAGE_BYTES", 10)
    fill(tmp_path, {"a": "12345\n", "b": "1234", "c": "", "d": "x\n", "e": "1\n2\n3\n4\n5\n6\n"})
    script = """
        print(read_files.all({paths: ["a", "b", "c"], max_bytes: 1}).length);
        for (const paths of [["a", "b", "d"], ["a", "e:-3"]])
            try { print(read_files.all({paths})) } catch (error) { print(error.message) }
    """
    failure = "read_files: The files have more than 10 bytes. Read some after the others."
    lines = await run(tmp_path, script)
    assert lines[-3:] == ["3", failure, failure]


async def test_files_read_alike_have_one_remark(tmp_path: Path) -> None:
    fill(tmp_path, {f"{number}.txt": f"{number}\n" for number in range(3)})
    script = """
        const remarks = find_files({glob: "*.txt"}).lines().map((path) => read_text({path}).remark);
        print([...new Set(remarks)], get_info({path: "0.txt"}).data.hash.length);
    """
    assert (await run(tmp_path, script))[-1] == '["[line 1 of 1]"] 8'


async def test_a_text_keeps_its_line_ends_and_an_edit_needs_none_of_them(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    script = """
        print(JSON.stringify(read_text({path: "a"})));
        print(edit_file({path: "a", edits: [{old_text: "one\\ntwo\\n", new_text: "1\\n2\\n"}], dry_run: true}));
    """
    lines = await run(tmp_path, script)
    assert lines[0] == '"one\\r\\ntwo\\r\\n"' and lines[-4:] == ["-one", "-two", "+1", "+2"]
