"""Parts of files of any size."""

from __future__ import annotations

import base64
import os
import stat
import struct
import sys
import time
import tracemalloc
from pathlib import Path

import pytest
from mcp import Client
from mcp_types import ResourceLink, TextContent

from filesystem.documents import pdf
from filesystem.reading import fill, on_linux, served
from filesystem.tool_calls import Tools
from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Invalid, NotFound, Refused
from mcp_batteries.settings import load
from mcp_fs.engine.mime_types import mime_type
from mcp_fs.engine.reading import entry_info as info_module
from mcp_fs.engine.reading import text_page as read_module
from mcp_fs.engine.reading.entry_info import read_info
from mcp_fs.engine.reading.media import read_media
from mcp_fs.engine.reading.text_page import LineIndex, NamedFile, PageRequest, read_page, read_pages
from mcp_fs.engine.text.encodings import content_hash
from mcp_fs.engine.text.lines import Lines
from mcp_fs.models import TextSlice
from mcp_fs.policy import ReadablePath
from mcp_fs.resources import Resources
from mcp_fs.server import build
from mcp_fs.settings import Settings
from tools.docs import snapshot

MB = 1024 * 1024
NO_RANGE = "does not exist" if os.name == "posix" else "is not a name"
PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC")


def read(folder: Path, name: str, **part: int | bool | None) -> TextSlice:
    return read_page(served(folder).readable(name), PageRequest(**part), LineIndex(), CancelToken())  # type: ignore[arg-type]


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """500 MB, sparse but for its ends: NUL bytes would make it binary only if they stood at its beginning."""
    path = tmp_path / "large.log"
    with path.open("wb") as file:
        file.write(b"".join(b"first %d\n" % number for number in range(20_000)))
        file.seek(500 * MB)
        file.write(b"\n" + b"".join(b"last %d\n" % number for number in range(1, 20_001)))
    return path


def test_a_whole_file_comes_with_its_hash(tmp_path: Path) -> None:
    fill(tmp_path, {"a": "one\ntwo\n"})
    piece = read(tmp_path, "a")
    assert (
        piece.text()
        == f"[lines 1-2 of 2, hash {content_hash(b'one' + bytes([10]) + b'two' + bytes([10]))}]\none\ntwo\n"
    )


def test_a_range_says_where_it_lies(tmp_path: Path) -> None:
    fill(tmp_path, {"a": "".join(f"{number}\n" for number in range(1, 101))})
    piece = read(tmp_path, "a", start_line=10, end_line=12)
    assert piece.text() == f"[lines 10-12 of 100, hash {piece.hash}]\n10\n11\n12\n"
    assert read(tmp_path, "a", start_line=99, end_line=500).body == "99\n100\n"
    assert read(tmp_path, "a", start_line=7, end_line=7, line_numbers=True).body == "7\t7\n"


def test_a_page_names_the_next_call(tmp_path: Path) -> None:
    fill(tmp_path, {"a": "x" * 9 + "\n" + "".join(f"{number:09}\n" for number in range(2, 2001))})
    piece = read(tmp_path, "a")
    assert piece.status == f"lines 1-1000 of 2,000, hash {piece.hash}; continue with start_line=1001"
    assert read(tmp_path, "a", start_line=1001).body.startswith("000001001\n")


@pytest.mark.parametrize(
    ("content", "tail", "body"),
    [
        ("a\nb\n", 1, "b\n"),
        ("a\nb", 1, "b"),
        ("a\nb\n", 2, "a\nb\n"),
        ("a\nb\n", 9, "a\nb\n"),
        ("\n\n", 1, "\n"),
        ("a\n\n", 2, "a\n\n"),
        ("", 1, ""),
    ],
)
def test_the_last_lines(tmp_path: Path, content: str, tail: int, body: str) -> None:
    fill(tmp_path, {"a": content})
    assert read(tmp_path, "a", tail=tail).body == body


