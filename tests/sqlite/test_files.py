"""New files of exports and backups: none replaces another, none is made elsewhere, none is left half written."""

import errno
import os
from functools import partial
from pathlib import Path

import pytest

from mcp_batteries.sql.transfer import files
from mcp_sqlite.worker.language.failure import Failure, describe_os_error

new_file = partial(files.create_file, fails=Failure, reason=describe_os_error)
LINK = "a link that leads to nothing"


@pytest.fixture(params=[True, False], ids=["POSIX", "Windows"], autouse=True)
def new_means_new(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways to make a file, wherever this runs."""
    monkeypatch.setattr(files, "_EXCLUSIVE_REFUSES_LINKS", request.param)


@pytest.mark.parametrize("there", ["a file", "a folder", LINK])
def test_what_is_there_stays_and_nothing_is_written_through_it(there: str, tmp_path: Path) -> None:
    served, outside = tmp_path / "served", tmp_path / "outside.csv"
    served.mkdir()
    target = served / "rows.csv"
    if there == "a file":
        target.write_bytes(b"kept")
    elif there == "a folder":
        target.mkdir()
    else:
        target.symlink_to(outside)
    with pytest.raises(Failure) as refused, new_file(str(served), "rows.csv"):
        raise AssertionError
    assert refused.value.kind == "conflict"
    assert os.listdir(served) == ["rows.csv"] and not outside.exists()


def test_a_whole_file_has_its_name_and_half_a_file_is_gone(tmp_path: Path) -> None:
    with new_file(str(tmp_path), "whole.csv") as file:
        file.write(b"rows")
    with pytest.raises(LookupError), new_file(str(tmp_path), "half.csv") as file:
        file.write(b"ro")
        raise LookupError
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"whole.csv": b"rows"}


def test_the_system_s_reason_is_told_alike_in_every_language() -> None:
    assert describe_os_error(OSError(errno.ENOENT, "Das System kann die Datei nicht finden")) == os.strerror(
        errno.ENOENT
    )
    assert describe_os_error(OSError(99_999, "Nur einmal verwendbar")) == "Nur einmal verwendbar"
    assert describe_os_error(FileExistsError()) == "FileExistsError"


def test_a_backslash_parts_names_on_windows_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for is_windows, path in ((True, "below/a.csv"), (False, r"below\a.csv")):
        monkeypatch.setattr(files, "_WINDOWS", is_windows)
        assert files.to_posix_path(r"below\a.csv") == path
        assert files.is_relative_path(files.to_posix_path(r"below\a.csv")) == is_windows
        assert not files.is_relative_path(files.to_posix_path(r"..\a.csv")) and not files.is_relative_path(
            files.to_posix_path(r"C:\a.csv")
        )
