"""Text gets no name that promises something else, by no tool, and no answer advises to put it over what is no text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp_types import TextContent

from filesystem.documents import MAKERS
from mcp_fs.server import build
from mcp_fs.settings import Settings

pytestmark = pytest.mark.anyio

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\2\0\0\0\x90wS\xde"
WORDS = ["one", "two", "three", "four", "five"]

DOCUMENTS = {f"c.{suffix}": make for suffix, make in MAKERS.items() if suffix not in ("eml", "ipynb", "pdf")}
# Contents that are there, by the name; None for what only the name promises.
THERE: dict[str, bytes | None] = {
    "c.png": PNG,
    "C.PNG": PNG,
    "c.jpg": b"\xff\xd8\xff\xe0\0\x10JFIF\0",
    "c.gif": b"GIF89a\1\0\1\0\0\0\0",
    "c.webp": b"RIFF\x10\0\0\0WEBPVP8 \0\0\0\0",
    "c.zip": b"PK\x05\x06" + bytes(18),
    "c.gz": b"\x1f\x8b\x08\0\0\0\0\0\0\3\3\0\0\0\0\0\0\0\0\0",
    "c.tar.gz": None,
    "c.xls": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600),
    "c.doc": None,
    "c.pdf": b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n\0\1\2",
    "c.sqlite": b"SQLite format 3\0" + bytes(84),
    "c.db": b"SQLite format 3\0" + bytes(84),
    "c.exe": b"MZ\x90\0\3\0\0\0",
    "c.mp3": b"ID3\4\0\0\0\0\0\0",
    "c.mp4": b"\0\0\0\x18ftypmp42",
    "c.parquet": b"PAR1\0\0PAR1",
    "c.woff2": None,
    "c.odp": None,
}

Call = tuple[str, dict[str, Any]]
WRITES: dict[str, Callable[[str], Call]] = {
    "write": lambda at: ("write_file", {"path": at, "content": "text\n"}),
    "overwrite": lambda at: ("write_file", {"path": at, "content": "text\n", "overwrite": True}),
    "append": lambda at: ("write_file", {"path": at, "content": "text\n", "append": True}),
    "edit": lambda at: ("edit_file", {"path": at, "edits": [{"old_text": "one", "new_text": "text"}]}),
    "patch": lambda at: ("edit_files", {"patch": f"--- a/{at}\n+++ b/{at}\n@@ -1 +1 @@\n-one\n+text\n"}),
    "create by a patch": lambda at: ("edit_files", {"patch": f"--- /dev/null\n+++ b/{at}\n@@ -0,0 +1 @@\n+text\n"}),
    "copy lines": lambda at: ("copy_file", {"targets": {"a.md:1-1": at}}),
    "copy lines over": lambda at: ("copy_file", {"targets": {"a.md:1-1": at}, "overwrite": True}),
    "copy": lambda at: ("copy_file", {"targets": {"a.md": at}}),
    "copy over": lambda at: ("copy_file", {"targets": {"a.md": at}, "overwrite": True}),
    "move": lambda at: ("move_file", {"targets": {"a.md": at}}),
    "move over": lambda at: ("move_file", {"targets": {"a.md": at}, "overwrite": True}),
}
ADVISED = ("edit", "patch", "write", "overwrite", "append")


async def call(client: Client, tool: str, arguments: dict[str, Any]) -> tuple[bool, str]:
    result = await client.call_tool(tool, arguments)
    return bool(result.is_error), "".join(block.text for block in result.content if isinstance(block, TextContent))


def state(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.share(13)
@pytest.mark.diagonal
@pytest.mark.parametrize("there", ["its contents", "nothing", "an empty file"])
@pytest.mark.parametrize("name", [*DOCUMENTS, *THERE])
async def test_no_tool_puts_text_there(tmp_path: Path, name: str, there: str) -> None:
    content = DOCUMENTS[name](WORDS) if name in DOCUMENTS else THERE[name]
    (tmp_path / "a.md").write_text("one\ntext\n")
    if there == "its contents":
        if content is None:
            pytest.skip("only the name counts")
        (tmp_path / name).write_bytes(content)
    elif there == "an empty file":
        (tmp_path / name).write_bytes(b"")
    before = state(tmp_path)
    async with Client(build(Settings(folders=(str(tmp_path),)))) as client:
        for what, write in WRITES.items():
            tool, arguments = write(name)
            failed, said = await call(client, tool, arguments)
            assert failed, (what, said)
            assert state(tmp_path) == before, what
            if there == "its contents" and what in ADVISED:
                assert any(way in said for way in (".csv", ".md", ".txt")), (what, said)
                assert "write_file" not in said and "`overwrite`" not in said, (what, said)


async def test_what_is_not_text_and_has_no_known_name_is_not_advised_away(tmp_path: Path) -> None:
    (tmp_path / "core").write_bytes(b"\0\1\2\3" * 99)
    async with Client(build(Settings(folders=(str(tmp_path),)))) as client:
        for name in ("write", "append", "edit", "patch"):
            tool, arguments = WRITES[name]("core")
            failed, said = await call(client, tool, arguments)
            assert failed and "write_file" not in said and "`overwrite`" not in said, said
        tool, arguments = WRITES["overwrite"]("core")
        assert not (await call(client, tool, arguments))[0]  # who asks for it by name may


@pytest.mark.parametrize(
    "name", ["a.svg", "a.ps", "a.eps", "a.rtf", "a.eml", "a.dat", "a.ts", "a.csv", "zip", "png", "o", ".zip", "a.msg"]
)
async def test_names_that_texts_have_are_written(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.md").write_text("one\ntext\n")
    async with Client(build(Settings(folders=(str(tmp_path),)))) as client:
        for what in ("write", "overwrite", "copy over", "copy lines over"):
            tool, arguments = WRITES[what](name)
            failed, said = await call(client, tool, arguments)
            assert not failed, said


@pytest.mark.parametrize("name", ["zone.db", "report.xls", "export.doc", "mistake.docx"])
async def test_what_is_text_already_may_be_changed_as_text(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.md").write_text("one\ntext\n")
    async with Client(build(Settings(folders=(str(tmp_path),)))) as client:
        for what in ("overwrite", "append", "edit", "patch", "copy lines over", "copy over"):
            (tmp_path / name).write_text("one\n")
            tool, arguments = WRITES[what](name)
            failed, said = await call(client, tool, arguments)
            assert not failed, (what, said)


async def test_text_that_is_what_its_name_says_is_written(tmp_path: Path) -> None:
    async with Client(build(Settings(folders=(str(tmp_path),)))) as client:
        failed, said = await call(client, "write_file", {"path": "a.pdf", "content": "%PDF-1.4\ntrailer<<>>\n"})
        assert not failed, said
        (tmp_path / "download").write_text("%PDF-1.4\n")
        failed, said = await call(client, "move_file", {"targets": {"download": "b.pdf"}})
        assert not failed, said
        (tmp_path / "picture").write_bytes(PNG)
        failed, said = await call(client, "move_file", {"targets": {"picture": "picture.png"}})
        assert not failed, said