def test_a_tail_longer_than_a_page_keeps_the_end(tmp_path: Path) -> None:
    fill(tmp_path, {"a": "".join(f"{number:09}\n" for number in range(1, 2001))})
    piece = read(tmp_path, "a", tail=2000)
    assert piece.body.endswith("000002000\n")
    assert piece.status.startswith(f"lines 1001-2000 of 2,000, hash {piece.hash}; 2,000 lines were asked for")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32", "gbk", "shift_jis"])
def test_lines_of_other_encodings(tmp_path: Path, encoding: str) -> None:
    lines = [
        f"行 {number} ਊ文字 test\n" if encoding.startswith("utf") else f"日本 {number} 文字 test\n"
        for number in range(500)
    ]
    fill(tmp_path, {"a": "".join(lines).encode(encoding)})
    assert read(tmp_path, "a", start_line=200, end_line=201).body == "".join(lines[199:201])
    assert read(tmp_path, "a", tail=2).body == "".join(lines[-2:])


def test_the_ends_of_a_large_file_cost_little_memory(large: Path) -> None:
    tracemalloc.start()
    try:
        assert read(large.parent, "large.log", end_line=10).body == "".join(f"first {n}\n" for n in range(10))
        piece = read(large.parent, "large.log", tail=10)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert piece.body == "".join(f"last {number}\n" for number in range(19_991, 20_001))
    assert piece.status.startswith("last 10 lines of")
    assert peak < 8 * MB


def test_the_next_page_of_a_large_file_is_found_without_counting(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, index, blocks = served(large.parent).readable("large.log"), LineIndex(), list[int]()
    first = read_page(place, PageRequest(start_line=5000, max_bytes=100_000), index, CancelToken())
    assert first.next_line is not None
    skip = Lines.skip_lines

    def counted(self: Lines, offset: int, lines: int) -> tuple[int, int]:
        blocks.append(lines)
        return skip(self, offset, lines)

    monkeypatch.setattr(Lines, "skip_lines", counted)
    second = read_page(place, PageRequest(start_line=first.next_line, max_bytes=1000), index, CancelToken())
    assert second.body.startswith(f"first {first.next_line - 1}\n")
    assert blocks == [0]


def test_a_changed_file_is_counted_anew(tmp_path: Path) -> None:
    fill(tmp_path, {"a": "x\n" * 1_000_000})
    place, index = served(tmp_path).readable("a"), LineIndex()
    read_page(place, PageRequest(start_line=900_000, end_line=900_000), index, CancelToken())
    fill(tmp_path, {"a": "long line\n" * 300_000})
    assert read_page(place, PageRequest(start_line=300_000), index, CancelToken()).body == "long line\n"


@pytest.mark.anyio
async def test_the_next_call_keeps_what_was_wanted(tmp_path: Path) -> None:
    fill(tmp_path, {"a": "".join(f"{number:09}\n" for number in range(1, 2001)), "long": "x" * 300 + "\nnext\n"})
    tools = Tools(served(tmp_path))
    piece = await tools.read_text("a", start_line=10, end_line=1500, max_bytes=100)
    assert piece.status.endswith("; continue with start_line=20, end_line=1500")
    piece = await tools.read_text("a", head=1500, max_bytes=100)
    assert piece.status.endswith("; continue with start_line=11, end_line=1500")
    piece = await tools.read_text("long", end_line=2, max_bytes=100)
    assert piece.status.endswith(
        "is cut: its rest is at start_line=1, start_column=101, end_line=2; the next line at start_line=2, end_line=2"
    )
    piece = await tools.read_text("long", head=1, max_bytes=100)
    assert piece.status.endswith("its rest is at start_line=1, start_column=101, end_line=1")
    with pytest.raises(Invalid, match="start_column"):
        await tools.read_text("a", tail=2, start_column=3)


@pytest.mark.parametrize("size", [300, 2 * MB])
def test_no_line_is_promised_behind_the_only_one(tmp_path: Path, size: int) -> None:
    fill(tmp_path, {"one": "x" * size, "ended": "x" * size + "\n", "two": "x" * size + "\ny"})
    said = {name: read(tmp_path, name, max_bytes=100).status for name in ("one", "ended", "two")}
    assert [("next line" in status) for status in said.values()] == [False, False, True]
    assert all("its rest is at start_line=1, start_column=101" in status for status in said.values())


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32", "gbk", "shift_jis"])
@pytest.mark.parametrize("lines", [1, 3])
def test_of_a_last_line_longer_than_a_page_its_end_is_shown(tmp_path: Path, encoding: str, lines: int) -> None:
    long = "文字、日本語 " * 200 + "end"
    fill(tmp_path, {"a": ("first\nsecond\n" + long).encode(encoding)})
    piece = read(tmp_path, "a", tail=lines, max_bytes=500)
    assert piece.body.endswith("語 end")
    assert long.endswith(piece.body)
    assert 496 <= piece.bytes_shown <= 500
    assert piece.column is not None
    assert piece.status.startswith(f"line 3 from column {piece.column} of 3, ")
    assert "raise max_bytes for more" in piece.status
    assert ("3 lines were asked for" in piece.status) == (lines == 3)
    again = read(tmp_path, "a", start_line=3, start_column=piece.column, max_bytes=500)
    assert again.body == piece.body


def test_the_end_of_a_huge_line_is_found_from_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, {"a": "x" * 20 * MB + "é" * 50})
    read_bytes, at = 0, Lines.read_at

    def counting(self: Lines, offset: int, length: int) -> bytes:
        nonlocal read_bytes
        read_bytes += length
        return at(self, offset, length)

    monkeypatch.setattr(Lines, "read_at", counting)
    piece = read(tmp_path, "a", tail=1, max_bytes=99)
    assert piece.body == "é" * 49
    assert piece.status.startswith("the end of the last line, 98 of 20,971,620 bytes, no line end")
    assert read_bytes < MB


