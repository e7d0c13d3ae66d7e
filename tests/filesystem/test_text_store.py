"""The text of documents stays for the next search, also that of another process: private, bounded, by content."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from mcp import Client

from filesystem.documents import MAKERS, zipped
from filesystem.reading import fill, served
from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Invalid
from mcp_fs import server
from mcp_fs.engine.document_kinds import CUT_AT_LIMIT
from mcp_fs.engine.documents import converter, text_store
from mcp_fs.engine.documents.converter import Extracted
from mcp_fs.engine.documents.text_store import TextStore
from mcp_fs.engine.reading.text_page import LineIndex, PageRequest, read_page
from mcp_fs.engine.search.query import Query
from mcp_fs.engine.search.text_search import search_text
from mcp_fs.settings import Settings

FIVE = ["one", "two", "three", "four", "five"]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    """The folder of a store that is used, and no process that could take text out after the first use."""
    folder = tmp_path / "cache"
    _begin_anew(folder, monkeypatch)
    yield folder
    converter._pool.end()  # pyright: ignore[reportPrivateUsage]


def _begin_anew(folder: Path, monkeypatch: pytest.MonkeyPatch, max_bytes: int = 10_000_000) -> None:
    """As another process has it: nothing in memory, the same folder."""
    cache = converter._ResultCache()  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(converter, "_cache", cache)
    converter.keep_texts(TextStore(str(folder), max_bytes))


def _refuse_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> Extracted:
        raise AssertionError("the text is not kept")

    monkeypatch.setattr(converter, "_extract_anew", refuse)


def read(folder: Path, path: str) -> str:
    return read_page(served(folder).readable(path), PageRequest(), LineIndex(), CancelToken()).text()


def found(folder: Path, pattern: str) -> str:
    return search_text([served(folder).readable(".")], Query(pattern, literal=True), None, CancelToken()).text()


def test_another_process_refuses_what_is_damaged_without_reading_it(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = tmp_path / "files"
    fill(files, {"a.docx": MAKERS["docx"](FIVE)[:500]})
    with pytest.raises(Invalid) as refusal:
        read(files, "a.docx")
    _begin_anew(store, monkeypatch)
    _refuse_work(monkeypatch)
    with pytest.raises(Invalid) as again:
        read(files, "a.docx")
    assert str(again.value) == str(refusal.value)


def test_another_process_finds_all_documents_without_reading_one(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = tmp_path / "files"
    fill(files, {f"a.{suffix}": make(FIVE) for suffix, make in MAKERS.items()})
    answer = found(files, "five")
    page = read(files, "a.docx")
    _begin_anew(store, monkeypatch)
    _refuse_work(monkeypatch)
    assert found(files, "five") == answer and answer.startswith(f"[{len(MAKERS)} ")
    shutil.copy(files / "a.docx", files / "copy.docx")
    os.utime(files / "a.docx", (1, 1))
    assert read(files, "a.docx") == page
    assert read(files, "copy.docx") == page, "by what is in the file, not by where it is"
    assert "five" in found(files, "five")


@pytest.mark.skipif(sys.platform == "win32", reason="has no modes")
def test_nobody_else_can_read_what_is_kept(store: Path, tmp_path: Path) -> None:
    fill(tmp_path / "files", {"a.docx": MAKERS["docx"](FIVE)})
    read(tmp_path / "files", "a.docx")
    entries = [store, *store.rglob("*")]
    assert len([entry for entry in entries if entry.parent.name == "data"]) == 1
    assert all(stat.S_IMODE(entry.stat().st_mode) & 0o077 == 0 for entry in entries)
    assert not any(word in str(entry) for entry in entries for word in ("a.docx", "files"))


@pytest.mark.anyio
async def test_a_server_keeps_texts_while_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "cache_folder", lambda command: tmp_path / command)
    for megabytes in (0, 1):
        settings = Settings(folders=(str(tmp_path),), text_megabytes=megabytes)
        async with Client(server.build(settings)):
            texts = converter._cache.texts  # pyright: ignore[reportPrivateUsage]
            assert (texts is not None) == bool(megabytes)
        assert converter._cache.texts is None  # pyright: ignore[reportPrivateUsage]


def test_a_changed_document_and_a_changed_reader_are_read_anew(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = tmp_path / "files"
    fill(files, {"a.docx": MAKERS["docx"](FIVE)})
    read(files, "a.docx")
    fill(files, {"a.docx": MAKERS["docx"](["new", *FIVE[1:]])})
    assert "# new" in read(files, "a.docx")
    monkeypatch.setattr(text_store, "version", lambda library: "99")
    _begin_anew(store, monkeypatch)
    _refuse_work(monkeypatch)
    with pytest.raises(AssertionError, match="not kept"):
        read(files, "a.docx")


def test_a_reader_of_any_format_that_changes_makes_all_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "documents"
    fill(package, {"worker.py": "", "formats/pdf.py": "", "formats/__pycache__/pdf.pyc": ""})
    monkeypatch.setattr(text_store, "files", lambda _: package)
    identity = text_store._reader_identity()  # pyright: ignore[reportPrivateUsage]
    fill(package, {"formats/__pycache__/pdf.pyc": "other"})
    assert text_store._reader_identity() == identity  # pyright: ignore[reportPrivateUsage]
    fill(package, {"formats/pdf.py": "changed"})
    assert text_store._reader_identity() != identity  # pyright: ignore[reportPrivateUsage]


def test_want_of_memory_is_no_damage(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = tmp_path / "files"
    fill(files, {"a.docx": MAKERS["docx"](FIVE)})
    failure = converter._Unreadable("no memory", "takes more memory than it may")  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(converter, "_extract_anew", lambda *_: failure)
    with pytest.raises(Invalid, match="takes more memory than it may"):
        read(files, "a.docx")
    assert not list((store / "data").iterdir())


def test_what_is_kept_stays_within_its_bounds(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_store, "_WRITES_BETWEEN_TIDYING", 2)
    _begin_anew(store, monkeypatch, max_bytes=2_000)
    files = tmp_path / "files"
    for number in range(9):
        fill(files, {f"{number}.docx": MAKERS["docx"]([f"word{number}", *FIVE[1:]])})
        read(files, f"{number}.docx")
    kept = sum(entry.stat().st_size for entry in store.rglob("*") if entry.parent.name in ("data", "meta"))
    assert 0 < kept < 3_000


def test_neither_cut_texts_nor_members_are_kept(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = tmp_path / "files"
    fill(files, {"a.zip": zipped({"b.docx": MAKERS["docx"](FIVE)})})
    read(files, "a.zip!/b.docx")
    fill(files, {"d.docx": MAKERS["docx"](FIVE)})
    monkeypatch.setattr(converter, "_extract_anew", lambda *_: Extracted("text of a document", b"x", CUT_AT_LIMIT))
    read(files, "d.docx")
    assert not list((store / "data").iterdir())


def test_a_file_that_changes_while_it_is_read_is_not_kept(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = tmp_path / "files"
    fill(files, {"a.docx": MAKERS["docx"](FIVE)})

    def change(*_: object) -> Extracted:
        (files / "a.docx").write_bytes(MAKERS["docx"](["new", *FIVE[1:]]))
        return Extracted("text of a document", b"new", "")

    monkeypatch.setattr(converter, "_extract_anew", change)
    read(files, "a.docx")
    assert not list((store / "data").iterdir())


@pytest.mark.parametrize("damage", ["cut", "no folder"])
def test_a_damaged_store_costs_no_document(
    damage: str, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = tmp_path / "files"
    fill(files, {"a.docx": MAKERS["docx"](FIVE)})
    page = read(files, "a.docx")
    if damage == "cut":
        [kept] = (store / "data").iterdir()
        kept.write_bytes(kept.read_bytes()[:-9])
    else:
        shutil.rmtree(store)
        store.write_bytes(b"a file")
    _begin_anew(store, monkeypatch)
    assert read(files, "a.docx") == page
