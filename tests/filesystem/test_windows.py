"""What NTFS and Win32 add to paths: other spellings of one file, names that are devices, ways out of a folder.

Where a kernel beneath (Wine's) lacks one of them, `windows/listed.py` says so; the job on Windows runners has them all.
"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from filesystem.places import Ground, delete, ground
from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Conflict, Invalid, NotFound, Problem, Refused
from mcp_fs.engine.changing.entries.moving import move_entry
from mcp_fs.engine.changing.writing import write_file
from mcp_fs.engine.handles import path_opening
from mcp_fs.engine.listing.walk import WalkFilter
from mcp_fs.engine.search.query import Query
from mcp_fs.engine.search.text_search import search_text

if sys.platform == "win32":
    from mcp_fs.engine.handles import windows

pytestmark = pytest.mark.skipif(sys.platform != "win32", reason="NTFS and Win32")


@pytest.fixture
def place(tmp_path: Path) -> Ground:
    made = ground(tmp_path)
    (made.root / "notes.txt").write_bytes(b"here")
    (made.root / "A folder with a long name").mkdir()
    (made.root / "A folder with a long name" / "A file with a long name.txt").write_bytes(b"long")
    (made.root / ".env").write_bytes(b"SECRET=1")
    return made


def read(place: Ground, path: str) -> bytes:
    with path_opening.open_file(place.readable(path)) as file:
        return file.read()


def junction(source: Path, target: Path) -> None:
    import _winapi

    _winapi.CreateJunction(str(source), str(target))


DEVICES = ("CON", "nul", "aux.txt", "COM1", "com¹.log", "LPT9", "CONIN$", "nul .txt", "folder/NUL")
STREAMS = ("notes.txt:hidden", "notes.txt::$DATA", "notes.txt:a:$DATA", ":stream")
NO_NAMES = ("notes.txt.", "notes.txt ", "a<b", "a|b", "a?", "a*", 'a"b', "a\tb")


@pytest.mark.parametrize("name", [*DEVICES, *STREAMS, *NO_NAMES])
def test_what_is_no_plain_name_is_neither_read_nor_made(name: str, place: Ground) -> None:
    before = sorted(place.root.rglob("*"))
    with pytest.raises(Problem):
        read(place, name)
    with pytest.raises(Problem), path_opening.resolve(place.writable(name)):
        raise AssertionError
    assert sorted(place.root.rglob("*")) == before


@pytest.mark.parametrize("name", ["\udc80", "a\ud800b"])
def test_a_lone_surrogate_is_not_a_path(name: str, place: Ground) -> None:
    with pytest.raises(Invalid, match="surrogate"):
        place.readable(name)


def test_what_somebody_has_open_for_a_moment_is_replaced_and_removed(
    place: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place.root / "new.txt").write_text("new")
    with path_opening.resolve(place.writable("new.txt")) as spot:
        for change in (
            lambda: spot.folder.rename("new.txt", spot.folder, "notes.txt"),
            lambda: spot.folder.remove("notes.txt"),
        ):
            reader = (place.root / "notes.txt").open("rb")
            monkeypatch.setattr("time.sleep", lambda _, reader=reader: reader.close())
            change()
            assert reader.closed
    assert not (place.root / "notes.txt").exists()


@pytest.mark.parametrize(
    "path", [r"\\?\C:\Windows\win.ini", r"\\.\C:", r"\\.\PhysicalDrive0", r"C:win.ini", r"\Windows"]
)
def test_a_path_of_the_system_leads_nowhere(path: str, place: Ground) -> None:
    with pytest.raises((Invalid, NotFound, Refused)):
        read(place, path)


@pytest.mark.parametrize("path", ["notes.txt", "NOTES.TXT", r".\Notes.txt", r"A FOLDER with a long name\..\notes.txt"])
def test_either_letter_case_and_slash_is_one_file(path: str, place: Ground) -> None:
    assert read(place, path) == b"here"
    assert read(place, str(place.root / path)) == b"here"
    assert read(place, (str(place.root).upper() + "\\" + path).replace("\\", "/")) == b"here"


@pytest.mark.parametrize("path", ["/tmp/new.txt", r"\tmp\new.txt", "/q/x/new.txt", "/mnt/q/new.txt", "/"])
def test_a_path_with_a_slash_before_it_is_no_relative_one(path: str, place: Ground) -> None:
    for named in (place.readable, place.writable):
        with pytest.raises(Refused, match="outside"):
            named(path)


@pytest.mark.parametrize("before", ["/", "/mnt/", "/cygdrive/"])
def test_other_programs_spell_a_drive_as_a_folder(before: str, place: Ground) -> None:
    drive, rest = os.path.splitdrive(place.root)
    spelled = f"{before}{drive[0].lower()}{rest}/notes.txt".replace("\\", "/")
    assert read(place, spelled) == b"here"
    assert read(place, f"{rest}\\notes.txt") == b"here"


def test_a_share_alone_is_outside(place: Ground) -> None:
    with pytest.raises(Refused, match="outside"):
        place.readable(r"\\server\share")


@pytest.mark.parametrize("path", [".env", ".ENV", ".Env"])
def test_a_secret_is_one_in_either_letter_case(path: str, place: Ground) -> None:
    with pytest.raises(Refused):
        read(place, path)


def test_a_short_name_is_its_long_one(place: Ground) -> None:
    import ctypes

    long = place.root / "A folder with a long name" / "A file with a long name.txt"
    buffer = ctypes.create_unicode_buffer(1000)
    ctypes.windll.kernel32.GetShortPathNameW(str(long), buffer, 1000)
    short = Path(buffer.value)
    assert short.name != long.name, "this volume makes no short names"
    path = f"{short.parent.name}\\{short.name}"
    with path_opening.resolve(place.readable(path)) as spot:
        assert spot.path.display.endswith("A file with a long name.txt")
    assert read(place, path) == b"long"


def test_a_secret_is_one_by_its_short_name(place: Ground) -> None:
    import ctypes

    buffer = ctypes.create_unicode_buffer(1000)
    ctypes.windll.kernel32.GetShortPathNameW(str(place.root / ".env"), buffer, 1000)
    assert Path(buffer.value).name != ".env", "this volume makes no short names"
    with pytest.raises(Refused):
        read(place, Path(buffer.value).name)


def test_a_junction_does_not_lead_out(place: Ground) -> None:
    junction(place.outside, place.root / "way")
    for path in ("way/secret.txt", r"WAY\secret.txt"):
        with pytest.raises(Refused):
            read(place, path)
    with pytest.raises(Refused), path_opening.resolve(place.writable("way/new.txt")):
        raise AssertionError


def test_a_junction_within_leads_to_what_it_names(place: Ground) -> None:
    junction(place.root / "A folder with a long name", place.root / "way")
    assert read(place, "way/A file with a long name.txt") == b"long"


def test_a_link_does_not_lead_out(place: Ground) -> None:
    (place.root / "link.txt").symlink_to(place.outside / "secret.txt")
    (place.root / "nothing.txt").symlink_to(place.outside / "new.txt")
    with pytest.raises(Refused):
        read(place, "link.txt")
    with pytest.raises(Problem):
        read(place, "nothing.txt")
    assert not (place.outside / "new.txt").exists()


@pytest.fixture
def long(place: Ground) -> str:
    """A folder whose path has more characters than most calls take, below `place`."""
    way = "\\".join(letter * 100 for letter in "abc")
    os.makedirs(f"\\\\?\\{place.root}\\{way}")
    return way


def test_a_long_path_is_written_listed_and_read(place: Ground, long: str) -> None:
    with path_opening.resolve(place.writable(f"{long}/new.txt")) as spot:
        with open(spot.folder.open(spot.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
            file.write(b"far down")
        assert spot.folder.list_names() == ["new.txt"]
    assert read(place, f"{long}/new.txt") == b"far down"


def test_what_is_in_a_long_path_is_named_looked_at_and_moved(place: Ground, long: str) -> None:
    from mcp_fs.engine.handles.windows import Folder

    folder = Folder(-1, f"{place.root}\\{long}", place.readable(long))
    folder.make_folder("new")
    assert folder.stat("new").st_mode & 0o40000
    folder.rename("new", folder, "other")
    folder.rename_noreplace("other", folder, "third")
    assert folder.list_names() == [entry.name for entry in folder.scan()] == ["third"]
    folder.remove_folder("third")
    assert folder.list_names() == []


def test_a_folder_in_use_stays_where_it_is(place: Ground) -> None:
    inner = place.root / "A folder with a long name"
    path = place.readable("A folder with a long name/A file with a long name.txt")
    with path_opening.resolve(path), pytest.raises(PermissionError):
        inner.rename(place.root / "moved")
    inner.rename(place.root / "moved")


def test_a_file_that_another_program_holds_is_named_as_such(place: Ground) -> None:
    with (
        (place.root / "notes.txt").open("rb"),
        pytest.raises(Problem, match=r"Another program has"),
        path_opening.resolve(place.writable("notes.txt")) as spot,
    ):
        spot.folder.remove(spot.name)


@pytest.mark.parametrize("shared", [0, 1], ids=["nothing", "reading"])
def test_a_change_of_a_file_that_another_program_holds_says_so(shared: int, place: Ground) -> None:
    """Excel lets others read what it has open, Outlook does not."""
    import ctypes

    target = place.writable("notes.txt")
    handle = ctypes.windll.kernel32.CreateFileW(str(place.root / "notes.txt"), 0x80000000, shared, None, 3, 0, None)
    try:
        with pytest.raises(Conflict, match=r"Another program has `notes.txt` open; nothing was changed"):
            write_file(target, "new", overwrite=True, cancel=CancelToken())
        with pytest.raises(Conflict, match=r"Another program has `notes.txt` open; nothing was moved"):
            move_entry(target, place.writable("moved.txt"), overwrite=False, cancel=CancelToken())
        if not shared:
            with pytest.raises(Conflict, match=r"Another program has `notes.txt` open"):
                read(place, "notes.txt")
    finally:
        ctypes.windll.kernel32.CloseHandle(handle)
    assert read(place, "notes.txt") == b"here"


def mark(path: Path, attributes: int) -> None:
    import ctypes

    assert ctypes.windll.kernel32.SetFileAttributesW(str(path), attributes)


def who_may(path: Path) -> bytes:
    return subprocess.run(["icacls", str(path)], check=True, capture_output=True).stdout


def test_what_is_marked_as_hidden_is(place: Ground) -> None:
    for name in ("desktop.ini", "$RECYCLE.BIN/deleted.txt"):
        (place.root / name).parent.mkdir(exist_ok=True)
        (place.root / name).write_bytes(b"needle")
        mark(place.root / name.partition("/")[0], stat.FILE_ATTRIBUTE_HIDDEN | stat.FILE_ATTRIBUTE_SYSTEM)
    answer = search_text([place.readable(".")], Query("needle"), None, CancelToken(), None).text()
    assert "left out 3 hidden (.env, desktop.ini, $RECYCLE.BIN/); set include_hidden" in answer
    every = search_text(
        [place.readable(".")], Query("needle", walk_filter=WalkFilter(hidden=True)), None, CancelToken(), None
    )
    assert {path for path, *_ in every.files} == {"desktop.ini", "$RECYCLE.BIN/deleted.txt"}


def test_a_file_that_is_written_stays_hidden_and_as_private_as_it_was(place: Ground) -> None:
    path = place.root / "notes.txt"
    mark(path, stat.FILE_ATTRIBUTE_HIDDEN)
    subprocess.run(["icacls", str(path), "/inheritance:r", "/grant", "*S-1-3-4:F"], check=False, capture_output=True)
    before = who_may(path)
    assert not write_file(place.writable("notes.txt"), "new", overwrite=True, cancel=CancelToken()).notes
    assert path.read_bytes() == b"new"
    assert os.lstat(path).st_file_attributes & stat.FILE_ATTRIBUTE_HIDDEN
    assert who_may(path) == before


def test_what_is_marked_read_only_is_removed_and_stays_so_where_it_is_held(place: Ground) -> None:
    import ctypes

    folder = place.root / "repository"
    folder.mkdir()
    path = folder / "object"
    for made in (path, folder):
        made.touch()
        mark(made, stat.FILE_ATTRIBUTE_READONLY)
    handle = ctypes.windll.kernel32.CreateFileW(str(path), 0x80000000, 1, None, 3, 0, None)
    try:
        with pytest.raises(Conflict, match="Another program has"):
            delete(place.writable("repository/object"), recursive=False)
    finally:
        ctypes.windll.kernel32.CloseHandle(handle)
    assert os.lstat(path).st_file_attributes & stat.FILE_ATTRIBUTE_READONLY
    delete(place.writable("repository"), recursive=True)
    assert not folder.exists()


def test_a_name_gets_the_letter_case_it_is_moved_to(place: Ground) -> None:
    move_entry(place.writable("notes.txt"), place.writable("Notes.TXT"), overwrite=False, cancel=CancelToken())
    assert "Notes.TXT" in os.listdir(place.root)


@pytest.mark.parametrize(("tag", "is_link"), [(0x9000601A, False), (0x80000013, False), (0xA0000003, True)])
def test_a_folder_that_onedrive_marks_is_no_junction(
    tag: int, is_link: bool, place: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows.os, "lstat", lambda path: SimpleNamespace(st_reparse_tag=tag))
    assert windows._is_junction(str(place.root)) is is_link