@on_linux
def test_a_file_that_the_kernel_gives_in_pieces_is_read_whole() -> None:
    text = Path("/proc/self/smaps").read_text("ascii")
    piece = read(Path("/proc/self"), "smaps", max_bytes=16 * MB)
    assert len(text) > 65_536
    assert piece.body.count("\n") > text.count("\n") // 2
    assert piece.body.splitlines()[-1] == text.splitlines()[-1]


def test_a_page_shows_one_character_at_least(tmp_path: Path) -> None:
    fill(tmp_path, {"a": "é🙂x"})
    assert read(tmp_path, "a", max_bytes=1).body == "é"
    assert read(tmp_path, "a", start_column=3, max_bytes=1).body == "🙂"
    assert read(tmp_path, "a", start_column=4, max_bytes=1).body == "x"


def test_one_long_line_is_cut_and_can_be_read_on(tmp_path: Path) -> None:
    line = "äöü" * 3_400_000
    fill(tmp_path, {"a": line + "\nnext\n"})
    piece = read(tmp_path, "a")
    assert piece.next_column is not None
    assert f"start_line=1, start_column={piece.next_column}" in piece.status
    assert "the next line at start_line=2" in piece.status
    rest = read(tmp_path, "a", start_line=1, start_column=piece.next_column)
    assert line.startswith(piece.body + rest.body)
    assert read(tmp_path, "a", start_line=2).body == "next\n"
    last = read(tmp_path, "a", start_line=1, start_column=len(line.encode()) - 3)
    assert last.body == "öü\nnext\n"


def test_a_line_that_does_not_exist_is_told_so(tmp_path: Path) -> None:
    fill(tmp_path, {"a": "one\n", "empty": ""})
    assert read(tmp_path, "a", start_line=2).status.startswith("no line 2 yet, 1 line,")
    with pytest.raises(Invalid, match="has 4 bytes"):
        read(tmp_path, "a", start_column=9)
    assert read(tmp_path, "empty").text().startswith("[empty file, hash ")


@on_linux
def test_what_is_no_text_file_is_refused_at_once(tmp_path: Path) -> None:
    fill(tmp_path, {"image.png": PNG, "dir/x": "x"})
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Invalid, match="read_media"):
        read(tmp_path, "image.png")
    for name in ("pipe", "dir"):
        with pytest.raises(Refused):
            read(tmp_path, name)
    with pytest.raises(NotFound):
        read(tmp_path, "missing")


def test_several_files_each_with_its_outcome(tmp_path: Path) -> None:
    fill(tmp_path, {"a": "short\n", "b": "x" * 99 + "\n" + "more\n" * 10_000, "c.png": PNG})
    policy = served(tmp_path)
    files = [NamedFile(name, policy.readable(name)) for name in ("a", "missing", "c.png", "b")]
    files.insert(1, NamedFile("../out", Refused("outside")))
    answer = read_pages(files, PageRequest(max_bytes=3000), LineIndex(), CancelToken()).text()
    assert answer.startswith("=== a [line 1 of 1")
    assert "=== ../out: failed: outside" in answer
    assert "=== missing: failed: `missing` does not exist." in answer
    assert "=== c.png: failed:" in answer
    assert "; continue with start_line=" in answer
    assert 2000 < len(answer) < 4000


def test_several_files_never_outgrow_their_page(tmp_path: Path) -> None:
    fill(tmp_path, {f"{number}": "0123456789\n" * 100 for number in range(50)})
    policy = served(tmp_path)
    files = [NamedFile(f"{number}", policy.readable(f"{number}")) for number in range(50)]
    answer = read_pages(files, PageRequest(max_bytes=1000), LineIndex(), CancelToken())
    assert 900 <= sum(piece.bytes_shown for _, piece in answer.outcomes if isinstance(piece, TextSlice)) <= 1000
    answer = read_pages(files, PageRequest(max_bytes=40), LineIndex(), CancelToken())
    assert sum(piece.bytes_shown for _, piece in answer.outcomes if isinstance(piece, TextSlice)) <= 40
    assert "failed: `max_bytes` leaves nothing for `0`. Raise it, or name fewer files." in answer.text()


@pytest.mark.anyio
async def test_lines_of_several_files_are_read_by_path_and_range(tmp_path: Path) -> None:
    """Whatever a file is called: a name that has the form of a range and is there is that file."""
    text = "".join(f"line {number}\n" for number in range(1, 21))
    fill(tmp_path, {"a.py": text, "d/b 1.py": text, "a.py:3": "its own\n"} if os.name == "posix" else {"a.py": text})
    policy = served(tmp_path)
    tools = Tools(policy)

    async def lines(path: str) -> str:
        return (await tools.read_files([path])).text().partition("\n")[2]

    for first, last in ((1, 1), (2, 5), (20, 20), (19, 99)):
        wanted = "".join(f"line {number}\n" for number in range(first, min(last, 20) + 1))
        assert await lines(f"a.py:{first}-{last}") == wanted
        assert await lines(f"{tmp_path / 'a.py'}:{first}-{last}") == wanted
    assert await lines("a.py:19") == await lines("a.py:19-") == "line 19\nline 20\n"
    answer = (await tools.read_files(["a.py:5-4", "none.py:1-2", "a.py:99-100", "a.py:x"])).text()
    for said in ("`end_line` lies before", "`none.py` does not exist", "no line 99 yet", f"`a.py:x` {NO_RANGE}"):
        assert said in answer
    assert await lines("a.py:-2") == "line 19\nline 20\n" and await lines("./*.py:4-4") == "line 4\n"
    assert await lines("a.py:-99") == text
    if os.name == "posix":
        assert await lines("a.py:3") == "its own\n"
        assert await lines("d/b 1.py:2-2") == "line 2\n"


@pytest.mark.anyio
async def test_all_files_that_a_glob_fits_are_read(tmp_path: Path) -> None:
    logs = {f"logs/{name}.log": f"{name} begins\n{name} ends\n" for name in ("a", "b")}
    fill(tmp_path, {**logs, "logs/old/c.log": "c\n", "logs/id_rsa": "key", "logs/.hidden.log": "h\n"})
    tools = Tools(served(tmp_path))
    answer = (await tools.read_files(["logs/*.log:-1", "logs/none.*", "logs/*rsa", "../*.log"])).text()
    assert "hash" not in answer
    shown = [line.partition(" [")[0] for line in answer.splitlines()]
    assert shown[:4] == ["=== logs/a.log", "a ends", "=== logs/b.log", "b ends"]
    for said in ("logs/none.*: failed", "logs/*rsa: failed", "protected: logs/id_rsa", "../*.log: failed", "outside"):
        assert said in answer
    assert "key" not in answer and "c\n" not in answer
    assert "=== logs/old/c.log [line 1 of 1]\n" in (await tools.read_files(["**/*.log"])).text()
    fill(tmp_path, {f"many/{number:02}": "x" for number in range(52)})
    many = (await tools.read_files(["many/*", "logs/a.log"])).text()
    assert many.count("\nx\n") == 50 and "=== many/49 [" in many and "=== many/50 [" not in many
    assert "=== many/*: failed: the rest was not read, only the first 50: many/*." in many and "a ends" in many


@pytest.mark.anyio
async def test_a_resource_is_what_its_bytes_say(tmp_path: Path) -> None:
    fill(tmp_path, {"junk.png": b"\0\1\2\xff junk", "really.txt": PNG, "notes.md": "# Notes\n"})
    policy = served(tmp_path)
    kinds = [
        (await Resources(policy).read_file(policy.readable(n).uri))[0].mime_type
        for n in ("junk.png", "really.txt", "notes.md")
    ]
    assert kinds == ["application/octet-stream", "image/png", "text/markdown"]


@pytest.mark.anyio
async def test_listed_files_have_size_and_date_and_an_answer_links_to_its_file(tmp_path: Path) -> None:
    fill(tmp_path, {"notes.md": "# Notes\n", "old.txt": ""})
    os.utime(tmp_path / "notes.md", (86400, 86400.9))
    async with Client(build(Settings(folders=(str(tmp_path),)))) as client:
        listed = {item.name: item for item in (await client.list_resources()).resources}
        note = listed["notes.md"]
        assert note.size == 8 and note.annotations and note.annotations.last_modified == "1970-01-02T00:00:00Z"
        assert listed["old.txt"].size == 0
        answer = await client.call_tool("get_info", {"path": "notes.md"})
        said, link = answer.content
        # What some hosts drop stands in the text too.
        assert isinstance(link, ResourceLink) and isinstance(said, TextContent) and link.uri in said.text
        assert (link.uri, link.size, link.mime_type) == (note.uri, 8, "text/markdown")
        assert len((await client.call_tool("get_info", {"path": "."})).content) == 1


@pytest.mark.parametrize(("name", "opens"), [("f", "open_file"), ("d", "open_folder")])
def test_what_may_not_be_opened_has_its_facts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, opens: str
) -> None:
    fill(tmp_path, {"f": "one\n", "d/f": ""})

    def denied(place: ReadablePath) -> None:
        raise Refused(f"The operating system does not allow this on `{place.display}`: Permission denied.")

    monkeypatch.setattr(info_module, opens, denied)
    found = read_info(served(tmp_path).readable(name), CancelToken())
    assert found.mode == stat.filemode((tmp_path / name).stat().st_mode)
    assert found.unreadable and "does not allow" in found.unreadable and found.hash is found.entries is None


@pytest.mark.skipif(sys.platform == "win32", reason="there it is the file's name")
def test_a_name_in_another_case_is_suggested(tmp_path: Path) -> None:
    fill(tmp_path, {"a.txt": "x", "Makefile": "x"})
    with pytest.raises(NotFound, match=r"Did you mean `a\.txt`\?"):
        read(tmp_path, "A.TXT")
    with pytest.raises(NotFound, match="`Makefile`"):
        read(tmp_path, "MAKEFILE")


@on_linux
def test_a_name_with_a_line_break_can_not_forge_a_line(tmp_path: Path) -> None:
    fill(tmp_path, {"a\n=== b [line 1 of 1, utf-8]": "x\n"})
    policy = served(tmp_path)
    name = "a\n=== b [line 1 of 1, utf-8]"
    answer = read_pages([NamedFile(name, policy.readable(name))], PageRequest(), LineIndex(), CancelToken()).text()
    assert answer.splitlines()[0].startswith(r"=== a\n=== b [line 1 of 1, utf-8] [line 1 of 1]")


def test_a_pdf_is_shown_page_by_page_also_where_it_has_text(tmp_path: Path) -> None:
    fill(tmp_path, {"a.pdf": pdf("Hello page", ""), "bad.pdf": b"%PDF-1.7 nothing"})
    place = served(tmp_path).readable("a.pdf")
    notes: list[str] = []
    for page in (1, 2):
        [shown] = read_media(place, page)
        assert (shown.kind, shown.mime_type, mime_type(shown.data, "")) == ("image", "image/png", "image/png")
        notes.append(shown.note.partition("; ")[2])
    assert notes == ["page 1 of 2; continue with page=2; its text: `read_text`", "page 2 of 2; its text: `read_text`"]
    with pytest.raises(Invalid, match="2 pages"):
        read_media(place, 3)
    for page in (None, 1):
        [told] = read_media(served(tmp_path).readable("bad.pdf"), page)
        assert (told.kind, told.data) == ("text", b"") and "it is damaged" in told.note, (
            "read_text sends its callers here"
        )
        assert "its bytes are the resource" in told.note
        assert told.body == f"00000000  {b'%PDF-1.7 nothing'.hex(' ')}  %PDF-1.7 nothing"


@pytest.mark.parametrize("side", [0, 1, 14_400, 900_000])
def test_a_page_of_any_size_is_a_picture_that_models_take(side: int, tmp_path: Path) -> None:
    """Rendered at its own size a page of some hundred bytes takes gigabytes."""
    for other in (100, side):
        fill(tmp_path, {"a.pdf": pdf("").replace(b"[0 0 200 100]", f"[0 0 {side} {other}]".encode())})
        [picture] = read_media(served(tmp_path).readable("a.pdf"))
        width, height = struct.unpack(">II", picture.data[16:24])
        assert 0 < width <= 8000 and 0 < height <= 8000 and len(picture.data) <= 750_000


def test_facts_about_an_entry(tmp_path: Path) -> None:
    fill(tmp_path, {"dir/a.py": "é\n", "gone": ""})
    (tmp_path / "link").symlink_to("dir/a.py")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "out").symlink_to("/etc/passwd")
    policy = served(tmp_path)
    file = read_info(policy.readable("dir/a.py"), CancelToken())
    assert (file.kind, file.size, file.encoding, file.hash) == ("file", 3, "utf-8", content_hash("é\n".encode()))
    assert file.uri == policy.readable("dir/a.py").uri
    assert read_info(policy.readable("dir"), CancelToken()).entries == 1
    link = read_info(policy.readable("link"), CancelToken())
    assert (link.kind, link.link_to, link.size) == ("file", "dir/a.py", 3)
    assert "does not exist" in (read_info(policy.readable("dangling"), CancelToken()).link_to or "")
    outside = read_info(policy.readable("out"), CancelToken())
    assert outside.kind == "link"
    assert "passwd" not in outside.text()


@pytest.mark.anyio
async def test_arguments_that_exclude_one_another(tmp_path: Path) -> None:
    fill(tmp_path, {"a": "1\n2\n3\n"})
    tools = Tools(served(tmp_path))
    assert (await tools.read_text("a", head=2)).body == "1\n2\n"
    assert (await tools.read_text("a", end_line=2)).body == "1\n2\n"
    assert (await tools.read_text("a", head=2, start_line=1, end_line=2)).body == "1\n2\n"
    with pytest.raises(Invalid):
        await tools.read_text("a", head=2, start_line=1, end_line=3)
    with pytest.raises(Invalid):
        await tools.read_text("a", head=1, tail=1)
    with pytest.raises(Invalid):
        await tools.read_text("a", tail=1, start_line=2)
    with pytest.raises(Invalid):
        await tools.read_text("a", start_line=3, end_line=2)


def test_the_part_of_a_file_with_nul_bytes_that_is_text_is_read(tmp_path: Path) -> None:
    lines = "".join(f"line {number}\n" for number in range(1000)).encode()
    fill(tmp_path, {"log": b"\0" * 50_000 + lines, "not": b"\0\1\2\xff" * 5000})
    assert read(tmp_path, "log", tail=2).body == "line 998\nline 999\n"
    assert read(tmp_path, "log", start_line=2, end_line=3).body == "line 1\nline 2\n"
    assert read(tmp_path, "log").body == "[10,000 NUL bytes]"
    with pytest.raises(Invalid, match="binary"):
        read(tmp_path, "not", tail=1)


def test_a_line_that_is_not_there_yet_is_an_answer(tmp_path: Path) -> None:
    fill(tmp_path, {"log": "x\n" * 1000, "empty": "", "open": "a\nb"})
    assert read(tmp_path, "log", start_line=1001).status.startswith("no line 1,001 yet, 1,000 lines, hash ")
    assert read(tmp_path, "log", start_line=1001).body == ""
    assert read(tmp_path, "empty", start_line=2).status.startswith("no line 2 yet, 0 lines")
    assert read(tmp_path, "open", start_line=3).status.startswith("no line 3 yet, 2 lines")


@pytest.mark.parametrize("part", [{}, {"tail": 1}, {"start_line": 5000, "end_line": 5001}])
def test_a_page_carries_the_hash_of_the_whole_file(tmp_path: Path, part: dict[str, int]) -> None:
    content = b"line\n" * 100_000
    fill(tmp_path, {"f": content})
    assert read(tmp_path, "f", **part).hash == content_hash(content)


@pytest.mark.parametrize("part", [{}, {"head": 1}])
def test_a_change_within_a_tick_of_the_clock_has_another_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: dict[str, int]
) -> None:
    monkeypatch.setattr(read_module, "_file_version", lambda status: (status.st_ino, status.st_size))
    monkeypatch.setattr(read_module, "_TICK_NS", 10**18)
    place, index = served(tmp_path).readable("f"), LineIndex()
    wanted = PageRequest(end_line=part.get("head"), max_bytes=MB)
    for line in (b"one\n", b"two\n"):
        fill(tmp_path, {"f": line * 100_000})
        assert read_page(place, wanted, index, CancelToken()).hash == content_hash(line * 100_000)


def test_a_hash_is_not_kept_because_reading_took_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hour, late, clock = 3600 * 10**9, [0], time.time_ns

    def slow(data: bytes) -> str:
        late[0] += 2 * hour
        return content_hash(data)

    monkeypatch.setattr(read_module, "_file_version", lambda status: (status.st_ino, status.st_size))
    monkeypatch.setattr(read_module, "_TICK_NS", hour)
    monkeypatch.setattr(read_module, "content_hash", slow)
    monkeypatch.setattr(time, "time_ns", lambda: clock() + late[0])
    place, index = served(tmp_path).readable("f"), LineIndex()
    for line in (b"one\n", b"two\n"):
        fill(tmp_path, {"f": line * 100_000})
        assert read_page(place, PageRequest(max_bytes=MB), index, CancelToken()).hash == content_hash(line * 100_000)


@pytest.mark.parametrize("part", [{}, {"head": 1}])
def test_the_hash_of_a_large_file_is_told_again_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: dict[str, int]
) -> None:
    monkeypatch.setattr(read_module, "_is_settled", lambda *_: True)
    fill(tmp_path, {"f": b"one\n" * 100_000})
    place, index = served(tmp_path).readable("f"), LineIndex()
    wanted, hashed = PageRequest(end_line=part.get("head"), max_bytes=MB), list[int]()
    monkeypatch.setattr(read_module, "content_hash", lambda data: hashed.append(len(data)) or content_hash(data))
    assert len({read_page(place, wanted, index, CancelToken()).hash for _ in range(3)}) == 1
    assert hashed == [400_000]


def test_what_a_model_reads_of_all_tools_has_a_bound(tmp_path: Path) -> None:
    sizes = snapshot(build(load(Settings, [str(tmp_path)])))["bytes"]
    assert sizes["name_description_input_schema"] <= 3450 * 4
